// Node selectors, node affinity and tolerations: does this pod accept this node? Pure.

import type {
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Taint,
  Toleration,
} from 'kubernetes-types/core/v1';
import type { Node, Pod } from '../../client/types.ts';

/** A toleration matches by key and effect (empty matches all), and by value unless the operator is Exists. */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect !== undefined && toleration.effect !== '' && toleration.effect !== taint.effect) return false;
  if (toleration.key !== undefined && toleration.key !== '' && toleration.key !== taint.key) return false;
  if (toleration.operator === 'Exists') return true;
  // An empty key needs Exists.
  if (toleration.key === undefined || toleration.key === '') return false;
  return (toleration.value ?? '') === (taint.value ?? '');
}

export function toleratesTaint(pod: Pod, taint: Taint): boolean {
  return (pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint));
}

/** nodeSelector and the required part of node affinity. */
export function acceptsNode(pod: Pod, node: Node): boolean {
  const labels = node.metadata.labels ?? {};
  for (const [key, value] of Object.entries(pod.spec.nodeSelector ?? {})) if (labels[key] !== value) return false;
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesNodeSelector(required, node);
}

/** Any of its terms matches; what a volume's node affinity is, too. */
export function matchesNodeSelector(selector: NodeSelector, node: Node): boolean {
  return selector.nodeSelectorTerms.some((term) => matchesTerm(term, node));
}

/** The sum of weights of preferred terms that the node matches. */
export function preference(pod: Pod, node: Node): number {
  const preferred = pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return preferred.reduce((sum, term) => sum + (matchesTerm(term.preference, node) ? term.weight : 0), 0);
}

/** All requirements of a term hold; a term without any matches nothing. */
function matchesTerm(term: NodeSelectorTerm, node: Node): boolean {
  const expressions = term.matchExpressions ?? [];
  const fields = term.matchFields ?? [];
  if (expressions.length === 0 && fields.length === 0) return false;
  const labels = node.metadata.labels ?? {};
  return (
    expressions.every((requirement) => matchesRequirement(requirement, labels[requirement.key])) &&
    // metadata.name is the only field there is.
    fields.every((field) => field.key === 'metadata.name' && matchesRequirement(field, node.metadata.name))
  );
}

function matchesRequirement(requirement: NodeSelectorRequirement, value: string | undefined): boolean {
  const values = requirement.values ?? [];
  switch (requirement.operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
    case 'Lt': {
      const [left, right] = [integer(value), integer(values[0])];
      if (left === undefined || right === undefined) return false;
      return requirement.operator === 'Gt' ? left > right : left < right;
    }
    default:
      return false;
  }
}

function integer(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?\d+$/.test(text) ? BigInt(text.replace(/^\+/, '')) : undefined;
}
