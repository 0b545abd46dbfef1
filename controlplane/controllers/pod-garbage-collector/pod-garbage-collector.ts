// Removes pods whose node does not exist, since no kubelet will finish their deletion. A node has 40 s to come back
// before its pods are deleted, and the API server is read, not the cache.

import { isConflict, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';

/** The real collector's quarantine. */
const QUARANTINE_MS = 40_000;

type Needed = Pick<Informers, 'nodes' | 'pods'>;

/** Keys are names of nodes that pods refer to and that do not exist. */
export class PodGarbageCollector implements Controller {
  readonly name = 'podgc';
  readonly workers = 1;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  /** Monotonic ms since when the node has been missing. */
  readonly #missing = new Map<string, MonotonicMs>();

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    informers.nodes.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type === 'removed') this.queue.add(object.metadata.name);
        else this.#missing.delete(object.metadata.name);
      }
    });
    void informers.nodes.whenSynced().then(() => {
      for (const pod of informers.pods.list()) this.#suspect(pod.spec.nodeName);
    });
    informers.pods.onChange((changes) => {
      for (const { type, object } of changes) if (type !== 'removed') this.#suspect(object.spec.nodeName);
    });
  }

  #suspect(node: string | undefined): void {
    if (node === undefined || node === '' || this.#missing.has(node)) return;
    if (this.#informers.nodes.synced && this.#informers.nodes.get(node) === undefined) this.queue.add(node);
  }

  async sync(node: string): Promise<void> {
    const { client, clock, log } = this.#context;
    const pods = this.#informers.pods.list().filter((pod) => pod.spec.nodeName === node);
    if (this.#informers.nodes.get(node) !== undefined || pods.length === 0) {
      this.#missing.delete(node);
      return;
    }
    const since = this.#missing.get(node) ?? clock.monotonic();
    this.#missing.set(node, since);
    const left = QUARANTINE_MS - elapsedMs(since, clock.monotonic());
    if (left > 0) {
      this.queue.addAfter(node, left);
      return;
    }
    if (await this.#exists(node)) return;
    for (const { metadata } of pods) {
      log(`podgc: deleting pod ${metadata.namespace}/${metadata.name}: its node ${node} does not exist`);
      const path = resourcePath('v1', 'pods', { namespace: metadata.namespace, name: metadata.name });
      try {
        await client.delete(path, { gracePeriodSeconds: 0, preconditions: { uid: metadata.uid } });
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
    }
    this.#missing.delete(node);
  }

  async #exists(name: string): Promise<boolean> {
    try {
      await this.#context.client.get(resourcePath('v1', 'nodes', { name }));
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }
}
