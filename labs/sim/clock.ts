// A virtual clock: time stands still until a test moves it, and then every timer on the way fires in order.

import {
  type Clock,
  type EpochMs,
  elapsedMs,
  epochMs,
  type MonotonicMs,
  monotonicMs,
  plusMs,
  sleepWith,
  type Timer,
} from '../../lib/clock.ts';

/** 2026-01-01T00:00:00Z */
const START = epochMs(1_767_225_600_000);

interface Pending {
  readonly at: MonotonicMs;
  readonly order: number;
  /** Undefined once it has fired or was cancelled. */
  fn: (() => void) | undefined;
}

const RESOLVED = Promise.resolve();

/** Lets every promise run that waits for nothing but other promises. One turn of the event loop is enough for that. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Calls `fn` when no promise is left to run that waits for nothing but other promises, without a turn of the event loop, which costs
 * several times as much. Real I/O and signals do not come in between: `turn` now and then.
 */
export function onceIdle(fn: () => void): void {
  // Callbacks of nextTick come one after the other, before any promise: so it is called by a promise.
  void RESOLVED.then(() => process.nextTick(fn));
}

/** Lets everything run that needs no time, and gives real I/O that is nearly done a chance. */
export async function settle(): Promise<void> {
  for (let count = 0; count < 12; count++) await turn();
}

function isBefore(a: Pending, b: Pending): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** A binary heap, earliest first. */
class Queue {
  readonly #items: Pending[] = [];

  get first(): Pending | undefined {
    return this.#items[0];
  }

  push(item: Pending): void {
    const items = this.#items;
    let index = items.length;
    items.push(item);
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = items[above];
      if (parent === undefined || !isBefore(item, parent)) break;
      items[index] = parent;
      index = above;
    }
    items[index] = item;
  }

  shift(): void {
    const items = this.#items;
    const last = items.pop();
    if (last === undefined || items.length === 0) return;
    let index = 0;
    for (;;) {
      let below = 2 * index + 1;
      let child = items[below];
      if (child === undefined) break;
      const right = items[below + 1];
      if (right !== undefined && isBefore(right, child)) {
        child = right;
        below++;
      }
      if (!isBefore(child, last)) break;
      items[index] = child;
      index = below;
    }
    items[index] = last;
  }
}

export class VirtualClock implements Clock {
  #now: EpochMs;
  #monotonic: MonotonicMs = monotonicMs(0);
  #order = 0;
  #waiting = 0;
  readonly #queue = new Queue();

  constructor(start: EpochMs = START) {
    this.#now = start;
  }

  /** Whole milliseconds, as a machine's: timers with jitter fire between two. */
  now(): EpochMs {
    return epochMs(Math.floor(this.#now));
  }

  monotonic(): MonotonicMs {
    return this.#monotonic;
  }

  after(ms: number, fn: () => void): Timer {
    const pending: Pending = { at: plusMs(this.#monotonic, Math.max(0, ms)), order: this.#order++, fn };
    this.#queue.push(pending);
    this.#waiting++;
    return {
      cancel: () => {
        if (pending.fn === undefined) return;
        pending.fn = undefined;
        this.#waiting--;
      },
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepWith(this, ms, signal);
  }

  /** Wall-clock time jumps; durations are not touched. */
  jump(ms: number): void {
    this.#now = plusMs(this.#now, ms);
  }

  /** How many timers wait. */
  get pending(): number {
    return this.#waiting;
  }

  /** When the next timer fires (monotonic ms); undefined when none waits. */
  nextAt(): MonotonicMs | undefined {
    for (;;) {
      const { first } = this.#queue;
      if (first === undefined || first.fn !== undefined) return first?.at;
      this.#queue.shift();
    }
  }

  /** Moves time to the next timer and fires it, and lets nothing else run; false when no timer waits. */
  fireNext(): boolean {
    const at = this.nextAt();
    const { first } = this.#queue;
    if (at === undefined || first?.fn === undefined) return false;
    const { fn } = first;
    this.#queue.shift();
    first.fn = undefined;
    this.#waiting--;
    this.#move(at);
    fn();
    return true;
  }

  /** Moves time by `ms`, settling before, between and after the timers that fire. */
  async advance(ms: number): Promise<void> {
    const end = plusMs(this.#monotonic, ms);
    await settle();
    for (let at = this.nextAt(); at !== undefined && at <= end; at = this.nextAt()) {
      this.fireNext();
      await settle();
    }
    this.#move(end);
    await settle();
  }

  /** Moves time until `condition` holds; throws when that does not happen within `limitMs` of virtual time. */
  async until(condition: () => boolean, limitMs = 600_000): Promise<void> {
    const end = plusMs(this.#monotonic, limitMs);
    await settle();
    while (!condition()) {
      const next = this.nextAt();
      if (next === undefined || next > end) throw new Error(`did not happen within ${limitMs} ms: ${condition}`);
      await this.advance(next - this.#monotonic);
    }
  }

  #move(to: MonotonicMs): void {
    if (to <= this.#monotonic) return;
    this.#now = plusMs(this.#now, elapsedMs(this.#monotonic, to));
    this.#monotonic = to;
  }
}
