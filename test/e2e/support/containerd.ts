// A real containerd of a test's own: `startContainerd({ root })`, then `stop()`, after which nothing of it is left
// except what the test itself put under `root`.

import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ContainerdPaths,
  clearContainerd,
  containerdReady,
  type Snapshotter,
  spawnContainerd,
  stopContainerd,
  writeContainerdConfig,
} from '../../../cli/lab/containerd.ts';
import { isAlive } from '../../../lib/processes.ts';
import { expectNoLostShims } from './shims.ts';

export interface StartContainerdOptions {
  /** An existing or new directory of the test's own; containerd's data goes to `<root>/containerd`. */
  readonly root: string;
  /** Default `<root>/cni/net.d`, made empty when missing (the node is then NetworkPluginNotReady). */
  readonly cniConfDir?: string;
  /** Default /usr/lib/cni. */
  readonly cniBinDir?: string;
}

export interface RunningContainerd {
  readonly socket: string;
  readonly pid: number;
  readonly logFile: string;
  readonly paths: ContainerdPaths;
  readonly snapshotter: Snapshotter;
  /** Kills the daemon (SIGKILL) and starts it again on the same state; shims and containers live on. */
  restart(): Promise<void>;
  /** SIGKILL, without any cleaning; `restart` or `stop` may follow. */
  kill(): Promise<void>;
  /** Stops and removes sandboxes, shims, mounts and all of containerd's data. Idempotent. */
  stop(): Promise<void>;
}

export function containerdPaths(root: string): ContainerdPaths {
  const run = `/run/nodelet-test/${createHash('sha256').update(root).digest('hex').slice(0, 8)}`;
  return {
    config: join(root, 'containerd', 'config.toml'),
    root: join(root, 'containerd', 'root'),
    state: join(run, 'containerd'),
    socket: join(run, 'containerd.sock'),
    ttrpcSocket: join(run, 'containerd.sock.ttrpc'),
    registryConfigDir: join(root, 'certs.d'),
    logFile: join(root, 'containerd', 'containerd.log'),
    pidFile: join(run, 'containerd.json'),
  };
}

export async function startContainerd(options: StartContainerdOptions): Promise<RunningContainerd> {
  const paths = containerdPaths(options.root);
  const cniConfDir = options.cniConfDir ?? join(options.root, 'cni', 'net.d');
  await mkdir(cniConfDir, { recursive: true });
  // A run that was killed may have left its daemon behind.
  await clearContainerd(paths);
  const snapshotter = await writeContainerdConfig({
    paths,
    cniConfDir,
    cniBinDir: options.cniBinDir ?? '/usr/lib/cni',
  });
  let child = await spawnContainerd(paths);
  let stopped = false;
  let killed = false;
  const kill = async (): Promise<void> => {
    killed = true;
    process.kill(child.id.pid, 'SIGKILL');
    await child.exited;
  };
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    // After a kill it may have lost those that it was starting.
    const looked = killed || !(await isAlive(child.id)) ? undefined : expectNoLostShims(paths.socket);
    const [shims] = await Promise.allSettled([looked]);
    await stopContainerd(paths, child);
    await rm(join(options.root, 'containerd'), { recursive: true, force: true });
    await removeRunDir(paths);
    if (shims.status === 'rejected') throw shims.reason;
  };
  try {
    await containerdReady(paths, child);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    socket: paths.socket,
    get pid() {
      return child.id.pid;
    },
    logFile: paths.logFile,
    paths,
    snapshotter,
    kill,
    restart: async () => {
      if (!stopped) {
        if (await isAlive(child.id)) await kill();
        child = await spawnContainerd(paths);
        await containerdReady(paths, child);
      }
    },
    stop,
  };
}

async function removeRunDir(paths: ContainerdPaths): Promise<void> {
  const run = join(paths.socket, '..');
  await rm(run, { recursive: true, force: true });
}
