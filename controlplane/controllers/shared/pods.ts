// What controllers ask of a pod: whether it counts, is ready, and for how long. Pure.

import type { PodTemplateSpec } from 'kubernetes-types/core/v1';
import type { OwnerReference } from 'kubernetes-types/meta/v1';
import type { Pod } from '../../../client/types.ts';
import { type EpochMs, elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { WorkloadKind } from './objects.ts';

export const POD: WorkloadKind = { apiVersion: 'v1', kind: 'Pod', plural: 'pods' };

/** Neither finished nor on its way out. */
export function isActive({ metadata, status }: Pod): boolean {
  return status?.phase !== 'Succeeded' && status?.phase !== 'Failed' && metadata.deletionTimestamp === undefined;
}

function readyCondition({ status }: Pod) {
  return status?.conditions?.find(({ type, status: value }) => type === 'Ready' && value === 'True');
}

export function isReady(pod: Pod): boolean {
  return readyCondition(pod) !== undefined;
}

/** When the pod became ready; undefined where it is not, or does not say when. */
export function readySince(pod: Pod): EpochMs | undefined {
  return parseRfc3339(readyCondition(pod)?.lastTransitionTime);
}

/** How long the pod still has to be ready to be available, in ms: 0 when it is; undefined when time alone does not do it. */
export function availableInMs(pod: Pod, minReadySeconds: number, now: EpochMs): number | undefined {
  if (!isReady(pod)) return undefined;
  if (minReadySeconds === 0) return 0;
  const since = readySince(pod);
  return since === undefined ? undefined : Math.max(0, minReadySeconds * 1000 - elapsedMs(since, now));
}

/** When the next of these pods becomes available by time alone, in ms from now. */
export function nextAvailableInMs(pods: readonly Pod[], minReadySeconds: number, now: EpochMs): number | undefined {
  const waits = pods.flatMap((pod) => availableInMs(pod, minReadySeconds, now) ?? []);
  const pending = waits.filter((ms) => ms > 0);
  return pending.length === 0 ? undefined : Math.min(...pending);
}

/** Longest valid name; a longer prefix would be refused. */
const MAX_NAME = 253;

/** The pod that a template describes, for its controller to create; named after the owner unless `generateName` is given. */
export function podFromTemplate(template: PodTemplateSpec, owner: OwnerReference, generateName?: string) {
  const { labels, annotations, finalizers } = template.metadata ?? {};
  const prefix = `${owner.name}-`;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      generateName: generateName ?? (prefix.length <= MAX_NAME ? prefix : owner.name),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(finalizers === undefined ? {} : { finalizers }),
      ownerReferences: [owner],
    },
    spec: template.spec,
  };
}
