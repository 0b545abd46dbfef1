// The agent's storage side, put together: the plugin watcher from the start, everything else with the first plugin, the
// first claim, or what an earlier agent left. Part of the composition: it decides nothing.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeSelector } from 'kubernetes-types/core/v1';
import type { ApiClient } from '../../client/api.ts';
import type { RegisteredDrivers } from '../../csi/registered-drivers.ts';
import { createPluginWatcher } from '../../csi/registration.ts';
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
  const { rootDir, nodeName, client, clock, tracer, log } = parts;
  const inUse = new VolumesInUse();
  const closing = new AbortController();
  const onError = (message: string): void => log('warn', message);
  let drivers: Promise<RegisteredDrivers> | undefined;
  let persistent: Promise<PersistentVolumes> | undefined;
  let csiVolumes: CsiVolumes | undefined;
  let stats: CsiStats | undefined;
  let health: Timer | undefined;

  async function announcer(api: ApiClient) {
    const { CsiNodeObject } = await import('../volumes/csi/csi-node-object.ts');
    return new CsiNodeObject({ nodeName, client: api, clock, signal: closing.signal });
  }

  async function loadDrivers(): Promise<RegisteredDrivers> {
    const { RegisteredDrivers: Drivers } = await import('../../csi/registered-drivers.ts');
    const standalone = { announce: async () => undefined, withdraw: async () => undefined };
    return new Drivers({
      clock,
      tracer,
      announcer: client === undefined ? standalone : await announcer(client),
      onError,
    });
  }
  const useDrivers = (): Promise<RegisteredDrivers> => {
    drivers ??= loadDrivers();
    return drivers;
  };

  async function loadPersistent(api: ApiClient): Promise<PersistentVolumes> {
    const [{ createPersistentVolumes }, { CsiVolumes: Csi }, { CsiStats: Stats }, { createStorageApi }, csi] =
      await Promise.all([
        import('../volumes/persistent.ts'),
        import('../volumes/csi/csi-volumes.ts'),
        import('../volumes/csi/stats.ts'),
        import('../api/storage-api.ts'),
        useDrivers(),
      ]);
    const storage = createStorageApi({ client: api, clock, onError }, closing.signal);
    csiVolumes = new Csi({ ...parts, csi, storage, inUse, onError });
    stats = new Stats({ volumes: csiVolumes, recorder: parts.recorder, clock, onError });
    lookAfterHealth(stats);
    return createPersistentVolumes({ ...parts, storage, csi: csiVolumes });
  }
  /** Records events of abnormal volumes also when no client reads the figures. */
  function lookAfterHealth(figures: CsiStats): void {
    health = clock.after(HEALTH_MS, () => {
      if (closing.signal.aborted) return;
      void figures.read().finally(() => lookAfterHealth(figures));
    });
  }

  const usePersistent = (api: ApiClient): Promise<PersistentVolumes> => {
    persistent ??= loadPersistent(api);
    return persistent;
  };

  const watcher = createPluginWatcher({
    directory: join(rootDir, 'plugins_registry'),
    handlers: {
      CSIPlugin: {
        register: async (plugin, signal) => await (await useDrivers()).register(plugin, signal),
        // Registered means loaded.
        deregister: (plugin) => void useDrivers().then((loaded) => loaded.deregister(plugin)),
      },
    },
    clock,
    tracer,
    log,
  });

  return {
    inUse,
    stats: async () => (await stats?.read()) ?? [],
    ...(client === undefined ? {} : { persistent: () => usePersistent(client) }),
    async start() {
      await watcher.start();
      if (client === undefined) return;
      // A volume that an earlier agent staged may have no user left.
      if (existsSync(join(rootDir, 'plugins/kubernetes.io/csi'))) await usePersistent(client);
      void announcer(client)
        .then((object) => object.ensure())
        .catch((error: unknown) => {
          if (!closing.signal.aborted) log('warn', `there is no CSINode ${nodeName}: ${errorMessage(error)}`);
        });
    },
    close() {
      closing.abort();
      health?.cancel();
      watcher.close();
      csiVolumes?.close();
      void drivers?.then((loaded) => loaded.close());
    },
  };
}
