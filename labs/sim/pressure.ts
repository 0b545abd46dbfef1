// Eviction and image garbage collection on a simulated node, put together as agent/compose/pressure.ts does: measured from
// the simulated machine's cgroups, its disks and its runtime.

import { statfs } from 'node:fs/promises';
import { EvictionManager } from '../../agent/eviction/eviction-manager.ts';
import type { EvictablePods } from '../../agent/eviction/options.ts';
import { PodUsageReader } from '../../agent/eviction/pod-usage.ts';
import type { NodePressureState } from '../../agent/eviction/pressure-state.ts';
import { SignalReader } from '../../agent/eviction/signals.ts';
import { ImageGc } from '../../agent/images/gc.ts';
import type { ImageGcConfig } from '../../agent/images/gc-policy.ts';
import type { EventRecorder } from '../../agent/ports/api.ts';
import { hostsFile, podLogsDirectory } from '../../agent/runtime/config/paths.ts';
import type { NodeSettings } from '../../agent/runtime/options.ts';
import type { CriRuntime } from '../../agent/runtime/types.ts';
import { podDir } from '../../agent/volumes/volume-type.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { SimDiskSpace } from './disk-space.ts';
import { CAPACITY_BYTES, type SimMemory, THRESHOLD_BYTES } from './memory.ts';

export interface PressureParts {
  readonly memory: SimMemory;
  /** Undefined where the disks are not counted, and stay as they are. */
  readonly space?: SimDiskSpace | undefined;
  readonly settings: NodeSettings;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly recorder: EventRecorder;
  readonly runtime: CriRuntime;
  readonly pods: EvictablePods;
  readonly pressure: NodePressureState;
  /** Undefined where images take no disk and none is removed. */
  readonly images: ImageGc | undefined;
}

/** How long the node stays under pressure after there is enough again, ms. */
export const TRANSITION_MS = 60_000;

type EvictionConfig = ConstructorParameters<typeof EvictionManager>[0]['config'];

const CONFIG: EvictionConfig = {
  evictionHard: { 'memory.available': String(THRESHOLD_BYTES) },
  evictionSoft: {},
  evictionSoftGracePeriod: {},
  evictionMinimumReclaim: {},
  enforceNodeAllocatable: [],
  evictionPressureTransitionPeriod: TRANSITION_MS,
  evictionMaxPodGracePeriod: 0,
  localStorageCapacityIsolation: true,
};

/** The caller runs it. */
export function createImageGc(
  config: ImageGcConfig,
  {
    clock,
    log,
    recorder,
    runtime,
    nodeName,
  }: Pick<PressureParts, 'clock' | 'log' | 'recorder' | 'runtime' | 'nodeName'>,
): ImageGc {
  return new ImageGc({
    config,
    clock,
    log,
    recorder,
    nodeName,
    listImages: () => runtime.listImages(),
    removeImage: (id) => runtime.removeImage(id),
    imagesInUse: () => runtime.imagesInUse(),
    imageDisk: async () => {
      const { image } = await runtime.imageFsPaths();
      if (image === undefined) return undefined;
      const { bsize, blocks, bavail } = await statfs(image);
      return { capacity: blocks * bsize, available: bavail * bsize };
    },
  });
}

export function createEviction(parts: PressureParts, config: Partial<EvictionConfig> = {}): EvictionManager {
  const { memory, space, settings, clock, log, recorder, runtime, pods, pressure, nodeName, images } = parts;
  const { rootDir, podLogsDir, cgroups: layout } = settings;
  const cgroups = { version: 2, mountPoint: memory.mountPoint } as const;
  const signals = new SignalReader({
    clock,
    rootDir,
    memoryCapacityBytes: CAPACITY_BYTES,
    cgroups,
    kubepods: memory.kubepods,
    imageFsPaths: () => runtime.imageFsPaths(),
    onTrouble: (message) => log('info', message),
    procDir: `${rootDir}/proc`,
    state: () => `${memory.writes} ${space?.available('node')} ${space?.available('images')}`,
  });
  const usage = new PodUsageReader({
    cgroups,
    layout,
    containerStats: () => runtime.containerStats(),
    paths: {
      volumes: ({ metadata }, plugin) => `${podDir(rootDir, metadata.uid)}/volumes/kubernetes.io~${plugin}`,
      logs: ({ metadata }) => podLogsDirectory(podLogsDir, metadata),
      etcHosts: ({ metadata }) => hostsFile(rootDir, metadata.uid),
    },
  });
  return new EvictionManager({
    config: { ...CONFIG, ...config },
    clock,
    log,
    recorder,
    nodeName,
    pods,
    readSignals: () => signals.read(),
    readUsage: (of, wanted) => usage.read(of, wanted),
    removeUnusedImages: () => images?.removeUnused() ?? Promise.resolve(),
    pressure,
  });
}
