// What a node's conditions mean: the taints that follow from them, and the conditions of a node that fell silent. Pure.
// Taints that someone else has set are never touched.

import type { NodeCondition, Taint } from 'kubernetes-types/core/v1';
import type { Node } from '../../client/types.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';
const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable';
/** Conditions that taint when they are True. */
const BY_CONDITION: Readonly<Record<string, string>> = {
  MemoryPressure: 'node.kubernetes.io/memory-pressure',
  DiskPressure: 'node.kubernetes.io/disk-pressure',
  PIDPressure: 'node.kubernetes.io/pid-pressure',
  NetworkUnavailable: 'node.kubernetes.io/network-unavailable',
};
const OURS = new Set([NOT_READY, UNREACHABLE, UNSCHEDULABLE, ...Object.values(BY_CONDITION)]);

/** Whether the node has a taint by which pods are evicted since it is not ready. */
export function isTaintedForEviction({ spec }: Node): boolean {
  return (
    spec?.taints?.some(({ key, effect }) => effect === 'NoExecute' && (key === NOT_READY || key === UNREACHABLE)) ===
    true
  );
}

/**
 * The node's taints as they should be, or undefined when they are. Taints that stay keep their timeAdded; NoExecute
 * taints get one, as tolerationSeconds count from it. `evicts`: a node that is not ready may have them.
 */
export function nextTaints(node: Node, now: string, evicts: boolean): Taint[] | undefined {
  const present = node.spec?.taints ?? [];
  const wanted: Taint[] = [];
  const condition = (type: string): string | undefined =>
    node.status?.conditions?.find((candidate) => candidate.type === type)?.status;
  const ready = condition('Ready');
  // A node that has not reported yet is not ready, but nothing is known that pods should be driven out for.
  if (ready === 'False' || ready === undefined) wanted.push({ key: NOT_READY, effect: 'NoSchedule' });
  if (ready === 'Unknown') wanted.push({ key: UNREACHABLE, effect: 'NoSchedule' });
  const lost = ready === 'False' ? NOT_READY : ready === 'Unknown' ? UNREACHABLE : undefined;
  if (lost !== undefined && evicts) wanted.push({ key: lost, effect: 'NoExecute', timeAdded: now });
  for (const [type, key] of Object.entries(BY_CONDITION)) {
    if (condition(type) === 'True') wanted.push({ key, effect: 'NoSchedule' });
  }
  if (node.spec?.unschedulable === true) wanted.push({ key: UNSCHEDULABLE, effect: 'NoSchedule' });

  const same = (a: Taint, b: Taint): boolean => a.key === b.key && a.effect === b.effect;
  const kept = present.filter((taint) => !OURS.has(taint.key) || wanted.some((other) => same(taint, other)));
  const added = wanted.filter((taint) => !present.some((other) => same(taint, other)));
  return kept.length === present.length && added.length === 0 ? undefined : [...kept, ...added];
}

const SILENT_CONDITIONS = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];

/**
 * The conditions to write when the node has stopped reporting; empty when they say so already. They are in the order that they have in the
 * node, as a strategic merge patch would reorder them there.
 */
export function unknownConditions(node: Node, now: string): NodeCondition[] {
  const present = node.status?.conditions ?? [];
  const inNode = present.map(({ type }) => type).filter((type) => SILENT_CONDITIONS.includes(type));
  const changed: NodeCondition[] = [];
  for (const type of new Set([...inNode, ...SILENT_CONDITIONS])) {
    const known = present.find((candidate) => candidate.type === type);
    if (known?.status === 'Unknown') continue;
    const never = known === undefined;
    changed.push({
      type,
      status: 'Unknown',
      reason: never ? 'NodeStatusNeverUpdated' : 'NodeStatusUnknown',
      message: never ? 'Kubelet never posted node status.' : 'Kubelet stopped posting node status.',
      lastHeartbeatTime: known?.lastHeartbeatTime ?? node.metadata.creationTimestamp ?? now,
      lastTransitionTime: now,
    });
  }
  return changed;
}
