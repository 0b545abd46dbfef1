// Facts of this machine in the Node's status that change slowly, if at all: gathered once at start, from the files that
// cAdvisor reads for the kubelet; the machine's UUIDs from systeminformation (slow-facts.ts), since each kind of machine has
// them elsewhere. Decides nothing.

import { lookup } from 'node:dns/promises';
import { opendir, readFile, statfs } from 'node:fs/promises';
import { arch, cpus, hostname, networkInterfaces, release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { readFileIfExists } from '../../lib/atomic.ts';
import { isErrno } from '../../lib/errors.ts';
import { execOk } from '../../lib/exec.ts';
import { setOwn } from '../../lib/own-property.ts';
import { readSELinux } from './selinux.ts';
import type { SlowFacts } from './slow-facts.ts';

export interface MachineFacts {
  readonly hostname: string;
  /** GOARCH: "amd64", "arm64". */
  readonly architecture: string;
  readonly kernelVersion: string;
  /** "Debian GNU/Linux 12 (bookworm)". */
  readonly osImage: string;
  readonly machineID: string;
  readonly systemUUID: string;
  readonly bootID: string;
  /** Logical processors. */
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Size of the file system that holds the agent's root directory. */
  readonly diskBytes: number;
  /** Page size ("2Mi") → bytes reserved for pages of that size, in the order of the kernel's directory. */
  readonly hugepages: Readonly<Record<string, number>>;
  readonly swapBytes: number;
  readonly selinux: boolean;
  readonly addresses: AddressFacts;
}

/** What the node's address is chosen from. */
export interface AddressFacts {
  /** Interface name → addresses, loopback too. */
  readonly interfaces: Readonly<Record<string, readonly string[]>>;
  /** Interfaces of the default routes, best first, IPv4 before IPv6. */
  readonly defaultInterfaces: readonly string[];
  /** What the hostname resolves to. */
  readonly resolved: readonly string[];
}

/** The library runs programs of the system; one of them may hang. */
const SLOW_FACTS_MS = 60_000;
const GOARCH: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', mipsel: 'mipsle', ppc64: 'ppc64le' };

/** `rootDir` must exist; its file system is what pods write to. */
export async function gatherFacts(rootDir: string, nodeName: string): Promise<MachineFacts> {
  const [{ uuid }, osRelease, usrOsRelease, machineID, meminfo, bootID] = await Promise.all([
    readSlowFacts(),
    readFileIfExists('/etc/os-release'),
    readFileIfExists('/usr/lib/os-release'),
    readFileIfExists('/etc/machine-id'),
    readFile('/proc/meminfo', 'utf8'),
    readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
  ]);
  const machine = (machineID ?? uuid.os).trim();
  return {
    hostname: hostname(),
    architecture: GOARCH[arch()] ?? arch(),
    kernelVersion: release(),
    osImage: osImageOf(osRelease ?? usrOsRelease ?? ''),
    machineID: machine,
    // Machines without one of their own: cAdvisor then falls back on the machine id as well.
    systemUUID: uuid.hardware === '' ? machine : uuid.hardware.toLowerCase(),
    bootID: bootID.trim(),
    cpus: cpus().length,
    memoryBytes: meminfoBytes(meminfo, 'MemTotal'),
    swapBytes: meminfoBytes(meminfo, 'SwapTotal'),
    diskBytes: await statfsBytes(rootDir),
    hugepages: await hugepages(),
    selinux: await readSELinux(),
    addresses: await addressFacts(nodeName),
  };
}

async function readSlowFacts(): Promise<SlowFacts> {
  const program = fileURLToPath(new URL('slow-facts.ts', import.meta.url));
  const args = ['--disable-warning=ExperimentalWarning', program];
  return JSON.parse(await execOk(process.execPath, args, { timeoutMs: SLOW_FACTS_MS })) as SlowFacts;
}

/** PRETTY_NAME of os-release(5), whose values are quoted as a shell's; "Linux" when there is none. */
export function osImageOf(osRelease: string): string {
  const value = /^PRETTY_NAME=(.*)$/m.exec(osRelease)?.[1]?.trim() ?? '';
  const [, , quoted = value] = /^(["'])(.*)\1$/.exec(value) ?? [];
  const name = quoted.replace(/\\(["'$`\\])/g, '$1').trim();
  return name === '' ? 'Linux' : name;
}

/** Bytes of one line of /proc/meminfo (which counts in kB); 0 when there is no such line. */
export function meminfoBytes(meminfo: string, field: string): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(meminfo);
  return match === null ? 0 : Number(match[1]) * 1024;
}

async function statfsBytes(path: string): Promise<number> {
  const { blocks, bsize } = await statfs(path);
  return blocks * bsize;
}

async function hugepages(): Promise<Record<string, number>> {
  const directory = '/sys/kernel/mm/hugepages';
  const found: Record<string, number> = {};
  const names: string[] = [];
  try {
    // Not readdir, which sorts: the kubelet names the sizes as the kernel does.
    for await (const { name } of await opendir(directory)) names.push(name);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return found;
    throw error;
  }
  for (const name of names) {
    const kilobytes = Number(/^hugepages-(\d+)kB$/.exec(name)?.[1]);
    if (!Number.isInteger(kilobytes)) continue;
    const pages = Number(await readFile(`${directory}/${name}/nr_hugepages`, 'utf8'));
    setOwn(found, pageSize(kilobytes), pages * kilobytes * 1024);
  }
  return found;
}

/** "2Mi", "1Gi", "64Ki": the suffix of the resource name hugepages-<size>. */
export function pageSize(kilobytes: number): string {
  if (kilobytes % (1024 * 1024) === 0) return `${kilobytes / (1024 * 1024)}Gi`;
  if (kilobytes % 1024 === 0) return `${kilobytes / 1024}Mi`;
  return `${kilobytes}Ki`;
}

async function addressFacts(nodeName: string): Promise<AddressFacts> {
  const interfaces: Record<string, string[]> = {};
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    setOwn(
      interfaces,
      name,
      (addresses ?? []).map(({ address }) => address),
    );
  }
  const [route4, route6] = await Promise.all([
    readFileIfExists('/proc/net/route'),
    readFileIfExists('/proc/net/ipv6_route'),
  ]);
  return {
    interfaces,
    defaultInterfaces: [...defaultInterfaces4(route4 ?? ''), ...defaultInterfaces6(route6 ?? '')],
    // A node whose name does not resolve is common; the address is then chosen otherwise.
    resolved: await lookup(nodeName, { all: true }).then(
      (found) => found.map(({ address }) => address),
      () => [],
    ),
  };
}

/** Interfaces with a default route in /proc/net/route, lowest metric first. */
export function defaultInterfaces4(table: string): string[] {
  const rows = table
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t').map((cell) => cell.trim()))
    .filter(([, destination, , flags, , , , mask]) => destination === '00000000' && mask === '00000000' && isUp(flags));
  return rows.sort((a, b) => Number(a[6]) - Number(b[6])).map(([name = '']) => name);
}

/** The same from /proc/net/ipv6_route, where metric and flags are hexadecimal and the interface comes last. */
export function defaultInterfaces6(table: string): string[] {
  const rows = table
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([destination, length, , , , , , , flags, name]) => {
      return /^0{32}$/.test(destination ?? '') && length === '00' && isUp(flags) && name !== undefined && name !== 'lo';
    });
  return rows
    .sort((a, b) => Number.parseInt(a[5] ?? '', 16) - Number.parseInt(b[5] ?? '', 16))
    .map((row) => row[9] ?? '');
}

/** RTF_UP. */
function isUp(flags: string | undefined): boolean {
  return (Number.parseInt(flags ?? '0', 16) & 1) === 1;
}
