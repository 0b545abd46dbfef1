// Many timers on one: a hierarchical timing wheel over a Clock. Setting and cancelling a timer cost the same however
// many there are, and only one timer of the clock is ever pending. For timers that may be some milliseconds late.

import { type Clock, elapsedMs, type MonotonicMs, type Timer } from './clock.ts';

const SLOTS = 64;
const LEVELS = 6;
/** Ticks covered by one slot of each level; the last figure is the reach of the whole wheel. */
const SPAN: readonly number[] = Array.from({ length: LEVELS + 1 }, (_, level) => SLOTS ** level);
const REACH = SLOTS ** LEVELS;

/** A node of a doubly linked ring; the head of each slot is one without work. */
class Entry {
  prev: Entry = this;
  next: Entry = this;
  bucket = -1;
  readonly due: number;
  readonly fn: () => void;
  constructor(due: number, fn: () => void) {
    this.due = due;
    this.fn = fn;
  }
}

function spanOf(level: number): number {
  return SPAN[level] ?? REACH;
}

function nothing(): void {
  // The head of a slot is never fired.
}

export class TimerWheel {
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #origin: MonotonicMs;
  readonly #heads: readonly Entry[] = Array.from({ length: LEVELS * SLOTS }, () => new Entry(0, nothing));
  /** Two words a level: which slots are not empty. */
  readonly #occupied = new Uint32Array(LEVELS * 2);
  /** Everything due up to this tick has fired. */
  #tick = 0;
  #size = 0;
  #timer: Timer | undefined;
  #timerTick = Number.POSITIVE_INFINITY;
  #firing = false;

  /** `tickMs`: timers fire no sooner than requested and at most this much later, so that near ones share a wake-up. */
  constructor(clock: Clock, tickMs = 10) {
    this.#clock = clock;
    this.#tickMs = tickMs;
    this.#origin = clock.monotonic();
  }

  /** The number of pending timers. */
  get size(): number {
    return this.#size;
  }

  /** Calls `fn` once, no sooner than `ms` milliseconds from now. What it throws is thrown to the clock. */
  after(ms: number, fn: () => void): Timer {
    const offsetMs = elapsedMs(this.#origin, this.#clock.monotonic()) + Math.max(0, ms);
    const due = Math.min(Math.max(this.#tick + 1, Math.ceil(offsetMs / this.#tickMs)), REACH - 1);
    const entry = new Entry(due, fn);
    this.#place(entry);
    this.#size++;
    this.#arm();
    return { cancel: () => this.#cancel(entry) };
  }

  #cancel(entry: Entry): void {
    if (entry.bucket < 0) return;
    this.#unlink(entry);
    this.#size--;
    // A needless wake-up costs less than looking for the next one at every cancel.
    if (this.#size === 0) this.#disarm();
  }

  #place(entry: Entry): void {
    let level = LEVELS - 1;
    while (level > 0) {
      const span = spanOf(level);
      if (Math.floor(entry.due / span) !== Math.floor(this.#tick / span)) break;
      level--;
    }
    const slot = Math.floor(entry.due / spanOf(level)) % SLOTS;
    const bucket = level * SLOTS + slot;
    const head = this.#heads[bucket];
    if (head === undefined) throw new RangeError(`no slot ${slot} on level ${level}`);
    entry.bucket = bucket;
    entry.prev = head.prev;
    entry.next = head;
    head.prev.next = entry;
    head.prev = entry;
    const word = bucket >>> 5;
    this.#occupied[word] = (this.#occupied[word] ?? 0) | (1 << (bucket & 31));
  }

  #unlink(entry: Entry): void {
    const { bucket } = entry;
    entry.prev.next = entry.next;
    entry.next.prev = entry.prev;
    entry.prev = entry;
    entry.next = entry;
    entry.bucket = -1;
    const head = this.#heads[bucket];
    if (head?.next !== head) return;
    const word = bucket >>> 5;
    this.#occupied[word] = (this.#occupied[word] ?? 0) & ~(1 << (bucket & 31));
  }

  /** The first slot of `level` from `from` on that is not empty, or -1. */
  #firstSlot(level: number, from: number): number {
    for (let half = from >>> 5; half < 2; half++) {
      const bits = this.#occupied[level * 2 + half] ?? 0;
      const masked = half === from >>> 5 ? bits & (-1 << (from & 31)) : bits;
      if (masked !== 0) return half * 32 + 31 - Math.clz32(masked & -masked);
    }
    return -1;
  }

  /** The next slot to be emptied, and when. Slots of a lower level always come before those of a higher one. */
  #next(): { tick: number; bucket: number } | undefined {
    for (let level = 0; level < LEVELS; level++) {
      const span = spanOf(level);
      const position = Math.floor(this.#tick / span);
      const at = position % SLOTS;
      const from = level === 0 ? at : at + 1;
      const slot = from < SLOTS ? this.#firstSlot(level, from) : -1;
      if (slot >= 0) return { tick: (position - at + slot) * span, bucket: level * SLOTS + slot };
    }
    return undefined;
  }

  /** Fires what is due; entries of higher levels move down on the way. */
  #advance(): void {
    const target = Math.floor(elapsedMs(this.#origin, this.#clock.monotonic()) / this.#tickMs);
    this.#firing = true;
    try {
      for (let next = this.#next(); next !== undefined && next.tick <= target; next = this.#next()) {
        this.#tick = next.tick;
        const head = this.#heads[next.bucket];
        for (let entry = head?.next; entry !== undefined && entry !== head; entry = head?.next) {
          this.#unlink(entry);
          if (next.bucket >= SLOTS) this.#place(entry);
          else {
            this.#size--;
            entry.fn();
          }
        }
      }
      if (target > this.#tick) this.#tick = target;
    } finally {
      this.#firing = false;
      this.#arm();
    }
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerTick = Number.POSITIVE_INFINITY;
  }

  #arm(): void {
    if (this.#firing) return;
    const next = this.#next();
    if (next === undefined || next.tick >= this.#timerTick) return;
    this.#timer?.cancel();
    this.#timerTick = next.tick;
    const delay = next.tick * this.#tickMs - elapsedMs(this.#origin, this.#clock.monotonic());
    this.#timer = this.#clock.after(delay, () => {
      this.#timer = undefined;
      this.#timerTick = Number.POSITIVE_INFINITY;
      this.#advance();
    });
  }
}
