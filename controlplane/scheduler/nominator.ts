// Pods that are nominated to a node: they count there for pods of no higher priority, until they are bound.

import type { PodInfo } from './cache/pod-info.ts';
import type { Nominations } from './framework/framework.ts';

const NONE: readonly PodInfo[] = [];

export class Nominator implements Nominations {
  readonly #byNode = new Map<string, Map<string, PodInfo>>();
  readonly #nodes = new Map<string, string>();

  on(node: string): readonly PodInfo[] {
    const pods = this.#byNode.get(node);
    return pods === undefined ? NONE : [...pods.values()];
  }

  nodeOf(uid: string): string | undefined {
    return this.#nodes.get(uid);
  }

  set(pod: PodInfo, node: string): void {
    this.delete(pod.uid);
    this.#nodes.set(pod.uid, node);
    const pods = this.#byNode.get(node) ?? new Map<string, PodInfo>();
    this.#byNode.set(node, pods.set(pod.uid, pod));
  }

  delete(uid: string): void {
    const node = this.#nodes.get(uid);
    if (node === undefined) return;
    this.#nodes.delete(uid);
    const pods = this.#byNode.get(node);
    pods?.delete(uid);
    if (pods?.size === 0) this.#byNode.delete(node);
  }
}
