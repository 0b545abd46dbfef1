// A snapshot of everything on this machine that a lab can change, for comparing before with after: processes, mounts, loop
// devices, network namespaces, links, addresses, routes, firewall rules, cgroups, directories. Reads only; comparing is pure.
// What the kernel has in memory (/proc, cgroups) is read synchronously, for an eighth of the processor time: see processes.ts.

import { readdirSync, readlinkSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, plusMs, systemClock } from './clock.ts';
import { isErrno } from './errors.ts';
import { type Exec, exec } from './exec.ts';
import { listLoopDevices } from './loop-devices.ts';
import { normaliseIptables, normaliseNft } from './machine-rules.ts';
import { carriesMark } from './marked-processes.ts';
import { readMounts } from './mounts.ts';
import { listProcesses, type ProcessEntry, readOfProcess } from './processes.ts';
import { retry, steadyPauses } from './retry.ts';

export const MACHINE_PARTS = [
  'process',
  'mount',
  'loop device',
  'network namespace',
  'link',
  'address',
  'route',
  'iptables rule',
  'ip6tables rule',
  'nftables rule',
  'cgroup',
  'path',
] as const;
export type MachinePart = (typeof MACHINE_PARTS)[number];

/** Per part: the identity of an object → its description for the report. */
export type MachineSnapshot = Readonly<Record<MachinePart, ReadonlyMap<string, string>>>;

export interface SnapshotOptions {
  /** More directories to list, three levels deep: a lab's root. */
  readonly directories?: readonly string[];
  /** VARIABLE=VALUE in the environment of all that is to be compared: an orphan without it is another program's. */
  readonly mark?: string;
  readonly run?: Exec;
}

/** Where node software leaves things. */
export const WATCHED_DIRECTORIES: readonly string[] = [
  '/etc/cni',
  '/opt/cni',
  '/opt/containerd',
  '/opt/nri',
  '/run/containerd',
  '/run/netns',
  '/run/nodelet',
  '/run/nri',
  '/var/lib/cni',
  '/var/lib/containerd',
  '/var/lib/kubelet',
  '/var/lib/nodelet',
  '/var/log/containers',
  '/var/log/pods',
];
/** The machine's default directories of pod logs and CNI files. */
export const SHARED_DIRECTORIES = [
  '/var/log/pods',
  '/var/log/containers',
  '/var/lib/cni/results',
  '/var/lib/cni',
  '/run/netns',
];

const DEPTH = 3;

/** The machine's own programs mount and unmount there at any time: logins, services, and snaps that are updated. */
const OTHERS_MOUNTS = /^\/(run\/(user|credentials)|snap|var\/snap)(\/|$)/;
const SNAPS = '/var/lib/snapd/';

export async function snapshotMachine(options: SnapshotOptions = {}): Promise<MachineSnapshot> {
  const run = options.run ?? exec;
  const processes = await relevantProcesses(options.mark);
  const mounts = await readMounts();
  const links = await json(run, 'ip', ['-json', 'addr', 'show']);
  const directories = [...WATCHED_DIRECTORIES, ...(options.directories ?? [])];
  return {
    process: new Map(processes.map((entry) => [`${entry.pid} ${entry.startTime}`, processText(entry)])),
    mount: byText(
      mounts
        .filter(({ path }) => !OTHERS_MOUNTS.test(path))
        .map((mount) => `${mount.path} (${mount.fsType} ${mount.source})`),
    ),
    'loop device': byText(
      (await listLoopDevices())
        .filter(({ image }) => !image.startsWith(SNAPS))
        .map((loop) => `${loop.image} on ${loop.device}`),
    ),
    'network namespace': byText(networkNamespaces(processes, mounts)),
    link: byText(links.map((link) => String(link['ifname']))),
    address: byText(links.flatMap(addressesOf)),
    route: byText([...(await routes(run, '-4')), ...(await routes(run, '-6'))]),
    'iptables rule': byText(normaliseIptables(await outputOf(run, 'iptables-save', []))),
    'ip6tables rule': byText(normaliseIptables(await outputOf(run, 'ip6tables-save', []))),
    'nftables rule': byText(normaliseNft(await outputOf(run, 'nft', ['--stateless', 'list', 'ruleset']))),
    cgroup: byText(cgroups(mounts.filter((m) => m.fsType.startsWith('cgroup')).map((m) => m.path))),
    path: byText((await Promise.all([...new Set(directories)].map((path) => paths(path, DEPTH)))).flat()),
  };
}

/** Entries that can exist twice (two mounts on one point) are numbered. */
function byText(texts: readonly string[]): ReadonlyMap<string, string> {
  const map = new Map<string, string>();
  for (const text of texts) {
    let key = text;
    for (let count = 2; map.has(key); count++) key = `${text} #${count}`;
    map.set(key, text);
  }
  return map;
}

// ---------------------------------------------------------------- comparing

export interface DiffOptions {
  /** Only differences that mention one of these: for a machine that other programs use at the same time. */
  readonly mentioning?: readonly string[];
}

/** Processes end, and a network namespace that is mounted nowhere goes with its last one. */
function goesByItself(part: MachinePart, text: string): boolean {
  return part === 'process' || (part === 'network namespace' && !text.includes(' at '));
}

/**
 * What is there after and was not before ("left behind"), and the other way round ("gone"), one line each; but for what goes
 * by itself.
 */
export function diffMachine(
  before: MachineSnapshot,
  after: MachineSnapshot,
  options: DiffOptions = {},
): readonly string[] {
  const lines: string[] = [];
  const relevant = (text: string): boolean =>
    options.mentioning === undefined || options.mentioning.some((word) => text.includes(word));
  for (const part of MACHINE_PARTS) {
    for (const [key, text] of after[part]) {
      if (before[part].has(key) || !relevant(text)) continue;
      if (part === 'cgroup' && isOthersCgroup(text, before.cgroup)) continue;
      lines.push(`left behind: ${part} ${text}`);
    }
    for (const [key, text] of before[part]) {
      if (goesByItself(part, text) || (part === 'cgroup' && !OWN_CGROUP.test(text))) continue;
      if (!after[part].has(key) && relevant(text)) lines.push(`gone: ${part} ${text}`);
    }
  }
  return lines;
}

/**
 * Cgroups of other programs come and go as processes do: those below a cgroup that existed before and is not a lab's. A
 * lab makes cgroups under its own names.
 */
function isOthersCgroup(path: string, before: ReadonlyMap<string, string>): boolean {
  const above = path.split('/').map((_, index, names) => names.slice(0, index).join('/'));
  return !OWN_CGROUP.test(path) && above.some((directory) => before.has(directory));
}

/**
 * Differences between an earlier snapshot and now. The kernel takes namespaces and their links down a moment after their
 * last process: a difference counts when it is still there after `settleMs` (default 3 s).
 */
export async function compareWithMachine(
  before: MachineSnapshot,
  options: SnapshotOptions & DiffOptions & { readonly settleMs?: number; readonly clock?: Clock } = {},
): Promise<readonly string[]> {
  const clock = options.clock ?? systemClock;
  const deadline = plusMs(clock.monotonic(), options.settleMs ?? 3_000);
  // Not `poll`: the pause is as long as the look before it took.
  for (;;) {
    const began = clock.monotonic();
    const lines = diffMachine(before, await snapshotMachine(options), options);
    const now = clock.monotonic();
    if (lines.length === 0 || now >= deadline) return lines;
    // A snapshot starts a dozen programs, which compete for the CPU with what is waited for.
    await clock.sleep(Math.max(100, now - began));
  }
}

// ---------------------------------------------------------------- processes

/**
 * Whether a process belongs to process `self`: `ours` descends from it, or was orphaned to init (as a daemon's children
 * are) and is in the cgroup of `self` or in one of pods; `other` descends from another process, such as a login or a cron
 * job, or is in a cgroup of a service manager, or is an ancestor of `self`, which a shell that has ended leaves to init as well.
 * `cgroupOf`: the text of /proc/PID/cgroup. `isMarked`: whether an orphan carries the mark of all that `self` starts, which decides
 * where there is one, but for processes in cgroups of pods: a container has an environment of its own. Pure.
 */
export function ownerOf(
  entry: ProcessEntry,
  byPid: ReadonlyMap<number, ProcessEntry>,
  self: number,
  cgroupOf: (pid: number) => string | undefined,
  isMarked?: (pid: number) => boolean,
): 'ours' | 'other' {
  if (isAncestor(entry.pid, self, byPid)) return 'other';
  const seen = new Set<number>();
  let current: ProcessEntry | undefined = entry;
  while (current !== undefined && !seen.has(current.pid)) {
    seen.add(current.pid);
    if (current.ppid === self) return 'ours';
    // Orphaned: its own parent is gone, or it was made a daemon on purpose.
    if (current.ppid <= 1) {
      if (isMarked?.(current.pid) ?? isNodeSoftware(current)) return 'ours';
      const cgroup = cgroupOf(entry.pid) ?? '';
      const near = OWN_CGROUP.test(cgroup) || (isMarked === undefined && cgroup === cgroupOf(self));
      return current.pid === entry.pid && near ? 'ours' : 'other';
    }
    current = byPid.get(current.ppid);
  }
  return 'other';
}

function isAncestor(pid: number, of: number, byPid: ReadonlyMap<number, ProcessEntry>): boolean {
  const seen = new Set<number>();
  for (let at = byPid.get(of)?.ppid; at !== undefined && !seen.has(at); at = byPid.get(at)?.ppid) {
    if (at === pid) return true;
    seen.add(at);
  }
  return false;
}

/** The programs that a lab starts and that outlive their parents. */
function isNodeSoftware(entry: ProcessEntry): boolean {
  return (
    /^(containerd|dockerd|runc|catatonit|pause|nodelet)/.test(entry.comm) ||
    entry.argv.some((w) => w.includes('cli/main.ts'))
  );
}

/** Without kernel threads, this process, its ancestors, and the programs that it runs for the snapshot. */
async function relevantProcesses(mark: string | undefined): Promise<readonly ProcessEntry[]> {
  const entries = (await listProcesses()).filter((entry) => entry.state !== 'Z' && entry.argv.length > 0);
  const byPid = new Map(entries.map((entry) => [entry.pid, entry]));
  const orphans = [process.pid, ...entries.filter(({ ppid }) => ppid <= 1).map(({ pid }) => pid)];
  const cgroups = new Map(orphans.map((pid) => [pid, readOfProcess(`/proc/${pid}/cgroup`)]));
  const isMarked = mark === undefined ? undefined : (pid: number): boolean => carriesMark(pid, mark);
  const isOurs = (entry: ProcessEntry): boolean =>
    ownerOf(entry, byPid, process.pid, (pid) => cgroups.get(pid), isMarked) === 'ours';
  return entries.filter((entry) => entry.pid > 2 && entry.pid !== process.pid && isOurs(entry));
}

function processText(entry: ProcessEntry): string {
  return `${entry.pid} ${entry.argv.join(' ').slice(0, 200)}`;
}

// ---------------------------------------------------------------- network

function networkNamespaces(
  processes: readonly ProcessEntry[],
  mounts: readonly { readonly root: string; readonly path: string }[],
): readonly string[] {
  // The machine's own is there, whether or not one of the processes is in it.
  const found = new Set<string>([readlinkSync('/proc/self/ns/net')]);
  for (const mount of mounts) if (mount.root.startsWith('net:[')) found.add(`${mount.root} at ${mount.path}`);
  for (const entry of processes) {
    try {
      found.add(readlinkSync(`/proc/${entry.pid}/ns/net`));
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'ESRCH', 'EACCES')) throw error;
    }
  }
  return [...found];
}

type Fields = Readonly<Record<string, unknown>>;

async function json(run: Exec, file: string, args: readonly string[]): Promise<readonly Fields[]> {
  const text = await outputOf(run, file, args);
  const value: unknown = text.trim() === '' ? [] : JSON.parse(text);
  return Array.isArray(value) ? value.filter((item) => typeof item === 'object' && item !== null) : [];
}

/** Empty where the program is not installed: there is nothing of its kind to compare. */
async function outputOf(run: Exec, file: string, args: readonly string[]): Promise<string> {
  const listed = async (): Promise<string> => {
    const result = await run(file, args);
    if (result.code !== 0) throw new Error(`${file} ${args.join(' ')}: exit ${result.code}: ${result.stderr.trim()}`);
    return result.stdout;
  };
  try {
    // What another program takes away meanwhile can fail a list.
    const mends = (error: unknown): boolean => !isErrno(error, 'ENOENT');
    return await retry(listed, { clock: systemClock, policy: steadyPauses(100), maxTries: 10, mends });
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return '';
    throw error;
  }
}

function addressesOf(link: Fields): readonly string[] {
  const info = link['addr_info'];
  if (!Array.isArray(info)) return [];
  // Temporary IPv6 addresses come and go by themselves.
  return info
    .filter((address: Fields) => address['temporary'] !== true)
    .map((address: Fields) => `${address['local']}/${address['prefixlen']} on ${link['ifname']}`);
}

async function routes(run: Exec, family: '-4' | '-6'): Promise<readonly string[]> {
  const all = await json(run, 'ip', ['-json', family, 'route', 'show', 'table', 'all']);
  return all.map((route) => {
    const words = [route['type'], route['dst'], route['gateway'], route['dev'] && `dev ${route['dev']}`];
    const table = route['table'] === undefined ? [] : [`table ${route['table']}`];
    return [family === '-4' ? 'ipv4' : 'ipv6', ...words.filter((word) => word !== undefined), ...table].join(' ');
  });
}

// ---------------------------------------------------------------- cgroups and directories

/** Of a lab, or of pods. */
const OWN_CGROUP = /nodelet|kubepods/;
/** systemd makes and removes these all the time, for its own units and logins. */
const SYSTEMD = /\.(service|scope|slice|mount|socket|swap)$/;

/** Every cgroup of every hierarchy but those of systemd's units. */
function cgroups(hierarchies: readonly string[]): readonly string[] {
  const found: string[] = [];
  const walk = (directory: string): void => {
    for (const name of subdirectories(directory)) {
      const path = join(directory, name);
      // With the systemd driver pods' own slices are units too.
      if (SYSTEMD.test(name) && !OWN_CGROUP.test(path)) continue;
      found.push(path);
      walk(path);
    }
  };
  for (const hierarchy of new Set(hierarchies)) walk(hierarchy);
  return found;
}

function subdirectories(directory: string): readonly string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENODEV', 'EACCES')) return [];
    throw error;
  }
}

/** The directory and what is in it, `depth` levels down. */
async function paths(directory: string, depth: number): Promise<readonly string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    const below = await Promise.all(
      entries.map(async (entry) => {
        const path = join(directory, entry.name);
        return entry.isDirectory() && depth > 1 ? paths(path, depth - 1) : [path];
      }),
    );
    return [directory, ...below.flat()];
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    if (isErrno(error, 'ENOTDIR')) return [directory];
    throw error;
  }
}
