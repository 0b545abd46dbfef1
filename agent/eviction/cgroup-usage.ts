// Memory and tasks of a cgroup as the kernel counts them, on cgroup v1 and v2, and the machine's own figures. Reads a
// few small files, synchronously: each is some 10 µs. Decides nothing.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';

export interface CgroupFiles {
  readonly version: 1 | 2;
  /** Where cgroups are mounted: /sys/fs/cgroup. */
  readonly mountPoint: string;
}

/** undefined when there is no such file, or the cgroup went while it was read. */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENODEV')) return undefined;
    throw error;
  }
}

function readNumber(path: string): number | undefined {
  const text = readText(path)?.trim();
  if (text === undefined || text === 'max') return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** One line of memory.stat, bytes. */
export function statField(stat: string, name: string): number | undefined {
  const start = stat.startsWith(`${name} `) ? 0 : stat.indexOf(`\n${name} `) + 1;
  if (start === 0 && !stat.startsWith(`${name} `)) return undefined;
  const end = stat.indexOf('\n', start);
  const value = stat.slice(start + name.length + 1, end < 0 ? undefined : end);
  return /^\d+$/.test(value) ? Number(value) : undefined;
}

function fileOf(files: CgroupFiles, controller: 'memory' | 'pids', path: string, name: string): string {
  return files.version === 1 ? join(files.mountPoint, controller, path, name) : join(files.mountPoint, path, name);
}

/**
 * What cannot be taken back at once: usage less inactive page cache, bytes; never below 0. The root of cgroup v2 has
 * no figure of its use, so there anonymous memory and page cache are added up, as runc does. undefined: no such cgroup.
 */
export function workingSetBytes(files: CgroupFiles, path: string): number | undefined {
  const stat = readText(fileOf(files, 'memory', path, 'memory.stat'));
  if (stat === undefined) return undefined;
  const v1 = files.version === 1;
  const root = (statField(stat, 'anon') ?? 0) + (statField(stat, 'file') ?? 0);
  const counted = readNumber(fileOf(files, 'memory', path, v1 ? 'memory.usage_in_bytes' : 'memory.current'));
  const usage = counted ?? (v1 ? undefined : root);
  if (usage === undefined) return undefined;
  return Math.max(0, usage - (statField(stat, v1 ? 'total_inactive_file' : 'inactive_file') ?? 0));
}

/** What v1 shows for "no limit" is the largest number of whole pages, about 2^63. */
const UNLIMITED = 2 ** 62;

/** Bytes; undefined when the cgroup has no limit, or does not exist. */
export function memoryLimitBytes(files: CgroupFiles, path: string): number | undefined {
  const name = files.version === 1 ? 'memory.limit_in_bytes' : 'memory.max';
  const limit = readNumber(fileOf(files, 'memory', path, name));
  return limit === undefined || limit >= UNLIMITED ? undefined : limit;
}

/** Tasks in the cgroup and below; undefined without a pids controller. */
export function taskCount(files: CgroupFiles, path: string): number | undefined {
  return readNumber(fileOf(files, 'pids', path, 'pids.current'));
}

/** Tasks of the whole machine: the total after the slash in /proc/loadavg. */
export function machineTasks(procDir: string): { readonly running: number; readonly max: number } | undefined {
  const running = Number(readText(join(procDir, 'loadavg'))?.split(' ')[3]?.split('/')[1]);
  if (!Number.isFinite(running)) return undefined;
  const limits = ['pid_max', 'threads-max'].flatMap((file) => readNumber(join(procDir, 'sys/kernel', file)) ?? []);
  if (limits.length === 0) return undefined;
  return { running, max: Math.min(...limits) };
}
