// Node selectors, node affinity and tolerations: does this pod accept this node? Pure.

import type { NodeSelector, Taint } from 'kubernetes-types/core/v1';
import * as selectors from '../../client/selectors.ts';
import type { Node, Pod } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';

export function toleratesTaint(pod: Pod, taint: Taint): boolean {
  return (pod.spec.tolerations ?? []).some((toleration) => selectors.tolerates(toleration, taint));
}

/** nodeSelector and the required part of node affinity. */
export function acceptsNode(pod: Pod, node: Node): boolean {
  const labels = node.metadata.labels ?? {};
  for (const [key, value] of Object.entries(pod.spec.nodeSelector ?? {}))
    if (getOwn(labels, key) !== value) return false;
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesNodeSelector(required, node);
}

const selectable = ({ metadata: { name, labels = {} } }: Node): selectors.SelectableNode => ({ name, labels });

/** Any of its terms matches; what a volume's node affinity is, too. */
export function matchesNodeSelector(selector: NodeSelector, node: Node): boolean {
  return selectors.matchesNodeSelector(selector, selectable(node));
}

/** The sum of weights of preferred terms that the node matches. */
export function preference(pod: Pod, node: Node): number {
  const preferred = pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return preferred.reduce(
    (sum, term) => sum + (selectors.matchesNodeSelectorTerm(term.preference, selectable(node)) ? term.weight : 0),
    0,
  );
}
