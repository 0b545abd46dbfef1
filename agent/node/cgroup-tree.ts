// What both cgroup versions have in common: directories of cgroups, the pids in them, and getting rid of both.

import { readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';

/** Writes one of the kernel's files; never makes one, so that a missing controller is ENOENT. */
export function writeControl(path: string, value: string): void {
  writeFileSync(path, value, { flag: 'r+' });
}

export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
}

/** The directory and every cgroup below it, deepest first; empty when it does not exist. */
export function cgroupTree(directory: string): string[] {
  let entries: string[];
  try {
    entries = readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
  return [...entries.flatMap((name) => cgroupTree(join(directory, name))), directory];
}

export function readPids(directory: string): number[] {
  try {
    return readFileSync(join(directory, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);
  } catch (error) {
    // ENODEV: removed while it was open. EOPNOTSUPP: a threaded v2 cgroup, whose processes its parent lists.
    if (isErrno(error, 'ENOENT', 'ENODEV', 'EOPNOTSUPP')) return [];
    throw error;
  }
}

/** A file of one number; undefined when there is no such cgroup, or it went while it was read. */
export function readBytes(path: string): number | undefined {
  try {
    return Number(readFileSync(path, 'utf8').trim());
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENODEV')) return undefined;
    throw error;
  }
}

export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    // 0 is a process outside our pid namespace, which we must not kill.
    if (pid === 0) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if (!isErrno(error, 'ESRCH')) throw error;
    }
  }
}

/** False when a cgroup of the tree still has processes in it. Mostly there is no tree: the runtime has removed what was below. */
export function removeCgroupTree(directory: string): boolean {
  return removeCgroup(directory) || cgroupTree(directory).every(removeCgroup);
}

/** False when processes or other cgroups are in it. */
function removeCgroup(directory: string): boolean {
  try {
    rmdirSync(directory);
  } catch (error) {
    if (isErrno(error, 'EBUSY', 'ENOTEMPTY')) return false;
    if (!isErrno(error, 'ENOENT')) throw error;
  }
  return true;
}
