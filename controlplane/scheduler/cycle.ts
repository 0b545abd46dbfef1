// One scheduling cycle, up to the choice of a node: which nodes are searched, which of them pass the filters, which has the
// highest score. Pure: the caller keeps where the next search begins.

import type { NodeInfo } from './cache/node-info.ts';
import type { PodInfo } from './cache/pod-info.ts';
import type { Snapshot } from './cache/snapshot.ts';
import type { CycleState } from './framework/cycle-state.ts';
import type { Diagnosis } from './framework/fit-error.ts';
import type { Framework } from './framework/framework.ts';
import { type Rejection, unresolvable } from './framework/status.ts';

/** Fewer feasible nodes than this are never enough, where there are more. */
const MIN_FEASIBLE_NODES = 100;
const MIN_PERCENTAGE = 5;

/** How many feasible nodes end a search. Without a percentage: 50 % of a small cluster, less of a large one. */
function feasibleNodesToFind(nodes: number, percentage: number | undefined): number {
  if (nodes < MIN_FEASIBLE_NODES) return nodes;
  const wanted =
    percentage === undefined || percentage === 0
      ? Math.max(MIN_PERCENTAGE, 50 - Math.trunc(nodes / 125))
      : Math.min(100, percentage);
  return Math.max(MIN_FEASIBLE_NODES, Math.trunc((nodes * wanted) / 100));
}

export interface Search {
  /** 0 ≤ x < 1; decides between nodes of the same score. */
  random(): number;
  /** Index of the node to begin with. */
  readonly start: number;
  readonly percentageOfNodesToScore: number | undefined;
  /** The node that the pod was nominated to: if it passes, no other is searched. */
  readonly nominated: string | undefined;
}

export type Choice =
  | { readonly kind: 'node'; readonly node: NodeInfo; readonly searched: number }
  | { readonly kind: 'none'; readonly diagnosis: Diagnosis; readonly searched: number };

export function choose(
  framework: Framework,
  state: CycleState,
  pod: PodInfo,
  snapshot: Snapshot,
  search: Search,
): Choice {
  const all = snapshot.nodes.length;
  const before = framework.preFilter(state, pod, snapshot);
  if (before.kind === 'reject') {
    const { rejection } = before;
    const statuses = { nodes: new Map<string, Rejection>(), absent: rejection };
    const plugins = new Set(rejection.plugin === undefined ? [] : [rejection.plugin]);
    return { kind: 'none', searched: 0, diagnosis: { nodes: all, statuses, preFilter: rejection, plugins } };
  }
  const rejected = new Map<string, Rejection>();
  const nominated = search.nominated === undefined ? undefined : snapshot.get(search.nominated);
  if (nominated !== undefined && (before.nodes === undefined || before.nodes.has(nominated.name))) {
    const rejection = framework.timed('Filter', () => framework.filter(state, pod, nominated));
    if (rejection === undefined) return { kind: 'node', node: nominated, searched: 0 };
  }
  const candidates =
    before.nodes === undefined ? snapshot.nodes : [...before.nodes].flatMap((name) => snapshot.get(name) ?? []);
  const { feasible, searched } = framework.timed('Filter', () =>
    feasibleNodes(framework, state, pod, candidates, search, rejected),
  );
  if (feasible.length === 0) {
    const plugins = new Set([...rejected.values()].flatMap(({ plugin }) => plugin ?? []));
    for (const name of before.narrowedBy) plugins.add(name);
    const absent = unresolvable(
      ...(before.narrowedBy.length > 0
        ? [`node(s) didn't satisfy plugin(s) [${before.narrowedBy.toSorted().join(' ')}]`]
        : []),
    );
    return { kind: 'none', searched, diagnosis: { nodes: all, statuses: { nodes: rejected, absent }, plugins } };
  }
  return { kind: 'node', node: best(framework, state, pod, snapshot, feasible, search), searched };
}

function feasibleNodes(
  framework: Framework,
  state: CycleState,
  pod: PodInfo,
  candidates: readonly NodeInfo[],
  { start, percentageOfNodesToScore }: Search,
  rejected: Map<string, Rejection>,
): { readonly feasible: readonly NodeInfo[]; readonly searched: number } {
  const percentage = framework.percentageOfNodesToScore ?? percentageOfNodesToScore;
  const enough = framework.scores ? feasibleNodesToFind(candidates.length, percentage) : 1;
  const feasible: NodeInfo[] = [];
  let searched = 0;
  while (searched < candidates.length && feasible.length < enough) {
    const node = candidates[(start + searched++) % candidates.length];
    if (node === undefined) continue;
    const rejection = framework.filter(state, pod, node);
    if (rejection === undefined) feasible.push(node);
    else rejected.set(node.name, rejection);
  }
  return { feasible, searched };
}

function best(
  framework: Framework,
  state: CycleState,
  pod: PodInfo,
  snapshot: Snapshot,
  feasible: readonly NodeInfo[],
  search: Search,
): NodeInfo {
  const [first] = feasible;
  if (first === undefined) throw new RangeError('no feasible nodes to choose from');
  if (feasible.length === 1) return first;
  const scores = framework.score(state, pod, snapshot, feasible);
  let [chosen, highest, equals] = [first, Number.NEGATIVE_INFINITY, 0];
  for (const [index, node] of feasible.entries()) {
    const score = scores[index] ?? 0;
    if (score > highest) [chosen, highest, equals] = [node, score, 1];
    // Each of n equal nodes is chosen with probability 1/n.
    else if (score === highest && search.random() * ++equals < 1) chosen = node;
  }
  return chosen;
}
