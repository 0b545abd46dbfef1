// The node lifecycle controller: a node whose lease has not been renewed for the grace period becomes Unknown, its pods
// are no longer Ready, and every node carries the taints of its conditions. taints.ts decides which, zones.ts how soon those by
// which pods are evicted.

import { isConflict, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import { objectKey } from '../../client/store.ts';
import type { Lease, Node } from '../../client/types.ts';
import { WorkQueue } from '../../client/workqueue.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import type { Informers } from '../informers.ts';
import type { Controller, ControllerContext } from '../runtime.ts';
import { isTaintedForEviction, nextTaints, unknownConditions } from './taints.ts';
import {
  allAreLost,
  EVICTION_RATES,
  EvictionLimits,
  type EvictionRates,
  isExcluded,
  rateOf,
  readiness,
  surveyZones,
  type Zone,
  zoneOf,
} from './zones.ts';

/** The default of --node-monitor-grace-period, until v1.31 also the real controller's. */
export const GRACE_PERIOD_MS = 40_000;

export interface NodeLifecycleSettings {
  /** How long a node may be silent. ms. */
  readonly graceMs?: number;
  readonly rates?: EvictionRates;
}

type Needed = Pick<Informers, 'nodes' | 'nodeLeases' | 'pods'>;

export class NodeLifecycleController implements Controller {
  readonly name = 'node-lifecycle';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #graceMs: number;
  readonly #rates: EvictionRates;
  readonly #limits: EvictionLimits;
  #zones: ReadonlyMap<string, Zone> = new Map();
  /** No node is ready. */
  #allLost = false;
  /** Nodes that may be tainted for eviction, and are not yet. */
  readonly #mayEvict = new Set<string>();
  /** When each node was last updated or renewed its lease, by this process's monotonic clock: clocks of nodes may differ. */
  readonly #lastSign = new Map<string, number>();
  /** Nodes that became Unknown, whose pods are still to be marked. */
  readonly #podsToMark = new Set<string>();

  constructor(context: ControllerContext, informers: Needed, settings: NodeLifecycleSettings = {}) {
    this.#context = context;
    this.#informers = informers;
    this.#graceMs = settings.graceMs ?? GRACE_PERIOD_MS;
    this.#rates = settings.rates ?? EVICTION_RATES;
    this.#limits = new EvictionLimits(this.#rates.perSecond);
    this.queue = new WorkQueue({ clock: context.clock });
    informers.nodes.onChange((changes) => {
      for (const change of changes) {
        const name = change.object.metadata.name;
        if (change.type === 'removed') {
          this.#lastSign.delete(name);
          this.#mayEvict.delete(name);
        } else {
          const alive = change.type === 'added' || heartbeat(change.old) !== heartbeat(change.object);
          if (alive) this.#lastSign.set(name, context.clock.monotonic());
          this.queue.add(objectKey(change.object));
        }
      }
      if (changes.some((change) => change.type !== 'modified' || countsOtherwise(change.old, change.object)))
        this.#survey();
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

  /** After a change of what is ready. */
  #survey(): void {
    const { clock, log } = this.#context;
    const before = this.#zones;
    const nodes = this.#informers.nodes.list();
    this.#zones = surveyZones(nodes, this.#rates);
    const allLost = allAreLost(this.#zones);
    const now = clock.monotonic();
    for (const [name, zone] of this.#zones) this.#limits.setRate(name, allLost ? 0 : rateOf(zone, this.#rates), now);
    const isSame = [...this.#zones].every(([name, { state }]) => before.get(name)?.state === state);
    if (isSame && allLost === this.#allLost) return;
    if (allLost !== this.#allLost) {
      const what = allLost ? 'no node is ready: none is tainted for eviction' : 'some nodes are ready';
      if (before.size > 0) log(`${this.name}: ${what}`);
      // Each has its grace period again, since it was not the nodes that were away.
      if (!allLost) for (const { metadata } of nodes) this.#lastSign.set(metadata.name, now);
      if (allLost) this.#mayEvict.clear();
      this.#allLost = allLost;
    }
    for (const node of nodes) if (readiness(node) !== 'True') this.queue.add(objectKey(node));
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
    const taints = nextTaints(node, this.#timestamp(), this.#evicts(node));
    if (taints === undefined) return;
    const { name, resourceVersion } = node.metadata;
    // Taints are one list: the resourceVersion ensures that no concurrent change is lost.
    const patch = { metadata: { resourceVersion }, spec: { taints: taints.length === 0 ? null : taints } };
    await this.#write(() => this.#context.client.patch(resourcePath('v1', 'nodes', { name }), patch, 'merge'));
  }

  /** Whether a node that is not ready may be tainted for eviction. Where it is not its turn, it comes back when it is. */
  #evicts(node: Node): boolean {
    const { name } = node.metadata;
    const ready = readiness(node);
    const isLost = ready === 'False' || ready === 'Unknown';
    const isTainted = isTaintedForEviction(node);
    if (!isLost || isTainted) this.#mayEvict.delete(name);
    if (!isLost || this.#allLost) return false;
    if (isTainted || this.#mayEvict.has(name)) return true;
    const waitMs = this.#limits.take(zoneOf(node), this.#context.clock.monotonic());
    if (waitMs === 0) this.#mayEvict.add(name);
    else if (Number.isFinite(waitMs)) this.queue.addAfter(name, waitMs);
    return waitMs === 0;
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

function countsOtherwise(old: Node, node: Node): boolean {
  return readiness(old) !== readiness(node) || zoneOf(old) !== zoneOf(node) || isExcluded(old) !== isExcluded(node);
}

function heartbeat(node: Node): string | undefined {
  return node.status?.conditions?.find((condition) => condition.type === 'Ready')?.lastHeartbeatTime;
}

function renewal(lease: Lease): string | undefined {
  return lease.spec?.renewTime;
}
