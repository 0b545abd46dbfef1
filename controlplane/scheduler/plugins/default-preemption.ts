// DefaultPreemption (PreEnqueue, PostFilter): where a pod fits nowhere, the node where the least has to go for it: the fewest
// violated disruption budgets, then the least important victims. It decides; the scheduler evicts the victims. Pure.

import type { PodDisruptionBudget as PolicyBudget } from 'kubernetes-types/policy/v1';
import { matchesLabelSelector } from '../../../client/selectors.ts';
import type { Pod, Stored } from '../../../client/types.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { NodeInfo } from '../cache/node-info.ts';
import type { PodInfo } from '../cache/pod-info.ts';
import type { Snapshot } from '../cache/snapshot.ts';
import type { CycleState } from '../framework/cycle-state.ts';
import { fitErrorMessage } from '../framework/fit-error.ts';
import type { DryRun, NodeStatuses, Plugin, PostFilterResult } from '../framework/plugin.ts';
import { type Rejection, unresolvable } from '../framework/status.ts';

export type PodDisruptionBudget = Stored<PolicyBudget>;

export interface DefaultPreemptionArgs {
  /** How many candidates are enough: at least so many percent of the nodes, and so many. */
  readonly minCandidateNodesPercentage: number;
  readonly minCandidateNodesAbsolute: number;
}

export const PREEMPTION_DEFAULTS: DefaultPreemptionArgs = {
  minCandidateNodesPercentage: 10,
  minCandidateNodesAbsolute: 100,
};

const NO_VICTIMS = unresolvable('No preemption victims found for incoming pod');
const NOT_HELPFUL = unresolvable('Preemption is not helpful for scheduling');

export interface PreemptionView {
  budgets(): readonly PodDisruptionBudget[];
  /** Whether victims of this pod are being deleted at this moment. */
  isPreempting(podUid: string): boolean;
  /** 0 ≤ x < 1; where the search for candidates begins. */
  random(): number;
}

export interface Candidate {
  readonly node: string;
  /** The most important first; never empty. */
  readonly victims: readonly PodInfo[];
  readonly violations: number;
}

const startOf = ({ pod }: PodInfo): number => parseRfc3339(pod.status?.startTime ?? '') ?? Number.POSITIVE_INFINITY;

/** Negative when `a` is more important: of higher priority, or running for longer. */
function byImportance(a: PodInfo, b: PodInfo): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  const [left, right] = [startOf(a), startOf(b)];
  return left === right ? 0 : left - right;
}

/** The pods, in their order, whose eviction together with those before them would break a budget, and the others. */
function splitByBudgets(pods: readonly PodInfo[], budgets: readonly PodDisruptionBudget[]) {
  const left = budgets.map(({ status }) => status?.disruptionsAllowed ?? 0);
  const violating: PodInfo[] = [];
  const others: PodInfo[] = [];
  for (const info of pods) {
    let violates = false;
    for (const [index, budget] of budgets.entries()) {
      if (!covers(budget, info.pod)) continue;
      left[index] = (left[index] ?? 0) - 1;
      if ((left[index] ?? 0) < 0) violates = true;
    }
    (violates ? violating : others).push(info);
  }
  return { violating, others };
}

/** A pod that the budget counts as disrupted already is not counted twice. A budget with an empty selector covers no pod here. */
function covers({ metadata, spec, status }: PodDisruptionBudget, pod: Pod): boolean {
  if (metadata.namespace !== pod.metadata.namespace || spec?.selector === undefined) return false;
  const { matchLabels = {}, matchExpressions = [] } = spec.selector;
  if (Object.keys(matchLabels).length === 0 && matchExpressions.length === 0) return false;
  if (getOwn(status?.disruptedPods, pod.metadata.name) !== undefined) return false;
  return matchesLabelSelector(spec.selector, pod.metadata.labels ?? {});
}

/** The fewest pods that have to leave the node for the pod to fit. `state` and `node` are copies, which it changes. */
function selectVictims(
  state: CycleState,
  pod: PodInfo,
  node: NodeInfo,
  budgets: readonly PodDisruptionBudget[],
  dryRun: DryRun,
): Candidate | Rejection {
  const remove = (other: PodInfo): void => {
    node.removePod(other.uid);
    dryRun.removePod(state, pod, other, node);
  };
  const potential = [...node.pods.values()].filter(({ priority }) => priority < pod.priority);
  if (potential.length === 0) return NO_VICTIMS;
  for (const victim of potential) remove(victim);
  const rejection = dryRun.filter(state, pod, node);
  if (rejection !== undefined) return rejection;
  const victims: PodInfo[] = [];
  /** Whether the pod can stay after all. */
  const reprieved = (other: PodInfo): boolean => {
    node.addPod(other);
    dryRun.addPod(state, pod, other, node);
    if (dryRun.filter(state, pod, node) === undefined) return true;
    remove(other);
    victims.push(other);
    return false;
  };
  const { violating, others } = splitByBudgets(potential.toSorted(byImportance), budgets);
  const violations = violating.filter((other) => !reprieved(other)).length;
  for (const other of others) reprieved(other);
  return { node: node.name, victims: victims.toSorted(byImportance), violations };
}

/** In turn: the figure of a candidate that has to be least. */
const COSTS: readonly ((candidate: Candidate) => number)[] = [
  ({ violations }) => violations,
  ({ victims }) => victims[0]?.priority ?? 0,
  // Priorities are made positive, so that few pods of negative priority do not cost more than many.
  ({ victims }) => victims.reduce((sum, { priority }) => sum + priority + 2 ** 31, 0),
  ({ victims }) => victims.length,
  // The one whose most important victims have run for the shortest time.
  ({ victims }) => -earliestStart(victims),
];

function earliestStart(victims: readonly PodInfo[]): number {
  const highest = victims[0]?.priority;
  return Math.min(...victims.filter(({ priority }) => priority === highest).map(startOf));
}

/** The first of the best. */
export function cheapest(candidates: readonly Candidate[]): Candidate | undefined {
  let left = candidates;
  for (const cost of COSTS) {
    if (left.length < 2) break;
    const costs = left.map(cost);
    const least = Math.min(...costs);
    left = left.filter((_candidate, index) => costs[index] === least);
  }
  return left[0];
}

/** A pod that waits for its victims to end preempts no more. Returns why it may not. */
function notEligible(pod: PodInfo, snapshot: Snapshot, statuses: NodeStatuses): string | undefined {
  if (pod.pod.spec.preemptionPolicy === 'Never') return 'not eligible due to preemptionPolicy=Never.';
  const nominated = pod.pod.status?.nominatedNodeName ?? '';
  if (nominated === '') return undefined;
  const status = statuses.nodes.get(nominated) ?? statuses.absent;
  if (status.code === 'UnschedulableAndUnresolvable') return undefined;
  for (const other of snapshot.get(nominated)?.pods.values() ?? []) {
    if (other.priority < pod.priority && isTerminatingByPreemption(other.pod)) {
      return 'not eligible due to a terminating pod on the nominated node.';
    }
  }
  return undefined;
}

function isTerminatingByPreemption({ metadata, status }: Pod): boolean {
  return (
    metadata.deletionTimestamp !== undefined &&
    (status?.conditions ?? []).some(
      ({ type, status: value, reason }) =>
        type === 'DisruptionTarget' && value === 'True' && reason === 'PreemptionByScheduler',
    )
  );
}

function candidatesOf(
  state: CycleState,
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  { start, enough, budgets }: { start: number; enough: number; budgets: readonly PodDisruptionBudget[] },
  dryRun: DryRun,
): { readonly candidates: readonly Candidate[]; readonly rejected: ReadonlyMap<string, Rejection> } {
  const candidates: Candidate[] = [];
  const rejected = new Map<string, Rejection>();
  for (let index = 0; index < nodes.length; index++) {
    const node = nodes[(start + index) % nodes.length];
    if (node === undefined) continue;
    const found = selectVictims(state.clone(), pod, node.clone(), budgets, dryRun);
    if ('code' in found) rejected.set(node.name, found);
    else if (found.victims.length > 0) candidates.push(found);
    // Enough of them, and one that breaks no budget.
    if (candidates.length >= enough && candidates.some(({ violations }) => violations === 0)) break;
  }
  return { candidates, rejected };
}

export function defaultPreemption(args: DefaultPreemptionArgs, view: PreemptionView): Plugin {
  return {
    name: 'DefaultPreemption',
    preEnqueue: ({ uid }) =>
      view.isPreempting(uid) ? unresolvable('waiting for the preemption for this pod to be finished') : undefined,
    postFilter: (state, pod, snapshot, statuses, dryRun): PostFilterResult => {
      const failure = (message: string, clear: boolean): PostFilterResult => ({
        kind: 'unschedulable',
        message: `preemption: ${message}`,
        clear,
      });
      const ineligible = notEligible(pod, snapshot, statuses);
      if (ineligible !== undefined) return failure(ineligible, false);
      const all = snapshot.nodes.length;
      const nodes = snapshot.nodes.filter(
        ({ name }) => (statuses.nodes.get(name) ?? statuses.absent).code === 'Unschedulable',
      );
      const enough = Math.max(
        Math.trunc((nodes.length * args.minCandidateNodesPercentage) / 100),
        args.minCandidateNodesAbsolute,
      );
      const search = { start: Math.trunc(view.random() * nodes.length), enough, budgets: view.budgets() };
      const { candidates, rejected } = candidatesOf(state, pod, nodes, search, dryRun);
      const chosen = cheapest(candidates);
      if (chosen !== undefined) return { kind: 'nominate', node: chosen.node, victims: chosen.victims };
      return failure(fitErrorMessage({ nodes: all, statuses: { nodes: rejected, absent: NOT_HELPFUL } }), true);
    },
    // The plugins that rejected the pod know what brings it back.
    worthRetrying: () => false,
  };
}
