// Eviction and image garbage collection, put together for this machine: where the kernel, the runtime and the disk tell
// what they need to know. Part of the composition root: decides nothing.

import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../client/types.ts';
import type { Clock } from '../lib/clock.ts';
import { UserError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import type { AgentOptions } from './config/options.ts';
import type { CgroupFiles } from './eviction/cgroup-usage.ts';
import { EvictionManager } from './eviction/eviction-manager.ts';
import type { EvictablePods } from './eviction/options.ts';
import { PodUsageReader } from './eviction/pod-usage.ts';
import { SignalReader } from './eviction/signals.ts';
import { ImageGc } from './images/gc.ts';
import { type CgroupLayout, cgroupPath, kubepodsName } from './model/cgroup-names.ts';
import type { EventRecorder } from './ports/api.ts';
import { hostsFile, podDirectory, podLogsDirectory } from './runtime/config/paths.ts';
import type { CriRuntime } from './runtime/types.ts';

export interface NodePressureParts {
  readonly options: AgentOptions;
  readonly clock: Clock;
  readonly log: Log;
  readonly recorder: EventRecorder;
  readonly runtime: CriRuntime;
  /** Asked when it is needed: pods are admitted by what this makes. */
  readonly pods: () => EvictablePods;
  readonly layout: CgroupLayout;
  readonly cgroupVersion: 1 | 2;
  readonly memoryCapacityBytes: number;
  readonly onChange: () => void;
}

export interface NodePressureParty {
  readonly eviction: EvictionManager;
  readonly images: ImageGc;
}

/** Throws UserError for eviction thresholds that make no sense. */
export function createNodePressure(parts: NodePressureParts): NodePressureParty {
  const { options, clock, log, recorder, runtime, layout } = parts;
  const { config, nodeName, rootDir } = options;
  const cgroups: CgroupFiles = { version: parts.cgroupVersion, mountPoint: '/sys/fs/cgroup' };
  const signals = new SignalReader({
    clock,
    rootDir,
    memoryCapacityBytes: parts.memoryCapacityBytes,
    cgroups,
    kubepods: cgroupPath(layout, kubepodsName(layout)),
    imageFsPaths: () => runtime.imageFsPaths(),
    onTrouble: (message) => log('warn', message),
  });
  const identity = ({ metadata: { uid, namespace, name } }: Pod) => ({ uid, namespace, name });
  const usage = new PodUsageReader({
    cgroups,
    layout,
    containerStats: () => runtime.containerStats(),
    paths: {
      volumes: ({ metadata }, plugin) =>
        join(podDirectory(rootDir, metadata.uid), 'volumes', `kubernetes.io~${plugin}`),
      logs: (pod) => podLogsDirectory(config.podLogsDir, identity(pod)),
      etcHosts: ({ metadata }) => hostsFile(rootDir, metadata.uid),
    },
  });
  const images = new ImageGc({
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
  try {
    const eviction = new EvictionManager({
      config,
      clock,
      log,
      recorder,
      nodeName,
      pods: {
        activePods: () => parts.pods().activePods(),
        endPod: (uid, end) => parts.pods().endPod(uid, end),
        removeEnded: () => parts.pods().removeEnded(),
      },
      readSignals: () => signals.read(),
      readUsage: (pods, wanted) => usage.read(pods, wanted),
      removeUnusedImages: () => images.removeUnused(),
      onChange: parts.onChange,
    });
    return { eviction, images };
  } catch (error) {
    if (error instanceof RangeError) throw new UserError(error.message, { cause: error });
    throw error;
  }
}
