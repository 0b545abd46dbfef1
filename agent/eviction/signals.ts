// The node's eviction signals, measured: memory from cgroups, disks by statfs, processes from /proc. A round costs a
// dozen small reads and no call to the runtime, which only returns the place of its images from time to time. Decides nothing.

import { stat, statfs } from 'node:fs/promises';
import { type Clock, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { type CgroupFiles, machineTasks, memoryLimitBytes, workingSetBytes } from './cgroup-usage.ts';
import type { Signal } from './thresholds.ts';
import type { DiskLayout, Observation, Observations } from './types.ts';

/** Paths on the file systems of images and, where the runtime keeps them apart, of writable layers. */
export interface ImageFsPaths {
  readonly image: string | undefined;
  readonly container: string | undefined;
}

export interface SignalReaderOptions {
  readonly clock: Clock;
  /** The agent's root directory: its file system is nodefs. */
  readonly rootDir: string;
  readonly memoryCapacityBytes: number;
  readonly cgroups: CgroupFiles;
  /** The cgroup above all pods, below the hierarchy's mount point. */
  readonly kubepods: string;
  /** CRI ImageFsInfo. */
  readonly imageFsPaths: () => Promise<ImageFsPaths>;
  readonly onTrouble: (message: string) => void;
  /** /proc by default. */
  readonly procDir?: string;
  /**
   * A value that stays equal as long as all that is read here does, and that spares the reading. A simulated machine can give it, a
   * real one cannot.
   */
  readonly state?: () => string;
}

export interface NodeSignals {
  readonly observations: Observations;
  readonly layout: DiskLayout;
}

/** Images do not move while the runtime runs; a restarted one may have been configured anew. ms. */
const IMAGE_FS_PERIOD_MS = 300_000;

interface FileSystem {
  readonly device: number;
  readonly space: Observation;
  readonly inodes: Observation | undefined;
}

/** undefined when there is nothing at `path`. */
async function fileSystem(path: string): Promise<FileSystem | undefined> {
  try {
    const [{ dev }, { bsize, blocks, bavail, files, ffree }] = await Promise.all([stat(path), statfs(path)]);
    return {
      device: dev,
      space: { available: bavail * bsize, capacity: blocks * bsize },
      // btrfs and others make inodes as they need them, and count none.
      inodes: files === 0 ? undefined : { available: ffree, capacity: files },
    };
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

export class SignalReader {
  readonly #options: SignalReaderOptions;
  #paths: ImageFsPaths = { image: undefined, container: undefined };
  #imagesReadAt: MonotonicMs | undefined;
  #last: { readonly state: string; readonly paths: ImageFsPaths; readonly signals: NodeSignals } | undefined;

  constructor(options: SignalReaderOptions) {
    this.#options = options;
  }

  async read(): Promise<NodeSignals> {
    await this.#findImages();
    const paths = this.#paths;
    const state = this.#options.state?.();
    if (state === undefined) return await this.#measure(paths);
    if (this.#last?.state === state && this.#last.paths === paths) return this.#last.signals;
    const signals = await this.#measure(paths);
    this.#last = { state, paths, signals };
    return signals;
  }

  async #measure({ image, container }: ImageFsPaths): Promise<NodeSignals> {
    const { rootDir } = this.#options;
    const [node, images, layers] = await Promise.all([
      fileSystem(rootDir),
      image === undefined ? undefined : fileSystem(image),
      container === undefined ? undefined : fileSystem(container),
    ]);
    const observations: Partial<Record<Signal, Observation>> = { ...this.#memory() };
    const tasks = machineTasks(this.#options.procDir ?? '/proc');
    if (tasks !== undefined) {
      observations['pid.available'] = { available: tasks.max - tasks.running, capacity: tasks.max };
    }
    for (const [name, fs] of [['nodefs', node] as const, ['imagefs', images] as const]) {
      if (fs === undefined) continue;
      observations[`${name}.available`] = fs.space;
      if (fs.inodes !== undefined) observations[`${name}.inodesFree`] = fs.inodes;
    }
    return { observations, layout: diskLayout(node?.device, images?.device, layers?.device) };
  }

  #memory(): Observations {
    const { memoryCapacityBytes: capacity, cgroups, kubepods } = this.#options;
    const used = workingSetBytes(cgroups, '/');
    const podsUse = workingSetBytes(cgroups, kubepods);
    const limit = memoryLimitBytes(cgroups, kubepods);
    return {
      ...(used === undefined ? {} : { 'memory.available': { available: Math.max(0, capacity - used), capacity } }),
      ...(podsUse === undefined || limit === undefined
        ? {}
        : { 'allocatableMemory.available': { available: Math.max(0, limit - podsUse), capacity: limit } }),
    };
  }

  async #findImages(): Promise<void> {
    const { clock, imageFsPaths, onTrouble } = this.#options;
    const now = clock.monotonic();
    if (this.#imagesReadAt !== undefined && elapsedMs(this.#imagesReadAt, now) < IMAGE_FS_PERIOD_MS) return;
    try {
      this.#paths = await imageFsPaths();
      this.#imagesReadAt = now;
    } catch (error) {
      // The last known path is kept, and the next round reads it again.
      if (this.#paths.image === undefined) onTrouble(`the image file system is unknown: ${errorMessage(error)}`);
    }
  }
}

/** Which file systems are one, from their device numbers; one that is not known counts as nodefs. */
export function diskLayout(
  node: number | undefined,
  images: number | undefined,
  layers: number | undefined,
): DiskLayout {
  if (images === undefined || images === node) return 'shared';
  return layers !== undefined && layers === node ? 'splitImagefs' : 'imagefs';
}
