// The cgroup of a process, with cgroup v1 and v2 alike: by /proc/PID/cgroup and the mount table. Reads only.

import { join } from 'node:path';
import { readFileIfExists } from '../../lib/atomic.ts';
import type { MountEntry } from '../../lib/mountinfo.ts';
import { readMounts } from '../../lib/mounts.ts';
import { readOfProcess } from './pods.ts';

/** Above any machine's memory: cgroup v1 shows "no limit" as a number like this. */
const UNLIMITED = 2 ** 60;

/** The path of a process below the hierarchy of a controller, of /proc/PID/cgroup's text. Pure. */
export function cgroupOf(text: string, controller: string): string | undefined {
  const lines = text.split('\n').map((line) => line.split(':'));
  const v1 = lines.find(([, controllers = '']) => controllers.split(',').includes(controller));
  const v2 = lines.find(([id, controllers]) => id === '0' && controllers === '');
  return (v1 ?? v2)?.slice(2).join(':');
}

/** Where a controller's hierarchy is mounted. Pure. */
export function hierarchyOf(mounts: readonly MountEntry[], controller: string): string | undefined {
  const v1 = mounts.find(({ fsType, superOptions }) => fsType === 'cgroup' && superOptions.includes(controller));
  return (v1 ?? mounts.find(({ fsType }) => fsType === 'cgroup2'))?.path;
}

/** Of `memory.limit_in_bytes` or `memory.max`. Pure. */
export function parseMemoryLimit(text: string): number | 'none' {
  const limit = Number(text.trim());
  return Number.isNaN(limit) || limit > UNLIMITED ? 'none' : limit;
}

/** Bytes; undefined when the process is gone. */
export async function memoryLimitOf(pid: number | undefined): Promise<number | 'none' | undefined> {
  const text = await readOfProcess(pid, 'cgroup');
  const cgroup = text === undefined ? undefined : cgroupOf(text, 'memory');
  const hierarchy = hierarchyOf(await readMounts(), 'memory');
  if (cgroup === undefined || hierarchy === undefined) return undefined;
  const directory = join(hierarchy, cgroup);
  const limit =
    (await readFileIfExists(join(directory, 'memory.limit_in_bytes'))) ??
    (await readFileIfExists(join(directory, 'memory.max')));
  return limit === undefined ? undefined : parseMemoryLimit(limit);
}
