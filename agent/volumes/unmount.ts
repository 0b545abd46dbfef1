// Takes a pod's directory down from disk and the mount table alone, so that it works after any crash. Nothing is ever
// deleted while a mount is left below: what is behind a mount is not ours to delete.

import { lstatSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import type { MountEntry, Mounter } from '../ports/mounter.ts';
import { mountsUnder } from './mountinfo.ts';

/** Unmounts in rounds: in one round everything that has no other mount above it, side by side. */
export function unmountRound(entries: readonly MountEntry[]): readonly string[] {
  const paths = [...new Set(entries.map(({ path }) => path))];
  return paths.filter((path) => !paths.some((other) => other.startsWith(`${path}/`)));
}

/** Unmounts everything below `directory`. Rejects when something is busy. */
export async function unmountBelow(directory: string, mounter: Mounter): Promise<void> {
  let left = mountsUnder(await mounter.list(), directory);
  while (left.length > 0) {
    const results = await Promise.allSettled(unmountRound(left).map((path) => mounter.unmount(path)));
    const failures = results.flatMap((r) => (r.status === 'rejected' ? [errorMessage(r.reason)] : []));
    if (failures.length > 0) throw new Error(failures.join('; '));
    const after = mountsUnder(await mounter.list(), directory);
    // Each round must take something away, or somebody mounts as fast as we unmount.
    if (after.length >= left.length) throw new Error(`${after[0]?.path ?? directory} is still mounted`);
    left = after;
  }
}

/** Files removed in one turn of the event loop: some milliseconds, where the thread pool takes as long for each. */
const BATCH = 256;

/** Removes a tree, links not followed, other file systems not entered. Succeeds when there is none. */
export async function removeTree(path: string, device?: number, turn = { left: BATCH }): Promise<void> {
  try {
    const stat = lstatSync(path);
    if (!stat.isDirectory()) unlinkSync(path);
    else {
      if (device !== undefined && stat.dev !== device)
        throw new Error(`${path} is on another file system, not removed`);
      for (const name of readdirSync(path)) await removeTree(join(path, name), stat.dev, turn);
      rmdirSync(path);
    }
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
  if (--turn.left > 0) return;
  turn.left = BATCH;
  await new Promise((resolve) => setImmediate(resolve));
}
