// fsGroup ownership as the kubelet applies it to a volume's files: the group, group access, and setgid on directories.
// Never follows links.

import { chmod, lchown, lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';

const READ_WRITE = 0o660;
const EXECUTE = 0o110;
const SETGID = 0o2000;

/** The mode that a file or directory gets; pure. */
export function groupMode(mode: number, isDirectory: boolean): number {
  const bits = mode & 0o7777;
  return isDirectory ? bits | READ_WRITE | EXECUTE | SETGID : bits | READ_WRITE;
}

/** Gives everything below and including `path` to group `gid`, readable and writable for it. */
export async function applyFsGroup(path: string, gid: number): Promise<void> {
  const stat = await lstat(path);
  await lchown(path, stat.uid, gid);
  if (stat.isSymbolicLink()) return;
  await chmod(path, groupMode(stat.mode, stat.isDirectory()));
  if (!stat.isDirectory()) return;
  for await (const entry of await opendir(path)) await applyFsGroup(join(path, entry.name), gid);
}
