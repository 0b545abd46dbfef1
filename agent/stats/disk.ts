// What pods have on disk: logs, volumes, the hosts file. Walking over files costs, so each pod's figures are kept for as long
// as the kubelet keeps those of volumes. Decides nothing.

import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../client/types.ts';
import { type Clock, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { isErrno } from '../../lib/errors.ts';

type Volume = NonNullable<Pod['spec']['volumes']>[number];

export interface DiskUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/** A file system, in the words of stats/v1alpha1 FsStats. Bytes. */
export interface FileSystem {
  readonly availableBytes: number;
  readonly capacityBytes: number;
  readonly usedBytes: number;
  readonly inodesFree: number;
  readonly inodes: number;
  readonly inodesUsed: number;
}

export interface VolumeDisk {
  readonly name: string;
  /** The room of the file system that it is on, and what the volume itself uses. */
  readonly fs: FileSystem;
  /** Counts as the pod's local ephemeral storage. */
  readonly ephemeral: boolean;
}

export interface PodDisk {
  /** By container. */
  readonly logs: ReadonlyMap<string, DiskUsage>;
  readonly volumes: readonly VolumeDisk[];
  /** Its hosts file. */
  readonly files: DiskUsage | undefined;
}

/** undefined when there is nothing at `path`. */
export async function fileSystemOf(path: string): Promise<FileSystem | undefined> {
  try {
    const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(path);
    return {
      availableBytes: bavail * bsize,
      capacityBytes: blocks * bsize,
      usedBytes: (blocks - bfree) * bsize,
      inodesFree: ffree,
      inodes: files,
      inodesUsed: files - ffree,
    };
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** The plugin of a volume that the kubelet measures by walking over it, and whether it is ephemeral storage. Pure. */
export function measuredPlugin(volume: Volume): { readonly plugin: string; readonly ephemeral: boolean } | undefined {
  if (volume.emptyDir !== undefined) {
    return { plugin: 'empty-dir', ephemeral: (volume.emptyDir.medium ?? '') === '' };
  }
  if (volume.configMap !== undefined) return { plugin: 'configmap', ephemeral: true };
  if (volume.secret !== undefined) return { plugin: 'secret', ephemeral: false };
  if (volume.projected !== undefined) return { plugin: 'projected', ephemeral: false };
  if (volume.downwardAPI !== undefined) return { plugin: 'downward-api', ephemeral: false };
  return undefined;
}

export interface PodDisksOptions {
  readonly clock: Clock;
  /** KubeletConfiguration.volumeStatsAggPeriod, ms. */
  readonly maxAgeMs: number;
  readonly paths: {
    readonly volumes: (pod: Pod, plugin: string) => string;
    /** The directory with one directory per container. */
    readonly logs: (pod: Pod) => string;
    readonly etcHosts: (pod: Pod) => string;
  };
  /** Bytes and inodes of everything below a path, as `du` counts; undefined when there is nothing. */
  readonly measure: (path: string) => Promise<DiskUsage | undefined>;
}

export class PodDisks {
  readonly #options: PodDisksOptions;
  readonly #known = new Map<string, { readonly disk: PodDisk; readonly at: MonotonicMs }>();

  constructor(options: PodDisksOptions) {
    this.#options = options;
  }

  /** By pod uid. */
  async read(pods: readonly Pod[]): Promise<ReadonlyMap<string, PodDisk>> {
    const { clock, maxAgeMs } = this.#options;
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const uid of this.#known.keys()) if (!uids.has(uid)) this.#known.delete(uid);
    const disks = new Map<string, PodDisk>();
    // One pod after the other: the disk is shared.
    for (const pod of pods) {
      const { uid } = pod.metadata;
      const now = clock.monotonic();
      let entry = this.#known.get(uid);
      if (entry === undefined || elapsedMs(entry.at, now) >= maxAgeMs) {
        entry = { disk: await this.#readPod(pod), at: now };
        this.#known.set(uid, entry);
      }
      disks.set(uid, entry.disk);
    }
    return disks;
  }

  async #readPod(pod: Pod): Promise<PodDisk> {
    const { paths, measure } = this.#options;
    const logs = new Map<string, DiskUsage>();
    const { initContainers = [], containers, ephemeralContainers = [] } = pod.spec;
    for (const { name } of [...initContainers, ...containers, ...ephemeralContainers]) {
      const used = await measure(join(paths.logs(pod), name));
      if (used !== undefined) logs.set(name, used);
    }
    const volumes: VolumeDisk[] = [];
    for (const volume of pod.spec.volumes ?? []) {
      const measured = measuredPlugin(volume);
      if (measured === undefined) continue;
      const path = join(paths.volumes(pod, measured.plugin), volume.name);
      const [room, used] = await Promise.all([fileSystemOf(path), measure(path)]);
      if (room === undefined || used === undefined) continue;
      const fs = { ...room, usedBytes: used.bytes, inodesUsed: used.inodes };
      volumes.push({ name: volume.name, fs, ephemeral: measured.ephemeral });
    }
    return { logs, volumes, files: await measure(paths.etcHosts(pod)) };
  }
}
