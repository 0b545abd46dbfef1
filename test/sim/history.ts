// One history of a simulated node: a seed, so many steps of chaos, then rest, then everything is deleted. A step is one
// thing that happens: a random event, a call that arrives or is answered, a timer of the agent, a process that ends. After
// every single step all promises have run and every invariant is checked.

import { SANDBOX_CREATION_MS } from '../../agent/network/forgotten.ts';
import { turn } from '../../labs/sim/clock.ts';
import { type RuntimeKind, runtimeKindOf } from '../../labs/sim/cri/kinds.ts';
import type { Faults } from '../../labs/sim/faults.ts';
import { Chaos, type Event } from './world/chaos.ts';
import { differences, forgotten, leftovers } from './world/rest.ts';
import { World } from './world/world.ts';

export interface HistoryOptions {
  readonly seed: number;
  /** Steps before all comes to rest. */
  readonly steps: number;
  /** About storage: most pods have volumes of a driver, which fails, hangs, answers late and dies much of the time. */
  readonly storage?: boolean;
  /** Every line of the journal, as it is written. */
  readonly onLine?: (line: string) => void;
  /** What is wrong with the world, on purpose. */
  readonly faults?: Faults;
  /** Nothing goes wrong from the first step on but what users and processes do. */
  readonly fair?: boolean;
  /** The rest is over as soon as all is as it should be, once the longest back-off is over. */
  readonly briefRest?: boolean;
  /** How often things happen, instead of as often as the seed says. */
  readonly weights?: Partial<Record<Event, number>>;
}

export interface HistoryReport {
  readonly seed: number;
  /** Which runtime the node had. */
  readonly runtime: RuntimeKind['name'];
  /** All of them, rest included. */
  readonly steps: number;
  /** Random events among them. */
  readonly events: number;
  /** Virtual time that went by. */
  readonly virtualMs: number;
  /** Of everything that happened, in order: the same for the same seed. */
  readonly digest: string;
  readonly recorded: ReadonlyMap<string, number>;
}

/** A rule was broken; the message says which, where, and how to see it again. */
export class BrokenRule extends Error {
  override name = 'BrokenRule';
  readonly step: number;
  constructor(options: HistoryOptions, step: number, what: string, journal: readonly string[]) {
    const about = options.storage === true ? ' --storage' : '';
    const again = `npm run sim -- --seed ${options.seed} --steps ${options.steps}${about}`;
    super(
      `seed ${options.seed} (${runtimeKindOf(options.seed).name}), step ${step}: ${what}\n${journal.join('\n')}\nagain: ${again}`,
    );
    this.step = step;
  }
}

/** How long everything works before it must have come to rest: longer than any back-off. Virtual ms. */
const REST_MS = 700_000;
/** How long a brief rest is at least: longer than the longest back-off. */
const BRIEF_REST_MS = 330_000;
/** How long nothing of any pod may take to go. */
const REMOVAL_MS = 200_000;
/** How long it takes at least where the rest is brief: longer than any grace period. */
const BRIEF_REMOVAL_MS = 45_000;
/** How long it may take until the last thing that happened is seen everywhere: a hook, a grace period, the event about it. */
const SETTLE_MS = 60_000;
/** How long the agent may take for a sandbox that the runtime has forgotten: RunPodSandbox's limit, then two periods. */
const COLLECTION_MS = SANDBOX_CREATION_MS + 120_000;
/** The part of the steps in which everything may go wrong; in the rest, users and processes go on, and all else works. */
const BAD_WEATHER = 0.6;
const SHOWN = 60;

class History {
  readonly #options: HistoryOptions;
  readonly #world: World;
  readonly #chaos: Chaos;
  #steps = 0;

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.#world = new World(options.seed, options.faults ?? new Set(), options.onLine);
    this.#chaos = new Chaos(this.#world, options.storage, options.weights);
  }

  async run(): Promise<HistoryReport> {
    const { clock, journal, recorder } = this.#world;
    const rejected = (reason: unknown): void => {
      const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
      this.#world.rules.break(`a rejection in the agent was not handled: ${text}`);
    };
    process.on('unhandledRejection', rejected);
    try {
      this.#world.startAgent();
      this.#chaos.begin();
      const bad = this.#options.fair === true ? 0 : BAD_WEATHER;
      while (this.#steps < this.#options.steps * bad) await this.#step();
      this.#chaos.clearsUp();
      while (this.#steps < this.#options.steps) await this.#step();
      this.#chaos.calm();
      await this.#rest(BRIEF_REST_MS, REST_MS, () => differences(this.#world));
      this.#chaos.deleteEverything();
      await this.#rest(BRIEF_REMOVAL_MS, REMOVAL_MS, () => leftovers(this.#world));
      // A runtime that died at the wrong moment has forgotten what it had made: the agent finds it while it runs.
      await this.#becomesTrue(() => forgotten(this.#world), COLLECTION_MS);
    } finally {
      this.#world.end();
      process.off('unhandledRejection', rejected);
    }
    return {
      seed: this.#options.seed,
      runtime: this.#world.runtime.kind.name,
      steps: this.#steps,
      events: this.#chaos.count,
      virtualMs: clock.monotonic(),
      digest: journal.digest,
      recorded: recorder.counts,
    };
  }

  async #step(): Promise<void> {
    if (!this.#world.clock.fireNext()) this.#fail('nothing waits for anything: the node is dead');
    await turn();
    this.#steps++;
    this.#world.invariants.check();
    this.#expectNone(this.#world.rules.broken);
  }

  async #until(end: number): Promise<void> {
    for (let next = this.#world.clock.nextAt(); next !== undefined && next <= end; next = this.#world.clock.nextAt()) {
      await this.#step();
    }
  }

  /** All works, and after `ms` nothing is wrong any more; after `briefMs` where the rest is brief and nothing is. */
  async #rest(briefMs: number, ms: number, wrong: () => readonly string[]): Promise<void> {
    const { clock } = this.#world;
    // What was just done is seen before time moves.
    await turn();
    const end = clock.monotonic() + ms;
    if (this.#options.briefRest === true) {
      await this.#until(clock.monotonic() + briefMs);
      if (wrong().length === 0) return;
    }
    await this.#until(end);
    await this.#becomesTrue(wrong);
  }

  /** Jobs come and go even now: what must be true is true once what has just happened has been seen everywhere. */
  async #becomesTrue(wrong: () => readonly string[], limitMs = SETTLE_MS): Promise<void> {
    const end = this.#world.clock.monotonic() + limitMs;
    for (let next = this.#world.clock.nextAt(); wrong().length > 0; next = this.#world.clock.nextAt()) {
      if (next === undefined || next > end) this.#expectNone(wrong());
      await this.#step();
    }
  }

  #expectNone(wrong: readonly string[]): void {
    if (wrong.length > 0) this.#fail(wrong.join('; '));
  }

  #fail(what: string): never {
    const { journal, disk } = this.#world;
    // Where the disk lies is another place each time.
    throw new BrokenRule(this.#options, this.#steps, what.replaceAll(disk.root, ''), journal.last(SHOWN));
  }
}

/** Runs one history. Rejects with BrokenRule. One at a time: unhandled rejections are the process's. */
export async function runHistory(options: HistoryOptions): Promise<HistoryReport> {
  return await new History(options).run();
}
