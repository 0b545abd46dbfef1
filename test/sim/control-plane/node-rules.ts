// Rules about nodes: what runs where, seen from the machines themselves, and what is bound to them.

import type { Pod } from '../../../client/types.ts';
import { type KubeletWitness, NODE_CPUS } from '../../../labs/sim/control-plane/kubelet.ts';
import type { MonotonicMs } from '../../../lib/clock.ts';
import { quantityMilli } from '../../../lib/quantity.ts';
import { controllerKind, isOver } from './facts.ts';

interface Binding {
  readonly at: MonotonicMs;
  readonly actor: string;
}

export class NodeRules implements KubeletWitness {
  readonly #break: (what: string) => void;
  /** Pods of stateful sets that run, by namespace/name: uid and node. */
  readonly #running = new Map<string, { readonly uid: string; readonly node: string }>();
  readonly #bindings = new Map<string, Binding[]>();

  constructor(breaks: (what: string) => void) {
    this.#break = breaks;
  }

  started(node: string, pod: Pod): void {
    if (controllerKind(pod) !== 'StatefulSet') return;
    const { namespace, name, uid } = pod.metadata;
    const key = `${namespace}/${name}`;
    const other = this.#running.get(key);
    if (other !== undefined && other.uid !== uid) {
      this.#break(`pod ${key} runs on ${node} and, as another one of the name, on ${other.node}`);
    }
    this.#running.set(key, { uid, node });
  }

  ended(_node: string, { metadata }: Pod): void {
    const key = `${metadata.namespace}/${metadata.name}`;
    if (this.#running.get(key)?.uid === metadata.uid) this.#running.delete(key);
  }

  /** A scheduler has bound the pod: it fits, unless another scheduler did so too, of which this one did not know. */
  bound(actor: string, pod: Pod, all: readonly Pod[], staleMs: number, now: MonotonicMs): void {
    const node = pod.spec.nodeName ?? '';
    const bindings = this.#bindings.get(node) ?? [];
    const others = bindings.some((each) => each.actor !== actor && each.at >= now - staleMs);
    bindings.push({ at: now, actor });
    this.#bindings.set(node, bindings);
    if (others) return;
    const there = all.filter((each) => each.spec.nodeName === node && !isOver(each));
    const milli = (each: Pod): number => quantityMilli(each.spec.containers[0]?.resources?.requests?.['cpu'] ?? 0);
    const cpus = there.reduce((sum, each) => sum + milli(each), 0) / 1000;
    if (cpus > NODE_CPUS) this.#break(`pods of ${cpus} CPUs are bound to ${node}, which has ${NODE_CPUS}`);
  }
}
