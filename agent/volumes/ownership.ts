// fsGroup ownership as the kubelet applies it to a volume's files: the group, group access, and setgid on directories.
// Never follows links, also not those that a pod puts in a name's place during the walk: each file is open while it is changed, and
// was opened relative to the directory above it.

import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  lchownSync,
  lstatSync,
  openSync,
  readdirSync,
  type Stats,
} from 'node:fs';
import { isErrno } from '../../lib/errors.ts';

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

/** Whether the files of a volume with this root have to be changed; pure. */
export function needsChange(
  root: { readonly gid: number; readonly mode: number },
  gid: number,
  policy: string | undefined,
): boolean {
  if (policy !== 'OnRootMismatch') return true;
  return root.gid !== gid || groupMode(root.mode, true) !== (root.mode & 0o7777);
}

/**
 * Sets the group of everything below and including `path` to `gid`, readable and writable. The root comes last: that it
 * is right means that all is, for OnRootMismatch after a crash.
 */
export async function applyFsGroup(path: string, gid: number, policy?: string): Promise<void> {
  if (!needsChange(lstatSync(path), gid, policy)) return;
  await change(path, gid, { left: BATCH });
}

async function change(path: string, gid: number, turn: { left: number }): Promise<void> {
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
      for (const name of readdirSync(fdPath)) await change(`${fdPath}/${name}`, gid, turn);
    }
    changeOne(path, fdPath, stat, gid);
    if (--turn.left > 0) return;
    turn.left = BATCH;
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
