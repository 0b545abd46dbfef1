// What the kernel of this machine shows about a pod: its cgroup's memory, kills for lack of memory, its processes and what
// they wait in. Reads /proc, /sys/fs/cgroup and /dev/kmsg; changes nothing and starts nothing.

import { closeSync, constants, openSync, readSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CgroupDriver, cgroupPath, podName } from '../../../agent/model/cgroup-names.ts';
import { podQOSClass, type QOSClass } from '../../../agent/model/pod-resources.ts';
import type { Pod } from '../../../client/types.ts';
import { isErrno } from '../../../lib/errors.ts';
import { readProcess } from '../../../lib/processes.ts';
import type { ContainerFact, MachineFacts, MemoryFacts, OomKill, ProcessFact } from '../facts.ts';
import { parseOomKills } from '../kernel-log.ts';
import { collectMounts } from './mounts.ts';
import type { Gaps, LocalNode } from './source.ts';

const HIERARCHIES = ['/sys/fs/cgroup/memory', '/sys/fs/cgroup', '/sys/fs/cgroup/unified'];
const DRIVERS: readonly CgroupDriver[] = ['cgroupfs', 'systemd'];
/** Limits above this are the kernel's way to write "none". bytes. */
const NO_LIMIT = 2 ** 60;
/** Processes of a container that are read in detail. */
const MAX_PROCESSES = 20;
const SIGTERM_BIT = 1n << 14n;

/** What a file contains; undefined where it is not there, the process has ended, or it cannot be read. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM', 'EINVAL', 'ENODEV', 'EOPNOTSUPP')) return undefined;
    throw error;
  }
}

async function entriesOf(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

function figure(text: string | undefined): number | undefined {
  const value = Number(text);
  return text === undefined || !Number.isFinite(value) || value >= NO_LIMIT ? undefined : value;
}

/** The pod's cgroup in the hierarchy that accounts for memory. */
export function cgroupOf(pod: Pod, cgroupRoot: string): Promise<string | undefined> {
  return findCgroup(pod.metadata.uid, podQOSClass(pod), cgroupRoot);
}

async function findCgroup(uid: string, qos: QOSClass, cgroupRoot: string): Promise<string | undefined> {
  for (const driver of DRIVERS) {
    const layout = { root: cgroupRoot, driver };
    const path = cgroupPath(layout, podName(layout, uid, qos));
    for (const hierarchy of HIERARCHIES) {
      const directory = join(hierarchy, path);
      if ((await textOf(join(directory, 'cgroup.procs'))) !== undefined) return directory;
    }
  }
  return undefined;
}

async function memoryOf(directory: string): Promise<MemoryFacts> {
  const [limit2, peak2, limit1, peak1] = await Promise.all(
    ['memory.max', 'memory.peak', 'memory.limit_in_bytes', 'memory.max_usage_in_bytes'].map((name) =>
      textOf(join(directory, name)),
    ),
  );
  return { limit: figure(limit2 ?? limit1), peak: figure(peak2 ?? peak1) };
}

/** What /proc/PID/status says about SIGTERM. Pure. */
export function termDisposition(status: string): ProcessFact['term'] {
  const mask = (name: string): bigint =>
    BigInt(`0x${new RegExp(`^${name}:\\s*([0-9a-f]+)$`, 'm').exec(status)?.[1] ?? 0}`);
  if ((mask('SigIgn') & SIGTERM_BIT) !== 0n) return 'ignored';
  return (mask('SigCgt') & SIGTERM_BIT) !== 0n ? 'handled' : 'default';
}

async function processFact(pid: number, container: string): Promise<ProcessFact | undefined> {
  const [entry, status, wchan, stack] = await Promise.all([
    readProcess(pid),
    textOf(`/proc/${pid}/status`),
    textOf(`/proc/${pid}/wchan`),
    textOf(`/proc/${pid}/stack`),
  ]);
  if (entry === undefined || status === undefined) return undefined;
  return {
    pid,
    container,
    command: entry.argv.length === 0 ? `[${entry.comm}]` : entry.argv.join(' ').replaceAll('\n', ' ').slice(0, 120),
    state: entry.state,
    waitsIn: wchan === undefined || wchan === '0' ? '' : wchan,
    stack: (stack ?? '').split('\n').flatMap((line) => /\] ([\w.]+)/.exec(line)?.[1] ?? []),
    term: termDisposition(status),
  };
}

async function processesOf(cgroup: string, containers: readonly ContainerFact[]): Promise<readonly ProcessFact[]> {
  const facts: ProcessFact[] = [];
  for (const name of await entriesOf(cgroup)) {
    const container = containers.find(({ id }) => name.includes(id));
    if (container === undefined) continue;
    const pids = ((await textOf(join(cgroup, name, 'cgroup.procs'))) ?? '').split('\n').filter((line) => line !== '');
    for (const pid of pids.map(Number).slice(0, MAX_PROCESSES)) {
      const fact = await processFact(pid, container.name);
      if (fact !== undefined) facts.push(fact);
    }
  }
  return facts;
}

/** The processes of a pod of which nothing but the uid is known. */
export async function collectProcesses(
  { cgroupRoot }: LocalNode,
  uid: string,
  containers: readonly ContainerFact[],
): Promise<readonly ProcessFact[]> {
  for (const qos of ['BestEffort', 'Burstable', 'Guaranteed'] as const) {
    const cgroup = await findCgroup(uid, qos, cgroupRoot);
    if (cgroup !== undefined) return await processesOf(cgroup, containers);
  }
  return [];
}

/** The kernel's messages that are still in its buffer. Needs CAP_SYSLOG where dmesg is restricted. */
function kernelLog(): string {
  const descriptor = openSync('/dev/kmsg', constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const buffer = Buffer.alloc(8192);
    let text = '';
    for (;;) {
      try {
        text += buffer.toString('utf8', 0, readSync(descriptor, buffer));
      } catch (error) {
        if (isErrno(error, 'EAGAIN')) return text;
        // The oldest messages were overwritten meanwhile: reading goes on after them.
        if (!isErrno(error, 'EPIPE')) throw error;
      }
    }
  } finally {
    closeSync(descriptor);
  }
}

export async function collectMachine(
  local: LocalNode,
  gaps: Gaps,
  pod: Pod,
  containers: readonly ContainerFact[],
): Promise<MachineFacts> {
  const cgroup = await cgroupOf(pod, local.cgroupRoot);
  const oomKills = await gaps.attempt<readonly OomKill[]>('the kernel’s log', [], async () =>
    parseOomKills(kernelLog(), pod.metadata.uid),
  );
  const mounts = pod.metadata.deletionTimestamp === undefined ? {} : { mounts: await collectMounts(pod.metadata.uid) };
  if (cgroup === undefined) return { memory: undefined, oomKills, processes: [], ...mounts };
  return { memory: await memoryOf(cgroup), oomKills, processes: await processesOf(cgroup, containers), ...mounts };
}
