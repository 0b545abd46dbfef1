// A node with the pods that are on it or are about to be, and the sums over them. The cache changes it; plugins read it, and
// preemption changes copies. Its generation is another one after each change.

import type { Taint } from 'kubernetes-types/core/v1';
import type { Node } from '../../../client/types.ts';
import { amountsOf } from '../requests.ts';
import type { PodInfo } from './pod-info.ts';
import { Resources } from './resources.ts';

let generations = 0;
let slots = 0;

export class NodeInfo {
  readonly name: string;
  /** Small and its own for as long as the node is there: counters keep arrays by it. Copies share it. */
  readonly slot: number;
  readonly pods = new Map<string, PodInfo>();
  /** Those of the pods that have host ports. */
  readonly podsWithPorts = new Map<string, PodInfo>();
  readonly requested = new Resources();
  readonly nonZeroRequested = new Resources();
  generation = ++generations;
  #node: Node;
  #labels: Readonly<Record<string, string>> = {};
  #allocatable = new Resources();
  #allowedPods = 0;
  #taints: readonly Taint[] = [];
  #images: ReadonlyMap<string, number> = new Map();

  constructor(node: Node, slot = slots++) {
    this.name = node.metadata.name;
    this.slot = slot;
    this.#node = node;
    this.setNode(node);
  }

  get node(): Node {
    return this.#node;
  }
  get labels(): Readonly<Record<string, string>> {
    return this.#labels;
  }
  get allocatable(): Resources {
    return this.#allocatable;
  }
  get allowedPods(): number {
    return this.#allowedPods;
  }
  get taints(): readonly Taint[] {
    return this.#taints;
  }
  /** Names of the images on the node, with their sizes in bytes. */
  get images(): ReadonlyMap<string, number> {
    return this.#images;
  }

  setNode(node: Node): void {
    this.#node = node;
    this.#labels = node.metadata.labels ?? {};
    const allocatable = amountsOf(node.status?.allocatable);
    this.#allocatable = Resources.of(allocatable);
    this.#allowedPods = allocatable.get('pods') ?? 0;
    this.#taints = node.spec?.taints ?? [];
    this.#images = new Map(
      (node.status?.images ?? []).flatMap(({ names = [], sizeBytes = 0 }) => names.map((name) => [name, sizeBytes])),
    );
    this.generation = ++generations;
  }

  addPod(pod: PodInfo): void {
    this.removePod(pod.uid);
    this.pods.set(pod.uid, pod);
    if (pod.hostPorts.length > 0) this.podsWithPorts.set(pod.uid, pod);
    this.#count(pod, 1);
  }

  removePod(uid: string): void {
    const pod = this.pods.get(uid);
    if (pod === undefined) return;
    this.pods.delete(uid);
    this.podsWithPorts.delete(uid);
    this.#count(pod, -1);
  }

  #count(pod: PodInfo, sign: 1 | -1): void {
    this.requested.add(pod.requests, sign);
    this.nonZeroRequested.add(pod.nonZero, sign);
    this.generation = ++generations;
  }

  clone(): NodeInfo {
    const copy = new NodeInfo(this.#node, this.slot);
    for (const pod of this.pods.values()) copy.addPod(pod);
    return copy;
  }
}
