// The node lifecycle controller: a node whose lease has not been renewed for the grace period becomes Unknown, its pods
// are no longer Ready, and every node carries the taints of its conditions. taints.ts decides.

import { isConflict, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import { objectKey } from '../../client/store.ts';
import type { Lease, Node } from '../../client/types.ts';
import { WorkQueue } from '../../client/workqueue.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import type { Informers } from '../informers.ts';
import type { Controller, ControllerContext } from '../runtime.ts';
import { nextTaints, unknownConditions } from './taints.ts';

/** The default of --node-monitor-grace-period, until v1.31 also the real controller's. */
export const GRACE_PERIOD_MS = 40_000;

type Needed = Pick<Informers, 'nodes' | 'nodeLeases' | 'pods'>;

export class NodeLifecycleController implements Controller {
  readonly name = 'node-lifecycle';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #graceMs: number;
  /** When each node was last updated or renewed its lease, by this process's monotonic clock: clocks of nodes may differ. */
  readonly #lastSign = new Map<string, number>();
  /** Nodes that became Unknown, whose pods are still to be marked. */
  readonly #podsToMark = new Set<string>();

  constructor(context: ControllerContext, informers: Needed, graceMs = GRACE_PERIOD_MS) {
    this.#context = context;
    this.#informers = informers;
    this.#graceMs = graceMs;
    this.queue = new WorkQueue({ clock: context.clock });
    informers.nodes.onChange((changes) => {
      for (const change of changes) {
        const name = change.object.metadata.name;
        if (change.type === 'removed') this.#lastSign.delete(name);
        else {
          const alive = change.type === 'added' || heartbeat(change.old) !== heartbeat(change.object);
          if (alive) this.#lastSign.set(name, context.clock.monotonic());
          this.queue.add(objectKey(change.object));
        }
      }
    });
    informers.nodeLeases.onChange((changes) => {
      for (const change of changes) {
        const renewed =
          change.type === 'added' || (change.type === 'modified' && renewal(change.old) !== renewal(change.object));
        const name = change.object.metadata.name;
        if (renewed && this.#lastSign.has(name)) this.#lastSign.set(name, context.clock.monotonic());
      }
    });
  }

  async sync(name: string): Promise<void> {
    const node = this.#informers.nodes.get(name);
    if (node === undefined) return;
    const { clock } = this.#context;
    const silentMs = clock.monotonic() - (this.#lastSign.get(name) ?? clock.monotonic());
    // Renewals do not queue the node; it is checked again when the last known renewal has become too old.
    if (silentMs < this.#graceMs) this.queue.addAfter(name, this.#graceMs - silentMs);
    else {
      const declared = await this.#declareUnknown(node);
      if (declared) this.#podsToMark.add(name);
      if (this.#podsToMark.has(name)) await this.#markPodsNotReady(name);
      if (declared) return;
    }
    await this.#taint(node);
  }

  /** True when the node's conditions had to be changed; its own change then brings it back here. */
  async #declareUnknown(node: Node): Promise<boolean> {
    const conditions = unknownConditions(node, this.#timestamp());
    if (conditions.length === 0) return false;
    const { name } = node.metadata;
    const path = resourcePath('v1', 'nodes', { name, subresource: 'status' });
    await this.#write(() => this.#context.client.patch(path, { status: { conditions } }, 'strategic'));
    const subject = { ...node, kind: 'Node', apiVersion: 'v1', metadata: { ...node.metadata, uid: name } };
    this.#context.recorder.event(subject, 'Normal', 'NodeNotReady', `Node ${name} status is now: NodeNotReady`);
    return true;
  }

  /** Services do without pods whose node is silent. The agent writes what they are once it is back. */
  async #markPodsNotReady(node: string): Promise<void> {
    const { client, recorder } = this.#context;
    for (const pod of this.#informers.pods.list()) {
      const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
      if (pod.spec.nodeName !== node || ready === undefined || ready.status === 'False') continue;
      const { namespace, name, uid } = pod.metadata;
      const conditions = [{ type: 'Ready', status: 'False', lastTransitionTime: this.#timestamp() }];
      const path = resourcePath('v1', 'pods', { namespace, name, subresource: 'status' });
      await this.#write(() => client.patch(path, { metadata: { uid }, status: { conditions } }, 'strategic'));
      recorder.event(pod, 'Warning', 'NodeNotReady', 'Node is not ready');
    }
    this.#podsToMark.delete(node);
  }

  async #taint(node: Node): Promise<void> {
    const taints = nextTaints(node, this.#timestamp());
    if (taints === undefined) return;
    const { name, resourceVersion } = node.metadata;
    // Taints are one list: the resourceVersion ensures that no concurrent change is lost.
    const patch = { metadata: { resourceVersion }, spec: { taints: taints.length === 0 ? null : taints } };
    await this.#write(() => this.#context.client.patch(resourcePath('v1', 'nodes', { name }), patch, 'merge'));
  }

  /** Ignores a node that is gone or has changed: its next event queues it again. */
  async #write(request: () => Promise<unknown>): Promise<void> {
    try {
      await request();
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }

  #timestamp(): string {
    return rfc3339(this.#context.clock.now());
  }
}

function heartbeat(node: Node): string | undefined {
  return node.status?.conditions?.find((condition) => condition.type === 'Ready')?.lastHeartbeatTime;
}

function renewal(lease: Lease): string | undefined {
  return lease.spec?.renewTime;
}
