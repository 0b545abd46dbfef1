// A private dockerd for a lab with --runtime docker: its own root, socket and state, on the lab's own containerd, without a
// bridge and without firewall rules. Starts it, puts images into it, and takes down what is left of one.

import { readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { BuiltImage } from '../../labs/images/build.ts';
import { dockerArchive } from '../../labs/images/docker-archive.ts';
import { writeFileAtomic } from '../../lib/atomic.ts';
import { isErrno, UserError } from '../../lib/errors.ts';
import { exec } from '../../lib/exec.ts';
import { unmountBelow } from '../../lib/mounts.ts';
import { Tracer } from '../../lib/trace.ts';
import type { Snapshotter } from './containerd.ts';
import type { LabPaths } from './paths.ts';
import type { Program } from './programs.ts';
import type { LabState } from './state.ts';

/** Up to this version dockerd makes a key, in /etc/docker unless its configuration names another place. */
const LAST_WITH_KEY = 23;

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

/** daemon.json: what has no flag. Without one of its own dockerd would read the machine's. Pure. */
export function daemonConfig(paths: LabPaths, major: number): string {
  const config = major > LAST_WITH_KEY ? {} : { 'deprecated-key-path': join(paths.docker.root, 'key.json') };
  return `${JSON.stringify(config)}\n`;
}

export async function writeDockerConfig(paths: LabPaths): Promise<void> {
  await writeFileAtomic(paths.docker.config, daemonConfig(paths, await dockerVersion()));
}

/** `cgroup`: the highest that is the lab's alone, for containers that name none. Pure. */
export function dockerdProgram(paths: LabPaths, state: LabState, snapshotter: Snapshotter, cgroup: string): Program {
  const driver = state.cgroupDriver ?? 'cgroupfs';
  const { docker, containerd } = paths;
  return {
    // The kernel ends it with the lab's process; the pods stay.
    command: 'setpriv',
    args: [
      ...['--pdeathsig', 'TERM', 'dockerd'],
      ...['--config-file', docker.config],
      ...['--data-root', docker.root],
      ...['--exec-root', docker.state],
      ...['--pidfile', docker.pidFile],
      ...['--host', `unix://${docker.socket}`],
      ...['--containerd', containerd.socket],
      ...['--bridge', 'none', '--iptables=false', '--ip6tables=false', '--ip-forward=false', '--ip-masq=false'],
      '--userland-proxy=false',
      ...['--exec-opt', `native.cgroupdriver=${driver}`],
      ...(driver === 'cgroupfs' ? ['--cgroup-parent', `${cgroup}/docker`] : []),
      ...['--storage-driver', snapshotter === 'overlayfs' ? 'overlay2' : 'vfs'],
      '--live-restore',
      ...['--log-level', 'warn'],
    ],
  };
}

/** Puts an image that was built here into the lab's dockerd, under all its names. */
export async function loadIntoDocker(paths: LabPaths, image: BuiltImage): Promise<void> {
  const archive = dockerArchive(await readFile(image.archive), image.names);
  // Only a lab with Docker loads its client, which takes as long as all else that a lab's start imports.
  const { Engine } = await import('../../dockershim/engine.ts');
  const engine = new Engine(paths.docker.socket, new Tracer());
  await engine.call('ImageLoad', { names: image.names }, async (docker) => {
    const progress = await docker.loadImage(Readable.from([archive]), { quiet: true });
    let text = '';
    for await (const chunk of progress) text += chunk.toString();
    if (/"error"/.test(text)) throw new Error(`Docker cannot load ${image.names.join(', ')}: ${text.trim()}`);
  });
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
export async function clearDocker(paths: LabPaths): Promise<void> {
  const records = join(paths.docker.state, 'runtime-runc');
  for (const namespace of await namesIn(records)) {
    for (const container of await namesIn(join(records, namespace))) {
      await exec('runc', ['--root', join(records, namespace), 'delete', '--force', container], { timeoutMs: 20_000 });
    }
  }
  await unmountBelow([paths.docker.state]);
  // Every dockerd looks for plugins there, and makes the directory.
  for (const directory of ['/run/docker/plugins', '/run/docker']) {
    try {
      await rmdir(directory);
    } catch (error) {
      if (!isErrno(error, 'ENOTEMPTY', 'ENOENT')) throw error;
    }
  }
}
