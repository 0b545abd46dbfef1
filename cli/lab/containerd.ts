// A private containerd: its own configuration, sockets, state and runc directory, next to whatever else runs on the
// machine. Starts it, waits until it serves CRI, and takes it down with everything that hangs on it: sandboxes,
// shims, containers, mounts. Works on what an earlier one left behind, too.

import { existsSync } from 'node:fs';
import { access, mkdir, readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { abortable } from '../../lib/abort.ts';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { endProcess } from '../../lib/end-process.ts';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import { exec } from '../../lib/exec.ts';
import { unmountBelow } from '../../lib/mounts.ts';
import { listProcesses, type ProcessEntry } from '../../lib/processes.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { retry, steadyPauses } from '../../lib/retry.ts';
import { Tracer } from '../../lib/trace.ts';
import { removeDeadSockets } from '../../lib/unix-socket.ts';
import { watchDirectory } from '../../lib/watch-directory.ts';
import { loadProto } from '../../proto/load.ts';
import { GrpcError, type UnaryCaller, unaryCaller } from '../../proto/unary.ts';
import { type Child, readPidFile, removePidFile, startChild } from './child.ts';
import {
  type ContainerdVersion,
  hasSysResource,
  parseContainerdVersion,
  renderContainerdConfig,
} from './containerd-config.ts';
import type { Program } from './programs.ts';

const PAUSE_IMAGE = 'registry.k8s.io/pause:3.9';
/** For giving up only: an emulated machine is twenty times slower than a real one. */
const START_DEADLINE_MS = 180_000;
const STOP_GRACE_MS = 5_000;

export interface ContainerdPaths {
  readonly config: string;
  readonly root: string;
  readonly state: string;
  readonly socket: string;
  readonly ttrpcSocket: string;
  readonly registryConfigDir: string;
  readonly logFile: string;
  readonly pidFile: string;
}

export interface ContainerdOptions {
  readonly paths: ContainerdPaths;
  readonly cniConfDir: string;
  readonly cniBinDir: string;
  readonly cgroupDriver?: 'cgroupfs' | 'systemd';
  readonly sandboxImage?: string;
  readonly clock?: Clock;
}

/** The state directory that a lab's containerd passes to runc. */
export function runcRoot(paths: Pick<ContainerdPaths, 'state'>): string {
  return join(paths.state, 'runc');
}

/** The installed containerd's version. Rejects with UserError when there is none. */
export async function containerdVersion(): Promise<ContainerdVersion> {
  let output: string;
  try {
    output = (await exec('containerd', ['--version'])).stdout;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) throw new UserError('containerd is not installed: run "npm run setup"');
    throw error;
  }
  const version = parseContainerdVersion(output);
  if (version === undefined)
    throw new UserError(`containerd --version printed "${output.trim()}", which names no version`);
  return version;
}

/** Mounts an overlay to see whether it can be done here: it cannot on top of another overlay, or without the module. */
async function overlayWorks(directory: string): Promise<boolean> {
  const probe = join(directory, 'overlay-probe');
  const [lower, upper, work, merged] = ['lower', 'upper', 'work', 'merged'].map((name) => join(probe, name));
  for (const path of [lower, upper, work, merged]) await mkdir(path ?? probe, { recursive: true });
  const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
  const mounted = await exec('mount', ['-t', 'overlay', '-o', options, 'overlay', merged ?? probe]);
  await unmountBelow([probe]);
  await removeTree(probe);
  return mounted.code === 0;
}

export type Snapshotter = 'overlayfs' | 'native';

/** Writes config.toml for the containerd that is installed, and the directories it names. Returns its snapshotter. */
export async function writeContainerdConfig(options: ContainerdOptions): Promise<Snapshotter> {
  const { paths } = options;
  const { registryConfigDir } = paths;
  await mkdir(paths.root, { recursive: true, mode: 0o711 });
  await mkdir(paths.state, { recursive: true, mode: 0o711 });
  await mkdir(registryConfigDir, { recursive: true });
  const snapshotter = (await overlayWorks(paths.root)) ? 'overlayfs' : 'native';
  const text = renderContainerdConfig({
    version: await containerdVersion(),
    root: paths.root,
    state: paths.state,
    socket: paths.socket,
    ttrpcSocket: paths.ttrpcSocket,
    runcRoot: runcRoot(paths),
    sandboxImage: options.sandboxImage ?? PAUSE_IMAGE,
    cniConfDir: options.cniConfDir,
    cniBinDir: options.cniBinDir,
    cgroupDriver: options.cgroupDriver ?? 'cgroupfs',
    snapshotter,
    restrictOomScoreAdj: !hasSysResource(await readFile('/proc/self/status', 'utf8')),
    registryConfigDir,
  });
  await writeFileAtomic(paths.config, text);
  return snapshotter;
}

/**
 * Starts containerd on a configuration that is written. Resolves when the process runs, not when it serves. With
 * `endsWithUs` the kernel ends it when this process is gone; its shims, and so the pods, stay.
 * `wrap` puts another program before it, which ends by executing it.
 */
export async function spawnContainerd(
  paths: ContainerdPaths,
  env?: Readonly<Record<string, string | undefined>>,
  endsWithUs = false,
  wrap: (program: Program) => Program = (program) => program,
): Promise<Child> {
  await mkdir(dirname(paths.socket), { recursive: true, mode: 0o711 });
  // A dead daemon's socket would be taken for the new one's.
  await rm(paths.socket, { force: true });
  const program = {
    command: endsWithUs ? 'setpriv' : 'containerd',
    args: [...(endsWithUs ? ['--pdeathsig', 'TERM', 'containerd'] : []), '--config', paths.config],
  };
  return startChild({
    ...wrap(program),
    logFile: paths.logFile,
    pidFile: paths.pidFile,
    ...(env === undefined ? {} : { env }),
  });
}

/** Resolves when the socket exists: its directory is watched. */
async function socketAppears(socket: string, signal: AbortSignal, clock: Clock): Promise<void> {
  const { promise: seen, resolve, reject } = Promise.withResolvers<void>();
  const changed = (name: string | null): void => {
    // Without a name (polling) the directory is checked.
    if (name === basename(socket) || (name === null && existsSync(socket))) resolve();
  };
  const watcher = watchDirectory(dirname(socket), { changed, failed: reject, clock, pollMs: 50 });
  try {
    try {
      await access(socket);
      // The rejection of the promise that loses the race is ignored.
      seen.catch(() => undefined);
    } catch (error) {
      if (!isErrno(error, 'ENOENT')) throw error;
      await abortable(seen, signal);
    }
  } finally {
    watcher.close();
  }
}

/** A CRI client for the lab's own needs, closed after use. */
async function withCri<T>(
  socket: string,
  body: (client: CriClient, call: UnaryCaller) => Promise<T>,
  tracer = new Tracer(),
): Promise<T> {
  const { RuntimeService } = loadProto('cri').runtime.v1;
  // A connection of its own, tried again soon: the shared pool backs off from a dead daemon for a second.
  const client = new RuntimeService(`unix://${socket}`, credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.initial_reconnect_backoff_ms': 50,
  });
  try {
    return await body(client, unaryCaller(tracer, 'cri'));
  } finally {
    client.close();
  }
}
type CriClient = InstanceType<ReturnType<typeof loadProto<'cri'>>['runtime']['v1']['RuntimeService']>;

/** Resolves when CRI answers. Rejects, with the log's last words, when containerd ends or takes too long. */
export function containerdReady(paths: ContainerdPaths, child: Child, clock: Clock = systemClock): Promise<void> {
  return criReady('containerd', paths, child, clock);
}

/** The same for any runtime. `name`: what its process is called. */
export async function criReady(
  name: string,
  paths: Pick<ContainerdPaths, 'socket' | 'logFile'>,
  child: Child,
  clock: Clock,
): Promise<void> {
  const stop = new AbortController();
  const timer = clock.after(START_DEADLINE_MS, () =>
    stop.abort(new Error(`${name} does not answer on ${paths.socket} after ${START_DEADLINE_MS / 1000} s`)),
  );
  void child.exited.then((exit) => stop.abort(new Error(`${name} ended (${exit.code ?? exit.signal}) while starting`)));
  try {
    await socketAppears(paths.socket, stop.signal, clock);
    await withCri(paths.socket, async (client, call) => {
      const { signal } = stop;
      const ask = async (): Promise<void> => {
        signal.throwIfAborted();
        try {
          await call(client, 'Version', {}, { deadlineMs: 5_000, signal });
        } catch (error) {
          if (!(error instanceof GrpcError) || error.code !== 'UNIMPLEMENTED') throw error;
          throw new Error(`${name} runs without its CRI plugin`, { cause: error });
        }
      };
      // Listening comes before the CRI plugin has read its state back.
      const mends = (error: unknown): boolean => error instanceof GrpcError;
      await retry(ask, { clock, policy: steadyPauses(15), mends, signal });
    });
  } catch (error) {
    throw new Error(`${errorMessage(error)}; ${paths.logFile} ends with:\n${await tail(paths.logFile, 5)}`);
  } finally {
    timer.cancel();
  }
}

async function tail(file: string, lines: number): Promise<string> {
  return (await readFile(file, 'utf8')).trimEnd().split('\n').slice(-lines).join('\n');
}

/**
 * Stops and removes every sandbox through a serving containerd, CNI included. Failures are returned as text: the caller
 * continues with `clearContainerd`, which needs no running containerd.
 */
export async function removeSandboxes(socket: string): Promise<readonly string[]> {
  return withCri(socket, async (client, call) => {
    const problems: string[] = [];
    const attempt = async (work: Promise<unknown>): Promise<void> => {
      try {
        await work;
      } catch (error) {
        if (!(error instanceof GrpcError)) throw error;
        problems.push(`${error.method}: ${error.message}`);
      }
    };
    let items: readonly { readonly id: string }[];
    try {
      items = (await call(client, 'ListPodSandbox', {}, { deadlineMs: 5_000 })).items;
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      return [`${error.method}: ${error.message}`];
    }
    await Promise.all(
      items.map(async ({ id }) => {
        await attempt(call(client, 'StopPodSandbox', { pod_sandbox_id: id }, { deadlineMs: 20_000 }));
        await attempt(call(client, 'RemovePodSandbox', { pod_sandbox_id: id }, { deadlineMs: 10_000 }));
      }),
    );
    return problems;
  });
}

/** Shims of exactly this containerd, whatever their parent is now. */
function isShimOf(socket: string, entry: ProcessEntry): boolean {
  const command = entry.argv[0];
  if (command === undefined || !basename(command).startsWith('containerd-shim')) return false;
  const at = entry.argv.indexOf('-address');
  return at >= 0 && entry.argv[at + 1] === socket;
}

async function readDirectory(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

export interface ClearOptions {
  readonly child?: Child;
  /** Which daemon without a pid file may be ended; by default any that has this configuration. */
  readonly isOwn?: (entry: ProcessEntry) => boolean;
  /** By default the volatile state and the data. */
  readonly mountsBelow?: readonly string[];
}

/**
 * Takes down what is left of a containerd, from any state: the daemon, its containers (by runc's own records, which
 * takes their cgroups too), its shims, its mounts, its sockets and volatile state. Idempotent. Persistent data stays.
 */
export async function clearContainerd(
  paths: ContainerdPaths,
  clock: Clock = systemClock,
  options: ClearOptions = {},
): Promise<void> {
  const { child, isOwn = () => true, mountsBelow = [paths.state, paths.root] } = options;
  const id = child?.id ?? (await readPidFile(paths.pidFile));
  if (id !== undefined) await endProcess(id, clock, STOP_GRACE_MS, child?.exited);
  // One that lost its pid file is known by its configuration.
  for (const entry of await listProcesses()) {
    const at = entry.argv.indexOf('--config');
    if (entry.comm === 'containerd' && at > 0 && entry.argv[at + 1] === paths.config && isOwn(entry)) {
      await endProcess(entry, clock, STOP_GRACE_MS);
    }
  }
  const records = runcRoot(paths);
  for (const namespace of await readDirectory(records)) {
    for (const container of await readDirectory(join(records, namespace))) {
      await exec('runc', ['--root', join(records, namespace), 'delete', '--force', container], { timeoutMs: 20_000 });
    }
  }
  const shims = (await listProcesses()).filter((entry) => isShimOf(paths.socket, entry));
  await Promise.all(shims.map((shim) => endProcess(shim, clock, 1_000)));
  const addresses = await shimSockets(paths.state);
  await unmountBelow(mountsBelow);
  await removeTree(paths.state);
  for (const socket of [paths.socket, paths.ttrpcSocket, ...addresses]) await rm(socket, { force: true });
  // Of a shim whose bundle containerd has removed, or whose start was given up, no file names the socket.
  await removeDeadSockets(SHIM_SOCKETS, clock);
  await removePidFile(paths.pidFile);
  // Beside another lab's containerd they stay: its next shim may use a directory that is empty now.
  if (!(await listProcesses()).some(isOurs)) await removeIfEmpty(SHIM_DIRECTORIES);
}

/** A containerd that was started on a configuration of this file's making. */
function isOurs(entry: ProcessEntry): boolean {
  const config = entry.argv[entry.argv.indexOf('--config') + 1] ?? '';
  return entry.comm === 'containerd' && /\/containerd\/config\.toml$/.test(config) && !config.startsWith('/etc/');
}

/** Shims keep their sockets here, wherever their containerd lives. */
const SHIM_SOCKETS = '/run/containerd/s';
/** Innermost first. */
const SHIM_DIRECTORIES = [SHIM_SOCKETS, '/run/containerd/fifo', '/run/containerd'];

/** The sockets of shims, which a killed one leaves behind; each bundle names its own. */
async function shimSockets(state: string): Promise<readonly string[]> {
  const tasks = join(state, 'io.containerd.runtime.v2.task');
  const found: string[] = [];
  for (const namespace of await readDirectory(tasks)) {
    for (const bundle of await readDirectory(join(tasks, namespace))) {
      // `address` up to 1.7, bootstrap.json ({"address": …}) from 2.0.
      for (const file of ['address', 'bootstrap.json']) {
        const text = await readFileIfExists(join(tasks, namespace, bundle, file));
        const match = /unix:\/\/(\/run\/containerd\/s\/[0-9a-f]+)/.exec(text ?? '');
        if (match?.[1] !== undefined) found.push(match[1]);
      }
    }
  }
  return found;
}

/** Removes directories that are empty. */
async function removeIfEmpty(directories: readonly string[]): Promise<void> {
  for (const directory of directories) {
    try {
      await rmdir(directory);
    } catch (error) {
      if (!isErrno(error, 'ENOTEMPTY', 'ENOENT')) throw error;
    }
  }
}

/** Stops a running containerd in order: sandboxes first, then the daemon, then what is left. */
export async function stopContainerd(paths: ContainerdPaths, child: Child, clock: Clock = systemClock): Promise<void> {
  await removeSandboxes(paths.socket);
  await clearContainerd(paths, clock, { child });
}
