// A clock that stands still until a test moves it. Timers fire in order of their time, and everything that a timer
// sets going (promises, sockets) gets to run before time goes on.

import {
  type Clock,
  type EpochMs,
  epochMs,
  type MonotonicMs,
  monotonicMs,
  sleepWith,
  type Timer,
} from '../../lib/clock.ts';

interface Pending {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
}

export class VirtualClock implements Clock {
  #now: number;
  #elapsed = 0;
  #order = 0;
  readonly #pending = new Set<Pending>();

  constructor(start = Date.parse('2026-01-01T00:00:00Z')) {
    this.#now = start;
  }

  now(): EpochMs {
    return epochMs(this.#now + this.#elapsed);
  }
  monotonic(): MonotonicMs {
    return monotonicMs(this.#elapsed);
  }
  after(ms: number, fn: () => void): Timer {
    const pending = { at: this.#elapsed + Math.max(0, ms), order: this.#order++, fn };
    this.#pending.add(pending);
    return { cancel: () => this.#pending.delete(pending) };
  }
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepWith(this, ms, signal);
  }

  /** Sets the wall clock, forward or back; timers and the monotonic clock do not notice. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** How many timers have ever been set. */
  get timersSet(): number {
    return this.#order;
  }

  /** Milliseconds until the next timer fires; undefined when none is set. */
  get nextTimerMs(): number | undefined {
    const times = [...this.#pending].map(({ at }) => at - this.#elapsed);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** Timers that are set. */
  get timers(): number {
    return this.#pending.size;
  }

  /** Moves time on by `ms`, stopping at every timer on the way. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await settle();
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#pending.delete(next);
      this.#elapsed = Math.max(this.#elapsed, next.at);
      next.fn();
      await settle();
    }
    this.#elapsed = end;
    await settle();
  }

  #next(end: number): Pending | undefined {
    let first: Pending | undefined;
    for (const pending of this.#pending) {
      if (pending.at > end) continue;
      if (first === undefined || pending.at < first.at || (pending.at === first.at && pending.order < first.order)) {
        first = pending;
      }
    }
    return first;
  }
}

/** Lets everything run that is ready to. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}
