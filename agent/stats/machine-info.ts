// What of the machine does not change while it runs and only metrics show: cores and sockets, when it was booted, and names of
// block devices. Read when the first page is.

import type { ReadFile } from './cgroup-figures.ts';
import { keyed } from './kernel-text.ts';

export interface Topology {
  readonly physicalCores: number;
  readonly sockets: number;
}

/**
 * /proc/cpuinfo: distinct pairs of "physical id" and "core id". Machines that name neither (most ARM ones) have a core for each
 * logical processor, in one socket. Pure.
 */
export function topologyOf(cpuinfo: string, logical: number): Topology {
  const cores = new Set<string>();
  const sockets = new Set<string>();
  for (const processor of cpuinfo.split('\n\n')) {
    const socket = /^physical id\s*: (\d+)$/m.exec(processor)?.[1];
    const core = /^core id\s*: (\d+)$/m.exec(processor)?.[1];
    if (socket === undefined || core === undefined) continue;
    sockets.add(socket);
    cores.add(`${socket}/${core}`);
  }
  return { physicalCores: cores.size === 0 ? logical : cores.size, sockets: Math.max(1, sockets.size) };
}

/** `btime` of /proc/stat, seconds since the epoch; 0 where it is missing. Pure. */
export function bootTimeOf(stat: string): number {
  return keyed(stat, 'btime') ?? 0;
}

/** Names of block devices by "major:minor", from sysfs; the numbers themselves where sysfs has no name. */
export function createDeviceNames(read: ReadFile, sysDir = '/sys'): (numbers: string) => string {
  const known = new Map<string, string>();
  return (numbers) => {
    let name = known.get(numbers);
    if (name === undefined) {
      const uevent = read(`${sysDir}/dev/block/${numbers}/uevent`) ?? '';
      const device = /^DEVNAME=(.+)$/m.exec(uevent)?.[1];
      name = device === undefined ? numbers : `/dev/${device}`;
      known.set(numbers, name);
    }
    return name;
  };
}
