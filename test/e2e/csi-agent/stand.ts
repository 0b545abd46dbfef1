// A real driver, a proxy before it, one or more agents' volumes in processes of their own, and a list of what the machine
// has left of it all.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createLinuxMounter } from '../../../agent/volumes/linux-mounter.ts';
import type { Pod } from '../../../client/types.ts';
import { type CsiClient, connectCsi } from '../../../csi/client.ts';
import { type RunningDriver, startDriver } from '../../../csi/driver/main.ts';
import { DRIVER_NAME, TOPOLOGY_KEY } from '../../../csi/driver/names.ts';
import { mountsUnder } from '../../../lib/mountinfo.ts';
import { Tracer } from '../../../lib/trace.ts';
import { CsiProxy } from './proxy.ts';
import type { World } from './volumes-process.ts';

/** For giving up only. */
const WAIT_MS = 120_000;
const mounter = createLinuxMounter({ tracer: new Tracer() });

/** The agent's volumes, as a process. */
export class Agent {
  readonly lines: string[] = [];
  readonly #process: ChildProcess;
  readonly #exited: Promise<void>;
  #changed: () => void = () => undefined;

  constructor(rootDir: string) {
    const script = new URL('volumes-process.ts', import.meta.url).pathname;
    this.#process = spawn(process.execPath, [script, rootDir], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#exited = new Promise((resolve) => this.#process.once('exit', () => resolve()));
    if (this.#process.stdout === null) throw new Error('no stdout');
    createInterface(this.#process.stdout).on('line', (line) => {
      this.lines.push(line);
      this.#changed();
    });
  }

  tell(line: string): void {
    this.#process.stdin?.write(`${line}\n`);
  }

  /** The first line that matches; rejects when it does not come. */
  async says(pattern: RegExp): Promise<string> {
    const deadline = Date.now() + WAIT_MS;
    for (;;) {
      const found = this.lines.find((line) => pattern.test(line));
      if (found !== undefined) return found;
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`no line ${pattern}; there were:\n${this.lines.join('\n')}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#changed = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exited;
  }
}

export class Stand {
  readonly rootDir: string;
  readonly proxy: CsiProxy;
  readonly driver: CsiClient;
  readonly #running: RunningDriver;
  readonly #agents: Agent[] = [];

  private constructor(rootDir: string, proxy: CsiProxy, driver: CsiClient, running: RunningDriver) {
    this.rootDir = rootDir;
    this.proxy = proxy;
    this.driver = driver;
    this.#running = running;
  }

  static async create(): Promise<Stand> {
    const rootDir = await realpath(await mkdtemp(join(tmpdir(), 'nodelet-csi-agent-')));
    const endpoint = `unix://${rootDir}/driver.sock`;
    const options = { endpoint, stateDir: join(rootDir, 'driver'), nodeId: 'node-1', peerNodes: [], maxVolumes: 16 };
    const running = await startDriver({ ...options, attach: false, mountGroup: false }, () => undefined);
    const proxy = new CsiProxy(DRIVER_NAME, endpoint);
    await mkdir(join(rootDir, 'plugins_registry'));
    await proxy.listen(join(rootDir, 'proxy.sock'), join(rootDir, 'plugins_registry/proxy.sock'));
    return new Stand(rootDir, proxy, connectCsi(endpoint), running);
  }

  /** Makes the volumes at the driver, and the objects that pods find them by. */
  async provide(
    pods: readonly Pod[],
    claims: readonly {
      readonly name: string;
      readonly block?: boolean;
      readonly accessModes?: readonly string[];
      readonly fsType?: string;
    }[],
    driverSpec: NonNullable<World['driverSpec']> = {},
  ): Promise<void> {
    const volumes: World['volumes'][number][] = [];
    const made: World['claims'][number][] = [];
    for (const { name, block = false, accessModes = ['ReadWriteOnce'], fsType = 'ext4' } of claims) {
      const mode = { mode: 'SINGLE_NODE_WRITER' } as const;
      const { volume } = await this.driver.controller.CreateVolume({
        name: `pvc-${name}`,
        capacity_range: { required_bytes: String(64 * 1024 * 1024) },
        volume_capabilities: [
          block
            ? { access_type: 'block', block: {}, access_mode: mode }
            : { access_type: 'mount', mount: { fs_type: 'ext4' }, access_mode: mode },
        ],
        accessibility_requirements: { requisite: [{ segments: { [TOPOLOGY_KEY]: 'node-1' } }] },
      });
      const meta = (of: string) => ({ name: of, uid: `uid-of-${of}`, resourceVersion: '1' });
      volumes.push({
        metadata: meta(`pv-${name}`),
        spec: {
          accessModes: [...accessModes],
          capacity: { storage: '64Mi' },
          volumeMode: block ? 'Block' : 'Filesystem',
          claimRef: { uid: `uid-of-${name}` },
          csi: {
            driver: DRIVER_NAME,
            volumeHandle: volume?.volume_id ?? '',
            fsType: block ? '' : fsType,
            volumeAttributes: volume?.volume_context ?? {},
          },
        },
      });
      made.push({
        metadata: { ...meta(name), namespace: 'demo' },
        spec: { volumeName: `pv-${name}`, resources: { requests: { storage: '64Mi' } } },
        status: { phase: 'Bound', capacity: { storage: '64Mi' } },
      });
    }
    const world: World = { pods, claims: made, volumes, driver: DRIVER_NAME, driverSpec };
    await writeFile(join(this.rootDir, 'world.json'), JSON.stringify(world));
  }

  async agent(): Promise<Agent> {
    const agent = new Agent(this.rootDir);
    this.#agents.push(agent);
    await agent.says(/^ready$/);
    return agent;
  }

  async mounts(): Promise<readonly string[]> {
    return mountsUnder(await mounter.list(), this.rootDir).map(({ path }) => path.slice(this.rootDir.length));
  }

  /** Loop devices whose file is below this stand's directory. */
  async loops(): Promise<readonly string[]> {
    const found: string[] = [];
    for (const name of await readdir('/sys/block')) {
      const file = await readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => '');
      if (file.startsWith(this.rootDir)) found.push(`${name} ${file.trim()}`);
    }
    return found;
  }

  /** Files and directories of the agent that are left, its fixed places aside. */
  async leftovers(): Promise<readonly string[]> {
    const entries = await readdir(this.rootDir, { recursive: true });
    return entries.filter((path) =>
      /^(pods\/.|plugins\/kubernetes\.io\/csi\/.*(vol_data|globalmount|dev\/|publish\/.*\/|staging\/))/.test(path),
    );
  }

  async close(): Promise<void> {
    for (const agent of this.#agents) await agent.kill();
    await this.proxy.quiet();
    this.proxy.close();
    this.driver.close();
    await this.#running.stop();
    const left = mountsUnder(await mounter.list(), this.rootDir);
    for (const { path } of left) await mounter.unmount(path);
    await rm(this.rootDir, { recursive: true, force: true });
  }
}
