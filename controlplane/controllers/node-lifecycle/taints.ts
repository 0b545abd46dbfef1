// What a node's conditions mean: the taints that follow from them, and the conditions of a node that fell silent. Pure.
// Taints that someone else has set are never touched.

import type { NodeCondition, Taint } from 'kubernetes-types/core/v1';
import type { Node } from '../../../client/types.ts';
import { getOwn, setOwn } from '../../../lib/own-property.ts';

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
const KEYS = new Set([NOT_READY, UNREACHABLE, UNSCHEDULABLE, ...Object.values(BY_CONDITION)]);

const isExecute = ({ key, effect }: Taint): boolean =>
  effect === 'NoExecute' && (key === NOT_READY || key === UNREACHABLE);

/** Of these keys, another effect than the two that follow from conditions is someone else's. */
const isOurs = (taint: Taint): boolean => KEYS.has(taint.key) && (taint.effect === 'NoSchedule' || isExecute(taint));

function conditionStatus(node: Node, type: string): string | undefined {
  return node.status?.conditions?.find((candidate) => candidate.type === type)?.status;
}

/** Whether pods may be driven out: `now`, `not yet` (taints that are there stay), or `never` (they go). */
export type Eviction = 'now' | 'not yet' | 'never';

/** The key of the NoExecute taint that a node should have by its Ready condition. */
function executeKey(node: Node): string | undefined {
  const ready = conditionStatus(node, 'Ready');
  // A node that has not reported yet is not ready, but nothing is known that pods should be driven out for.
  return ready === 'False' ? NOT_READY : ready === 'Unknown' ? UNREACHABLE : undefined;
}

/** Whether the node is not ready and its pods have not been driven out for it. */
export function awaitsEviction(node: Node): boolean {
  return executeKey(node) !== undefined && !(node.spec?.taints ?? []).some(isExecute);
}

/**
 * The node's taints as they should be, or undefined when they are. Taints that stay keep their timeAdded; NoExecute
 * taints get one, as tolerationSeconds count from it. Of a node that is tainted already, only the reason changes: that needs no `eviction`.
 */
export function nextTaints(node: Node, now: string, eviction: Eviction): Taint[] | undefined {
  const present = node.spec?.taints ?? [];
  const wanted: Taint[] = [];
  const ready = conditionStatus(node, 'Ready');
  if (ready === 'False' || ready === undefined) wanted.push({ key: NOT_READY, effect: 'NoSchedule' });
  if (ready === 'Unknown') wanted.push({ key: UNREACHABLE, effect: 'NoSchedule' });
  const execute = executeKey(node);
  if (execute !== undefined && (eviction === 'now' || (eviction === 'not yet' && present.some(isExecute)))) {
    wanted.push({ key: execute, effect: 'NoExecute', timeAdded: now });
  }
  for (const [type, key] of Object.entries(BY_CONDITION)) {
    if (conditionStatus(node, type) === 'True') wanted.push({ key, effect: 'NoSchedule' });
  }
  if (node.spec?.unschedulable === true) wanted.push({ key: UNSCHEDULABLE, effect: 'NoSchedule' });

  const same = (a: Taint, b: Taint): boolean => a.key === b.key && a.effect === b.effect;
  const kept = present.filter((taint) => !isOurs(taint) || wanted.some((other) => same(taint, other)));
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

/** Labels whose older name has to have the value of the newer one. */
const OLDER_LABELS: Readonly<Record<string, string>> = {
  'kubernetes.io/os': 'beta.kubernetes.io/os',
  'kubernetes.io/arch': 'beta.kubernetes.io/arch',
};

/** The labels to write, undefined where all are right. */
export function olderLabels({ metadata: { labels = {} } }: Node): Readonly<Record<string, string>> | undefined {
  const changed: Record<string, string> = {};
  for (const [newer, older] of Object.entries(OLDER_LABELS)) {
    const value = getOwn(labels, newer);
    if (value !== undefined && getOwn(labels, older) !== value) setOwn(changed, older, value);
  }
  return Object.keys(changed).length === 0 ? undefined : changed;
}
