// A private dockerd on a lab's containerd: its command line, its configuration, and what it leaves when it is gone. It has its
// own root, socket and state, no bridge and no firewall rules. Starts nothing.

import { readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../lib/atomic.ts';
import { isErrno, UserError } from '../../lib/errors.ts';
import { exec } from '../../lib/exec.ts';
import { unmountBelow } from '../../lib/mounts.ts';

/** Up to this version dockerd makes a key, in /etc/docker unless its configuration names another place. */
const LAST_WITH_KEY = 23;

export interface DockerdPaths {
  /** daemon.json: without one of its own dockerd would read the machine's. */
  readonly config: string;
  /** Images and layers. */
  readonly root: string;
  /** Volatile: OCI bundles, network namespaces. Short, since sockets are in it. */
  readonly state: string;
  readonly socket: string;
  readonly pidFile: string;
}

export interface DockerdOptions {
  readonly containerd: string;
  readonly cgroupDriver: 'cgroupfs' | 'systemd';
  /** Of containers that name none; with cgroupfs. */
  readonly cgroupParent: string;
  readonly overlay: boolean;
  /** Containers go on while dockerd is away. */
  readonly liveRestore: boolean;
}

/** The major number in "Docker version 20.10.24+dfsg1, build 5d6db84"; undefined for anything else. Pure. */
export function dockerMajor(text: string): number | undefined {
  const major = /version (\d+)\./.exec(text)?.[1];
  return major === undefined ? undefined : Number(major);
}

/** The installed dockerd's major version. Rejects with UserError when there is none. */
export async function dockerVersion(): Promise<number> {
  try {
    const { stdout } = await exec('dockerd', ['--version']);
    const major = dockerMajor(stdout);
    if (major === undefined)
      throw new UserError(`dockerd --version printed "${stdout.trim()}", which names no version`);
    return major;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) throw new UserError('dockerd is not installed: run "npm run setup"');
    throw error;
  }
}

/** daemon.json: what has no flag. `mirror`: URL of one of docker.io, the only registry that Docker has mirrors of. Pure. */
export function daemonConfig({ root }: Pick<DockerdPaths, 'root'>, major: number, mirror?: string): string {
  const config = {
    ...(major > LAST_WITH_KEY ? {} : { 'deprecated-key-path': join(root, 'key.json') }),
    ...(mirror === undefined ? {} : { 'registry-mirrors': [mirror] }),
  };
  return `${JSON.stringify(config)}\n`;
}

export async function writeDaemonConfig(paths: DockerdPaths, mirror?: string): Promise<void> {
  await writeFileAtomic(paths.config, daemonConfig(paths, await dockerVersion(), mirror));
}

/** What follows the word `dockerd`. Pure. */
export function dockerdArguments(paths: DockerdPaths, options: DockerdOptions): readonly string[] {
  const { containerd, cgroupDriver, cgroupParent, overlay, liveRestore } = options;
  return [
    ...['--config-file', paths.config],
    ...['--data-root', paths.root],
    ...['--exec-root', paths.state],
    ...['--pidfile', paths.pidFile],
    ...['--host', `unix://${paths.socket}`],
    ...['--containerd', containerd],
    ...['--bridge', 'none', '--iptables=false', '--ip6tables=false', '--ip-forward=false', '--ip-masq=false'],
    '--userland-proxy=false',
    ...['--exec-opt', `native.cgroupdriver=${cgroupDriver}`],
    ...(cgroupDriver === 'cgroupfs' ? ['--cgroup-parent', cgroupParent] : []),
    ...['--storage-driver', overlay ? 'overlay2' : 'vfs'],
    ...(liveRestore ? ['--live-restore'] : []),
    ...['--log-level', 'warn'],
  ];
}

async function namesIn(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

/** dockerd's containers end by runc's own records, which takes their cgroups too. The processes are ended before. */
export async function clearDockerState(state: string): Promise<void> {
  const records = join(state, 'runtime-runc');
  for (const namespace of await namesIn(records)) {
    for (const container of await namesIn(join(records, namespace))) {
      await exec('runc', ['--root', join(records, namespace), 'delete', '--force', container], { timeoutMs: 20_000 });
    }
  }
  await unmountBelow([state]);
  // Every dockerd looks for plugins there, and makes the directory.
  for (const directory of ['/run/docker/plugins', '/run/docker']) {
    try {
      await rmdir(directory);
    } catch (error) {
      if (!isErrno(error, 'ENOTEMPTY', 'ENOENT')) throw error;
    }
  }
}
