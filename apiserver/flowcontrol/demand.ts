// How many seats a priority level could use, over a time: the highest number, the average and the deviation from it.

import { elapsedMs, type MonotonicMs } from '../../lib/clock.ts';

export interface ObservedDemand {
  readonly max: number;
  readonly average: number;
  readonly deviation: number;
}

export class DemandIntegral {
  #at: MonotonicMs;
  #value = 0;
  #max = 0;
  /** Sums over the time since the last reset: of the time, of the value, and of its square. */
  #ms = 0;
  #first = 0;
  #second = 0;

  constructor(now: MonotonicMs) {
    this.#at = now;
  }

  set(value: number, now: MonotonicMs): void {
    this.#advance(now);
    this.#value = value;
    if (value > this.#max) this.#max = value;
  }

  /** What was observed since the last call. */
  reset(now: MonotonicMs): ObservedDemand {
    this.#advance(now);
    const average = this.#ms === 0 ? this.#value : this.#first / this.#ms;
    const variance = this.#ms === 0 ? 0 : this.#second / this.#ms - average * average;
    const observed = { max: this.#max, average, deviation: Math.sqrt(Math.max(0, variance)) };
    this.#max = this.#value;
    this.#ms = 0;
    this.#first = 0;
    this.#second = 0;
    return observed;
  }

  #advance(now: MonotonicMs): void {
    const ms = elapsedMs(this.#at, now);
    this.#at = now;
    this.#ms += ms;
    this.#first += ms * this.#value;
    this.#second += ms * this.#value * this.#value;
  }
}
