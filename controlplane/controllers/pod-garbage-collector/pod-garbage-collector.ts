// Removes pods that no kubelet and no controller will ever remove. decide.ts says which. A node that does not exist has 40 s to come back before its
// pods are deleted, and the API server is read for it, not the cache.

import { isConflict, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { type Change, objectKey } from '../../../client/store.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';
import { Counter } from '../../../lib/metrics.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { endedTooMany, failedStatus, hasEnded, isLeftOnNode, isLeftUnbound, isOutOfService } from './decide.ts';

/** The real collector's quarantine. */
export const QUARANTINE_MS = 40_000;
/** How often upstream's looks. So long after a change a pod without a node is removed if it is still there, and those that have ended are counted. */
export const CHECK_MS = 20_000;
/** kube-controller-manager's --terminated-pod-gc-threshold. */
export const ENDED_PODS = 12_500;

/** Keys that are no node's: names contain no blank. */
const POD = 'pod ';
const ENDED = 'ended pods';

type Reason = 'orphaned' | 'terminated' | 'out-of-service' | 'unscheduled';
type Needed = Pick<Informers, 'nodes' | 'pods'>;

/** Keys are names of nodes that pods refer to and that do not exist; of pods with a prefix; and one for those that have ended. */
export class PodGarbageCollector implements Controller {
  readonly name = 'podgc';
  readonly workers = 1;
  readonly queue: WorkQueue;
  readonly metrics = new Counter(
    'pod_gc_collector_force_delete_pods_total',
    '[ALPHA] Number of pods that are being forcefully deleted since the Pod GC Controller started.',
  );
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #threshold: number;
  /** Monotonic ms since when the node has been missing. */
  readonly #missing = new Map<string, MonotonicMs>();

  /** `threshold`: how many pods that have ended stay; 0: all. */
  constructor(context: ControllerContext, informers: Needed, threshold = ENDED_PODS) {
    this.#context = context;
    this.#informers = informers;
    this.#threshold = threshold;
    this.queue = new WorkQueue({ clock: context.clock });
    informers.nodes.onChange((changes) => {
      for (const change of changes) this.#nodeChanged(change);
    });
    void informers.nodes.whenSynced().then(() => {
      for (const pod of informers.pods.list()) this.#suspect(pod.spec.nodeName);
    });
    informers.pods.onChange((changes) => {
      for (const { type, object } of changes) if (type !== 'removed') this.#podChanged(object);
    });
  }

  #nodeChanged({ type, object }: Change<Node>): void {
    const { name } = object.metadata;
    if (type === 'removed') {
      this.queue.add(name);
      return;
    }
    this.#missing.delete(name);
    if (!isOutOfService(object)) return;
    for (const pod of this.#informers.pods.list()) {
      if (pod.spec.nodeName === name && isLeftOnNode(pod, object)) this.queue.add(POD + objectKey(pod));
    }
  }

  #podChanged(pod: Pod): void {
    this.#suspect(pod.spec.nodeName);
    if (hasEnded(pod) && this.#threshold > 0) this.queue.addAfter(ENDED, CHECK_MS);
    if (isLeftUnbound(pod)) this.queue.addAfter(POD + objectKey(pod), CHECK_MS);
    else if (isLeftOnNode(pod, this.#nodeOf(pod))) this.queue.add(POD + objectKey(pod));
  }

  #nodeOf(pod: Pod): Node | undefined {
    return this.#informers.nodes.get(pod.spec.nodeName ?? '');
  }

  #suspect(node: string | undefined): void {
    if (node === undefined || node === '' || this.#missing.has(node)) return;
    if (this.#informers.nodes.synced && this.#informers.nodes.get(node) === undefined) this.queue.add(node);
  }

  async sync(key: string): Promise<void> {
    if (key === ENDED) {
      const pods = endedTooMany(this.#informers.pods.list(), this.#threshold);
      for (const pod of pods) await this.#delete(pod, 'terminated');
    } else if (key.startsWith(POD)) {
      const pod = this.#informers.pods.get(key.slice(POD.length));
      if (pod === undefined) return;
      if (isLeftUnbound(pod)) await this.#delete(pod, 'unscheduled');
      else if (isLeftOnNode(pod, this.#nodeOf(pod))) await this.#delete(pod, 'out-of-service');
    } else await this.#collectNode(key);
  }

  async #collectNode(node: string): Promise<void> {
    const { clock, log } = this.#context;
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
    for (const pod of pods) {
      log(`podgc: deleting pod ${objectKey(pod)}: its node ${node} does not exist`);
      await this.#delete(pod, 'orphaned');
    }
    this.#missing.delete(node);
  }

  /** Marks it as failed, if it seems to run, and removes it at once. */
  async #delete(pod: Pod, reason: Reason): Promise<void> {
    const { client, clock } = this.#context;
    const { namespace, name, uid } = pod.metadata;
    const status = failedStatus(pod, reason === 'orphaned', rfc3339(clock.now()));
    try {
      if (status !== undefined) {
        const path = resourcePath('v1', 'pods', { namespace, name, subresource: 'status' });
        await client.patch(path, { metadata: { uid }, status }, 'strategic');
      }
      await client.delete(resourcePath('v1', 'pods', { namespace, name }), {
        gracePeriodSeconds: 0,
        preconditions: { uid },
      });
      this.metrics.inc({ namespace, reason });
    } catch (error) {
      // It is gone, or another pod has its name.
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
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
