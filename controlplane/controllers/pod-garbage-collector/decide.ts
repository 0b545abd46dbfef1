// Which pods no kubelet and no controller will ever remove: pods that have ended and are too many, pods on their way out that no kubelet has, or whose
// node is out of service (KEP-2268). Pure.

import type { Node, Pod } from '../../../client/types.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';

/** Set by a person who knows that the machine does not run. */
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

const isLeaving = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;

export function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** On its way out, and bound to no node: no kubelet ends it. */
export function isLeftUnbound(pod: Pod): boolean {
  return isLeaving(pod) && (pod.spec.nodeName ?? '') === '';
}

export function isOutOfService({ spec, status }: Node): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
  return !ready && (spec?.taints ?? []).some(({ key }) => key === OUT_OF_SERVICE);
}

/** On its way out, on a node that is not ready and that has been declared out of service. */
export function isLeftOnNode(pod: Pod, node: Node | undefined): boolean {
  return isLeaving(pod) && node !== undefined && isOutOfService(node);
}

/** Those beyond the threshold: evicted ones first, which no controller needs, then the oldest. */
export function endedTooMany(pods: readonly Pod[], threshold: number): readonly Pod[] {
  if (threshold <= 0) return [];
  const ended = pods.filter(hasEnded);
  if (ended.length <= threshold) return [];
  const evicted = ({ status }: Pod): number => (status?.phase === 'Failed' && status.reason === 'Evicted' ? 0 : 1);
  const made = ({ metadata }: Pod): number => parseRfc3339(metadata.creationTimestamp) ?? 0;
  const byAge = (a: Pod, b: Pod): number =>
    evicted(a) - evicted(b) || made(a) - made(b) || (a.metadata.name < b.metadata.name ? -1 : 1);
  return ended.toSorted(byAge).slice(0, ended.length - threshold);
}

/** What is written before such a pod is deleted, so that it does not seem to run; undefined for one that has ended. */
export function failedStatus(pod: Pod, isOrphan: boolean, now: string) {
  if (hasEnded(pod)) return undefined;
  const known = pod.status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'DeletionByPodGC',
    message: 'PodGC: node no longer exists',
    lastTransitionTime: known?.status === 'True' ? known.lastTransitionTime : now,
  };
  return { phase: 'Failed', ...(isOrphan ? { conditions: [condition] } : {}) };
}
