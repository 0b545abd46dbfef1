// How many pods of each node a selection matches, kept from cycle to cycle: a node is counted again when its generation is
// another one. So a pod that is placed costs the pods of one node, and not those of all.

import { type NamespaceLabels, type PodSelection, selects } from './affinity-term.ts';
import type { NodeInfo } from './node-info.ts';

class Counter {
  readonly #generations: number[] = [];
  readonly #counts: number[] = [];
  readonly #selections: readonly PodSelection[];
  readonly #terminating: boolean;
  readonly #namespaceLabels: NamespaceLabels;

  constructor(selections: readonly PodSelection[], terminating: boolean, namespaceLabels: NamespaceLabels) {
    this.#selections = selections;
    this.#terminating = terminating;
    this.#namespaceLabels = namespaceLabels;
  }

  count(node: NodeInfo): number {
    if (this.#generations[node.slot] === node.generation) return this.#counts[node.slot] ?? 0;
    let count = 0;
    for (const { pod } of node.pods.values()) {
      if (!this.#terminating && pod.metadata.deletionTimestamp !== undefined) continue;
      if (this.#selections.every((selection) => selects(selection, pod, this.#namespaceLabels))) count++;
    }
    this.#generations[node.slot] = node.generation;
    this.#counts[node.slot] = count;
    return count;
  }
}

/** Selections that are remembered: as many as there are workloads with rules of their own, and the oldest go. */
const MOST_COUNTERS = 2000;

export class PodCounters {
  readonly #counters = new Map<string, Counter>();
  readonly #namespaceLabels: NamespaceLabels;

  constructor(namespaceLabels: NamespaceLabels) {
    this.#namespaceLabels = namespaceLabels;
  }

  counter(selections: readonly PodSelection[], terminating: boolean): (node: NodeInfo) => number {
    const key = `${terminating} ${selections.map((selection) => selection.key).join(' ')}`;
    let counter = this.#counters.get(key);
    if (counter === undefined) {
      const [oldest] = this.#counters.keys();
      if (oldest !== undefined && this.#counters.size >= MOST_COUNTERS) this.#counters.delete(oldest);
      counter = new Counter(selections, terminating, this.#namespaceLabels);
      this.#counters.set(key, counter);
    }
    const found = counter;
    return (node) => found.count(node);
  }

  /** Labels of namespaces have changed. */
  clear(): void {
    this.#counters.clear();
  }
}
