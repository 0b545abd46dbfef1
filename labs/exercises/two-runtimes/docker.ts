// The Docker Engine of the exercise: a dockerd on the lab's containerd, and `nodelet dockershim` on it. Both are started when the
// exercise begins and end with it.

import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createCriClient } from '../../../agent/runtime/grpc-cri-client.ts';
import { releaseAllAttachments } from '../../../cni/cleanup.ts';
import { systemClock } from '../../../lib/clock.ts';
import { endProcess } from '../../../lib/end-process.ts';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import { listProcesses } from '../../../lib/processes.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { poll } from '../../../lib/retry.ts';
import { Tracer } from '../../../lib/trace.ts';
import {
  clearDockerState,
  type DockerdPaths,
  dockerdArguments,
  dockerVersion,
  writeDaemonConfig,
} from '../../docker/dockerd.ts';
import type { Ground } from '../model.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
/** For giving up only. ms */
const READY_MS = 120_000;
const LOOK_MS = 50;
/** dockerd gives its containers a second of their own. ms */
const STOP_MS = 20_000;

export interface ExerciseDocker extends DockerdPaths {
  readonly directory: string;
  readonly shimSocket: string;
  readonly cniCacheDir: string;
  readonly oomDir: string;
}

export function dockerOf({ directory, runDir }: Pick<Ground, 'directory' | 'runDir'>): ExerciseDocker {
  const own = join(directory, 'docker');
  // Sockets have short paths.
  const state = join(runDir, 'two-runtimes');
  return {
    directory: own,
    config: join(own, 'daemon.json'),
    root: join(own, 'root'),
    state,
    socket: join(state, 'docker.sock'),
    pidFile: join(state, 'docker.pid'),
    shimSocket: join(state, 'dockershim.sock'),
    cniCacheDir: join(own, 'cni'),
    oomDir: join(own, 'oom'),
  };
}

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly logFile: string;
}

/** In the background, with its output in a file. */
function launch({ command, args, logFile }: Program, { environment: env }: Ground): void {
  const log = openSync(logFile, 'a', 0o640);
  try {
    const child = spawn(command, [...args], { detached: true, env: { ...env }, stdio: ['ignore', log, log] });
    // That it does not serve is found by waiting for it.
    child.on('error', () => undefined);
    child.unref();
  } finally {
    closeSync(log);
  }
}

/** Whether the lab's containerd has overlayfs: on a file system without it dockerd has to copy as well. */
async function hasOverlay({ root }: Ground): Promise<boolean> {
  return (await readFile(join(root, 'containerd/config.toml'), 'utf8')).includes('"overlayfs"');
}

function shimOf(docker: ExerciseDocker, ground: Ground): Pick<Program, 'command' | 'args'> {
  const args = [
    'dockershim',
    ...['--docker', `unix://${docker.socket}`, '--listen', `unix://${docker.shimSocket}`],
    ...['--cni-conf-dir', ground.cniConfDir, '--cni-bin-dir', ground.cniBinDir],
    ...['--cni-cache-dir', docker.cniCacheDir],
    ...['--oom-dir', docker.oomDir],
  ];
  return { command: NODELET, args };
}

/** Resolves when the shim serves CRI. Rejects with UserError where it does not come to that. */
export async function startDocker(ground: Ground): Promise<void> {
  await dockerVersion();
  const docker = dockerOf(ground);
  await mkdir(docker.directory, { recursive: true });
  await mkdir(docker.state, { recursive: true, mode: 0o711 });
  await writeDaemonConfig(docker);
  const args = dockerdArguments(docker, {
    containerd: ground.runtimeSocket,
    cgroupDriver: ground.cgroupDriver,
    cgroupParent: join(ground.cgroupRoot, 'two-runtimes/docker'),
    overlay: await hasOverlay(ground),
    liveRestore: false,
  });
  const dockerd = { command: 'dockerd', args: [...args, '--shutdown-timeout', '1'] };
  launch({ ...dockerd, logFile: join(docker.directory, 'dockerd.log') }, ground);
  launch({ ...shimOf(docker, ground), logFile: join(docker.directory, 'dockershim.log') }, ground);
  const cri = dockerCri(ground);
  let problem = '';
  const serves = async (): Promise<boolean> => {
    try {
      await cri.call('Version', {});
      return true;
    } catch (error) {
      problem = errorMessage(error);
      return false;
    }
  };
  const is = await poll(serves, { clock: systemClock, everyMs: LOOK_MS, limitMs: READY_MS });
  cri.close();
  if (!is) throw new UserError(`Docker does not serve CRI: ${problem}; see the logs in ${docker.directory}`);
}

/** Its connection has to be closed. */
export function dockerCri(ground: Pick<Ground, 'directory' | 'runDir'>) {
  const endpoint = `unix://${dockerOf(ground).shimSocket}`;
  return createCriClient(endpoint, endpoint, new Tracer());
}

/** The daemon, what its pods have of the network, and its files. The shim has ended with the exercise's other programs. */
export async function removeDocker(ground: Ground): Promise<void> {
  const docker = dockerOf(ground);
  const daemons = (await listProcesses()).filter(
    ({ comm, argv }) => comm === 'dockerd' && argv.includes(docker.config),
  );
  await Promise.all(daemons.map((entry) => endProcess(entry, systemClock, STOP_MS)));
  const report = await releaseAllAttachments({
    cacheDir: docker.cniCacheDir,
    binDirs: [ground.cniBinDir],
    tracer: new Tracer(),
    clock: systemClock,
  });
  await clearDockerState(docker.state);
  await removeTree(docker.state);
  const [failure] = report.failures;
  if (failure !== undefined) throw failure;
}
