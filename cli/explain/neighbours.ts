// What the pods that are there already have to do with a node's refusal: topology spread, pod affinity and anti-affinity. Pure.

import type { TopologySpreadConstraint } from 'kubernetes-types/core/v1';
import { matchesLabelSelector } from '../../client/selectors.ts';
import type { Node, Pod } from '../../client/types.ts';
import { acceptsNode } from '../../controlplane/scheduler/affinity.ts';
import { type AffinityTerm, affinityTerm, selects } from '../../controlplane/scheduler/cache/affinity-term.ts';
import { getOwn } from '../../lib/own-property.ts';
import { labelSelectorText } from './node-selector-text.ts';
import { list, plural } from './words.ts';

export interface NeighbourRefusal {
  readonly reason: string;
  readonly detail: string;
}

const domainOf = (node: Node | undefined, key: string): string | undefined => getOwn(node?.metadata.labels ?? {}, key);
const nameOf = ({ metadata }: Pod): string => `pod ${metadata.namespace}/${metadata.name}`;

/** A term that selects namespaces by labels cannot be evaluated here: they are not among the facts. */
function termsOf({ metadata, spec }: Pod, kind: 'podAffinity' | 'podAntiAffinity'): readonly AffinityTerm[] {
  return (spec.affinity?.[kind]?.requiredDuringSchedulingIgnoredDuringExecution ?? [])
    .filter(({ namespaceSelector }) => Object.keys(namespaceSelector ?? {}).length === 0)
    .map((term) => affinityTerm(metadata.namespace, term));
}

const isSelected = (pod: Pod, { selection }: AffinityTerm): boolean => selects(selection, pod, () => ({}));
const textOf = ({ selection: { selector } }: AffinityTerm): string =>
  selector === undefined ? 'no pod' : labelSelectorText(selector);

/** The nodes of a cluster with the pods on them, for one more pod. */
export class Neighbours {
  readonly #pod: Pod;
  readonly #nodes: readonly Node[];
  readonly #placed: readonly Pod[];
  readonly #byName: ReadonlyMap<string, Node>;

  constructor(pod: Pod, nodes: readonly Node[], placed: readonly Pod[]) {
    this.#pod = pod;
    this.#nodes = nodes;
    this.#placed = placed;
    this.#byName = new Map(nodes.map((node) => [node.metadata.name, node]));
  }

  /** Why the node is refused, in the order of the scheduler's filters; undefined where these do not refuse it. */
  refusal(node: Node): NeighbourRefusal | undefined {
    return this.#spread(node) ?? this.#tooFar(node) ?? this.#tooNear(node) ?? this.#keptAway(node);
  }

  #domainOfPod({ spec }: Pod, key: string): string | undefined {
    return domainOf(this.#byName.get(spec.nodeName ?? ''), key);
  }

  #spread(node: Node): NeighbourRefusal | undefined {
    const constraints = (this.#pod.spec.topologySpreadConstraints ?? []).filter(
      ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
    );
    for (const constraint of constraints) {
      const detail = this.#skew(node, constraint, constraints);
      if (detail !== undefined) return { reason: 'its topology spread constraints are not met', detail };
    }
    return undefined;
  }

  #skew(
    node: Node,
    { topologyKey: key, maxSkew, minDomains = 1, labelSelector }: TopologySpreadConstraint,
    all: readonly TopologySpreadConstraint[],
  ): string | undefined {
    const here = domainOf(node, key);
    if (here === undefined) return `topology spread over ${key}: the node has no such label`;
    if (labelSelector === undefined) return undefined;
    const counts = new Map<string, number>();
    for (const each of this.#nodes) {
      const domain = domainOf(each, key);
      if (domain === undefined || !acceptsNode(this.#pod, each)) continue;
      if (all.every(({ topologyKey }) => domainOf(each, topologyKey) !== undefined)) counts.set(domain, 0);
    }
    const { namespace } = this.#pod.metadata;
    for (const other of this.#placed) {
      const domain = this.#domainOfPod(other, key);
      const known = domain === undefined ? undefined : counts.get(domain);
      if (domain === undefined || known === undefined || other.metadata.namespace !== namespace) continue;
      if (other.metadata.deletionTimestamp !== undefined) continue;
      if (matchesLabelSelector(labelSelector, other.metadata.labels ?? {})) counts.set(domain, known + 1);
    }
    const fewest = counts.size < minDomains ? 0 : Math.min(...counts.values());
    const self = matchesLabelSelector(labelSelector, this.#pod.metadata.labels ?? {}) ? 1 : 0;
    const count = counts.get(here);
    if (count === undefined || count + self - fewest <= maxSkew) return undefined;
    return `topology spread over ${key}: ${here} has ${plural(count, 'pod')} with ${labelSelectorText(labelSelector)}, the fewest of a domain are ${fewest}, and maxSkew is ${maxSkew}`;
  }

  #tooFar(node: Node): NeighbourRefusal | undefined {
    const terms = termsOf(this.#pod, 'podAffinity');
    const all = (pod: Pod): boolean => terms.every((term) => isSelected(pod, term));
    const wanted = terms.length === 0 ? [] : this.#placed.filter(all);
    const reason = 'its pod affinity is not met';
    for (const term of terms) {
      const { topologyKey: key } = term;
      const here = domainOf(node, key);
      if (here === undefined) return { reason, detail: `pod affinity over ${key}: the node has no such label` };
      const domains = new Set(wanted.flatMap((pod) => this.#domainOfPod(pod, key) ?? []));
      // The first pod of a group that is to be together may go anywhere.
      if (domains.has(here) || (wanted.length === 0 && all(this.#pod))) continue;
      const where = wanted.length === 0 ? 'there is none' : `there are such in ${list([...domains])}`;
      return { reason, detail: `pod affinity wants a pod with ${textOf(term)} in ${key}=${here}; ${where}` };
    }
    return undefined;
  }

  #tooNear(node: Node): NeighbourRefusal | undefined {
    for (const term of termsOf(this.#pod, 'podAntiAffinity')) {
      const here = domainOf(node, term.topologyKey);
      if (here === undefined) continue;
      const near = this.#placed.find(
        (pod) => isSelected(pod, term) && this.#domainOfPod(pod, term.topologyKey) === here,
      );
      if (near === undefined) continue;
      const detail = `pod anti-affinity wants no pod with ${textOf(term)} in ${term.topologyKey}=${here}; ${nameOf(near)} is there`;
      return { reason: 'its pod anti-affinity is not met', detail };
    }
    return undefined;
  }

  #keptAway(node: Node): NeighbourRefusal | undefined {
    for (const other of this.#placed) {
      for (const term of termsOf(other, 'podAntiAffinity')) {
        const here = domainOf(node, term.topologyKey);
        if (here === undefined || !isSelected(this.#pod, term)) continue;
        if (this.#domainOfPod(other, term.topologyKey) !== here) continue;
        const detail = `${nameOf(other)} is in ${term.topologyKey}=${here}, and its anti-affinity keeps away pods with ${textOf(term)}`;
        return { reason: 'another pod’s anti-affinity keeps it away', detail };
      }
    }
    return undefined;
  }
}
