// PodTopologySpread (PreFilter, Filter, Score): pods of a kind spread over the domains of a topology, strictly (DoNotSchedule)
// or if it can be (ScheduleAnyway), and without constraints of their own by those of the profile. Matching pods come from the
// cache's counters. Pure.

import type { TopologySpreadConstraint } from 'kubernetes-types/core/v1';
import type { LabelSelector } from 'kubernetes-types/meta/v1';
import { matchesLabelSelector } from '../../../client/selectors.ts';
import type { Pod } from '../../../client/types.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { acceptsNode } from '../affinity.ts';
import { selectionOf } from '../cache/affinity-term.ts';
import type { NodeInfo } from '../cache/node-info.ts';
import type { PodInfo } from '../cache/pod-info.ts';
import type { Snapshot } from '../cache/snapshot.ts';
import { isNodeChange } from '../events.ts';
import { StateKey } from '../framework/cycle-state.ts';
import { GO, MAX_NODE_SCORE, type Plugin, SKIP } from '../framework/plugin.ts';
import { unresolvable, unschedulable } from '../framework/status.ts';
import { untoleratedTaint } from './taint-toleration.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const TOO_SKEWED = unschedulable("node(s) didn't match pod topology spread constraints");
const NO_LABEL = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)");

/** Of pods without constraints whose Service or workload says which pods are of their kind. */
const SYSTEM_CONSTRAINTS: readonly TopologySpreadConstraint[] = [
  { topologyKey: HOSTNAME, whenUnsatisfiable: 'ScheduleAnyway', maxSkew: 3 },
  { topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway', maxSkew: 5 },
];

export interface PodTopologySpreadArgs {
  readonly defaultConstraints: readonly TopologySpreadConstraint[];
  /** The constraints are upstream's: nodes without a zone are still spread by their names. */
  readonly system: boolean;
}

export const SPREAD_DEFAULTS: PodTopologySpreadArgs = { defaultConstraints: SYSTEM_CONSTRAINTS, system: true };

/** The selector of the Services and the workload that a pod belongs to; undefined where there is none. */
export type DefaultSelector = (pod: Pod) => LabelSelector | undefined;

interface Constraint {
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly minDomains: number;
  /** Undefined selects no pods. */
  readonly selector: LabelSelector | undefined;
  /** Nodes that the pod's node affinity excludes do not count; nor do those with taints that it does not tolerate. */
  readonly honorAffinity: boolean;
  readonly honorTaints: boolean;
  /** Whether the pod itself is of the kind. */
  readonly self: 0 | 1;
}

const matches = (selector: LabelSelector | undefined, { metadata }: Pod): boolean =>
  selector !== undefined && matchesLabelSelector(selector, metadata.labels ?? {});

function withMatchLabelKeys(
  { matchLabelKeys = [], labelSelector }: SpreadConstraint,
  { metadata }: Pod,
): LabelSelector | undefined {
  if (labelSelector === undefined) return undefined;
  const added = matchLabelKeys.flatMap((key) => {
    const value = getOwn(metadata.labels, key);
    return value === undefined ? [] : [{ key, operator: 'In', values: [value] }];
  });
  if (added.length === 0) return labelSelector;
  return { ...labelSelector, matchExpressions: [...(labelSelector.matchExpressions ?? []), ...added] };
}

/** Fields that kubernetes-types does not have everywhere. */
type SpreadConstraint = TopologySpreadConstraint & {
  readonly matchLabelKeys?: readonly string[];
  readonly minDomains?: number;
  readonly nodeAffinityPolicy?: string;
  readonly nodeTaintsPolicy?: string;
};

function constraintsOf(
  pod: Pod,
  from: readonly SpreadConstraint[],
  action: string,
  selector: LabelSelector | undefined,
): readonly Constraint[] {
  return from
    .filter(({ whenUnsatisfiable }) => whenUnsatisfiable === action)
    .map((constraint) => {
      const own = selector ?? withMatchLabelKeys(constraint, pod);
      return {
        topologyKey: constraint.topologyKey,
        maxSkew: constraint.maxSkew,
        minDomains: constraint.minDomains ?? 1,
        selector: own,
        honorAffinity: constraint.nodeAffinityPolicy !== 'Ignore',
        honorTaints: constraint.nodeTaintsPolicy === 'Honor',
        self: matches(own, pod) ? 1 : 0,
      };
    });
}

const counts = ({ honorAffinity, honorTaints }: Constraint, pod: Pod, node: NodeInfo): boolean =>
  (!honorAffinity || acceptsNode(pod, node.node)) && (!honorTaints || untoleratedTaint(pod, node.taints) === undefined);

const hasAll = (constraints: readonly Constraint[], { labels }: NodeInfo): boolean =>
  constraints.every(({ topologyKey }) => getOwn(labels, topologyKey) !== undefined);

/** Domain → matching pods there. */
type Domains = Map<string, number>;

interface FilterState {
  readonly constraints: readonly {
    readonly constraint: Constraint;
    readonly domains: Domains;
    least: number | undefined;
  }[];
}

function filterState(pod: PodInfo, constraints: readonly Constraint[], snapshot: Snapshot): FilterState {
  const states = constraints.map((constraint) => ({
    constraint,
    domains: new Map<string, number>(),
    least: undefined,
    count: snapshot.counter([selectionOf([pod.namespace], constraint.selector)], false),
  }));
  for (const node of snapshot.nodes) {
    if (!hasAll(constraints, node)) continue;
    for (const { constraint, domains, count } of states) {
      const domain = getOwn(node.labels, constraint.topologyKey);
      if (domain === undefined || !counts(constraint, pod.pod, node)) continue;
      domains.set(domain, (domains.get(domain) ?? 0) + count(node));
    }
  }
  return { constraints: states };
}

/** Pods in the domain that has fewest; 0 while there are fewer domains than there should be. */
function leastOf(state: FilterState['constraints'][number]): number {
  if (state.domains.size < state.constraint.minDomains) return 0;
  if (state.least === undefined) {
    let least = Number.POSITIVE_INFINITY;
    for (const pods of state.domains.values()) if (pods < least) least = pods;
    state.least = least === Number.POSITIVE_INFINITY ? 0 : least;
  }
  return state.least;
}

function update(state: FilterState, pod: PodInfo, other: PodInfo, node: NodeInfo, by: 1 | -1): void {
  const constraints = state.constraints.map(({ constraint }) => constraint);
  if (other.namespace !== pod.namespace || !hasAll(constraints, node)) return;
  for (const entry of state.constraints) {
    const { constraint, domains } = entry;
    const domain = getOwn(node.labels, constraint.topologyKey);
    if (domain === undefined || !matches(constraint.selector, other.pod)) continue;
    if (!counts(constraint, pod.pod, node)) continue;
    domains.set(domain, (domains.get(domain) ?? 0) + by);
    entry.least = undefined;
  }
}

interface ScoreState {
  readonly constraints: readonly {
    readonly constraint: Constraint;
    /** Of domains with a candidate. Not of host names: there the node itself is counted. */
    readonly domains: Domains;
    readonly count: (node: NodeInfo) => number;
    /** More domains make a pod in one of them weigh more. */
    readonly weight: number;
  }[];
  readonly ignored: ReadonlySet<NodeInfo>;
}

function scoreState(
  pod: PodInfo,
  constraints: readonly Constraint[],
  snapshot: Snapshot,
  candidates: readonly NodeInfo[],
  needAll: boolean,
): ScoreState {
  const ignored = new Set(needAll ? candidates.filter((node) => !hasAll(constraints, node)) : []);
  const states = constraints.map((constraint) => {
    const domains: Domains = new Map();
    const byHost = constraint.topologyKey === HOSTNAME;
    if (!byHost) {
      for (const node of candidates) {
        // Nodes without the label are a domain of their own, which is not scored.
        if (!ignored.has(node)) domains.set(getOwn(node.labels, constraint.topologyKey) ?? '', 0);
      }
    }
    const size = byHost ? candidates.length - ignored.size : domains.size;
    const count = snapshot.counter([selectionOf([pod.namespace], constraint.selector)], false);
    return { constraint, domains, count, weight: Math.log(size + 2) };
  });
  for (const node of snapshot.nodes) {
    if (needAll && !hasAll(constraints, node)) continue;
    for (const { constraint, domains, count } of states) {
      const domain = getOwn(node.labels, constraint.topologyKey);
      const before = domain === undefined ? undefined : domains.get(domain);
      if (domain === undefined || before === undefined || !counts(constraint, pod.pod, node)) continue;
      domains.set(domain, before + count(node));
    }
  }
  return { constraints: states, ignored };
}

/** The fewer matching pods its domains have, the lower. */
function scoreOf({ constraints, ignored }: ScoreState, node: NodeInfo): number {
  if (ignored.has(node)) return 0;
  let score = 0;
  for (const { constraint, domains, count, weight } of constraints) {
    const domain = getOwn(node.labels, constraint.topologyKey);
    if (domain === undefined) continue;
    const pods = constraint.topologyKey === HOSTNAME ? count(node) : (domains.get(domain) ?? 0);
    // What maxSkew tolerates makes differences between domains weigh less.
    score += pods * weight + (constraint.maxSkew - 1);
  }
  return Math.round(score);
}

/** Turns them round, in place: the node with the fewest pods gets the most. */
function normalize(scores: number[], nodes: readonly NodeInfo[], ignored: ReadonlySet<NodeInfo>): void {
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (const [index, node] of nodes.entries()) {
    if (ignored.has(node)) continue;
    const score = scores[index] ?? 0;
    [least, most] = [Math.min(least, score), Math.max(most, score)];
  }
  for (const [index, node] of nodes.entries()) {
    if (ignored.has(node)) scores[index] = 0;
    else if (most === 0) scores[index] = MAX_NODE_SCORE;
    else scores[index] = Math.trunc((MAX_NODE_SCORE * (most + least - (scores[index] ?? 0))) / most);
  }
}

export function podTopologySpread(args: PodTopologySpreadArgs, defaultSelector: DefaultSelector): Plugin {
  const { defaultConstraints, system } = args;
  const constraints = (pod: Pod, action: string): readonly Constraint[] => {
    const own = pod.spec.topologySpreadConstraints ?? [];
    if (own.length > 0) return constraintsOf(pod, own, action, undefined);
    if (!defaultConstraints.some(({ whenUnsatisfiable }) => whenUnsatisfiable === action)) return [];
    const selector = defaultSelector(pod);
    return selector === undefined ? [] : constraintsOf(pod, defaultConstraints, action, selector);
  };
  const filterKey = new StateKey<FilterState>((state) => ({
    constraints: state.constraints.map((entry) => ({ ...entry, domains: new Map(entry.domains) })),
  }));
  const scoreKey = new StateKey<ScoreState>();
  return {
    name: 'PodTopologySpread',
    preFilter: (state, pod, snapshot) => {
      const hard = constraints(pod.pod, 'DoNotSchedule');
      if (hard.length === 0) return SKIP;
      filterKey.write(state, filterState(pod, hard, snapshot));
      return GO;
    },
    addPod: (state, pod, added, node) => {
      const found = filterKey.read(state);
      if (found !== undefined) update(found, pod, added, node, 1);
    },
    removePod: (state, pod, removed, node) => {
      const found = filterKey.read(state);
      if (found !== undefined) update(found, pod, removed, node, -1);
    },
    filter: (state, _pod, { labels }) => {
      for (const entry of filterKey.read(state)?.constraints ?? []) {
        const { topologyKey, self, maxSkew } = entry.constraint;
        const domain = getOwn(labels, topologyKey);
        if (domain === undefined) return NO_LABEL;
        if ((entry.domains.get(domain) ?? 0) + self - leastOf(entry) > maxSkew) return TOO_SKEWED;
      }
      return undefined;
    },
    preScore: (state, pod, snapshot, nodes) => {
      const soft = constraints(pod.pod, 'ScheduleAnyway');
      if (soft.length === 0) return 'skip';
      const needAll = (pod.pod.spec.topologySpreadConstraints ?? []).length > 0 || !system;
      scoreKey.write(state, scoreState(pod, soft, snapshot, nodes, needAll));
      return undefined;
    },
    score: (state, _pod, node) => {
      const found = scoreKey.read(state);
      return found === undefined ? 0 : scoreOf(found, node);
    },
    normalizeScores: (state, _pod, scores, nodes) =>
      normalize(scores, nodes, scoreKey.read(state)?.ignored ?? new Set()),
    worthRetrying: (event, { pod, namespace }) => {
      switch (event.resource) {
        case 'AssignedPod': {
          if (event.object.metadata.namespace !== namespace) return false;
          return event.action !== 'update' || event.changed.has('labels');
        }
        case 'Self':
          return event.changed.has('labels') || event.changed.has('tolerations');
        case 'Node':
          return (
            event.action === 'delete' ||
            (isNodeChange(event, 'labels', 'taints') && constraints(pod, 'DoNotSchedule').length > 0)
          );
        default:
          return false;
      }
    },
  };
}
