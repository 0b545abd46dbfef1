// The scheduler's picture of the cluster: nodes with their pods, those that are assumed to be bound already, and what is
// counted over them. Changes come from the informers and from the scheduler itself; plugins read it as a Snapshot.

import type { Node, Pod } from '../../../client/types.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { AffinityIndex } from './affinity-index.ts';
import type { NamespaceLabels, PodSelection } from './affinity-term.ts';
import { NodeInfo } from './node-info.ts';
import { PodCounters } from './pod-counter.ts';
import { type PodInfo, podInfo } from './pod-info.ts';
import type { Snapshot } from './snapshot.ts';

interface Placed {
  readonly info: PodInfo;
  readonly node: string;
  /** Not yet seen with a node at the API server. */
  readonly assumed: boolean;
}

export class SchedulerCache implements Snapshot {
  readonly affinity = new AffinityIndex();
  readonly namespaceLabels: NamespaceLabels;
  readonly #counters: PodCounters;
  readonly #nodes = new Map<string, NodeInfo>();
  readonly #placed = new Map<string, Placed>();
  /** Pods whose node is not known (yet, or any more), by node. */
  readonly #homeless = new Map<string, Map<string, PodInfo>>();
  readonly #claims = new Map<string, number>();
  readonly #images = new Map<string, number>();
  #list: readonly NodeInfo[] | undefined;

  constructor(namespaceLabels: NamespaceLabels) {
    this.namespaceLabels = namespaceLabels;
    this.#counters = new PodCounters(namespaceLabels);
  }

  /** How many of each there are. */
  get sizes(): { readonly nodes: number; readonly pods: number; readonly assumed: number } {
    const assumed = [...this.#placed.values()].filter((pod) => pod.assumed).length;
    return { nodes: this.#nodes.size, pods: this.#placed.size, assumed };
  }

  get nodes(): readonly NodeInfo[] {
    this.#list ??= zonesInTurn([...this.#nodes.values()]);
    return this.#list;
  }
  get(name: string): NodeInfo | undefined {
    return this.#nodes.get(name);
  }
  counter(selections: readonly PodSelection[], terminating: boolean): (node: NodeInfo) => number {
    return this.#counters.counter(selections, terminating);
  }
  usesOfClaim(claim: string): number {
    return this.#claims.get(claim) ?? 0;
  }
  nodesWithImage(image: string): number {
    return this.#images.get(image) ?? 0;
  }
  isAssumed(uid: string): boolean {
    return this.#placed.get(uid)?.assumed === true;
  }

  setNode(node: Node): void {
    const { name } = node.metadata;
    const known = this.#nodes.get(name);
    if (known === undefined) {
      const added = new NodeInfo(node);
      this.#nodes.set(name, added);
      this.#list = undefined;
      for (const pod of this.#homeless.get(name)?.values() ?? []) {
        added.addPod(pod);
        this.affinity.count(pod, added.labels, 1);
      }
      this.#homeless.delete(name);
      this.#countImages(added, 1);
      return;
    }
    if (zoneOf(known.node) !== zoneOf(node)) this.#list = undefined;
    this.#countImages(known, -1);
    for (const pod of known.pods.values()) this.affinity.count(pod, known.labels, -1);
    known.setNode(node);
    for (const pod of known.pods.values()) this.affinity.count(pod, known.labels, 1);
    this.#countImages(known, 1);
  }

  removeNode(name: string): void {
    const known = this.#nodes.get(name);
    if (known === undefined) return;
    for (const pod of known.pods.values()) this.affinity.count(pod, known.labels, -1);
    this.#countImages(known, -1);
    if (known.pods.size > 0) this.#homeless.set(name, new Map(known.pods));
    this.#nodes.delete(name);
    this.#list = undefined;
  }

  /** A pod that has a node, as the API server shows it. It takes the place of the assumed one. */
  setPod(pod: Pod): void {
    this.#place(podInfo(pod), pod.spec.nodeName ?? '', false);
  }

  /** The pod counts on the node from now on. */
  assume(pod: PodInfo, node: string): void {
    this.#place(pod, node, true);
  }

  removePod(uid: string): void {
    const placed = this.#placed.get(uid);
    if (placed === undefined) return;
    const { info, node } = placed;
    this.#placed.delete(uid);
    for (const claim of info.claims) this.#countClaim(claim, -1);
    const home = this.#nodes.get(node);
    if (home === undefined) {
      this.#homeless.get(node)?.delete(uid);
      return;
    }
    home.removePod(uid);
    this.affinity.count(info, home.labels, -1);
  }

  /** Labels of namespaces have changed: what was counted by them is void. */
  namespacesChanged(): void {
    this.#counters.clear();
  }

  #place(info: PodInfo, node: string, assumed: boolean): void {
    this.removePod(info.uid);
    this.#placed.set(info.uid, { info, node, assumed });
    for (const claim of info.claims) this.#countClaim(claim, 1);
    const home = this.#nodes.get(node);
    if (home === undefined) {
      const homeless = this.#homeless.get(node) ?? new Map<string, PodInfo>();
      this.#homeless.set(node, homeless.set(info.uid, info));
      return;
    }
    home.addPod(info);
    this.affinity.count(info, home.labels, 1);
  }

  #countClaim(claim: string, sign: 1 | -1): void {
    const uses = (this.#claims.get(claim) ?? 0) + sign;
    if (uses === 0) this.#claims.delete(claim);
    else this.#claims.set(claim, uses);
  }

  #countImages(node: NodeInfo, sign: 1 | -1): void {
    for (const image of node.images.keys()) {
      const nodes = (this.#images.get(image) ?? 0) + sign;
      if (nodes === 0) this.#images.delete(image);
      else this.#images.set(image, nodes);
    }
  }
}

function zoneOf({ metadata: { labels } }: Node): string {
  const region = getOwn(labels, 'topology.kubernetes.io/region') ?? '';
  return `${region} ${getOwn(labels, 'topology.kubernetes.io/zone') ?? ''}`;
}

/** One node of each zone, then the next of each: so that a search that stops early has seen all zones. */
function zonesInTurn(nodes: readonly NodeInfo[]): readonly NodeInfo[] {
  const zones = [...Map.groupBy(nodes, ({ node }) => zoneOf(node)).values()];
  const longest = Math.max(0, ...zones.map((zone) => zone.length));
  return Array.from({ length: longest }, (_, place) => zones.flatMap((zone) => zone[place] ?? [])).flat();
}
