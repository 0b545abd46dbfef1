// NodeAffinity (PreFilter, Filter, Score): nodeSelector and the required terms of node affinity, and the weights of the
// preferred ones; `addedAffinity` of the profile applies to all its pods. Pure.

import type { NodeAffinity, NodeSelector } from 'kubernetes-types/core/v1';
import { matchesNodeSelector, matchesNodeSelectorTerm } from '../../../client/selectors.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { acceptsNode } from '../affinity.ts';
import type { NodeInfo } from '../cache/node-info.ts';
import { isNodeChange } from '../events.ts';
import { normalizeByMaximum } from '../framework/normalize.ts';
import { GO, type Plugin, type PreFilterResult, SKIP } from '../framework/plugin.ts';
import { unresolvable } from '../framework/status.ts';

const ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity");
const NO_MATCH = unresolvable("node(s) didn't match Pod's node affinity/selector");

export interface NodeAffinityArgs {
  readonly addedAffinity?: NodeAffinity;
}

const required = (pod: Pod): NodeSelector | undefined =>
  pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;

/** The nodes that the terms name by metadata.name, as those of daemon set pods do; undefined when a term names none. */
function namedNodes(selector: NodeSelector): ReadonlySet<string> | undefined {
  const all = new Set<string>();
  for (const { matchFields = [] } of selector.nodeSelectorTerms) {
    const named = matchFields.filter(({ key, operator }) => key === 'metadata.name' && operator === 'In');
    if (named.length === 0) return undefined;
    const [first = [], ...others] = named.map(({ values = [] }) => values);
    for (const name of first) if (others.every((values) => values.includes(name))) all.add(name);
  }
  return all;
}

export function nodeAffinity({ addedAffinity }: NodeAffinityArgs = {}): Plugin {
  const added = addedAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const addedPreferred = addedAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const preferred = (pod: Pod) => [
    ...addedPreferred,
    ...(pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []),
  ];
  const matchesAdded = (name: string, labels: Readonly<Record<string, string>>): boolean =>
    added === undefined || matchesNodeSelector(added, { name, labels });
  const accepts = (pod: Pod, node: Node): boolean =>
    matchesAdded(node.metadata.name, node.metadata.labels ?? {}) && acceptsNode(pod, node);
  return {
    name: 'NodeAffinity',
    preFilter: (_state, { pod }): PreFilterResult => {
      const selector = required(pod);
      if (selector === undefined && added === undefined && pod.spec.nodeSelector === undefined) return SKIP;
      const nodes = selector === undefined ? undefined : namedNodes(selector);
      if (nodes === undefined) return GO;
      return nodes.size === 0
        ? { kind: 'reject', rejection: unresolvable('pod affinity terms conflict') }
        : { kind: 'go', nodes };
    },
    filter: (_state, { pod }, { node, name, labels }) => {
      if (!matchesAdded(name, labels)) return ENFORCED;
      return acceptsNode(pod, node) ? undefined : NO_MATCH;
    },
    preScore: (_state, { pod }) => (preferred(pod).length === 0 ? 'skip' : undefined),
    score: (_state, { pod }, { name, labels }: NodeInfo) =>
      preferred(pod).reduce(
        (sum, { weight, preference }) => (matchesNodeSelectorTerm(preference, { name, labels }) ? sum + weight : sum),
        0,
      ),
    normalizeScores: (_state, _pod, scores) => normalizeByMaximum(scores, false),
    worthRetrying: (event, { pod }) => {
      if (event.resource !== 'Node' || !isNodeChange(event, 'labels') || !accepts(pod, event.object)) return false;
      return event.action === 'add' || (event.action === 'update' && !accepts(pod, event.old));
    },
  };
}
