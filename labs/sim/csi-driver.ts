// A CSI driver in memory, behind the agent's CsiNode port: it fails, hangs, answers late, and dies, also between stage
// and publish; what it had mounted stays. It is strict about the order of calls, and it notices when its data is touched.

import { existsSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CsiNode, CsiNodeDriver } from '../../agent/ports/csi.ts';
import { CsiError, type CsiService } from '../../csi/client.ts';
import type { NodeDefinition } from '../../proto/gen/csi/v1/Node.ts';
import type { Dice } from './dice.ts';
import type { Faults } from './faults.ts';
import type { SimKernel } from './kernel.ts';
import type { Claim, Line } from './line.ts';
import type { Breakable } from './witness.ts';

export const DRIVER_NAME = 'csi.simulated';
const DEADLINE_MS = 120_000;
/** What a volume holds: a volume that is deleted while it has any is lost data. */
const DATA = '.data';

export interface SimCsiParts {
  readonly line: Line;
  readonly dice: Dice;
  readonly rules: Breakable;
  readonly kernel: SimKernel;
  readonly faults: Faults;
  /** What happens when the driver itself decides to die. */
  readonly dies: () => void;
}

export function csiLineError(call: string, failure: string): Error {
  const code = failure === 'deadline' ? 'DEADLINE_EXCEEDED' : failure === 'unavailable' ? 'UNAVAILABLE' : 'INTERNAL';
  return new CsiError(code, `injected failure (${failure})`, call);
}

export class SimCsi implements CsiNode {
  readonly #parts: SimCsiParts;
  /** Staging path by volume. */
  readonly staged = new Map<string, string>();
  /** Volume by target path. */
  readonly published = new Map<string, string>();
  /** Calls that their caller waits for, by volume. */
  #underWay = new Map<string, number>();
  #registered = Promise.withResolvers<void>();
  #isRegistered = false;
  /** Volumes that a call is at work on, whether its caller still waits or not. */
  readonly #atWork = new Set<string>();
  /** Dies after so many of a hundred stages, before the agent can publish. */
  deadly = 0;

  constructor(parts: SimCsiParts) {
    this.#parts = parts;
    this.register();
  }

  register(): void {
    this.#parts.line.down = false;
    if (this.#isRegistered) return;
    this.#isRegistered = true;
    this.#registered.resolve();
  }

  /** The driver's process dies, and its socket goes. */
  die(): void {
    if (!this.#isRegistered) return;
    this.#isRegistered = false;
    this.#registered = Promise.withResolvers<void>();
    this.#parts.line.cut();
  }

  /** The agent that waited for answers is no more. */
  forgetCallers(): void {
    this.#underWay = new Map();
  }

  driver(name: string): CsiNodeDriver | undefined {
    if (name !== DRIVER_NAME || !this.#isRegistered) return undefined;
    return { name, node: this.#node, capabilities: () => this.#capabilities() };
  }

  registered(name: string): Promise<void> {
    return name === DRIVER_NAME ? this.#registered.promise : new Promise(() => undefined);
  }

  #capabilities(): Promise<ReadonlySet<string>> {
    return this.#parts.line.perform('NodeGetCapabilities', '', DEADLINE_MS, () => new Set(['STAGE_UNSTAGE_VOLUME']));
  }

  /** As the specification asks of drivers: one call at a time for a volume, and ABORTED to any other. */
  #claim(call: string, volume: string): Claim {
    return {
      take: () => {
        if (this.#atWork.has(volume)) throw new CsiError('ABORTED', `an operation on ${volume} is under way`, call);
        this.#atWork.add(volume);
      },
      drop: () => void this.#atWork.delete(volume),
    };
  }

  /** One call; two at once for one volume are the caller's fault. */
  async #call(call: string, volume: string, subject: string, effect: () => void): Promise<void> {
    const callers = this.#underWay;
    const count = callers.get(volume) ?? 0;
    if (count > 0) this.#parts.rules.break(`${call} of ${volume} was called while another call was under way`);
    callers.set(volume, count + 1);
    try {
      const done = (): void => {
        try {
          effect();
        } finally {
          this.#atWork.delete(volume);
        }
      };
      await this.#parts.line.perform(call, `${volume} ${subject}`, DEADLINE_MS, done, {
        claim: this.#claim(call, volume),
      });
    } finally {
      callers.set(volume, (callers.get(volume) ?? 1) - 1);
    }
  }

  readonly #node: CsiService<NodeDefinition> = {
    NodeStageVolume: async ({ volume_id = '', staging_target_path: path = '' }) => {
      await this.#call('NodeStageVolume', volume_id, '', () => this.#stage(volume_id, path));
      return {};
    },
    NodeUnstageVolume: async ({ volume_id = '', staging_target_path: path = '' }) => {
      await this.#call('NodeUnstageVolume', volume_id, '', () => this.#unstage(volume_id, path));
      return {};
    },
    NodePublishVolume: async ({ volume_id = '', staging_target_path = '', target_path: path = '' }) => {
      await this.#call('NodePublishVolume', volume_id, path, () => this.#publish(volume_id, staging_target_path, path));
      return {};
    },
    NodeUnpublishVolume: async ({ volume_id = '', target_path: path = '' }) => {
      await this.#call('NodeUnpublishVolume', volume_id, path, () => this.#unpublish(volume_id, path));
      return {};
    },
    NodeExpandVolume: () => this.#unimplemented('NodeExpandVolume'),
    NodeGetVolumeStats: () => this.#unimplemented('NodeGetVolumeStats'),
    NodeGetCapabilities: () => this.#unimplemented('NodeGetCapabilities'),
    NodeGetInfo: () => this.#unimplemented('NodeGetInfo'),
  };

  #unimplemented(call: string): Promise<never> {
    return Promise.reject(new CsiError('UNIMPLEMENTED', `${call} is not simulated`, call));
  }

  #stage(volume: string, path: string): void {
    const { rules, dice, faults } = this.#parts;
    const before = this.staged.get(volume);
    if (before !== undefined && before !== path) rules.break(`${volume} is staged at ${before}, and again at ${path}`);
    if (dice.below(100) < this.deadly) {
      this.#parts.line.note(`dies when ${volume} is staged`);
      this.#parts.dies();
    }
    if (before !== undefined || faults.has('a driver says that a volume is staged and it is not')) return;
    this.#hold(volume, path);
    this.staged.set(volume, path);
  }

  #publish(volume: string, staging: string, path: string): void {
    const { rules } = this.#parts;
    if (staging !== '' && this.staged.get(volume) !== staging) {
      rules.break(`${volume} was published from ${staging}, where it is not staged`);
    }
    if (this.published.has(path)) return;
    if (!existsSync(dirname(path)))
      throw new CsiError('INTERNAL', `${dirname(path)} does not exist`, 'NodePublishVolume');
    if (!existsSync(path)) mkdirSync(path);
    this.#hold(volume, path);
    this.published.set(path, volume);
  }

  #unpublish(volume: string, path: string): void {
    const holder = this.published.get(path);
    if (holder !== undefined && holder !== volume)
      this.#parts.rules.break(`${volume} was unpublished where ${holder} is`);
    if (holder === undefined) {
      // Idempotent: what is left of a publication that failed half-way goes, too.
      if (existsSync(path)) rmdirSync(path);
      return;
    }
    if (this.#parts.faults.has('a driver says that a volume is unpublished and it is not')) return;
    this.#unuse(volume, path);
    rmdirSync(path);
    this.published.delete(path);
  }

  #unstage(volume: string, path: string): void {
    for (const [target, holder] of this.published) {
      if (holder === volume) this.#parts.rules.break(`${volume} was unstaged while it is published at ${target}`);
    }
    if (this.staged.get(volume) !== path) return;
    this.#unuse(volume, path);
    this.staged.delete(volume);
  }

  #hold(volume: string, path: string): void {
    this.#parts.kernel.add(path, 'ext4', `/dev/simulated/${volume}`, 'driver');
    writeFileSync(join(path, DATA), volume);
  }

  #unuse(volume: string, path: string): void {
    if (!existsSync(join(path, DATA))) this.#parts.rules.break(`the data of ${volume} was deleted through ${path}`);
    rmSync(join(path, DATA), { force: true });
    this.#parts.kernel.remove(path, 'driver');
  }
}
