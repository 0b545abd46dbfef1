// Eviction and image garbage collection, put together for this machine, with their readers of the kernel, the runtime and
// the disk. Part of the composition root: decides nothing.

import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../client/types.ts';
import { UserError } from '../../lib/errors.ts';
import type { CgroupFiles } from '../eviction/cgroup-usage.ts';
import { EvictionManager } from '../eviction/eviction-manager.ts';
import type { EvictablePods } from '../eviction/options.ts';
import { PodUsageReader } from '../eviction/pod-usage.ts';
import type { NodePressureState } from '../eviction/pressure-state.ts';
import { SignalReader } from '../eviction/signals.ts';
import { ImageGc } from '../images/gc.ts';
import { cgroupPath, kubepodsName } from '../model/cgroup-names.ts';
import { hostsFile, podDirectory, podLogsDirectory } from '../runtime/config/paths.ts';
import type { CriRuntime } from '../runtime/types.ts';
import type { AgentBase } from './base.ts';
import type { Cluster } from './cluster.ts';
import type { Machine, MachineCgroups } from './machine.ts';

export interface PressureParts {
  readonly machine: Machine;
  readonly cgroups: MachineCgroups;
  readonly cluster: Cluster;
  readonly runtime: CriRuntime;
  readonly pods: EvictablePods;
  readonly pressure: NodePressureState;
}

export interface Pressure {
  readonly eviction: EvictionManager;
  readonly images: ImageGc;
}

/** Throws UserError for eviction thresholds that make no sense. */
export function createPressure({ options, clock, log }: AgentBase, parts: PressureParts): Pressure {
  const { machine, runtime, pods, pressure } = parts;
  const { recorder } = parts.cluster;
  const { layout } = parts.cgroups;
  const { config, nodeName, rootDir } = options;
  const cgroups: CgroupFiles = { version: parts.cgroups.cgroups.version, mountPoint: '/sys/fs/cgroup' };
  const signals = new SignalReader({
    clock,
    rootDir,
    memoryCapacityBytes: machine.facts.memoryBytes,
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
      pods,
      readSignals: () => signals.read(),
      readUsage: (pods, wanted) => usage.read(pods, wanted),
      removeUnusedImages: () => images.removeUnused(),
      pressure,
    });
    return { eviction, images };
  } catch (error) {
    if (error instanceof RangeError) throw new UserError(error.message, { cause: error });
    throw error;
  }
}
