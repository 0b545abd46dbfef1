// Space that is reserved on the agent's disk: a file of a few megabytes, freed when there is nothing
// else left. A runtime has to write a little before it can call a container stopped or removed (containerd's status files
// and its database), and so does whatever takes volumes down: without room, nothing that would make room can be done.
// Eviction begins long before that; this is for what fills a disk faster. It is taken again when there is plenty.

import { rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { type Exec, execOk } from '../../lib/exec.ts';
import type { Log } from '../../lib/log.ts';
import { repeat } from '../../lib/retry.ts';
import type { Tracer } from '../../lib/trace.ts';
import { tracedExec } from '../../lib/traced-exec.ts';

const MEGABYTE = 1024 * 1024;
const PERIOD_MS = 5000;
/** The reserve is this, or a 64th of the disk where that is less. */
const MAX_RESERVE_BYTES = 16 * MEGABYTE;
const RESERVE_FRACTION = 64;
/** It is given back when less than this is left, and taken when this many times its size stays free. */
const LOW_BYTES = MEGABYTE;
const PLENTY = 4;

export interface DiskState {
  /** Of the whole file system, bytes. */
  readonly totalBytes: number;
  /** What may still be written, bytes. */
  readonly freeBytes: number;
  /** What the reserve takes now, bytes. */
  readonly reservedBytes: number;
}

/** What to do about the reserve, and how large it is to be. Pure. */
export function reserveAction(state: DiskState): {
  readonly kind: 'keep' | 'release' | 'take';
  readonly bytes: number;
} {
  const bytes = Math.floor(Math.min(MAX_RESERVE_BYTES, state.totalBytes / RESERVE_FRACTION));
  if (state.reservedBytes > 0) return { kind: state.freeBytes < LOW_BYTES ? 'release' : 'keep', bytes };
  return { kind: bytes > 0 && state.freeBytes > (PLENTY + 1) * bytes ? 'take' : 'keep', bytes };
}

export interface DiskReserveOptions {
  /** The agent's root directory. */
  readonly directory: string;
  readonly clock: Clock;
  readonly exec: Exec;
  readonly tracer: Tracer;
  readonly log: Log;
}

export const RESERVE_FILE = 'disk-reserve';

/** Checks the reserve once and restores it. Rejects with the error of the file system or fallocate(1). */
export async function checkReserve({
  directory,
  exec,
  log,
}: Omit<DiskReserveOptions, 'clock' | 'tracer'>): Promise<void> {
  const path = join(directory, RESERVE_FILE);
  const { blocks, bavail, bsize } = await statfs(directory);
  const reservedBytes = await allocatedBytes(path);
  const state = { totalBytes: blocks * bsize, freeBytes: bavail * bsize, reservedBytes };
  const { kind, bytes } = reserveAction(state);
  if (kind === 'release') {
    await rm(path, { force: true });
    log('warn', 'the disk is full: the disk reserve is freed', { directory, bytes: reservedBytes });
  } else if (kind === 'take') {
    try {
      await execOk('fallocate', ['--length', String(bytes), path], {}, exec);
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
  }
}

async function allocatedBytes(path: string): Promise<number> {
  try {
    return (await stat(path)).blocks * 512;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return 0;
    throw error;
  }
}

/** Checks every five seconds until `signal` aborts. The file stays for the next agent. Never rejects. */
export async function keepDiskReserve(options: DiskReserveOptions, signal: AbortSignal): Promise<void> {
  const { directory, clock, log } = options;
  const exec = tracedExec(options.tracer, 'disk', options.exec);
  const check = async (): Promise<undefined> => {
    try {
      await checkReserve({ directory, exec, log });
    } catch (error) {
      log('warn', `cannot reserve disk space: ${errorMessage(error)}`, { directory });
    }
  };
  await repeat(check, { clock, firstMs: PERIOD_MS, everyMs: PERIOD_MS, signal });
}
