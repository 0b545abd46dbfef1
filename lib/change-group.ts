// Gives a tree of files to a group, as the kubelet's fsGroup does: the group, group access, and setgid on directories. Never
// follows links, also not those that another process puts in a name's place meanwhile: each file is open while it is changed, and
// was opened relative to the directory above it.

import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  lchownSync,
  openSync,
  readdirSync,
  type Stats,
} from 'node:fs';
import { isErrno } from './errors.ts';

const READ_WRITE = 0o660;
const EXECUTE = 0o110;
const SETGID = 0o2000;
/** Linux's O_PATH, which Node has no name for: a handle to the place itself. */
const O_PATH = 0o10000000;
/** Files changed in one turn of the event loop: some 10 ms. */
const BATCH = 256;

/** The mode that a file or directory gets; pure. */
export function groupMode(mode: number, isDirectory: boolean): number {
  const bits = mode & 0o7777;
  return isDirectory ? bits | READ_WRITE | EXECUTE | SETGID : bits | READ_WRITE;
}

interface Walk {
  /** Until the event loop gets its turn. */
  left: number;
  /** Files and directories that are done. */
  done: number;
  readonly onProgress: (files: number) => void;
}

/**
 * Gives everything below and including `path` to group `gid`, readable and writable for it. The root comes last. `onProgress`
 * is called now and then with the number of files and directories done, and at the end.
 */
export async function changeGroup(
  path: string,
  gid: number,
  onProgress: (files: number) => void = () => undefined,
): Promise<void> {
  const walk: Walk = { left: BATCH, done: 0, onProgress };
  await change(path, gid, walk);
  onProgress(walk.done);
}

async function change(path: string, gid: number, walk: Walk): Promise<void> {
  let fd: number;
  try {
    fd = openSync(path, O_PATH | constants.O_NOFOLLOW);
  } catch (error) {
    // Files of a volume in use come and go.
    if (isErrno(error, 'ENOENT')) return;
    throw error;
  }
  try {
    const stat = fstatSync(fd);
    const fdPath = `/proc/self/fd/${fd}`;
    if (stat.isDirectory()) {
      for (const name of readdirSync(fdPath)) await change(`${fdPath}/${name}`, gid, walk);
    }
    changeOne(path, fdPath, stat, gid);
    walk.done++;
    if (--walk.left > 0) return;
    walk.left = BATCH;
    walk.onProgress(walk.done);
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    closeSync(fd);
  }
}

function changeOne(path: string, fdPath: string, stat: Stats, gid: number): void {
  if (stat.isSymbolicLink()) {
    try {
      lchownSync(path, stat.uid, gid);
    } catch (error) {
      if (!isErrno(error, 'ENOENT')) throw error;
    }
    return;
  }
  // chown clears setuid and setgid: the mode comes last.
  chownSync(fdPath, stat.uid, gid);
  chmodSync(fdPath, groupMode(stat.mode, stat.isDirectory()));
}
