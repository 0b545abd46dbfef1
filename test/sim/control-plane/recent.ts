// A value that changes, with what it was a while ago: what a controller with an old cache may still act on.

import type { Clock, MonotonicMs } from '../../../lib/clock.ts';

const KEPT_MS = 600_000;

export class Recent<T> {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Oldest first; each valid until the next one begins. */
  readonly #values: { readonly since: MonotonicMs; readonly value: T }[] = [];

  constructor(clock: Pick<Clock, 'monotonic'>, value: T) {
    this.#clock = clock;
    this.set(value);
  }

  set(value: T): void {
    const now = this.#clock.monotonic();
    this.#values.push({ since: now, value });
    while ((this.#values[1]?.since ?? now) < now - KEPT_MS) this.#values.shift();
  }

  get now(): T | undefined {
    return this.#values.at(-1)?.value;
  }

  /** All that it was in the last `ms`. */
  within(ms: number): readonly T[] {
    const from = this.#clock.monotonic() - ms;
    const first = this.#values.findLastIndex(({ since }) => since <= from);
    return this.#values.slice(Math.max(0, first)).map(({ value }) => value);
  }
}
