// The agent's storage side, put together: the plugin watcher from the start, everything else with the first plugin, the
// first claim, or what an earlier agent left. Part of the composition: it decides nothing.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeSelector } from 'kubernetes-types/core/v1';
import type { ApiClient } from '../../client/api.ts';
import type { RegisteredDrivers } from '../../csi/registered-drivers.ts';
import { createPluginWatcher, type PluginWatcher } from '../../csi/registration.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { EventRecorder, ObjectReader } from '../ports/api.ts';
import type { Mounter } from '../ports/mounter.ts';
import type { ReadVolumeStats } from '../ports/volume-stats.ts';
import type { CsiVolumes } from '../volumes/csi/csi-volumes.ts';
import type { CsiStats } from '../volumes/csi/stats.ts';
import type { PersistentVolumes } from '../volumes/options.ts';
import { VolumesInUse } from '../volumes/volumes-in-use.ts';

/** How often the health of volumes is read, ms. */
const HEALTH_MS = 60_000;

export interface StorageParts {
  /** The agent's root. */
  readonly rootDir: string;
  readonly nodeName: string;
  /** Absent in standalone mode: claims and CSI volumes need an API server. */
  readonly client?: ApiClient;
  readonly objects: ObjectReader;
  readonly recorder: EventRecorder;
  readonly mounter: Mounter;
  /** Whether this node is one that a volume's node affinity names. */
  readonly nodeMatches: (selector: NodeSelector) => boolean;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly log: Log;
}

export interface Storage {
  /** For the volume manager. */
  readonly persistent?: () => Promise<PersistentVolumes>;
  readonly inUse: VolumesInUse;
  /** Figures of CSI volumes; nothing while nothing of CSI is loaded. */
  readonly stats: ReadVolumeStats;
  start(): Promise<void>;
  close(): void;
}

export function createStorage(parts: StorageParts): Storage {
  return new AgentStorage(parts);
}

class AgentStorage implements Storage {
  readonly inUse = new VolumesInUse();
  readonly stats: ReadVolumeStats = async () => (await this.#stats?.read()) ?? [];
  readonly persistent?: () => Promise<PersistentVolumes>;
  readonly #parts: StorageParts;
  readonly #closing = new AbortController();
  readonly #onError: (message: string) => void;
  readonly #watcher: PluginWatcher;
  #drivers: Promise<RegisteredDrivers> | undefined;
  #persistent: Promise<PersistentVolumes> | undefined;
  #csiVolumes: CsiVolumes | undefined;
  #stats: CsiStats | undefined;
  #health: Timer | undefined;

  constructor(parts: StorageParts) {
    const { rootDir, client, clock, tracer, log } = parts;
    this.#parts = parts;
    this.#onError = (message) => log('warn', message);
    if (client !== undefined) this.persistent = () => this.#usePersistent(client);
    this.#watcher = createPluginWatcher({
      directory: join(rootDir, 'plugins_registry'),
      handlers: {
        CSIPlugin: {
          register: async (plugin, signal) => await (await this.#useDrivers()).register(plugin, signal),
          // Registered means loaded.
          deregister: (plugin) => void this.#useDrivers().then((loaded) => loaded.deregister(plugin)),
        },
      },
      clock,
      tracer,
      log,
    });
  }

  async start(): Promise<void> {
    const { rootDir, nodeName, client, log } = this.#parts;
    await this.#watcher.start();
    if (client === undefined) return;
    // A volume that an earlier agent staged may have no user left.
    if (existsSync(join(rootDir, 'plugins/kubernetes.io/csi'))) await this.#usePersistent(client);
    void this.#csiNode(client)
      .then((object) => object.ensure())
      .catch((error: unknown) => {
        if (!this.#closing.signal.aborted) log('warn', `there is no CSINode ${nodeName}: ${errorMessage(error)}`);
      });
  }

  close(): void {
    this.#closing.abort();
    this.#health?.cancel();
    this.#watcher.close();
    this.#csiVolumes?.close();
    void this.#drivers?.then((loaded) => loaded.close());
  }

  #useDrivers(): Promise<RegisteredDrivers> {
    this.#drivers ??= this.#loadDrivers();
    return this.#drivers;
  }

  async #loadDrivers(): Promise<RegisteredDrivers> {
    const { client, clock, tracer } = this.#parts;
    const { RegisteredDrivers: Drivers } = await import('../../csi/registered-drivers.ts');
    const standalone = { announce: async () => undefined, withdraw: async () => undefined };
    const announcer = client === undefined ? standalone : await this.#csiNode(client);
    return new Drivers({ clock, tracer, announcer, onError: this.#onError });
  }

  async #csiNode(client: ApiClient) {
    const { nodeName, clock } = this.#parts;
    const { CsiNodeObject } = await import('../volumes/csi/csi-node-object.ts');
    return new CsiNodeObject({ nodeName, client, clock, signal: this.#closing.signal });
  }

  #usePersistent(client: ApiClient): Promise<PersistentVolumes> {
    this.#persistent ??= this.#loadPersistent(client);
    return this.#persistent;
  }

  async #loadPersistent(client: ApiClient): Promise<PersistentVolumes> {
    const { clock, recorder } = this.#parts;
    const onError = this.#onError;
    const [{ createPersistentVolumes }, { CsiVolumes: Csi }, { CsiStats: Stats }, { createStorageApi }, csi] =
      await Promise.all([
        import('../volumes/persistent.ts'),
        import('../volumes/csi/csi-volumes.ts'),
        import('../volumes/csi/stats.ts'),
        import('../api/storage-api.ts'),
        this.#useDrivers(),
      ]);
    const storage = createStorageApi({ client, clock, onError }, this.#closing.signal);
    const volumes = new Csi({ ...this.#parts, csi, storage, inUse: this.inUse, onError });
    this.#csiVolumes = volumes;
    this.#stats = new Stats({ volumes, recorder, clock, onError });
    this.#watchHealth(this.#stats);
    return createPersistentVolumes({ ...this.#parts, storage, csi: volumes });
  }

  /** Records events of abnormal volumes also when no client reads the figures. */
  #watchHealth(figures: CsiStats): void {
    this.#health = this.#parts.clock.after(HEALTH_MS, () => {
      if (this.#closing.signal.aborted) return;
      void figures.read().finally(() => this.#watchHealth(figures));
    });
  }
}
