// Which nodes a pod fits, which of them is best, and the message when none fits. The messages are kube-scheduler's. Pure.
// Not considered: inter-pod affinity, topology spread, preemption. Volumes are volumes.ts.

import type { Taint } from 'kubernetes-types/core/v1';
import type { Node, Pod } from '../../client/types.ts';
import { acceptsNode, preference, toleratesTaint } from './affinity.ts';
import { type Amounts, addAmounts, amountsOf, hostPorts, podRequests, portsConflict } from './requests.ts';

/** A node with the pods that run there or are about to. */
export interface NodeView {
  readonly node: Node;
  readonly pods: readonly Pod[];
}

const NOT_READY: Taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
const UNSCHEDULABLE: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/**
 * Why the pod cannot go to the node; empty when it can. As in kube-scheduler only the first rule that fails is reported,
 * except that every resource that is short is named.
 */
export function whyNot(pod: Pod, view: NodeView): readonly string[] {
  const { node } = view;
  if (node.spec?.unschedulable === true && !toleratesTaint(pod, UNSCHEDULABLE)) return ['node(s) were unschedulable'];
  const taint = taintsOf(node).find(
    (candidate) =>
      (candidate.effect === 'NoSchedule' || candidate.effect === 'NoExecute') && !toleratesTaint(pod, candidate),
  );
  if (taint !== undefined) return [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`];
  if (!acceptsNode(pod, node)) return ["node(s) didn't match Pod's node affinity/selector"];
  const wanted = hostPorts(pod);
  const taken = wanted.length === 0 ? [] : view.pods.flatMap(hostPorts);
  if (wanted.some((port) => taken.some((other) => portsConflict(port, other)))) {
    return ["node(s) didn't have free ports for the requested pod ports"];
  }
  return shortages(pod, view);
}

/** The node's taints, and that of a node that is not ready even before its controller has tainted it. */
function taintsOf(node: Node): readonly Taint[] {
  const taints = node.spec?.taints ?? [];
  const ready = node.status?.conditions?.find((condition) => condition.type === 'Ready');
  return ready?.status === 'True' ? taints : [...taints, NOT_READY];
}

function shortages(pod: Pod, view: NodeView): readonly string[] {
  const allocatable = amountsOf(view.node.status?.allocatable);
  const reasons: string[] = [];
  if (view.pods.length + 1 > (allocatable.get('pods') ?? 0)) reasons.push('Too many pods');
  const used = usedOn(view);
  for (const [name, amount] of podRequests(pod)) {
    if (amount > 0 && amount > (allocatable.get(name) ?? 0) - (used.get(name) ?? 0))
      reasons.push(`Insufficient ${name}`);
  }
  return reasons;
}

function usedOn(view: NodeView): Amounts {
  return view.pods.reduce<Amounts>((sum, pod) => addAmounts(sum, podRequests(pod)), new Map());
}

/** 0 to 100: how much of cpu and memory would be left (LeastAllocated). */
function leastAllocated(pod: Pod, view: NodeView): number {
  const allocatable = amountsOf(view.node.status?.allocatable);
  const used = addAmounts(usedOn(view), podRequests(pod));
  const scores = ['cpu', 'memory'].map((name) => {
    const total = allocatable.get(name) ?? 0;
    return total === 0 ? 0 : Math.max(0, ((total - (used.get(name) ?? 0)) * 100) / total);
  });
  return scores.reduce((sum, score) => sum + score, 0) / scores.length;
}

/** Preferences weigh more than free room; a PreferNoSchedule taint weighs most. Ties go by name. */
function compareViews(pod: Pod, a: NodeView, b: NodeView): number {
  const avoid = (view: NodeView): number =>
    taintsOf(view.node).filter((taint) => taint.effect === 'PreferNoSchedule' && !toleratesTaint(pod, taint)).length;
  return (
    avoid(a) - avoid(b) ||
    preference(pod, b.node) - preference(pod, a.node) ||
    leastAllocated(pod, b) - leastAllocated(pod, a) ||
    (a.node.metadata.name < b.node.metadata.name ? -1 : 1)
  );
}

export type Placement =
  | { readonly kind: 'node'; readonly node: string }
  /** `message` is what the FailedScheduling event and the PodScheduled condition say. */
  | { readonly kind: 'unschedulable'; readonly message: string };

/** The node for the pod. `more` is called for nodes that fit otherwise, and returns the reasons against them. */
export function place(
  pod: Pod,
  views: readonly NodeView[],
  more: (view: NodeView) => readonly string[] = () => [],
): Placement {
  const fitting: NodeView[] = [];
  const counts = new Map<string, number>();
  for (const view of views) {
    const own = whyNot(pod, view);
    const reasons = own.length === 0 ? more(view) : own;
    if (reasons.length === 0) fitting.push(view);
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const best = fitting.sort((a, b) => compareViews(pod, a, b))[0];
  if (best !== undefined) return { kind: 'node', node: best.node.metadata.name };
  if (views.length === 0) return { kind: 'unschedulable', message: 'no nodes available to schedule pods' };
  const reasons = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return { kind: 'unschedulable', message: `0/${views.length} nodes are available: ${reasons.join(', ')}.` };
}
