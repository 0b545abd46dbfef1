// The loop of a program that keeps rules in the kernel as objects of the API server want them: a change is written at once, what
// comes during a write is in the next one, and what someone else changes in the kernel is repaired. Decides no rules.

import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { repeat } from '../lib/retry.ts';
import { WorkQueue } from './workqueue.ts';

/** Pauses after a failure, ms; the longest is the time between two looks at the kernel. */
const FIRST_RETRY_MS = 100;

export interface RulesLoopParts {
  /** Of what is written, for the log: "rules". */
  readonly what: string;
  readonly clock: Clock;
  readonly log: (message: string) => void;
  /** Between two looks at the kernel's tables, ms. */
  readonly syncPeriodMs: number;
  /** Writes what has changed, or everything. Rejects when that fails: everything is written next time. */
  readonly sync: (full: boolean) => Promise<void>;
  /** What is wrong in the kernel's tables; undefined for nothing. Rejects when they cannot be read. */
  readonly damage: () => Promise<string | undefined>;
  /** Everything is to be written again: there is damage, or the tables cannot be read. */
  readonly onRepair: (found: 'damage' | 'unreadable') => void;
}

export class RulesLoop {
  readonly #parts: RulesLoopParts;
  /** One at a time: a look during a write would see half of it. */
  readonly #queue: WorkQueue<'sync' | 'check'>;
  #full = true;

  constructor(parts: RulesLoopParts) {
    this.#parts = parts;
    const { clock, syncPeriodMs } = parts;
    this.#queue = new WorkQueue({ clock, initialDelayMs: FIRST_RETRY_MS, maxDelayMs: syncPeriodMs });
  }

  /** There is something to write. */
  changed(): void {
    this.#queue.add('sync');
  }

  /** Writes what has changed, and looks at the kernel from time to time, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { what, clock, log, syncPeriodMs } = this.#parts;
    const stop = (): void => this.#queue.shutDown();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const syncing = this.#queue.run(
      1,
      (task) => (task === 'sync' ? this.#sync() : this.#check()),
      (_, error, retryMs) => log(`${what} are not written: ${errorMessage(error)}; again in ${retryMs} ms`),
    );
    const check = async (): Promise<undefined> => {
      this.#queue.add('check');
      return undefined;
    };
    const checking = repeat(check, { clock, everyMs: syncPeriodMs, firstMs: syncPeriodMs, signal });
    await Promise.all([syncing, checking]);
  }

  async #sync(): Promise<void> {
    const full = this.#full;
    this.#full = true;
    await this.#parts.sync(full);
    this.#full = false;
  }

  async #check(): Promise<void> {
    // After a failure all is written anyway.
    if (this.#full) return;
    const { log, damage, onRepair } = this.#parts;
    let found: 'damage' | 'unreadable' = 'damage';
    try {
      const words = await damage();
      if (words === undefined) return;
      log(`${words}: all rules are written again`);
    } catch (error) {
      log(`the rules cannot be read: ${errorMessage(error)}`);
      found = 'unreadable';
    }
    this.#full = true;
    onRepair(found);
  }
}
