// Which pods make room for a critical one: as few and as unimportant as will do. The kubelet's choice: classes of service
// from below, in each the pods that come closest to what is missing. Pure.

import type { Pod } from '../../client/types.ts';
import { podQOSClass } from '../model/pod-resources.ts';
import { isCriticalPod } from '../model/static-pods.ts';
import { podRequest } from './requests.ts';

/** How much of a resource is missing. */
export interface Requirement {
  readonly resource: string;
  readonly amount: number;
}

export type Victims =
  | { readonly kind: 'victims'; readonly pods: readonly Pod[] }
  /** Even without every pod that may be ended, this much is missing. */
  | { readonly kind: 'impossible'; readonly missing: readonly Requirement[] };

/** Whether `preemptor` goes before `other`. */
export function isPreemptable(preemptor: Pod, other: Pod): boolean {
  if (isCriticalPod(preemptor) && !isCriticalPod(other)) return true;
  const [mine, theirs] = [preemptor.spec.priority, other.spec.priority];
  return mine !== undefined && theirs !== undefined && mine > theirs;
}

export function chooseVictims(preemptor: Pod, others: readonly Pod[], missing: readonly Requirement[]): Victims {
  const candidates = others.filter((other) => isPreemptable(preemptor, other));
  const left = without(missing, candidates);
  if (left.length > 0) return { kind: 'impossible', missing: left };
  const ofClass = (qos: string): Pod[] => candidates.filter((pod) => podQOSClass(pod) === qos);
  const [bestEffort, burstable, guaranteed] = [ofClass('BestEffort'), ofClass('Burstable'), ofClass('Guaranteed')];
  // Each QoS class provides only what the classes below it cannot.
  const fromGuaranteed = closest(guaranteed, without(missing, [...bestEffort, ...burstable]));
  const fromBurstable = closest(burstable, without(missing, [...bestEffort, ...fromGuaranteed]));
  const fromBestEffort = closest(bestEffort, without(missing, [...fromBurstable, ...fromGuaranteed]));
  return { kind: 'victims', pods: [...fromBestEffort, ...fromBurstable, ...fromGuaranteed] };
}

/** What is still missing when `pods` are gone. */
function without(missing: readonly Requirement[], pods: readonly Pod[]): readonly Requirement[] {
  return missing
    .map(({ resource, amount }) => ({
      resource,
      amount: pods.reduce((left, pod) => left - podRequest(pod, resource), amount),
    }))
    .filter(({ amount }) => amount > 0);
}

/** One pod after the other, each the one that leaves least missing; of equals the smaller. */
function closest(pods: readonly Pod[], missing: readonly Requirement[]): readonly Pod[] {
  const pool = [...pods];
  const chosen: Pod[] = [];
  let left = missing;
  while (left.length > 0) {
    let best: Pod | undefined;
    let bestDistance = Number.POSITIVE_INFINITY;
    for (const pod of pool) {
      const distance = distanceTo(left, pod);
      if (best === undefined || distance < bestDistance || (distance === bestDistance && isSmaller(pod, best))) {
        best = pod;
        bestDistance = distance;
      }
    }
    if (best === undefined) break;
    chosen.push(best);
    pool.splice(pool.indexOf(best), 1);
    left = without(left, [best]);
  }
  return chosen;
}

/** The sum of squares of the parts that the pod would leave missing: 0 when it is enough alone. */
function distanceTo(missing: readonly Requirement[], pod: Pod): number {
  return missing.reduce((sum, { resource, amount }) => {
    const left = amount - podRequest(pod, resource);
    return left > 0 ? sum + (left / amount) ** 2 : sum;
  }, 0);
}

/** Requests less memory, or as much memory and no more cpu. */
function isSmaller(a: Pod, b: Pod): boolean {
  const memory = podRequest(a, 'memory') - podRequest(b, 'memory');
  return memory !== 0 ? memory < 0 : podRequest(a, 'cpu') <= podRequest(b, 'cpu');
}
