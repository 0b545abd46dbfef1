// What changes in services, slices and the proxy's node becomes rules in the kernel, and connections that would go elsewhere are
// cleared. Decides no rules.

import { readFile } from 'node:fs/promises';
import { RulesLoop } from '../client/rules-loop.ts';
import { objectKey, type ReadableStore } from '../client/store.ts';
import type { EndpointSlice, Node, Service } from '../client/types.ts';
import { type Clock, type EpochMs, earlier, elapsedMs } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { parseRfc3339 } from '../lib/rfc3339.ts';
import type { Tracer } from '../lib/trace.ts';
import type { Backend, ServicePortEndpoints } from './backend.ts';
import { deleteFlows } from './conntrack/delete-flows.ts';
import { expectedAnswers, parseFlows, staleFlows } from './conntrack/flows.ts';
import type { ServiceHealth, SyncTimes } from './health.ts';
import type { ProxyMetrics } from './metrics.ts';
import type { RuleOptions } from './options.ts';
import type { NodeTopology } from './reachable.ts';
import { serviceOfSlice } from './service-ports.ts';
import { ServiceTracker } from './service-tracker.ts';

const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';
const ZONE = 'topology.kubernetes.io/zone';

export interface ProxyParts {
  readonly services: ReadableStore<Service>;
  readonly slices: ReadableStore<EndpointSlice>;
  readonly nodes: ReadableStore<Node>;
  readonly backend: Backend;
  readonly metrics: ProxyMetrics;
  readonly health: Pick<ServiceHealth, 'update'>;
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly log: (message: string) => void;
  readonly nodeName: string;
  /** How often the kernel's tables are compared and repaired. ms. */
  readonly syncPeriodMs: number;
  /** What the rules depend on besides; the addresses of the node are found anew each time. */
  readonly options: () => RuleOptions;
  readonly nodeIPs: () => ReadonlySet<string>;
  /** Called once all that was there has been written. */
  readonly onFirstSync?: () => void;
}

export class ServiceProxy {
  readonly #parts: ProxyParts;
  readonly #loop: RulesLoop;
  readonly #tracker = new ServiceTracker();
  readonly #slices = new Map<string, Map<string, EndpointSlice>>();
  /** Services to take in. */
  readonly #dirty = new Set<string>();
  #isFirst = true;
  #options: RuleOptions | undefined;
  /** Of which no stale flows are left. */
  #udp: readonly ServicePortEndpoints[] = [];
  #node: NodeTopology;
  #lastUpdated: EpochMs;
  #waitingSince: EpochMs | undefined;
  /** Of the changes that wait to be written. */
  #triggers: EpochMs[] = [];

  constructor(parts: ProxyParts) {
    this.#parts = parts;
    this.#node = { name: parts.nodeName, zone: '' };
    this.#lastUpdated = parts.clock.now();
    const { clock, log, syncPeriodMs, backend } = parts;
    this.#loop = new RulesLoop({
      what: 'rules',
      clock,
      log,
      syncPeriodMs,
      sync: (full) => this.#sync(full),
      damage: () => backend.damage(),
      onRepair: () => this.#enqueue(),
    });
    parts.services.onChange((changes) => {
      if (changes.length > 0) parts.metrics.changed('service', changes.length);
      for (const { object } of changes) this.#changed(objectKey(object));
    });
    parts.slices.onChange((changes) => {
      if (changes.length > 0) parts.metrics.changed('endpoint', changes.length);
      for (const change of changes) {
        if (change.type === 'modified') this.#takeSlice(change.old, false);
        this.#takeSlice(change.object, change.type !== 'removed');
      }
    });
    parts.nodes.onChange(() => this.#nodeChanged());
  }

  get times(): SyncTimes {
    return { lastUpdated: this.#lastUpdated, waitingSince: this.#waitingSince };
  }

  /** A node that is being deleted is to get no more traffic from load balancers. */
  get nodeEligible(): boolean {
    const node = this.#parts.nodes.get(this.#parts.nodeName);
    if (node === undefined) return true;
    const leaves = (node.spec?.taints ?? []).some(({ key }) => key === 'ToBeDeletedByClusterAutoscaler');
    return node.metadata.deletionTimestamp === undefined && !leaves;
  }

  #takeSlice(slice: EndpointSlice, isThere: boolean): void {
    const service = serviceOfSlice(slice);
    if (service === undefined) return;
    const slices = this.#slices.get(service) ?? new Map<string, EndpointSlice>();
    if (isThere) slices.set(slice.metadata.name, slice);
    else slices.delete(slice.metadata.name);
    if (slices.size === 0) this.#slices.delete(service);
    else this.#slices.set(service, slices);
    const trigger = isThere ? parseRfc3339(slice.metadata.annotations?.[TRIGGER_TIME]) : undefined;
    // What has been there before the proxy says nothing about its speed.
    if (trigger !== undefined && !this.#isFirst) this.#triggers.push(trigger);
    this.#changed(service);
  }

  #nodeChanged(): void {
    const { nodes, nodeName, services } = this.#parts;
    const zone = nodes.get(nodeName)?.metadata.labels?.[ZONE] ?? '';
    if (zone === this.#node.zone) return;
    this.#node = { name: nodeName, zone };
    for (const service of services.list()) this.#changed(objectKey(service));
  }

  #changed(key: string): void {
    this.#dirty.add(key);
    this.#enqueue();
  }

  #enqueue(): void {
    const now = this.#parts.clock.now();
    this.#waitingSince = this.#waitingSince === undefined ? now : earlier(this.#waitingSince, now);
    this.#parts.metrics.queued(now);
    this.#loop.changed();
  }

  /** To be called once the caches are filled; runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#enqueue();
    await this.#loop.run(signal);
  }

  async #sync(full: boolean): Promise<void> {
    const { backend, clock, metrics, health, services } = this.#parts;
    const begun = clock.monotonic();
    const triggers = this.#triggers;
    this.#triggers = [];
    this.#waitingSince = undefined;
    metrics.taken();
    for (const key of this.#dirty) {
      const slices = [...(this.#slices.get(key)?.values() ?? [])];
      this.#tracker.update(key, services.get(key), slices, this.#node);
    }
    this.#dirty.clear();
    const options = this.#currentOptions();
    try {
      const applied = await backend.apply(this.#tracker.all, options, full);
      this.#lastUpdated = clock.now();
      metrics.synced(applied, { full, tookMs: elapsedMs(begun, clock.monotonic()), nowMs: this.#lastUpdated });
      for (const trigger of triggers) metrics.programmed(elapsedMs(trigger, this.#lastUpdated));
    } catch (error) {
      this.#waitingSince ??= this.#lastUpdated;
      metrics.failed(full);
      throw error;
    }
    health.update(this.#tracker.services);
    if (this.#isFirst) this.#parts.onFirstSync?.();
    this.#isFirst = false;
    await this.#clearFlows();
  }

  /** The same object as long as nothing differs: the rules of every service depend on it. */
  #currentOptions(): RuleOptions {
    const next = this.#parts.options();
    if (this.#options === undefined || JSON.stringify(this.#options) !== JSON.stringify(next)) this.#options = next;
    return this.#options;
  }

  async #clearFlows(): Promise<void> {
    const portMap = this.#tracker.all;
    const udp = [...portMap.values()].filter(({ port }) => port.protocol === 'udp');
    const isSame = udp.length === this.#udp.length && udp.every((each, index) => each === this.#udp[index]);
    if (isSame) return;
    const { clock, metrics, tracer } = this.#parts;
    const begun = clock.monotonic();
    try {
      const flows = parseFlows(await readFile('/proc/net/nf_conntrack', 'utf8'));
      const stale = staleFlows(flows, expectedAnswers(portMap), this.#parts.nodeIPs());
      await deleteFlows(stale, tracer);
      metrics.flowsCleared(elapsedMs(begun, clock.monotonic()), stale.length);
      this.#udp = udp;
    } catch (error) {
      this.#parts.log(`failed to delete stale conntrack entries (UDP): ${errorMessage(error)}`);
    }
  }
}
