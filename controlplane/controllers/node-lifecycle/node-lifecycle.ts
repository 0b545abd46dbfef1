// The node lifecycle controller: a node whose lease has not been renewed for the grace period becomes Unknown, its pods
// are no longer Ready, and every node carries the taints of its conditions, those that drive out pods no faster than its zone may lose
// them. taints.ts and zones.ts decide.

import { isConflict, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { type Change, objectKey } from '../../../client/store.ts';
import type { Lease, Node, Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { elapsedMs, type MonotonicMs, plusMs } from '../../../lib/clock.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { NodeLifecycleMetrics } from './metrics.ts';
import { awaitsEviction, type Eviction, nextTaints, olderLabels, unknownConditions } from './taints.ts';
import {
  type Bucket,
  disruptionOf,
  EVICTION_DEFAULTS,
  type EvictionSettings,
  fullBucket,
  readyStatus,
  tokenInMs,
  withoutToken,
  withRate,
  zoneCounts,
  zoneOf,
} from './zones.ts';

/** kube-controller-manager's flags of these names. */
export interface NodeLifecycleSettings extends EvictionSettings {
  readonly nodeMonitorGraceMs: number;
  /** For a node that has not reported its conditions yet. */
  readonly nodeStartupGraceMs: number;
}

const NODE_LIFECYCLE_DEFAULTS: NodeLifecycleSettings = {
  ...EVICTION_DEFAULTS,
  nodeMonitorGraceMs: 50_000,
  nodeStartupGraceMs: 60_000,
};

/** Prefixes of keys that are no node's: names contain no blank. */
const ZONE = 'zone ';
const POD = 'pod ';

type Needed = Pick<Informers, 'nodes' | 'nodeLeases' | 'pods'>;

/** Keys are those of nodes; of pods and zones with a prefix. */
export class NodeLifecycleController implements Controller {
  readonly name = 'node-lifecycle';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly metrics: NodeLifecycleMetrics;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #settings: NodeLifecycleSettings;
  /** When each node was last updated or renewed its lease, by this process's monotonic clock: clocks of nodes may differ. */
  readonly #lastSign = new Map<string, MonotonicMs>();
  /** Nodes that became Unknown, whose pods are still to be marked. */
  readonly #podsToMark = new Set<string>();
  /** Uids of the nodes whose RegisteredNode event was recorded, by name. */
  readonly #registered = new Map<string, string>();
  /** Nodes that wait for their NoExecute taint, by zone, in their order. */
  readonly #waiting = new Map<string, Set<string>>();
  readonly #buckets = new Map<string, Bucket>();
  /** No node of the cluster is ready. */
  #isTotal = false;
  /** Until then, nodes that are Unknown keep their pods. */
  #unknownSparedUntil: MonotonicMs;

  constructor(context: ControllerContext, informers: Needed, settings: Partial<NodeLifecycleSettings> = {}) {
    this.#context = context;
    this.#informers = informers;
    this.#settings = { ...NODE_LIFECYCLE_DEFAULTS, ...settings };
    this.#unknownSparedUntil = context.clock.monotonic();
    this.queue = new WorkQueue({ clock: context.clock });
    this.metrics = new NodeLifecycleMetrics(() => zoneCounts(informers.nodes.list()));
    informers.nodes.onChange((changes) => {
      for (const change of changes) this.#nodeChanged(change);
      if (changes.some(mayChangeZones)) this.#followZones();
    });
    informers.nodeLeases.onChange((changes) => {
      for (const change of changes) {
        const renewed =
          change.type === 'added' || (change.type === 'modified' && renewal(change.old) !== renewal(change.object));
        const name = change.object.metadata.name;
        if (renewed && this.#lastSign.has(name)) this.#lastSign.set(name, context.clock.monotonic());
      }
    });
    informers.pods.onChange((changes) => {
      for (const change of changes) {
        const { nodeName = '' } = change.object.spec;
        const isPlaced =
          change.type === 'added' || (change.type === 'modified' && change.old.spec.nodeName !== nodeName);
        if (isPlaced && nodeName !== '' && this.#readyOf(nodeName) !== 'True') {
          this.queue.add(`${POD}${objectKey(change.object)}`);
        }
      }
    });
  }

  #nodeChanged(change: Change<Node>): void {
    const { name } = change.object.metadata;
    if (change.type === 'removed') this.#lastSign.delete(name);
    else if (change.type === 'added' || heartbeat(change.old) !== heartbeat(change.object)) {
      this.#lastSign.set(name, this.#context.clock.monotonic());
    }
    this.queue.add(name);
  }

  #readyOf(node: string): string | undefined {
    const found = this.#informers.nodes.get(node);
    return found === undefined ? undefined : readyStatus(found);
  }

  /** In the turn of the change: no taint is set by what the zones were before. */
  #followZones(): void {
    const { clock, log } = this.#context;
    const now = clock.monotonic();
    const nodes = this.#informers.nodes.list();
    const { rates, isTotal } = disruptionOf(nodes, this.#settings);
    for (const [zone, rate] of rates) {
      const bucket = this.#buckets.get(zone);
      this.#buckets.set(zone, bucket === undefined ? fullBucket(rate, now) : withRate(bucket, rate, now));
      if (this.#waiting.has(zone)) this.queue.add(`${ZONE}${zone}`);
    }
    for (const zone of this.#buckets.keys()) if (!rates.has(zone)) this.#buckets.delete(zone);
    if (isTotal === this.#isTotal) return;
    this.#isTotal = isTotal;
    log(
      isTotal
        ? `${this.name}: all Nodes are not-Ready: nothing is evicted (master disruption mode)`
        : `${this.name}: some Nodes are Ready again: master disruption mode ends`,
    );
    for (const { metadata } of nodes) {
      // After a time in which no node reported, each has its whole grace period again.
      if (!isTotal) this.#lastSign.set(metadata.name, now);
      this.queue.add(metadata.name);
    }
  }

  async sync(key: string): Promise<void> {
    if (key.startsWith(ZONE)) return await this.#evictNext(key.slice(ZONE.length));
    if (key.startsWith(POD)) return await this.#podPlaced(key.slice(POD.length));
    const node = this.#informers.nodes.get(key);
    this.#announce(key, node?.metadata.uid);
    if (node === undefined) {
      this.#wait(key, undefined);
      return;
    }
    const { clock } = this.#context;
    const { nodeMonitorGraceMs, nodeStartupGraceMs } = this.#settings;
    const graceMs = readyStatus(node) === undefined ? nodeStartupGraceMs : nodeMonitorGraceMs;
    const now = clock.monotonic();
    const silentMs = elapsedMs(this.#lastSign.get(key) ?? now, now);
    // Renewals do not queue the node; it is checked again when the last known renewal has become too old.
    if (silentMs < graceMs) this.queue.addAfter(key, graceMs - silentMs);
    else {
      const declared = await this.#declareUnknown(node).finally(() => {
        if (elapsedMs(now, clock.monotonic()) >= nodeMonitorGraceMs / 2) this.#serverWasSilent();
      });
      if (declared) this.#podsToMark.add(key);
      if (this.#podsToMark.has(key)) await this.#markPodsNotReady(key);
      if (declared) return;
    }
    const awaits = this.#mayBeEvicted(node);
    if (!awaits) this.#wait(key, undefined);
    // Its own change brings the node back here: two writes of the same version would get in each other's way.
    if ((await this.#taint(node, this.#isTotal ? 'never' : 'not yet')) !== 'unchanged') return;
    if (await this.#label(node)) return;
    if (awaits) this.#wait(key, zoneOf(node));
  }

  /**
   * A server that takes that long to answer one request has not taken the nodes' leases either: each node has its whole grace period
   * again, also the one that was declared Unknown by that request.
   */
  #serverWasSilent(): void {
    const { clock, log } = this.#context;
    const now = clock.monotonic();
    for (const name of this.#lastSign.keys()) this.#lastSign.set(name, now);
    this.#unknownSparedUntil = plusMs(now, this.#settings.nodeMonitorGraceMs);
    log(`${this.name}: the API server was silent: each Node has its grace period again`);
  }

  #mayBeEvicted(node: Node): boolean {
    if (this.#isTotal || !awaitsEviction(node)) return false;
    return readyStatus(node) !== 'Unknown' || this.#context.clock.monotonic() >= this.#unknownSparedUntil;
  }

  /** Events of nodes that come and go. */
  #announce(name: string, uid: string | undefined): void {
    const before = this.#registered.get(name);
    if (before === uid) return;
    if (before !== undefined) {
      this.#event({ name, uid: before }, 'RemovingNode', `Node ${name} event: Removing Node ${name} from Controller`);
      this.#registered.delete(name);
    }
    if (uid === undefined) return;
    this.#registered.set(name, uid);
    this.#event({ name, uid }, 'RegisteredNode', `Node ${name} event: Registered Node ${name} in Controller`);
  }

  #event(metadata: { readonly name: string; readonly uid: string }, reason: string, message: string): void {
    const { name, uid } = metadata;
    const subject = { kind: 'Node', apiVersion: 'v1', metadata: { name, uid } };
    this.#context.recorder.event(subject, 'Normal', reason, message);
  }

  /** True when the node's conditions had to be changed; its own change then brings it back here. */
  async #declareUnknown(node: Node): Promise<boolean> {
    const conditions = unknownConditions(node, this.#timestamp());
    if (conditions.length === 0) return false;
    const { name } = node.metadata;
    const path = resourcePath('v1', 'nodes', { name, subresource: 'status' });
    await this.#write(() => this.#context.client.patch(path, { status: { conditions } }, 'strategic'));
    if (readyStatus(node) === 'True') {
      this.#event(node.metadata, 'NodeNotReady', `Node ${name} status is now: NodeNotReady`);
    }
    return true;
  }

  /** Services do without pods whose node is silent. The agent writes what they are once it is back. */
  async #markPodsNotReady(node: string): Promise<void> {
    for (const pod of this.#informers.pods.list()) if (pod.spec.nodeName === node) await this.#markPodNotReady(pod);
    this.#podsToMark.delete(node);
  }

  /** One that was placed, or was first seen, on a node that is not ready. */
  async #podPlaced(key: string): Promise<void> {
    const pod = this.#informers.pods.get(key);
    const ready = pod === undefined ? undefined : this.#readyOf(pod.spec.nodeName ?? '');
    if (pod !== undefined && ready !== undefined && ready !== 'True') await this.#markPodNotReady(pod);
  }

  async #markPodNotReady(pod: Pod): Promise<void> {
    const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready === undefined || ready.status === 'False') return;
    const { namespace, name, uid } = pod.metadata;
    const conditions = [{ type: 'Ready', status: 'False', lastTransitionTime: this.#timestamp() }];
    const path = resourcePath('v1', 'pods', { namespace, name, subresource: 'status' });
    const { client, recorder } = this.#context;
    await this.#write(() => client.patch(path, { metadata: { uid }, status: { conditions } }, 'strategic'));
    recorder.event(pod, 'Warning', 'NodeNotReady', 'Node is not ready');
  }

  /** Puts a node into the row of its zone, and takes it from any other. */
  #wait(name: string, zone: string | undefined): void {
    for (const [other, names] of this.#waiting) {
      if (other === zone) continue;
      names.delete(name);
      if (names.size === 0) this.#waiting.delete(other);
    }
    if (zone === undefined) return;
    const names = this.#waiting.get(zone) ?? new Set();
    this.#waiting.set(zone, names.add(name));
    this.queue.add(`${ZONE}${zone}`);
  }

  /** Taints the node that has waited longest, when its zone may lose one, and comes back for the next. */
  async #evictNext(zone: string): Promise<void> {
    const { clock } = this.#context;
    const [name] = this.#waiting.get(zone) ?? [];
    const bucket = this.#buckets.get(zone);
    if (name === undefined || bucket === undefined || this.#isTotal) return;
    const node = this.#informers.nodes.get(name);
    if (node === undefined || !this.#mayBeEvicted(node)) {
      this.#wait(name, undefined);
      this.queue.add(`${ZONE}${zone}`);
      return;
    }
    const now = clock.monotonic();
    const waitMs = tokenInMs(bucket, now);
    // Without a rate the zone comes back when it has one.
    if (waitMs === undefined) return;
    if (waitMs > 0) {
      this.queue.addAfter(`${ZONE}${zone}`, waitMs);
      return;
    }
    // Of one that has changed meanwhile the change comes.
    if ((await this.#taint(node, 'now')) !== 'written') return;
    this.metrics.evicted(zone);
    this.#wait(name, undefined);
    const current = this.#buckets.get(zone);
    if (current !== undefined) this.#buckets.set(zone, withoutToken(current, clock.monotonic()));
    this.queue.add(`${ZONE}${zone}`);
  }

  /** `stale`: the node has changed meanwhile, or is gone. */
  async #taint(node: Node, eviction: Eviction): Promise<'unchanged' | 'written' | 'stale'> {
    const taints = nextTaints(node, this.#timestamp(), eviction);
    if (taints === undefined) return 'unchanged';
    const { name, resourceVersion } = node.metadata;
    // Taints are one list: the resourceVersion ensures that no concurrent change is lost.
    const patch = { metadata: { resourceVersion }, spec: { taints: taints.length === 0 ? null : taints } };
    const path = resourcePath('v1', 'nodes', { name });
    return (await this.#write(() => this.#context.client.patch(path, patch, 'merge'))) ? 'written' : 'stale';
  }

  /** True where there was one to write. */
  async #label(node: Node): Promise<boolean> {
    const labels = olderLabels(node);
    if (labels === undefined) return false;
    const path = resourcePath('v1', 'nodes', { name: node.metadata.name });
    await this.#write(() => this.#context.client.patch(path, { metadata: { labels } }, 'merge'));
    return true;
  }

  /** False for a node that is gone or has changed: its next event queues it again. */
  async #write(request: () => Promise<unknown>): Promise<boolean> {
    try {
      await request();
      return true;
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
      return false;
    }
  }

  #timestamp(): string {
    return rfc3339(this.#context.clock.now());
  }
}

function mayChangeZones(change: Change<Node>): boolean {
  if (change.type !== 'modified') return true;
  const { old, object } = change;
  return readyStatus(old) !== readyStatus(object) || !sameLabels(old, object);
}

function sameLabels(a: Node, b: Node): boolean {
  return JSON.stringify(a.metadata.labels ?? {}) === JSON.stringify(b.metadata.labels ?? {});
}

function heartbeat(node: Node): string | undefined {
  return node.status?.conditions?.find((condition) => condition.type === 'Ready')?.lastHeartbeatTime;
}

function renewal(lease: Lease): string | undefined {
  return lease.spec?.renewTime;
}
