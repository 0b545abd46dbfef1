// Admission of pods by the node: puts the rules of this folder into the kubelet's order. Pure: the facts are arguments.

import type { Pod } from '../../client/types.ts';
import { isCriticalPod } from '../model/static-pods.ts';
import { refuseAbsentFeatures, refuseAppArmor, refuseOS, refuseSupplementalGroupsPolicy } from './features.ts';
import { shortageRefusal, shortages } from './fit.ts';
import { misplacements, type PlacementNode } from './placement.ts';
import { chooseVictims, type Requirement } from './preemption.ts';
import { refuseSysctls, sysctlPatterns } from './sysctls.ts';

/** The node as it is at this moment. */
export interface AdmissionNode extends PlacementNode {
  /** What pods may have of it, extended resources too. */
  readonly allocatable: Readonly<Record<string, string>>;
  /** Whether the runtime has supplementalGroupsPolicy; undefined when it has not reported its features. */
  readonly supplementalGroupsPolicy?: boolean;
}

export interface AdmissionFacts {
  node(): AdmissionNode;
  /** uname -r. */
  readonly kernelVersion: string;
  readonly allowedUnsafeSysctls: readonly string[];
  /** Whether the kernel enforces AppArmor profiles. */
  readonly appArmor: boolean;
}

export interface Refusal {
  readonly reason: string;
  readonly message: string;
}

export interface Preemption {
  readonly preempt: readonly Pod[];
}

export type Admit = (pod: Pod, others: readonly Pod[]) => Refusal | Preemption | undefined;

/** The rules, in order. Throws UserError when the configuration allows what is no sysctl. */
export function createAdmission(facts: AdmissionFacts): readonly Admit[] {
  const patterns = sysctlPatterns(facts.kernelVersion, facts.allowedUnsafeSysctls);
  return [
    (pod) => refuseSysctls(pod, patterns),
    (pod) => refuseOS(pod, facts.node().labels),
    (pod) => refuseAbsentFeatures(pod),
    (pod) => refuseSupplementalGroupsPolicy(pod, facts.node().supplementalGroupsPolicy),
    (pod, others) => admitToNode(pod, others, facts.node()),
    (pod) => refuseAppArmor(pod, facts.appArmor),
  ];
}

/** Room and place. A critical pod that only lacks room is given it. */
export function admitToNode(pod: Pod, others: readonly Pod[], node: AdmissionNode): ReturnType<Admit> {
  const lacking = shortages(pod, others, node.allocatable);
  const misplaced = misplacements(pod, others, node);
  const [wrongPlace] = misplaced;
  const [noRoom] = lacking;
  if (!isCriticalPod(pod)) return noRoom === undefined ? wrongPlace : shortageRefusal(noRoom);
  // Nothing that ends could mend the rest.
  if (wrongPlace !== undefined || noRoom === undefined) return wrongPlace;
  const missing = lacking.map(({ resource, requested, used, capacity }) => ({
    resource,
    amount: requested - (capacity - used),
  }));
  const choice = chooseVictims(pod, others, missing);
  if (choice.kind === 'victims') return { preempt: choice.pods };
  return {
    reason: 'UnexpectedAdmissionError',
    message:
      'Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods ' +
      `to preempt: no set of running pods found to reclaim resources: ${listed(choice.missing)}`,
  };
}

function listed(missing: readonly Requirement[]): string {
  return `[${missing.map(({ resource, amount }) => `(res: ${resource}, q: ${amount}), `).join('')}]`;
}
