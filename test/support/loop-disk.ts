// A small file system of its own on a loop device, for tests that fill a disk: nothing of the machine's own is filled.
// Needs root, losetup and mkfs. The caller removes it.

import { closeSync, openSync, writeSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, statfs, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import { execOk } from '../../lib/exec.ts';

export interface LoopDiskOptions {
  /** Size of the image. Default 64; XFS needs 300. */
  readonly megabytes?: number;
  /** Default ext4. */
  readonly type?: 'ext4' | 'xfs';
}

export interface LoopDisk {
  /** Where it is mounted. */
  readonly path: string;
  /** "/dev/loop7" */
  readonly device: string;
  /** Bytes that a process of root's may still write, as statfs has it. */
  free(): Promise<number>;
  /** Writes a file until nothing fits any more, but for the last `leave` bytes (default 0). May be called again. */
  fill(leave?: number): Promise<void>;
  /** Removes what `fill` wrote. */
  empty(): Promise<void>;
  /** Unmounts it and removes everything. */
  remove(): Promise<void>;
}

const MEGABYTE = 1024 * 1024;
/** Directly below the mount point. */
const FILLERS = '.filler';

/** Writes a new file until `bytes` are written or none fit any more. */
function writeFiller(path: string, bytes: number): number {
  const chunk = Buffer.alloc(MEGABYTE, 0xa5);
  const file = openSync(path, 'wx');
  let written = 0;
  let size = chunk.length;
  try {
    while (written < bytes) {
      try {
        written += writeSync(file, chunk, 0, Math.min(size, bytes - written));
      } catch (error) {
        if (!isErrno(error, 'ENOSPC')) throw error;
        if (size === 1) break;
        // What is left is less than this: smaller pieces, down to single bytes.
        size = Math.max(1, size >> 2);
      }
    }
  } finally {
    closeSync(file);
  }
  return written;
}

/** Makes one and mounts it. Rejects where this process may not. */
export async function makeLoopDisk(name: string, options: LoopDiskOptions = {}): Promise<LoopDisk> {
  const { megabytes = 64, type = 'ext4' } = options;
  const directory = await mkdtemp(join(tmpdir(), `nodelet-disk-${name}-`));
  const image = join(directory, 'image');
  const path = join(directory, 'mount');
  let device = '';
  const remove = async (): Promise<void> => {
    // Lazily: a process that was killed may still have it open for a moment, and the device goes with the last of them.
    if (device !== '') {
      await execOk('umount', ['--lazy', path]);
      await execOk('losetup', ['--detach', device]);
    }
    device = '';
    await rm(image, { force: true });
    await rm(path, { recursive: true, force: true });
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await mkdir(path);
    closeSync(openSync(image, 'wx', 0o600));
    await truncate(image, megabytes * MEGABYTE);
    // No blocks kept for root: full is full.
    await execOk(`mkfs.${type}`, type === 'ext4' ? ['-q', '-F', '-m', '0', image] : ['-q', '-f', image]);
    const found = (await execOk('losetup', ['--find', '--show', image])).trim();
    try {
      await execOk('mount', [found, path]);
    } catch (error) {
      await execOk('losetup', ['--detach', found]);
      throw error;
    }
    device = found;
    // While there is room for a directory.
    await mkdir(join(path, FILLERS));
  } catch (error) {
    await remove();
    throw error;
  }
  const free = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize;
  };
  let fillers = 0;
  return {
    path,
    device,
    free,
    remove,
    fill: async (leave = 0) => {
      const wanted = leave === 0 ? Number.POSITIVE_INFINITY : Math.max(0, (await free()) - leave);
      writeFiller(join(path, FILLERS, String(fillers++)), wanted);
    },
    empty: async () => {
      for (const name of await readdir(join(path, FILLERS))) await rm(join(path, FILLERS, name));
    },
  };
}
