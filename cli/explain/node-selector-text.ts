// Selectors of nodes and of pods in words. Pure.

import type { NodeSelector } from 'kubernetes-types/core/v1';
import type { LabelSelector } from 'kubernetes-types/meta/v1';
import type { Node } from '../../client/types.ts';
import { list } from './words.ts';

function expressionText(key: string, operator: string, values: readonly string[]): string {
  return values.length === 0 ? `${key} ${operator}` : `${key} ${operator} (${values.join(', ')})`;
}

/** "topology.kubernetes.io/zone in (a, b)": what a volume or a pod demands of a node; alternatives with "or". */
export function selectorTermsText({ nodeSelectorTerms }: NodeSelector): string {
  const terms = nodeSelectorTerms.map(({ matchExpressions = [], matchFields = [] }) =>
    list(
      [...matchExpressions, ...matchFields].map(({ key, operator, values = [] }) =>
        expressionText(key, operator, values),
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

/** "app=web and tier In (a, b)"; "any labels" where every pod is meant. */
export function labelSelectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const parts = [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(({ key, operator, values = [] }) => expressionText(key, operator, values)),
  ];
  return parts.length === 0 ? 'any labels' : list(parts);
}
