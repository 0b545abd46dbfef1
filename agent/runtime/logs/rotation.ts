// Keeps container logs within containerLogMaxSize and containerLogMaxFiles: a log that has grown too large is renamed,
// the runtime reopens the log, older ones are compressed and the oldest removed. The runtime itself never
// rotates.

import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { makeAtomic } from '../../../lib/atomic.ts';
import type { Clock, EpochMs, Timer } from '../../../lib/clock.ts';
import { errorMessage, isDiskFull, isErrno } from '../../../lib/errors.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { ContainerId } from '../../ports/runtime.ts';
import type { CriRuntime } from '../types.ts';

const DEFAULT_PERIOD_MS = 10_000;

export interface LogRotationOptions {
  readonly runtime: Pick<CriRuntime, 'listPods' | 'containerLogPath' | 'reopenContainerLog'>;
  readonly clock: Clock;
  /** containerLogMaxSize, bytes. */
  readonly maxSizeBytes: number;
  /** containerLogMaxFiles, the current one included; at least 2. */
  readonly maxFiles: number;
  /** containerLogMonitorInterval, ms; default 10 s. */
  readonly periodMs?: number;
  readonly onTrouble?: (message: string) => void;
}

export interface RotationPlan {
  /** Names to delete: half-written ones, and the oldest beyond the number allowed. */
  readonly remove: readonly string[];
  /** Names to compress. */
  readonly compress: readonly string[];
}

/**
 * What to do with the rotated files of the log `name` (`0.log.20240102-150405[.gz]`) before it is rotated once more.
 * Room is kept for the current log and for the one about to be rotated.
 */
export function planRotation(name: string, files: readonly string[], maxFiles: number): RotationPlan {
  const own = files.filter((file) => file.startsWith(`${name}.`));
  const unfinished = own.filter((file) => file.endsWith('.tmp'));
  const all = new Set(own);
  // Compressed already, and the machine died before the original was removed.
  const doubled = own.filter((file) => all.has(`${file}.gz`));
  const dropped = new Set([...unfinished, ...doubled]);
  const rotated = own.filter((file) => !dropped.has(file)).sort();
  const excess = rotated.slice(0, Math.max(0, rotated.length - Math.max(0, maxFiles - 2)));
  const kept = rotated.slice(excess.length);
  return { remove: [...dropped, ...excess], compress: kept.filter((file) => !file.endsWith('.gz')) };
}

/** `20240102-150405`, UTC: sorts by time. */
export function rotationSuffix(now: EpochMs): string {
  return rfc3339(now).replace(/[-:Z]/g, '').replace('T', '-');
}

async function compress(path: string): Promise<void> {
  try {
    await makeAtomic(`${path}.gz`, `${path}.gz.tmp`, (temporary) =>
      pipeline(createReadStream(path), createGzip(), createWriteStream(temporary)),
    );
  } catch (error) {
    // What is not compressed can be rotated all the same, and the oldest goes first: that makes room.
    if (isDiskFull(error)) return;
    throw error;
  }
  await rm(path);
}

export class LogRotation {
  readonly #options: LogRotationOptions;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: LogRotationOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = this.#options.clock.after(this.#options.periodMs ?? DEFAULT_PERIOD_MS, () => {
      void this.#tick();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #tick(): Promise<void> {
    try {
      await this.rotateAll();
    } catch (error) {
      this.#options.onTrouble?.(`log rotation: ${errorMessage(error)}`);
    }
    if (!this.#stopped) this.start();
  }

  /** Checks every running container's log once. A failed rotation does not stop the others. */
  async rotateAll(): Promise<void> {
    const { runtime, maxSizeBytes, onTrouble } = this.#options;
    for (const { pod, containers } of await runtime.listPods()) {
      for (const container of containers) {
        if (container.state !== 'running') continue;
        const path = runtime.containerLogPath(pod, container.name, container.restartCount);
        try {
          if ((await stat(path)).size >= maxSizeBytes) await this.rotate(path, container.id);
        } catch (error) {
          // No log yet, or the pod is gone.
          if (!isErrno(error, 'ENOENT')) onTrouble?.(`rotating ${path}: ${errorMessage(error)}`);
        }
      }
    }
  }

  async rotate(path: string, id: ContainerId): Promise<void> {
    const { clock, maxFiles, runtime } = this.#options;
    const directory = dirname(path);
    const plan = planRotation(basename(path), await readdir(directory), maxFiles);
    for (const name of plan.remove) await rm(join(directory, name), { force: true });
    for (const name of plan.compress) await compress(join(directory, name));
    const rotated = `${path}.${rotationSuffix(clock.now())}`;
    await rename(path, rotated);
    try {
      await runtime.reopenContainerLog(id);
    } catch (error) {
      // The runtime still writes to the renamed file: give it its name back, or its readers lose it.
      await rename(rotated, path);
      throw error;
    }
  }
}
