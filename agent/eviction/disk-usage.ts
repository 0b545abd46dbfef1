// What a directory occupies, as `du -x` counts it: blocks, not lengths; hard links once; no other file system. Yields to
// the event loop as it goes and follows no symbolic link.

import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import type { DiskUsage } from './types.ts';

const BLOCK_BYTES = 512;

/** Bytes and inodes of everything at and below `root`; undefined when there is nothing there. */
export async function diskUsage(root: string): Promise<DiskUsage | undefined> {
  const top = await statIfThere(root);
  if (top === undefined) return undefined;
  let bytes = top.blocks * BLOCK_BYTES;
  let inodes = 1;
  const linked = new Set<number>();
  const directories = top.isDirectory() ? [root] : [];
  for (let directory = directories.pop(); directory !== undefined; directory = directories.pop()) {
    for (const name of await namesIn(directory)) {
      const path = join(directory, name);
      const found = await statIfThere(path);
      if (found === undefined || found.dev !== top.dev) continue;
      if (found.nlink > 1 && !found.isDirectory()) {
        if (linked.has(found.ino)) continue;
        linked.add(found.ino);
      }
      bytes += found.blocks * BLOCK_BYTES;
      inodes++;
      if (found.isDirectory()) directories.push(path);
    }
  }
  return { bytes, inodes };
}

async function statIfThere(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    // Pods remove their files while they are being counted.
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    const names: string[] = [];
    for await (const entry of await opendir(directory)) names.push(entry.name);
    return names;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}
