// Whether labels match a selector in an object: the requirements of node affinity, of claims, topologies and
// trust bundles; and whether a toleration matches a taint. Selectors that come as text in a request are the API
// server's business. Pure.

import type { NodeSelector, NodeSelectorTerm, Taint, Toleration } from 'kubernetes-types/core/v1';
import { getOwn } from '../lib/own-property.ts';

type Labels = Readonly<Record<string, string>>;

/** Of a node selector or of a label selector, which has neither Gt nor Lt. */
interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

/** False for an operator that there is not. */
export function matchesRequirement({ key, operator, values = [] }: Requirement, labels: Labels): boolean {
  // A label may be called like something that every object has.
  const value = getOwn(labels, key);
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return compares(value, values[0], (a, b) => a > b);
    case 'Lt':
      return compares(value, values[0], (a, b) => a < b);
    default:
      return false;
  }
}

function compares(value: string | undefined, bound: string | undefined, holds: (a: bigint, b: bigint) => boolean) {
  const isInteger = (text: string | undefined): text is string => text !== undefined && /^[+-]?\d+$/.test(text);
  return isInteger(value) && isInteger(bound) && holds(BigInt(value), BigInt(bound));
}

/** As in LabelSelector of meta/v1. */
interface LabelRequirements {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly Requirement[];
}

/** An empty selector matches everything; what an absent one means is decided by the caller. */
export function matchesLabelSelector(
  { matchLabels = {}, matchExpressions = [] }: LabelRequirements,
  labels: Labels,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) =>
      matchesRequirement({ key, operator: 'In', values: [value] }, labels),
    ) && matchExpressions.every((requirement) => matchesRequirement(requirement, labels))
  );
}

/** A node, as selectors see it. */
export interface SelectableNode {
  readonly name: string;
  readonly labels: Labels;
}

/** All requirements of a term hold; a term without any matches nothing. */
export function matchesNodeSelectorTerm(term: NodeSelectorTerm, node: SelectableNode): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  return (
    matchExpressions.every((requirement) => matchesRequirement(requirement, node.labels)) &&
    // metadata.name is the only field there is.
    matchFields.every(
      (field) => field.key === 'metadata.name' && matchesRequirement(field, { 'metadata.name': node.name }),
    )
  );
}

/** Terms are alternatives. */
export function matchesNodeSelector(selector: NodeSelector, node: SelectableNode): boolean {
  return selector.nodeSelectorTerms.some((term) => matchesNodeSelectorTerm(term, node));
}

/** A toleration matches by key and effect (empty matches all), and by value unless the operator is Exists. */
export function tolerates(toleration: Toleration, taint: Pick<Taint, 'key' | 'value' | 'effect'>): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  if (toleration.operator === 'Exists') return true;
  // An empty key needs Exists.
  return Boolean(toleration.key) && (toleration.value ?? '') === (taint.value ?? '');
}
