// Terms of inter-pod affinity in the form in which they are compared with pods: with the namespaces they select, and a key
// that is the same for terms that select the same pods. Pure.

import type { PodAffinityTerm } from 'kubernetes-types/core/v1';
import type { LabelSelector } from 'kubernetes-types/meta/v1';
import { matchesLabelSelector } from '../../../client/selectors.ts';
import type { Pod } from '../../../client/types.ts';

type Labels = Readonly<Record<string, string>>;

/** Labels of a namespace by its name; none for one that is not there. */
export type NamespaceLabels = (namespace: string) => Labels;

/** Which pods: those in the namespaces, or in one that the namespace selector matches, that the selector matches. */
export interface PodSelection {
  readonly namespaces: readonly string[];
  readonly namespaceSelector: LabelSelector | undefined;
  /** Undefined matches no pod. */
  readonly selector: LabelSelector | undefined;
  /** The same for selections of the same pods. */
  readonly key: string;
}

export interface AffinityTerm {
  readonly topologyKey: string;
  readonly selection: PodSelection;
}

export interface WeightedTerm extends AffinityTerm {
  /** Negative for anti-affinity. */
  readonly weight: number;
}

export function selectionOf(
  namespaces: readonly string[],
  selector: LabelSelector | undefined,
  namespaceSelector?: LabelSelector,
): PodSelection {
  const key = JSON.stringify([namespaces.toSorted(), selector, namespaceSelector]);
  return { namespaces, selector, namespaceSelector, key };
}

/** A term that names no namespaces is about those of its pod. */
export function affinityTerm(namespace: string, term: PodAffinityTerm): AffinityTerm {
  const { topologyKey, labelSelector, namespaces = [], namespaceSelector } = term;
  const own = namespaces.length === 0 && namespaceSelector === undefined ? [namespace] : namespaces;
  return { topologyKey, selection: selectionOf(own, labelSelector, namespaceSelector) };
}

export function selects(selection: PodSelection, pod: Pod, namespaceLabels: NamespaceLabels): boolean {
  const { namespace, labels = {} } = pod.metadata;
  const { namespaces, namespaceSelector, selector } = selection;
  if (selector === undefined || !matchesLabelSelector(selector, labels)) return false;
  if (namespaces.includes(namespace)) return true;
  return namespaceSelector !== undefined && matchesLabelSelector(namespaceSelector, namespaceLabels(namespace));
}
