// /stats/summary (stats/v1alpha1 Summary): one look at the machine and its pods as the kubelet's JSON. Unknown figures are
// absent, never zero. Pure.

import type { EpochMs } from '../../lib/clock.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import type { ContainerStats } from '../ports/runtime.ts';
import type { VolumeStats } from '../ports/volume-stats.ts';
import type { DiskUsage, FileSystem, PodDisk } from './disk.ts';
import type { InterfaceCounters, Pressure } from './kernel-text.ts';
import type { ContainerSample, NodeSample, PodSample, Sample } from './sampler.ts';

/** The interface whose counters stand for a whole pod or machine. */
const DEFAULT_INTERFACE = 'eth0';

/** Cgroups that the kubelet reports by themselves. */
export type SystemContainer = 'kubelet' | 'runtime' | 'misc' | 'pods';

export interface SystemSample {
  readonly name: SystemContainer;
  readonly sample: Sample;
  readonly startTime?: EpochMs;
}

/** What is not in the kernel's counters; read for the whole summary alone. */
export interface SummaryDisks {
  /** The file system of the agent's root directory. */
  readonly rootFs: FileSystem;
  /** That of images and writable layers; its `used` and `inodesUsed` are the images'. */
  readonly imageFs: FileSystem | undefined;
  /** CRI's figures of containers: what they have written. */
  readonly containers: readonly ContainerStats[];
  /** By pod uid. */
  readonly pods: ReadonlyMap<string, PodDisk>;
  readonly volumes: readonly VolumeStats[];
  /** Of the machine: the most processes there can be, and those there are. */
  readonly tasks: { readonly max: number; readonly running: number } | undefined;
}

export interface SummaryInput {
  readonly nodeName: string;
  readonly node: NodeSample;
  /** When the machine was booted. */
  readonly bootTime: EpochMs;
  readonly system: readonly SystemSample[];
  /** undefined: CPU and memory alone. */
  readonly disks?: SummaryDisks;
}

export function statsSummary(input: SummaryInput): object {
  const { nodeName, node, bootTime, system, disks } = input;
  const time = rfc3339(node.at);
  return {
    node: {
      nodeName,
      systemContainers: system.map(({ name, sample, startTime }) => ({
        name,
        startTime: startTime === undefined ? null : rfc3339(startTime),
        ...usage(sample, disks !== undefined),
      })),
      startTime: rfc3339(bootTime),
      ...(node.root === undefined ? {} : usage(node.root, disks !== undefined)),
      ...(disks === undefined ? {} : nodeDisks(disks, node, time)),
    },
    pods: node.pods.filter(({ containers }) => containers.length > 0).map((pod) => podStats(pod, node.at, disks)),
  };
}

function nodeDisks({ rootFs, imageFs, tasks }: SummaryDisks, node: NodeSample, time: string): object {
  const images = imageFs === undefined ? undefined : { time, ...imageFs };
  return {
    network: network(node.network, time),
    fs: { time, ...rootFs },
    ...(images === undefined ? {} : { runtime: { imageFs: images, containerFs: images } }),
    ...(tasks === undefined ? {} : { rlimit: { time, maxpid: tasks.max, curproc: tasks.running } }),
  };
}

function podStats(pod: PodSample, at: EpochMs, disks: SummaryDisks | undefined): object {
  const { uid, namespace, name, sandbox, sample, containers } = pod;
  const time = rfc3339(at);
  return {
    podRef: { name, namespace, uid },
    startTime: rfc3339(sandbox.createdAt),
    containers: containers.map((container) => containerStats(container, pod, time, disks)),
    ...(sample === undefined ? {} : usage(sample, disks !== undefined)),
    ...(disks === undefined ? {} : podDisks(pod, time, disks)),
  };
}

function podDisks({ uid, containers, network: counters }: PodSample, time: string, disks: SummaryDisks): object {
  const disk = disks.pods.get(uid);
  const volumes = [
    ...(disk?.volumes ?? []).map(({ name, fs }) => ({ time, ...fs, name })),
    ...disks.volumes.filter(({ podUid }) => podUid === uid).map(volumeStats),
  ];
  const written = containers.map(({ container }) => writableLayer(uid, container.name, disks.containers));
  const local = [
    ...written,
    ...(disk?.logs.values() ?? []),
    ...(disk?.volumes ?? []).flatMap(({ ephemeral, fs }) =>
      ephemeral ? [{ bytes: fs.usedBytes, inodes: fs.inodesUsed }] : [],
    ),
    disk?.files,
  ].filter((usage) => usage !== undefined);
  const { usedBytes: _used, inodesUsed: _inodes, ...room } = disks.rootFs;
  return {
    network: network(counters, time),
    ...(volumes.length === 0 ? {} : { volume: volumes }),
    'ephemeral-storage': {
      time,
      ...room,
      usedBytes: local.reduce((sum, { bytes }) => sum + bytes, 0),
      inodesUsed: local.reduce((sum, { inodes }) => sum + inodes, 0),
    },
    process_stats: { process_count: containers.reduce((sum, { sample }) => sum + (sample.processes ?? 0), 0) },
  };
}

function containerStats(
  { container, sample }: ContainerSample,
  { uid }: PodSample,
  time: string,
  disks: SummaryDisks | undefined,
): object {
  const { name, createdAt } = container;
  const own = { name, startTime: rfc3339(createdAt), ...usage(sample, disks !== undefined) };
  if (disks === undefined) return own;
  const written = writableLayer(uid, name, disks.containers);
  const logs = disks.pods.get(uid)?.logs.get(name);
  return {
    ...own,
    ...(written === undefined ? {} : { rootfs: within(disks.imageFs ?? disks.rootFs, written, time) }),
    ...(logs === undefined ? {} : { logs: within(disks.rootFs, logs, time) }),
  };
}

/** What a part uses, with the room of its file system. */
function within({ usedBytes: _used, inodesUsed: _inodes, ...room }: FileSystem, used: DiskUsage, time: string): object {
  return { time, ...room, usedBytes: used.bytes, inodesUsed: used.inodes };
}

/** Of a container's newest instance. */
function writableLayer(uid: string, name: string, all: readonly ContainerStats[]): DiskUsage | undefined {
  let newest: ContainerStats | undefined;
  for (const stats of all) {
    if (stats.podUID !== uid || stats.name !== name) continue;
    if (newest === undefined || newest.restartCount < stats.restartCount) newest = stats;
  }
  return newest?.writableLayer;
}

function volumeStats({ podUid: _, at, condition, ...figures }: VolumeStats): object {
  return {
    time: rfc3339(at),
    ...figures,
    ...(condition === undefined ? {} : { volumeHealthStats: { abnormal: condition.abnormal } }),
  };
}

/** CPU, memory, swap and, with `io`, how long was waited for disks. */
function usage({ at, cpuUsageNs, nanoCores, memory, limits, pressure }: Sample, io: boolean): object {
  const time = rfc3339(at);
  const psi = (found: Pressure | undefined): object => (found === undefined ? {} : { psi: found });
  return {
    cpu: {
      time,
      ...(nanoCores === undefined ? {} : { usageNanoCores: nanoCores }),
      usageCoreNanoSeconds: cpuUsageNs,
      ...psi(pressure.cpu),
    },
    ...(memory === undefined
      ? {}
      : {
          memory: {
            time,
            ...(limits.memory === undefined ? {} : { availableBytes: Math.max(0, limits.memory - memory.workingSet) }),
            usageBytes: memory.usage,
            workingSetBytes: memory.workingSet,
            rssBytes: memory.rss,
            pageFaults: memory.pageFaults,
            majorPageFaults: memory.majorPageFaults,
            ...psi(pressure.memory),
          },
          swap: {
            time,
            ...(limits.swap === undefined ? {} : { swapAvailableBytes: Math.max(0, limits.swap - memory.swap) }),
            swapUsageBytes: memory.swap,
          },
        }),
    ...(io && pressure.io !== undefined ? { io: { time, psi: pressure.io } } : {}),
  };
}

function network(counters: readonly InterfaceCounters[], time: string): object {
  const interfaces = counters.map(({ name, rxBytes, rxErrors, txBytes, txErrors }) => ({
    name,
    rxBytes,
    rxErrors,
    txBytes,
    txErrors,
  }));
  return { time, name: '', ...interfaces.find(({ name }) => name === DEFAULT_INTERFACE), interfaces };
}
