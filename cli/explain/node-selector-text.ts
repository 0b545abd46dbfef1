// Node selectors, as volumes and node affinity have them, in words. Pure.

import type { NodeSelector } from 'kubernetes-types/core/v1';
import type { Node } from '../../client/types.ts';
import { list } from './words.ts';

/** "topology.kubernetes.io/zone in (a, b)": what a volume or a pod demands of a node; alternatives with "or". */
export function selectorTermsText({ nodeSelectorTerms }: NodeSelector): string {
  const terms = nodeSelectorTerms.map(({ matchExpressions = [], matchFields = [] }) =>
    list(
      [...matchExpressions, ...matchFields].map(({ key, operator, values = [] }) =>
        values.length === 0 ? `${key} ${operator}` : `${key} ${operator} (${values.join(', ')})`,
      ),
    ),
  );
  return list(terms, 'or');
}

/** What the node has of the labels that a selector names. */
export function selectedLabelsText({ nodeSelectorTerms }: NodeSelector, node: Node): string {
  const labels = new Map(Object.entries(node.metadata.labels ?? {}));
  const keys = new Set(
    nodeSelectorTerms.flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key)),
  );
  return list(
    [...keys].map((key) => {
      const value = labels.get(key);
      return value === undefined ? `no label ${key}` : `${key}=${value}`;
    }),
  );
}
