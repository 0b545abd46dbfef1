// A `nodelet csi-driver` of a test's own: started, killed, started again, and taken down so that no mount and no loop device
// of it is left.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { detachLoopsBelow, thawBelow } from '../../../cli/lab/loops.ts';
import { type CsiClient, connectCsi } from '../../../csi/client.ts';
import { type LoopDevice, listLoopDevices } from '../../../csi/driver/loop-devices.ts';
import type { Mount } from '../../../csi/driver/mounts.ts';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import { readMounts, unmountBelow } from '../../../lib/mounts.ts';
import type { Volume__Output } from '../../../proto/gen/csi/v1/Volume.ts';
import type { VolumeCapability } from '../../../proto/gen/csi/v1/VolumeCapability.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));

export const MiB = 1024 * 1024;
const GIVE_UP_MS = 120_000;

export interface Call {
  readonly method: string;
  readonly request: Record<string, unknown>;
  readonly code: string;
}

export class TestDriver {
  readonly root: string;
  readonly socket: string;
  readonly endpoint: string;
  readonly #flags: readonly string[];
  #process: ChildProcess | undefined;
  #client: CsiClient | undefined;

  private constructor(root: string, flags: readonly string[]) {
    this.root = root;
    this.socket = join(root, 'csi.sock');
    this.endpoint = `unix://${this.socket}`;
    this.#flags = flags;
  }

  static async start(...flags: string[]): Promise<TestDriver> {
    const driver = new TestDriver(await mkdtemp(join(tmpdir(), 'nodelet-csi-')), flags);
    await driver.run();
    return driver;
  }

  /** The same, after `prepare` has had its way with the empty root. */
  static async startOn(prepare: (root: string) => Promise<void>): Promise<TestDriver> {
    const driver = new TestDriver(await mkdtemp(join(tmpdir(), 'nodelet-csi-')), []);
    await prepare(driver.root);
    await driver.run();
    return driver;
  }

  get client(): CsiClient {
    if (this.#client === undefined) throw new Error('the driver does not run');
    return this.#client;
  }
  get stateDir(): string {
    return join(this.root, 'state');
  }
  get log(): string {
    return join(this.root, 'log');
  }

  /** Starts the process; resolves when it serves. */
  async run(): Promise<void> {
    const args = ['csi-driver', '--endpoint', this.endpoint, '--state-dir', this.stateDir, '--node-id', 'this-node'];
    const more = ['--call-log', join(this.root, 'calls'), '--faults', join(this.root, 'faults.json')];
    const child = spawn(NODELET, [...args, ...more, ...this.#flags], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    this.#process = child;
    const deadline = Date.now() + GIVE_UP_MS;
    while (!output.includes('serves')) {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the driver ended: ${output}`);
      if (Date.now() > deadline) throw new Error(`the driver does not serve: ${output}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    this.#client = connectCsi(this.endpoint);
    await this.#client.identity.Probe({});
  }

  /** Resolves with the exit code, or the signal's name. */
  async end(signal: NodeJS.Signals): Promise<number | string | null> {
    this.#client?.close();
    this.#client = undefined;
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined) return null;
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      child.kill(signal);
      await exited;
    }
    return child.exitCode ?? child.signalCode;
  }

  async restart(): Promise<void> {
    await this.end('SIGKILL');
    await this.run();
  }

  /** Rules for calls from now on (csi/driver/faults.ts). */
  async faults(...rules: readonly Record<string, unknown>[]): Promise<void> {
    await writeFileAtomic(join(this.root, 'faults.json'), JSON.stringify(rules));
  }

  async calls(): Promise<readonly Call[]> {
    const file = join(this.root, 'calls');
    if (!existsSync(file)) return [];
    return (await readFile(file, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  }

  async directory(name: string): Promise<string> {
    const path = join(this.root, name);
    await mkdir(path, { recursive: true });
    return path;
  }

  /** A device that another process has open, as udev a new one, goes a moment after it was detached: waited for. */
  async loops(): Promise<readonly LoopDevice[]> {
    const deadline = performance.now() + GIVE_UP_MS;
    for (;;) {
      const own = (await listLoopDevices()).filter((loop) => loop.image.startsWith(`${this.root}/`));
      if (!own.some((loop) => loop.autoclear) || performance.now() > deadline) return own;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  async mounts(): Promise<readonly Mount[]> {
    return (await readMounts()).filter((mount) => mount.path.startsWith(`${this.root}/`));
  }

  /** Ends the driver and removes everything of it. Rejects when the driver itself had left something. */
  async remove(): Promise<void> {
    await this.end('SIGTERM');
    const left = [
      ...(await this.mounts()).map((mount) => mount.path),
      ...(await this.loops()).map((loop) => loop.device),
    ];
    await thawBelow(this.root);
    await unmountBelow([this.root]);
    await detachLoopsBelow(this.root);
    await rm(this.root, { recursive: true, force: true });
    if (left.length > 0) throw new Error(`the driver left ${left.join(', ')}`);
  }
}

export const CAPABILITY: VolumeCapability = {
  access_mode: { mode: 'SINGLE_NODE_MULTI_WRITER' },
  mount: { fs_type: 'ext4' },
};

let sequence = 0;

/** A volume, and the calls of its life with their arguments filled in. */
export class TestVolume {
  readonly driver: TestDriver;
  readonly name: string;
  readonly capability: VolumeCapability;
  readonly bytes: number;
  readonly staging: string;
  readonly target: string;
  volume: Volume__Output | undefined;

  /** `root`: how requests name the driver's directory. */
  constructor(driver: TestDriver, capability: VolumeCapability = CAPABILITY, bytes = 64 * MiB, root = driver.root) {
    this.driver = driver;
    this.capability = capability;
    this.bytes = bytes;
    this.name = `volume-${++sequence}`;
    this.staging = join(root, this.name, 'staging');
    this.target = join(root, this.name, 'target');
  }

  get id(): string {
    return this.made.volume_id;
  }
  get made(): Volume__Output {
    if (this.volume === undefined) throw new Error('the volume is not made yet');
    return this.volume;
  }
  get common() {
    return {
      volume_id: this.id,
      volume_context: this.made.volume_context,
      staging_target_path: this.staging,
      volume_capability: this.capability,
    };
  }

  async create(): Promise<void> {
    await mkdir(this.staging, { recursive: true });
    const answer = await this.driver.client.controller.CreateVolume({
      name: this.name,
      volume_capabilities: [this.capability],
      capacity_range: { required_bytes: this.bytes },
    });
    this.volume = answer.volume ?? undefined;
  }
  async stage(): Promise<void> {
    await this.driver.client.node.NodeStageVolume(this.common);
  }
  async publish(target = this.target, readonly = false): Promise<void> {
    await this.driver.client.node.NodePublishVolume({ ...this.common, target_path: target, readonly });
  }
  async unpublish(target = this.target): Promise<void> {
    await this.driver.client.node.NodeUnpublishVolume({ volume_id: this.id, target_path: target });
  }
  async unstage(): Promise<void> {
    await this.driver.client.node.NodeUnstageVolume({ volume_id: this.id, staging_target_path: this.staging });
  }
  async delete(): Promise<void> {
    await this.driver.client.controller.DeleteVolume({ volume_id: this.id });
  }
  async expand(bytes: number): Promise<void> {
    const capacity_range = { required_bytes: bytes };
    await this.driver.client.controller.ControllerExpandVolume({ volume_id: this.id, capacity_range });
  }
  /** Down to nothing, from wherever it is. */
  async down(): Promise<void> {
    await this.unpublish();
    await this.unstage();
    await this.delete();
  }
}
