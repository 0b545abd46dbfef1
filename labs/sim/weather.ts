// When something last went wrong in a simulated world that an agent cannot help: a call that failed, a stream that broke,
// a restart. A rule about how long something may take holds only where nothing did.

import type { Clock } from '../../lib/clock.ts';

export class Weather {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #whole: Weather | undefined;
  #lastBad = 0;

  /** `whole`: the weather of everything, for that of a part. */
  constructor(clock: Pick<Clock, 'monotonic'>, whole?: Weather) {
    this.#clock = clock;
    this.#whole = whole;
  }

  /** Something went wrong; what it led to may take `forMs` more. */
  bad(forMs = 0): void {
    this.#whole?.bad(forMs);
    this.#lastBad = Math.max(this.#lastBad, this.#clock.monotonic() + forMs);
  }

  /** Nothing has gone wrong since then (monotonic ms). */
  isFairSince(time: number): boolean {
    return this.#lastBad < time;
  }
}
