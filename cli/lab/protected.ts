// Directories that no lab may have as its root, whatever they contain: the machine's own, home directories, git
// checkouts, and the directories of a kubelet or a container runtime. The decision is pure; facts are gathered here too.

import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import { isWithin } from '../../lib/mountinfo.ts';
import { listProcesses, type ProcessEntry } from '../../lib/processes.ts';
import { labProcesses } from './processes.ts';
import { exists } from './root.ts';

/** The machine's own: these directories, and what they lie in. */
export const SYSTEM_DIRECTORIES: readonly string[] = [
  ...['/bin', '/boot', '/etc', '/home', '/lib', '/lib32', '/lib64', '/libx32', '/media', '/mnt', '/opt', '/root'],
  ...['/run', '/run/lock', '/run/user', '/sbin', '/srv', '/tmp', '/usr', '/var', '/dev/shm'],
  ...['/usr/bin', '/usr/lib', '/usr/lib64', '/usr/libexec', '/usr/local', '/usr/sbin', '/usr/share', '/usr/src'],
  ...['/usr/local/bin', '/usr/local/lib', '/usr/local/sbin', '/usr/local/share'],
  ...['/var/backups', '/var/cache', '/var/lib', '/var/local', '/var/log', '/var/mail', '/var/opt', '/var/spool'],
  ...['/var/tmp', '/var/www', '/etc/cni', '/etc/containerd', '/etc/kubernetes', '/etc/systemd', '/opt/cni'],
  ...['/run/containerd', '/run/nodelet', '/run/netns', '/var/lib/cni', '/var/lib/containerd', '/var/lib/docker'],
  ...['/var/lib/etcd', '/var/lib/kubelet', '/var/log/containers', '/var/log/pods'],
];

/** The kernel's: these and everything below. */
const KERNEL_DIRECTORIES = ['/proc', '/sys', '/dev'];

export interface NamedDirectory {
  readonly path: string;
  /** "device:inode"; undefined where it does not exist. */
  readonly identity?: string | undefined;
}

export interface RunningProgram {
  readonly pid: number;
  readonly name: string;
  /** The program's open files, sockets and configured paths. */
  readonly paths: readonly string[];
}

export interface ProtectionFacts {
  readonly root: NamedDirectory;
  readonly system: readonly NamedDirectory[];
  /** Of all users of the machine. */
  readonly homes: readonly NamedDirectory[];
  /** It contains `.git`, or it is a bare repository. */
  readonly gitCheckout: boolean;
  /** Kubelets and container runtimes that are not this lab's own. */
  readonly running: readonly RunningProgram[];
}

/** Why no lab may have the directory, as the end of "<root> …"; undefined when one may. Pure. */
export function protectedBecause(facts: ProtectionFacts): string | undefined {
  const { root } = facts;
  const is = (other: NamedDirectory): boolean =>
    root.path === other.path || (root.identity !== undefined && root.identity === other.identity);
  const has = (other: NamedDirectory): boolean => is(other) || isWithin(other.path, root.path);
  if (root.path === '/') return 'is the root of the file system';
  const kernel = KERNEL_DIRECTORIES.find((path) => isWithin(root.path, path));
  if (kernel !== undefined && root.path !== '/dev/shm') {
    if (!isWithin(root.path, '/dev/shm')) return `is in ${kernel}, which is the kernel's`;
  }
  const system = facts.system.find(is) ?? facts.system.find(has);
  if (system !== undefined) {
    if (root.path === system.path) return 'is a directory of the system';
    return is(system)
      ? `is ${system.path}, a directory of the system`
      : `holds ${system.path}, a directory of the system`;
  }
  const home = facts.homes.find(is) ?? facts.homes.find(has);
  if (home !== undefined) return is(home) ? 'is a home directory' : `holds the home directory ${home.path}`;
  if (facts.gitCheckout) return 'is a git checkout';
  for (const { name, pid, paths } of facts.running) {
    const path = paths.find((each) => isWithin(each, root.path));
    if (path !== undefined) return `is in use by ${name} (process ${pid}), which has ${path}`;
  }
  return undefined;
}

/** The home directories of /etc/passwd's text. Pure. */
export function homesOf(passwd: string): readonly string[] {
  const homes = passwd.split('\n').map((line) => line.split(':')[5] ?? '');
  return [...new Set(homes.filter((home) => home.startsWith('/') && home !== '/'))];
}

/** Names under which kubelets and container runtimes run. */
const RUNTIMES = /^(kubelet|containerd|containerd-shim.*|dockerd|crio|cri-o|k3s.*|k0s|rke2|microk8s|hyperkube)$/;
const DEFAULT_DIRECTORIES: ReadonlyMap<string, string> = new Map([
  ['kubelet', '/var/lib/kubelet'],
  ['containerd', '/var/lib/containerd'],
  ['dockerd', '/var/lib/docker'],
]);

/**
 * The name of a kubelet or container runtime that a process is; undefined for any other. A script is known by its own
 * name, nodelet's agent by its command line. Pure.
 */
export function runtimeName(entry: Pick<ProcessEntry, 'comm' | 'argv'>): string | undefined {
  const names = [entry.comm, basename(entry.argv[0] ?? '')];
  const name = names.find((each) => RUNTIMES.test(each));
  if (name !== undefined) return name;
  const at = entry.argv.findIndex((word) => word.endsWith('/cli/main.ts'));
  return at >= 0 && entry.argv[at + 1] === 'agent' ? 'nodelet agent' : undefined;
}

/** Absolute paths among a command line's words: `/path`, `--flag=/path`, `unix:///path`. Pure. */
export function pathsOfArguments(argv: readonly string[]): readonly string[] {
  return argv.flatMap((word) => {
    const value = word.replace(/^-+[A-Za-z0-9-]+=/, '').replace(/^unix:\/\//, '');
    return value.startsWith('/') ? [value] : [];
  });
}

async function identityText(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES')) return undefined;
    throw error;
  }
}

async function named(path: string): Promise<NamedDirectory> {
  return { path, identity: await identityText(path) };
}

async function isGitCheckout(root: string): Promise<boolean> {
  if (await exists(join(root, '.git'))) return true;
  const bare = await Promise.all(['HEAD', 'objects', 'refs'].map((name) => exists(join(root, name))));
  return bare.every((found) => found);
}

/** `root` is absolute and resolved. */
export async function protectionFacts(root: string): Promise<ProtectionFacts> {
  const passwd = await readFile('/etc/passwd', 'utf8').catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) return '';
    throw error;
  });
  const homes = [...new Set([...homesOf(passwd), homedir(), process.env['HOME'] ?? ''])].filter(
    (home) => home.startsWith('/') && home !== '/',
  );
  return {
    root: await named(root),
    system: await Promise.all(SYSTEM_DIRECTORIES.map(named)),
    homes: await Promise.all(homes.map(named)),
    gitCheckout: await isGitCheckout(root),
    running: await runningPrograms(root),
  };
}

async function runningPrograms(root: string): Promise<readonly RunningProgram[]> {
  const own = new Set((await labProcesses(root)).map((entry) => entry.pid));
  const others = (await listProcesses()).flatMap((entry) => {
    const name = own.has(entry.pid) || entry.state === 'Z' ? undefined : runtimeName(entry);
    return name === undefined ? [] : [{ entry, name }];
  });
  if (others.length === 0) return [];
  const sockets = await unixSockets();
  return Promise.all(
    others.map(async ({ entry, name }) => {
      const open = await openFiles(entry.pid);
      const listens = open.flatMap((target) => {
        const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
        const path = inode === undefined ? undefined : sockets.get(inode);
        return path === undefined ? [] : [path];
      });
      const files = open.filter((target) => target.startsWith('/'));
      const usual = DEFAULT_DIRECTORIES.get(name);
      const paths = [...pathsOfArguments(entry.argv), ...files, ...listens, ...(usual === undefined ? [] : [usual])];
      return { pid: entry.pid, name, paths };
    }),
  );
}

/** What a process has open, and its working directory. */
async function openFiles(pid: number): Promise<readonly string[]> {
  try {
    const numbers = await readdir(`/proc/${pid}/fd`);
    const links = [...numbers.map((number) => `/proc/${pid}/fd/${number}`), `/proc/${pid}/cwd`];
    const targets = await Promise.all(
      links.map((path) =>
        readlink(path).catch((error: unknown) => {
          // Closed, or the process has ended.
          if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES')) return '';
          throw error;
        }),
      ),
    );
    return targets.filter((target) => target !== '');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES')) return [];
    throw error;
  }
}

/** Paths of the machine's unix sockets by inode. */
async function unixSockets(): Promise<ReadonlyMap<string, string>> {
  const lines = (await readFile('/proc/net/unix', 'utf8')).split('\n').slice(1);
  const found = new Map<string, string>();
  for (const line of lines) {
    const match = /^\S+: \S+ \S+ \S+ \S+ \S+ +(\d+) (\/.*)$/.exec(line);
    if (match?.[1] !== undefined && match[2] !== undefined) found.set(match[1], match[2]);
  }
  return found;
}
