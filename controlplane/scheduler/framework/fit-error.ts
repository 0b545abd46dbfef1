// Why a pod has no node, in the words of kube-scheduler: what the PodScheduled condition and the FailedScheduling event say.
// Pure.

import type { NodeStatuses } from './plugin.ts';
import type { Rejection } from './status.ts';

export const NO_NODES = 'no nodes available to schedule pods';

export interface Diagnosis {
  readonly nodes: number;
  readonly statuses: NodeStatuses;
  /** A PreFilter plugin has rejected the pod, whatever the nodes are like. */
  readonly preFilter?: Rejection;
  /** Plugins that rejected the pod somewhere: their hints decide what brings it back. */
  readonly plugins: ReadonlySet<string>;
}

function histogram(nodes: number, { nodes: known, absent }: NodeStatuses): string {
  const counts = new Map<string, number>();
  const count = (reason: string, by: number): void => void counts.set(reason, (counts.get(reason) ?? 0) + by);
  for (const { reasons } of known.values()) for (const reason of reasons) count(reason, 1);
  if (known.size < nodes) for (const reason of absent.reasons) count(reason, nodes - known.size);
  // Sorted as texts: "10 …" comes before "2 …".
  return [...counts]
    .map(([reason, times]) => `${times} ${reason}`)
    .toSorted((a, b) => (a < b ? -1 : 1))
    .join(', ');
}

/** "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: …" */
export function fitErrorMessage({ nodes, statuses, preFilter }: Omit<Diagnosis, 'plugins'>, postFilter = ''): string {
  const reasons = preFilter === undefined ? histogram(nodes, statuses) : preFilter.reasons.join(', ');
  return [`0/${nodes} nodes are available:`, reasons === '' ? '' : ` ${reasons}.`, postFilter && ` ${postFilter}`].join(
    '',
  );
}
