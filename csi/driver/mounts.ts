// The mount table and changes to it: filesystems, bind mounts, the places they are mounted on. Knows nothing about volumes.

import { mkdir, open, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import { type Exec, execOk } from '../../lib/exec.ts';
import { type MountEntry, mountAt } from '../../lib/mountinfo.ts';
import { readMounts } from '../../lib/mounts.ts';
import { resolvePath } from '../../lib/resolve-path.ts';

export type Mount = MountEntry;
export { mountAt };

/** `path` with every link above its last name resolved. */
export function resolvePlace(path: string): string {
  return join(resolvePath(dirname(path)), basename(path));
}

/** The loop device behind a mount: a filesystem on it, or its device file bound to a path. Pure. */
export function loopOf(mount: Mount): string | undefined {
  if (/^\/dev\/loop\d+$/.test(mount.source)) return mount.source;
  const file = /^(?:\/dev)?\/(loop\d+)$/.exec(mount.root)?.[1];
  return mount.fsType === 'devtmpfs' || mount.fsType === 'tmpfs' ? file && `/dev/${file}` : undefined;
}

export async function mountDevice(
  device: string,
  path: string,
  fsType: string,
  options: readonly string[],
  run: Exec,
): Promise<void> {
  const flags = options.length === 0 ? [] : ['-o', options.join(',')];
  const result = await run('mount', ['-t', fsType, ...flags, device, path]);
  // The options may be sensitive, and an error travels far: it names none.
  if (result.code !== 0) throw new Error(`mount -t ${fsType} ${device} ${path}: ${result.stderr.trim()}`);
}

export async function bindMount(source: string, path: string, readonly: boolean, run: Exec): Promise<void> {
  await execOk('mount', ['--bind', source, path], {}, run);
  if (readonly) await makeReadOnly(path, run);
}

/** This mount only; the filesystem stays writable elsewhere. */
export async function makeReadOnly(path: string, run: Exec): Promise<void> {
  await execOk('mount', ['-o', 'remount,bind,ro', path], {}, run);
}

/** Takes down every mount that is stacked at exactly `path`. Rejects while one is busy. */
export async function unmountAt(path: string, run: Exec): Promise<void> {
  for (let mount = mountAt(await readMounts(), path); mount !== undefined; mount = mountAt(await readMounts(), path)) {
    await execOk('umount', ['--no-canonicalize', path], {}, run);
  }
}

/** The directory or empty file that is mounted on. What is there of the right kind is taken as it is. */
export async function makeTarget(path: string, kind: 'directory' | 'file'): Promise<void> {
  if (kind === 'file') {
    const file = await open(path, 'a', 0o600);
    await file.close();
    return;
  }
  try {
    await mkdir(path, { mode: 0o750 });
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  }
}

/** Removes an empty directory or a file; never what is inside a directory. */
export async function removeTarget(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    if (!isErrno(error, 'ENOTDIR')) throw error;
    await rm(path, { force: true });
  }
}
