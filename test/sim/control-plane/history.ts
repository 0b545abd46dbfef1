// One history of a whole control plane: bad weather, in which watches, requests, processes and nodes fail while users go on;
// fair weather with users; then all must be as they want it within a bounded time, and stay so without a single write; then
// everything is deleted, and nothing may be left.

import { turn } from '../../../labs/sim/clock.ts';
import { NO_TROUBLE, type Trouble } from '../../../labs/sim/control-plane/connection.ts';
import type { ProcessParts } from '../../../labs/sim/control-plane/process.ts';
import type { Written } from '../../../labs/sim/control-plane/server.ts';
import type { Dice } from '../../../labs/sim/dice.ts';
import { differences, leftovers } from './rest.ts';
import { Workload } from './workload.ts';
import { type Arrangement, ControlPlaneWorld } from './world.ts';

export interface ControlPlaneHistoryOptions {
  readonly seed: number;
  /** How long the weather is bad, and how long fair with users at work; virtual ms. */
  readonly badMs?: number;
  readonly fairMs?: number;
  /** How long it may take then until all is as it should be; virtual ms. */
  readonly convergenceMs?: number;
  readonly onLine?: (line: string) => void;
  /** What controllers are shown instead of an object: a fault, on purpose. */
  readonly shown?: ProcessParts['shown'];
}

export interface ControlPlaneReport {
  readonly seed: number;
  readonly arrangement: Arrangement;
  /** Timers that fired. */
  readonly steps: number;
  readonly writes: number;
  readonly virtualMs: number;
  /** How long after the last of the users' changes all was as they want it, ms. */
  readonly convergedMs: number;
  readonly digest: string;
}

/** A rule was broken; the message says which, where, and how to see it again. */
export class BrokenControlPlane extends Error {
  override name = 'BrokenControlPlane';
}

const BAD_MS = 240_000;
const FAIR_MS = 120_000;
/** How often users act, as a mean: all at once, or so that controllers come to rest between. ms. */
const PACES = [2500, 5000, 9000] as const;
/**
 * How long it may take until all is as it should be: a lost node's pods wait 300 s for their eviction, and a failed pod of a job
 * for its back-off.
 */
const CONVERGENCE_MS = 900_000;
/** Then come events of what has just happened, and what was planned: a budget is synced again 120 s after an eviction. */
const SETTLE_MS = 130_000;
/** How long nothing may be written then: longer than any resync. */
const QUIET_MS = 400_000;
const REMOVAL_MS = 300_000;
const SHOWN = 60;

class History {
  readonly #options: ControlPlaneHistoryOptions;
  readonly #world: ControlPlaneWorld;
  readonly #workload: Workload;
  readonly #dice: Dice;
  /** Writes without leases and what kubelets write. */
  readonly #recent: string[] = [];
  /** Events that were counted up since it is quiet. */
  readonly #repeated = new Set<string>();
  #steps = 0;
  #writes = 0;

  constructor(options: ControlPlaneHistoryOptions) {
    this.#options = options;
    this.#world = new ControlPlaneWorld(options.seed, options.onLine, options.shown);
    this.#workload = new Workload(this.#world);
    this.#dice = this.#world.dice.fork();
    this.#world.follow((written) => this.#written(written));
  }

  #written({ resource, object, actor, type }: Written): void {
    this.#writes++;
    if (resource === 'coordination.k8s.io/leases' || actor.startsWith('kubelet')) return;
    // A late retry finds nothing to do, and may say once more why.
    if (resource === '/events' && type === 'MODIFIED' && !this.#repeated.has(object.metadata.uid)) {
      this.#repeated.add(object.metadata.uid);
      return;
    }
    this.#recent.push(`${actor}: ${type} ${resource} ${object.metadata.namespace ?? ''}/${object.metadata.name}`);
  }

  async run(): Promise<ControlPlaneReport> {
    const { clock, journal } = this.#world;
    const rejected = (reason: unknown): void => {
      const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
      this.#world.rules.break(`a rejection was not handled: ${text}`);
    };
    process.on('unhandledRejection', rejected);
    try {
      await this.#world.begin();
      const everyMs = this.#dice.pick(PACES);
      await this.#pass(this.#options.badMs ?? BAD_MS, everyMs, () => this.#misfortune());
      await this.#clearUp();
      await this.#pass(this.#options.fairMs ?? FAIR_MS, everyMs, undefined);
      await this.#workload.calm();
      const from = clock.monotonic();
      const { convergenceMs = CONVERGENCE_MS } = this.#options;
      await this.#becomesTrue(() => differences(this.#world), convergenceMs, 'is not as it should be');
      const convergedMs = clock.monotonic() - from;
      await this.#quiet();
      await this.#workload.deleteEverything();
      await this.#becomesTrue(() => leftovers(this.#world), REMOVAL_MS, 'was to be deleted');
      return {
        ...{ seed: this.#options.seed, arrangement: this.#world.arrangement, steps: this.#steps, writes: this.#writes },
        ...{ virtualMs: clock.monotonic(), convergedMs, digest: journal.digest },
      };
    } finally {
      this.#world.end();
      process.off('unhandledRejection', rejected);
    }
  }

  /** Users act every so often, and what `misfortune` brings happens between. */
  async #pass(ms: number, everyMs: number, misfortune: (() => Promise<void>) | undefined): Promise<void> {
    const { clock } = this.#world;
    const end = clock.monotonic() + ms;
    while (clock.monotonic() < end) {
      await this.#workload.act();
      if (misfortune !== undefined && this.#dice.chance(0.7)) await misfortune();
      await this.#run(this.#dice.between(100, 2 * everyMs));
    }
  }

  async #misfortune(): Promise<void> {
    const world = this.#world;
    const { processes, kubelets } = world;
    const process = this.#dice.pick(processes);
    const kubelet = this.#dice.pick(kubelets);
    switch (
      this.#dice.weighted({ trouble: 4, watches: 3, forget: 2, kill: 3, stop: 1, pause: 3, node: 2, slow: 2, flap: 3 })
    ) {
      case 'trouble':
        world.trouble = this.#dice.pick<Trouble>([
          NO_TROUBLE,
          { requests: 50, events: 0 },
          { requests: 0, events: 300 },
          { requests: 150, events: 100 },
        ]);
        world.weather.bad(90_000);
        return;
      case 'watches':
        return world.breakWatches(false);
      case 'forget':
        return world.breakWatches(true);
      case 'kill':
        return process?.kill();
      case 'stop':
        return process?.stop();
      case 'pause': {
        const ms = this.#dice.between(5000, 40_000);
        world.weather.bad(ms + 60_000);
        return process?.pause(ms);
      }
      case 'node': {
        if (kubelet?.isUp === false) return kubelet.recover();
        world.journal.note(`${kubelet?.name} fails`);
        return kubelet?.fail(this.#dice.pick(['run on', 'end'] as const));
      }
      case 'slow':
        return kubelet?.setSlowness(this.#dice.pick([1, 1, 5] as const));
      case 'flap': {
        const pods = world.server.objects('/pods');
        const uid = this.#dice.pick(pods)?.metadata.uid ?? '';
        for (const each of kubelets) each.flap(uid);
        return;
      }
    }
  }

  async #clearUp(): Promise<void> {
    this.#world.trouble = NO_TROUBLE;
    for (const kubelet of this.#world.kubelets) {
      kubelet.setSlowness(1);
      kubelet.recover();
    }
  }

  /** No fight: once all is as it should be, nothing is written but leases and what kubelets report. */
  async #quiet(): Promise<void> {
    await this.#run(SETTLE_MS);
    this.#recent.length = 0;
    this.#repeated.clear();
    await this.#run(QUIET_MS);
    if (this.#recent.length > 0) {
      this.#fail(
        `${this.#recent.length} writes though all is as it should be: ${this.#recent.slice(0, 20).join('; ')}`,
      );
    }
  }

  async #becomesTrue(wrong: () => readonly string[], limitMs: number, what: string): Promise<void> {
    const { clock } = this.#world;
    const end = clock.monotonic() + limitMs;
    for (let left = wrong(); left.length > 0; left = wrong()) {
      if (clock.monotonic() > end) this.#fail(`${limitMs / 1000} s later this ${what}: ${left.join('; ')}`);
      await this.#run(2000);
    }
  }

  async #run(ms: number): Promise<void> {
    const { clock } = this.#world;
    const end = clock.monotonic() + ms;
    await turn();
    for (let next = clock.nextAt(); next !== undefined && next <= end; next = clock.nextAt()) {
      clock.fireNext();
      await turn();
      this.#steps++;
      const [broken] = this.#world.rules.broken;
      if (broken !== undefined) this.#fail(broken);
    }
    await clock.advance(Math.max(0, end - clock.monotonic()));
  }

  #fail(what: string): never {
    const { seed } = this.#options;
    const { journal, arrangement, clock } = this.#world;
    const lines = journal.last(SHOWN).join('\n');
    const again = `npm run sim -- --control-plane --seed ${seed}`;
    throw new BrokenControlPlane(
      `seed ${seed} (${arrangement}), ${clock.monotonic()} ms: ${what}\n${lines}\nagain: ${again}`,
    );
  }
}

/** Runs one history. Rejects with BrokenControlPlane. One at a time: unhandled rejections are the process's. */
export async function runControlPlaneHistory(options: ControlPlaneHistoryOptions): Promise<ControlPlaneReport> {
  return await new History(options).run();
}
