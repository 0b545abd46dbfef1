// The mount table, and taking down whatever is mounted below a directory.

import { readFile } from 'node:fs/promises';
import { exec } from '../../lib/exec.ts';
import { isWithin, parseMountInfo } from '../../lib/mountinfo.ts';
import { resolvePath } from '../../lib/resolve-path.ts';

export { isWithin };

export interface MountEntry {
  readonly id: number;
  /** Major:minor of the filesystem. */
  readonly device: string;
  /** The directory of the filesystem that is mounted ("net:[4026532000]" for a namespace file). */
  readonly root: string;
  readonly mountPoint: string;
  readonly type: string;
  readonly source: string;
}

/** Parses /proc/PID/mountinfo (proc(5)). Pure. */
export function parseMountinfo(text: string): readonly MountEntry[] {
  return parseMountInfo(text).map(({ path, fsType, ...rest }) => ({ ...rest, mountPoint: path, type: fsType }));
}

export async function readMounts(): Promise<readonly MountEntry[]> {
  return parseMountinfo(await readFile('/proc/self/mountinfo', 'utf8'));
}

/**
 * Unmounts everything at or below the directories, newest first. A mount that is busy is detached: it disappears from
 * the tree at once and from the kernel when its last user ends. Returns the mount points that were taken down.
 */
export async function unmountBelow(directories: readonly string[]): Promise<readonly string[]> {
  const resolved = directories.map(resolvePath);
  return unmountWhere((mountPoint) => resolved.some((directory) => isWithin(mountPoint, directory)));
}

/** The same for the mount points that `chosen` says. */
export async function unmountWhere(chosen: (mountPoint: string) => boolean): Promise<readonly string[]> {
  const done: string[] = [];
  // One unmount can uncover another on the same point, and propagation can remove several: look again until clean.
  for (let round = 0; round < 5; round++) {
    const mounts = (await readMounts()).filter((mount) => chosen(mount.mountPoint));
    if (mounts.length === 0) return done;
    for (const mount of mounts.toReversed()) {
      const plain = await exec('umount', ['--no-canonicalize', mount.mountPoint]);
      if (plain.code !== 0) await exec('umount', ['--no-canonicalize', '--lazy', mount.mountPoint]);
      done.push(mount.mountPoint);
    }
  }
  const left = (await readMounts()).filter((mount) => chosen(mount.mountPoint));
  if (left.length > 0) throw new Error(`cannot unmount ${left.map((mount) => mount.mountPoint).join(', ')}`);
  return done;
}
