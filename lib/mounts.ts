// The mount table, and taking down whatever is mounted below a directory.

import { readFile } from 'node:fs/promises';
import { exec } from './exec.ts';
import { isWithin, type MountEntry, parseMountInfo } from './mountinfo.ts';
import { resolvePath } from './resolve-path.ts';

/** The mount table of this process's mount namespace, oldest mount first. */
export async function readMounts(): Promise<readonly MountEntry[]> {
  return parseMountInfo(await readFile('/proc/self/mountinfo', 'utf8'));
}

/**
 * Unmounts everything at or below the directories, newest first. A mount that is busy is detached: it disappears from
 * the tree at once and from the kernel when its last user ends. Returns the mount points that were taken down.
 */
export async function unmountBelow(directories: readonly string[]): Promise<readonly string[]> {
  const resolved = directories.map(resolvePath);
  return unmountWhere((path) => resolved.some((directory) => isWithin(path, directory)));
}

/** The same for the mount points that `chosen` accepts. */
export async function unmountWhere(chosen: (path: string) => boolean): Promise<readonly string[]> {
  const done: string[] = [];
  // One unmount can uncover another on the same point, and propagation can remove several: read the table again until none is left.
  for (let round = 0; round < 5; round++) {
    const mounts = (await readMounts()).filter((mount) => chosen(mount.path));
    if (mounts.length === 0) return done;
    for (const mount of mounts.toReversed()) {
      const plain = await exec('umount', ['--no-canonicalize', mount.path]);
      if (plain.code !== 0) await exec('umount', ['--no-canonicalize', '--lazy', mount.path]);
      done.push(mount.path);
    }
  }
  const left = (await readMounts()).filter((mount) => chosen(mount.path));
  if (left.length > 0) throw new Error(`cannot unmount ${left.map((mount) => mount.path).join(', ')}`);
  return done;
}
