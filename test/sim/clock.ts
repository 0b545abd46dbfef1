// A virtual clock: time stands still until a test moves it, and then every timer on the way fires in order.

import { type Clock, sleepWith, type Timer } from '../../lib/clock.ts';

interface Pending {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
}

/** Lets everything run that needs no time: promises, and callbacks queued by them. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

export class VirtualClock implements Clock {
  #now: number;
  #monotonic = 0;
  #order = 0;
  readonly #pending = new Set<Pending>();

  constructor(start = Date.parse('2026-01-01T00:00:00Z')) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(ms: number, fn: () => void): Timer {
    const pending: Pending = { at: this.#monotonic + Math.max(0, ms), order: this.#order++, fn };
    this.#pending.add(pending);
    return { cancel: () => this.#pending.delete(pending) };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepWith(this, ms, signal);
  }

  /** Wall-clock time jumps; durations are not touched. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** How many timers wait. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Moves time by `ms`, settling before, between and after the timers that fire. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await settle();
    for (;;) {
      const next = this.#next();
      if (next === undefined || next.at > end) break;
      this.#pending.delete(next);
      this.#move(next.at);
      next.fn();
      await settle();
    }
    this.#move(end);
    await settle();
  }

  /** Moves time until `condition` holds; throws when that does not happen within `limitMs` of virtual time. */
  async until(condition: () => boolean, limitMs = 600_000): Promise<void> {
    const end = this.#monotonic + limitMs;
    await settle();
    while (!condition()) {
      const next = this.#next();
      if (next === undefined || next.at > end) throw new Error(`did not happen within ${limitMs} ms: ${condition}`);
      await this.advance(next.at - this.#monotonic);
    }
  }

  #next(): Pending | undefined {
    let best: Pending | undefined;
    for (const pending of this.#pending) {
      if (best === undefined || pending.at < best.at || (pending.at === best.at && pending.order < best.order)) {
        best = pending;
      }
    }
    return best;
  }

  #move(to: number): void {
    if (to <= this.#monotonic) return;
    this.#now += to - this.#monotonic;
    this.#monotonic = to;
  }
}
