// Takes a lab's empty cgroups away, from the top that is the lab's alone. Never ends a process.

import { readdir, rmdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type CgroupLayout, cgroupPath, kubepodsName } from '../../agent/model/cgroup-names.ts';
import { systemdRuns } from '../../agent/node/systemd-slices.ts';
import type { Clock } from '../../lib/clock.ts';
import { isErrno } from '../../lib/errors.ts';
import { exec } from '../../lib/exec.ts';
import { readMounts } from '../../lib/mounts.ts';
import { poll } from '../../lib/retry.ts';
import { exists } from './root.ts';

/** For giving up only. */
const CGROUP_MS = 30_000;

/** The highest cgroup that is the lab's alone: its own root cgroup where it has one, else `kubepods`. Pure. */
export function topCgroup(layout: CgroupLayout): string {
  const name = kubepodsName(layout);
  return cgroupPath(layout, name.length > 1 ? name.slice(0, -1) : name);
}

/** Where a cgroup is in each hierarchy that has it. */
export async function cgroupDirectories(path: string): Promise<readonly string[]> {
  const hierarchies = (await readMounts()).filter((mount) => mount.fsType === 'cgroup' || mount.fsType === 'cgroup2');
  const all = [...new Set(hierarchies.map((mount) => join(mount.path, path)))];
  const there = await Promise.all(all.map(exists));
  return all.filter((_, index) => there[index] === true);
}

/** Removes empty cgroups from `path` down, and their systemd slices. Rejects when a process stays in one. */
export async function removeCgroups(path: string, clock: Clock): Promise<void> {
  if (path.endsWith('.slice') && systemdRuns()) {
    // Takes every slice and scope below with it. 5: it is not loaded.
    const stopped = await exec('systemctl', ['stop', basename(path)], { timeoutMs: 60_000 });
    if (stopped.code !== 0 && stopped.code !== 5) throw new Error(`systemctl stop: ${stopped.stderr.trim()}`);
  }
  // The kernel frees a dead process's cgroup a moment after the process is gone.
  for (const top of await cgroupDirectories(path)) {
    let left: string | undefined;
    const look = async (): Promise<boolean> => {
      left = await removeCgroupTree(top);
      return left === undefined;
    };
    if (!(await poll(look, { clock, everyMs: 20, limitMs: CGROUP_MS })))
      throw new Error(`${left} still has processes in it`);
  }
}

/** Removes a tree of cgroups from the leaves; returns one that is busy, or undefined. */
async function removeCgroupTree(directory: string): Promise<string | undefined> {
  let children: string[];
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    children = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  let busy: string | undefined;
  for (const child of children) busy = (await removeCgroupTree(join(directory, child))) ?? busy;
  if (busy !== undefined) return busy;
  try {
    await rmdir(directory);
    return undefined;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    if (isErrno(error, 'EBUSY')) return directory;
    throw error;
  }
}
