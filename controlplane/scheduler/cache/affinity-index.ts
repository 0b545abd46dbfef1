// The affinity terms of the pods that are placed, each distinct term once, with what it amounts to in each domain of its
// topology. A new pod is compared with each distinct term, and not with each pod that has it.

import { getOwn } from '../../../lib/own-property.ts';
import type { AffinityTerm } from './affinity-term.ts';
import type { PodInfo } from './pod-info.ts';

export interface TermEntry {
  readonly term: AffinityTerm;
  /** Domain (value of the topology key) → pods there that have the term, or the sum of their weights. */
  readonly domains: Map<string, number>;
  /** Pods that have it, in all domains. */
  pods: number;
}

export type Terms = ReadonlyMap<string, TermEntry>;
type Labels = Readonly<Record<string, string>>;

export class AffinityIndex {
  readonly #requiredAnti = new Map<string, TermEntry>();
  readonly #required = new Map<string, TermEntry>();
  readonly #preferred = new Map<string, TermEntry>();

  get requiredAntiAffinity(): Terms {
    return this.#requiredAnti;
  }
  get requiredAffinity(): Terms {
    return this.#required;
  }
  /** Domains have sums of weights, those of anti-affinity negative. */
  get preferred(): Terms {
    return this.#preferred;
  }

  /** `sign` -1: the pod has left the node of these labels. */
  count(pod: PodInfo, labels: Labels, sign: 1 | -1): void {
    for (const term of pod.requiredAntiAffinity) countTerm(this.#requiredAnti, term, labels, 1, sign);
    for (const term of pod.requiredAffinity) countTerm(this.#required, term, labels, 1, sign);
    for (const term of pod.preferred) countTerm(this.#preferred, term, labels, term.weight, sign);
  }
}

function countTerm(
  terms: Map<string, TermEntry>,
  term: AffinityTerm,
  labels: Labels,
  weight: number,
  sign: 1 | -1,
): void {
  const domain = getOwn(labels, term.topologyKey);
  if (domain === undefined) return;
  const key = `${term.topologyKey} ${term.selection.key}`;
  let entry = terms.get(key);
  if (entry === undefined) {
    entry = { term, domains: new Map(), pods: 0 };
    terms.set(key, entry);
  }
  entry.pods += sign;
  if (entry.pods <= 0) {
    terms.delete(key);
    return;
  }
  const amount = (entry.domains.get(domain) ?? 0) + sign * weight;
  if (amount === 0) entry.domains.delete(domain);
  else entry.domains.set(domain, amount);
}
