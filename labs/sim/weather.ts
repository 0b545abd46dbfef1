// When something last went wrong in a simulated world that an agent cannot help: a call that failed, a stream that broke,
// a restart. A rule about how long something may take holds only where nothing did.

import { type Clock, later, type MonotonicMs, plusMs } from '../../lib/clock.ts';

export class Weather {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #whole: Weather | undefined;
  /** Undefined: never. */
  #lastBad: MonotonicMs | undefined;

  /** `whole`: the weather of everything, for that of a part. */
  constructor(clock: Pick<Clock, 'monotonic'>, whole?: Weather) {
    this.#clock = clock;
    this.#whole = whole;
  }

  /** Something went wrong; what it led to may take `forMs` more. */
  bad(forMs = 0): void {
    this.#whole?.bad(forMs);
    const until = plusMs(this.#clock.monotonic(), forMs);
    this.#lastBad = later(this.#lastBad ?? until, until);
  }

  /** Nothing has gone wrong since then. */
  isFairSince(time: MonotonicMs): boolean {
    return this.#lastBad === undefined || this.#lastBad < time;
  }
}
