// Inspects what a driver has made on this machine, and uses it: mounts, devices, files. Changes only the data in volumes.

import assert from 'node:assert/strict';
import { lstat, open, readFile, stat, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import { readMounts } from '../../lib/mounts.ts';
import { type Mount, mountAt } from '../driver/mounts.ts';
import type { Bench } from './bench.ts';

const FILE = 'sanity.txt';

export async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}

export async function mountedAt(path: string): Promise<Mount | undefined> {
  return mountAt(await readMounts(), path);
}

/** Fails unless the volume is usable at the path in the requested way. */
export async function assertUsable(bench: Bench, path: string): Promise<void> {
  const status = await stat(path);
  if (bench.options.accessType === 'block') {
    assert.ok(status.isBlockDevice(), `${path} is no block device`);
    return;
  }
  assert.ok(status.isDirectory(), `${path} is no directory`);
  const mount = await mountedAt(path);
  assert.ok(mount, `nothing is mounted at ${path}`);
  if (bench.options.fsType !== '') assert.equal(mount.fsType, bench.options.fsType);
}

/** Puts words into a volume: a file, or the first bytes of a device. */
export async function writeInto(bench: Bench, path: string, words: string): Promise<void> {
  if (bench.options.accessType === 'mount') {
    await writeFile(join(path, FILE), words, { flush: true });
    return;
  }
  const device = await open(path, 'r+');
  try {
    const block = Buffer.alloc(4096);
    block.write(words);
    await device.write(block, 0, block.length, 0);
    await device.sync();
  } finally {
    await device.close();
  }
}

/** The words again; empty when there are none. */
export async function readFrom(bench: Bench, path: string): Promise<string> {
  if (bench.options.accessType === 'mount') {
    return readFile(join(path, FILE), 'utf8').catch((error: unknown) => {
      if (isErrno(error, 'ENOENT')) return '';
      throw error;
    });
  }
  const device = await open(path, 'r');
  try {
    const { buffer } = await device.read(Buffer.alloc(4096), 0, 4096, 0);
    return buffer.toString('utf8').replace(/\0.*$/s, '');
  } finally {
    await device.close();
  }
}

/** Fails when anything can be written. */
export async function assertReadOnly(bench: Bench, path: string): Promise<void> {
  await assert.rejects(
    writeInto(bench, path, 'not to be'),
    (error) => isErrno(error, 'EROFS', 'EPERM', 'EACCES'),
    `${path} is published read-only, and can be written to`,
  );
}

/** What a user of the volume finds there: the device's size, or the filesystem's with its own needs. Bytes. */
export async function sizeAt(bench: Bench, path: string): Promise<number> {
  if (bench.options.accessType === 'mount') {
    const { blocks, bsize } = await statfs(path);
    return blocks * bsize;
  }
  const device = await open(path, 'r');
  try {
    // stat shows no length of a device; its end is where reading finds nothing more.
    let [low, high] = [0, 2 ** 44];
    while (high - low > 512) {
      const middle = Math.floor((low + high) / 2 / 512) * 512;
      const { bytesRead } = await device.read(Buffer.alloc(1), 0, 1, middle);
      if (bytesRead === 1) low = middle;
      else high = middle;
    }
    return high;
  } finally {
    await device.close();
  }
}
