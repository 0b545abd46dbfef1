// Image files: made sparse or whole, copied, grown, measured. A file appears under its name only when it is complete.

import { chmod, mkdir, open, rm, stat, statfs, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeAtomic } from '../../lib/atomic.ts';
import { isErrno } from '../../lib/errors.ts';
import { type Exec, execOk } from '../../lib/exec.ts';
import { DriverError } from './errors.ts';
import type { Allocation } from './names.ts';

async function beside(path: string, make: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.new`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await rm(temporary, { force: true });
  try {
    await makeAtomic(path, temporary, make);
  } catch (error) {
    throw outOfSpace(error) ?? error;
  }
}

function outOfSpace(error: unknown): DriverError | undefined {
  const full = isErrno(error, 'ENOSPC') || (error instanceof Error && /no space left on device/i.test(error.message));
  return full
    ? new DriverError('RESOURCE_EXHAUSTED', 'no space is left on the disk that holds the volumes')
    : undefined;
}

export async function createImage(path: string, bytes: number, allocation: Allocation, run: Exec): Promise<void> {
  await beside(path, async (temporary) => {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.truncate(bytes);
    } finally {
      await file.close();
    }
    if (allocation === 'full') await execOk('fallocate', ['--length', String(bytes), temporary], {}, run);
  });
}

/** By reflink where the disk's filesystem can, else hole by hole. Grows the copy to `bytes`. */
export async function copyImage(source: string, path: string, bytes: number, run: Exec): Promise<void> {
  await beside(path, async (temporary) => {
    await execOk('cp', ['--reflink=auto', '--sparse=always', '--no-preserve=all', source, temporary], {}, run);
    await chmod(temporary, 0o600);
    const { size } = await stat(temporary);
    if (size < bytes) await truncate(temporary, bytes);
  });
}

/** Never shrinks. */
export async function growImage(path: string, bytes: number, allocation: Allocation, run: Exec): Promise<void> {
  const { size } = await stat(path);
  try {
    if (size < bytes) await truncate(path, bytes);
    if (allocation === 'full') await execOk('fallocate', ['--length', String(bytes), path], {}, run);
  } catch (error) {
    throw outOfSpace(error) ?? error;
  }
}

export interface ImageSize {
  readonly bytes: number;
  /** What it takes on the disk. */
  readonly allocatedBytes: number;
}

/** Undefined when there is no such file. */
export async function imageSize(path: string): Promise<ImageSize | undefined> {
  try {
    const { size, blocks } = await stat(path);
    return { bytes: size, allocatedBytes: blocks * 512 };
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Free on the disk that holds `path`, for users without privileges. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}
