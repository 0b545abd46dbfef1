// The CSI drivers registered on this node: registers one when its versions fit, its NodeGetInfo answers, and CSINode
// names it; provides its Node service to agent/volumes. It keeps nothing of volumes.

import type { BackoffPolicy } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { retry } from '../lib/retry.ts';
import type { Tracer } from '../lib/trace.ts';
import type { NodeDefinition } from '../proto/gen/csi/v1/Node.ts';
import { CSI_TIMEOUT_MS, type CsiClient, type CsiService, connectCsi, isCsiError } from './client.ts';
import type { PluginHandler } from './registration.ts';
import type { PluginInfo } from './registration-client.ts';
import { type CsiVersion, compareVersions, highestSupportedVersion, showVersion } from './versions.ts';

/** NodeGetInfo's response. */
export interface CsiNodeInfo {
  readonly driver: string;
  readonly nodeId: string;
  /** 0 is no limit. */
  readonly maxVolumes: number;
  readonly topology: Readonly<Record<string, string>>;
}

/** Publishes the node's drivers (CSINode). Rejections refuse the driver. */
export interface CsiNodeAnnouncer {
  announce(info: CsiNodeInfo): Promise<void>;
  withdraw(driver: string): Promise<void>;
}

export interface RegisteredDriver {
  readonly name: string;
  readonly nodeId: string;
  readonly node: CsiService<NodeDefinition>;
  /** Node service capabilities by their CSI names: "STAGE_UNSTAGE_VOLUME". Requested once. */
  capabilities(): Promise<ReadonlySet<string>>;
}

export interface RegisteredDriversOptions {
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly announcer: CsiNodeAnnouncer;
  /** A driver could not be removed from CSINode; it is removed with the next change. */
  readonly onError: (message: string) => void;
}

interface Entry {
  readonly endpoint: string;
  readonly version: CsiVersion;
  readonly client: CsiClient;
  driver: RegisteredDriver | undefined;
}

const RETRY: BackoffPolicy = { initialMs: 100, maxMs: 5000, factor: 2, resetMs: Number.POSITIVE_INFINITY };

export class RegisteredDrivers implements PluginHandler {
  readonly #options: RegisteredDriversOptions;
  readonly #drivers = new Map<string, Entry>();
  readonly #waiting = new Map<string, (() => void)[]>();
  /** Announcements one after the other: they read and write the same objects. */
  #announcements: Promise<unknown> = Promise.resolve();

  constructor(options: RegisteredDriversOptions) {
    this.#options = options;
  }

  /** Undefined while none of this name is registered. */
  driver(name: string): RegisteredDriver | undefined {
    return this.#drivers.get(name)?.driver;
  }

  names(): readonly string[] {
    return [...this.#drivers].flatMap(([name, { driver }]) => (driver === undefined ? [] : [name]));
  }

  /** Resolves as soon as a driver of this name is registered. */
  registered(name: string): Promise<void> {
    if (this.driver(name) !== undefined) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), resolve]);
    });
  }

  async register(plugin: PluginInfo, signal: AbortSignal): Promise<void> {
    const { name, endpoint } = plugin;
    const version = this.#validate(plugin);
    const client = connectCsi(endpoint, { tracer: this.#options.tracer });
    const entry: Entry = { endpoint, version, client, driver: undefined };
    const replaced = this.#drivers.get(name);
    this.#drivers.set(name, entry);
    try {
      const info = await this.#nodeInfo(name, client, signal);
      await this.#serialize(() => this.#options.announcer.announce(info));
      entry.driver = asDriver(info, client);
    } catch (error) {
      client.close();
      if (this.#drivers.get(name) === entry) {
        if (replaced === undefined) this.#drivers.delete(name);
        else this.#drivers.set(name, replaced);
      }
      throw new Error(`plugin registration failed with err: ${errorMessage(error)}`, { cause: error });
    }
    replaced?.client.close();
    for (const resolve of this.#waiting.get(name) ?? []) resolve();
    this.#waiting.delete(name);
  }

  deregister({ name, endpoint }: PluginInfo): void {
    const entry = this.#drivers.get(name);
    // Another process of the same driver may have taken over.
    if (entry === undefined || entry.endpoint !== endpoint) return;
    this.#drivers.delete(name);
    entry.client.close();
    const withdrawn = this.#serialize(async () => {
      if (!this.#drivers.has(name)) await this.#options.announcer.withdraw(name);
    });
    withdrawn.catch((error: unknown) =>
      this.#options.onError(`the CSI driver ${name} is still in CSINode: ${errorMessage(error)}`),
    );
  }

  close(): void {
    for (const { client } of this.#drivers.values()) client.close();
    this.#drivers.clear();
  }

  #validate({ name, endpoint, versions }: PluginInfo): CsiVersion {
    try {
      const version = highestSupportedVersion(versions);
      const existing = this.#drivers.get(name);
      if (existing !== undefined && compareVersions(existing.version, version) >= 0) {
        const has = showVersion(existing.version);
        throw new Error(
          `Another driver with the same name is already registered with a higher supported version: "${has}"`,
        );
      }
      return version;
    } catch (error) {
      const why = `validation failed for CSI Driver ${name} at endpoint ${endpoint}: ${errorMessage(error)}`;
      throw new Error(`plugin validation failed with err: ${why}`, { cause: error });
    }
  }

  /** NodeGetInfo, called again while the driver is not up yet. */
  #nodeInfo(driver: string, client: CsiClient, signal: AbortSignal): Promise<CsiNodeInfo> {
    const getInfo = async (deadlineMs: number): Promise<CsiNodeInfo> => {
      const answer = await client.node.NodeGetInfo({}, { signal, deadlineMs });
      const maxVolumes = Number(answer.max_volumes_per_node);
      if (answer.node_id === '') throw new Error('the driver answered NodeGetInfo without a node id');
      if (maxVolumes < 0) throw new Error(`max_volumes_per_node must not be negative, it is ${maxVolumes}`);
      return { driver, nodeId: answer.node_id, maxVolumes, topology: answer.accessible_topology?.segments ?? {} };
    };
    const mends = (error: unknown): boolean => isCsiError(error, 'UNAVAILABLE', 'ABORTED', 'RESOURCE_EXHAUSTED');
    return retry(getInfo, { clock: this.#options.clock, policy: RETRY, limitMs: CSI_TIMEOUT_MS, mends, signal });
  }

  #serialize(work: () => Promise<void>): Promise<void> {
    const next = this.#announcements.then(work, work);
    this.#announcements = next.catch(() => undefined);
    return next;
  }
}

function asDriver({ driver, nodeId }: CsiNodeInfo, { node }: CsiClient): RegisteredDriver {
  let known: Promise<ReadonlySet<string>> | undefined;
  const fetch = async (): Promise<ReadonlySet<string>> => {
    const { capabilities } = await node.NodeGetCapabilities({});
    return new Set(capabilities.flatMap(({ rpc }) => (rpc == null ? [] : [rpc.type])));
  };
  return {
    name: driver,
    nodeId,
    node,
    capabilities() {
      known ??= fetch().catch((error: unknown) => {
        known = undefined;
        throw error;
      });
      return known;
    },
  };
}
