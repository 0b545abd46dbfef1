// InterPodAffinity (PreFilter, Filter, Score): pods near those that they want to be near, and away from those that they, or the
// others, want to be away from. Terms of placed pods come from the cache's index, matching pods from its counters, so that a
// cycle costs the number of distinct terms and of nodes, and not of pods. Pure.

import { getOwn } from '../../../lib/own-property.ts';
import { type AffinityTerm, type NamespaceLabels, selects } from '../cache/affinity-term.ts';
import type { NodeInfo } from '../cache/node-info.ts';
import type { PodInfo } from '../cache/pod-info.ts';
import type { Snapshot } from '../cache/snapshot.ts';
import { isNodeChange } from '../events.ts';
import { StateKey } from '../framework/cycle-state.ts';
import { GO, MAX_NODE_SCORE, type Plugin, SKIP } from '../framework/plugin.ts';
import { unresolvable, unschedulable } from '../framework/status.ts';
import { TopologyCounts } from '../topology-counts.ts';

export interface InterPodAffinityArgs {
  /** What a required affinity of a placed pod to the new one adds to a node's score, 0…100. */
  readonly hardPodAffinityWeight: number;
  /** Placed pods' preferences do not count for a pod that has none. */
  readonly ignorePreferredTermsOfExistingPods: boolean;
}

export const INTER_POD_AFFINITY_DEFAULTS: InterPodAffinityArgs = {
  hardPodAffinityWeight: 1,
  ignorePreferredTermsOfExistingPods: false,
};

const NOT_NEAR = unresolvable("node(s) didn't match pod affinity rules");
const TOO_NEAR = unschedulable("node(s) didn't match pod anti-affinity rules");
const KEPT_AWAY = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules");

interface State {
  /** Pods that all of the pod's affinity terms match, by the terms' topologies. */
  readonly affinity: TopologyCounts;
  /** Pods that an anti-affinity term of the pod matches, by the term's topology. */
  readonly antiAffinity: TopologyCounts;
  /** Pods with an anti-affinity term that matches the pod, by the term's topology. */
  readonly existing: TopologyCounts;
  readonly namespaceLabels: NamespaceLabels;
}

const matchesAll = (terms: readonly AffinityTerm[], { pod }: PodInfo, labels: NamespaceLabels): boolean =>
  terms.length > 0 && terms.every(({ selection }) => selects(selection, pod, labels));

function countMatching(pod: PodInfo, snapshot: Snapshot): Pick<State, 'affinity' | 'antiAffinity'> {
  const [affinity, antiAffinity] = [new TopologyCounts(), new TopologyCounts()];
  const { requiredAffinity, requiredAntiAffinity } = pod;
  if (requiredAffinity.length > 0) {
    const count = snapshot.counter(
      requiredAffinity.map(({ selection }) => selection),
      true,
    );
    for (const node of snapshot.nodes) {
      const pods = count(node);
      if (pods > 0) for (const { topologyKey } of requiredAffinity) affinity.add(topologyKey, node.labels, pods);
    }
  }
  for (const { topologyKey, selection } of requiredAntiAffinity) {
    const count = snapshot.counter([selection], true);
    for (const node of snapshot.nodes) antiAffinity.add(topologyKey, node.labels, count(node));
  }
  return { affinity, antiAffinity };
}

function countExisting(pod: PodInfo, { affinity, namespaceLabels }: Snapshot): TopologyCounts {
  const counts = new TopologyCounts();
  for (const { term, domains } of affinity.requiredAntiAffinity.values()) {
    if (!selects(term.selection, pod.pod, namespaceLabels)) continue;
    for (const [value, pods] of domains) counts.addValue(term.topologyKey, value, pods);
  }
  return counts;
}

/** `other` comes to the node (1) or leaves it (-1). */
function update(state: State, pod: PodInfo, other: PodInfo, { labels }: NodeInfo, sign: 1 | -1): void {
  const { affinity, antiAffinity, existing, namespaceLabels } = state;
  if (matchesAll(pod.requiredAffinity, other, namespaceLabels)) {
    for (const { topologyKey } of pod.requiredAffinity) affinity.add(topologyKey, labels, sign);
  }
  for (const { topologyKey, selection } of pod.requiredAntiAffinity) {
    if (selects(selection, other.pod, namespaceLabels)) antiAffinity.add(topologyKey, labels, sign);
  }
  for (const { topologyKey, selection } of other.requiredAntiAffinity) {
    if (selects(selection, pod.pod, namespaceLabels)) existing.add(topologyKey, labels, sign);
  }
}

/** The first pod of a group that wants to be together has no other to be near to: it may go where the topology is. */
function nearEnough({ affinity, namespaceLabels }: State, pod: PodInfo, { labels }: NodeInfo): boolean {
  const terms = pod.requiredAffinity;
  if (terms.some(({ topologyKey }) => getOwn(labels, topologyKey) === undefined)) return false;
  if (terms.every(({ topologyKey }) => (affinity.at(topologyKey, labels) ?? 0) > 0)) return true;
  return affinity.empty && matchesAll(terms, pod, namespaceLabels);
}

function weights(pod: PodInfo, snapshot: Snapshot, args: InterPodAffinityArgs): TopologyCounts {
  const { affinity, namespaceLabels, nodes } = snapshot;
  const scores = new TopologyCounts();
  for (const { topologyKey, selection, weight } of pod.preferred) {
    const count = snapshot.counter([selection], true);
    for (const node of nodes) scores.add(topologyKey, node.labels, weight * count(node));
  }
  const { hardPodAffinityWeight: hard } = args;
  const ofOthers = [
    hard === 0 ? [] : [...affinity.requiredAffinity.values()].map((entry) => ({ entry, factor: hard })),
    args.ignorePreferredTermsOfExistingPods && pod.preferred.length === 0
      ? []
      : [...affinity.preferred.values()].map((entry) => ({ entry, factor: 1 })),
  ].flat();
  for (const { entry, factor } of ofOthers) {
    if (!selects(entry.term.selection, pod.pod, namespaceLabels)) continue;
    for (const [value, amount] of entry.domains) scores.addValue(entry.term.topologyKey, value, factor * amount);
  }
  return scores;
}

export function interPodAffinity(args: InterPodAffinityArgs = INTER_POD_AFFINITY_DEFAULTS): Plugin {
  const key = new StateKey<State>((state) => ({
    ...state,
    affinity: state.affinity.clone(),
    antiAffinity: state.antiAffinity.clone(),
    existing: state.existing.clone(),
  }));
  const scoreKey = new StateKey<TopologyCounts>();
  return {
    name: 'InterPodAffinity',
    preFilter: (state, pod, snapshot) => {
      const existing = countExisting(pod, snapshot);
      const own = pod.requiredAffinity.length + pod.requiredAntiAffinity.length;
      if (own === 0 && existing.empty) return SKIP;
      key.write(state, { ...countMatching(pod, snapshot), existing, namespaceLabels: snapshot.namespaceLabels });
      return GO;
    },
    addPod: (state, pod, added, node) => {
      const found = key.read(state);
      if (found !== undefined) update(found, pod, added, node, 1);
    },
    removePod: (state, pod, removed, node) => {
      const found = key.read(state);
      if (found !== undefined) update(found, pod, removed, node, -1);
    },
    filter: (state, pod, node) => {
      const found = key.read(state);
      if (found === undefined) return undefined;
      if (pod.requiredAffinity.length > 0 && !nearEnough(found, pod, node)) return NOT_NEAR;
      const near = pod.requiredAntiAffinity.some(
        ({ topologyKey }) => (found.antiAffinity.at(topologyKey, node.labels) ?? 0) > 0,
      );
      if (near) return TOO_NEAR;
      return found.existing.anyAt(node.labels) ? KEPT_AWAY : undefined;
    },
    preScore: (state, pod, snapshot) => {
      const scores = weights(pod, snapshot, args);
      if (scores.empty) return 'skip';
      scoreKey.write(state, scores);
      return undefined;
    },
    score: (state, _pod, { labels }) => scoreKey.read(state)?.sum(labels) ?? 0,
    normalizeScores: (_state, _pod, scores) => {
      let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
      for (const score of scores) [least, most] = [Math.min(least, score), Math.max(most, score)];
      for (const [index, score] of scores.entries()) {
        scores[index] = most > least ? Math.trunc((MAX_NODE_SCORE * (score - least)) / (most - least)) : 0;
      }
    },
    worthRetrying: (event, pod) => {
      switch (event.resource) {
        case 'AssignedPod':
          if (event.action === 'update' && !event.changed.has('labels')) return false;
          // A pod that comes may be one to be near to; one that goes, or is another now, one to be away from.
          return event.action !== 'add' || pod.requiredAffinity.length > 0;
        case 'Self':
          return event.changed.has('labels');
        case 'Namespace':
          return true;
        default:
          return isNodeChange(event, 'labels');
      }
    },
  };
}
