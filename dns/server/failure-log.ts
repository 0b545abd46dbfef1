// Failures in the log: so many lines a second, and then how many more there were. Each question of a flood that is refused is a failure, and a log
// that has a line for each would fill the disk.

import { type Clock, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';

const WINDOW_MS = 1000;
const MOST_LINES = 100;

export class FailureLog {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #write: (line: string) => void;
  #since: MonotonicMs | undefined;
  #lines = 0;
  #left = 0;

  constructor(clock: Pick<Clock, 'monotonic'>, write: (line: string) => void) {
    this.#clock = clock;
    this.#write = write;
  }

  /** `line` is made only where it is written. */
  add(line: () => string): void {
    const now = this.#clock.monotonic();
    if (this.#since === undefined || elapsedMs(this.#since, now) >= WINDOW_MS) {
      if (this.#left > 0) this.#write(`plugin/errors: ${this.#left} more failures are not listed`);
      this.#since = now;
      this.#lines = 0;
      this.#left = 0;
    }
    if (this.#lines >= MOST_LINES) {
      this.#left++;
      return;
    }
    this.#lines++;
    this.#write(line());
  }
}
