// What happened in a simulated world, line by line: a digest of everything, by which two runs are compared, and the
// newest lines, which a failure shows.

import type { Clock } from '../../lib/clock.ts';

const KEPT = 400;

export class Journal {
  readonly #clock: Clock;
  /** What differs from run to run, and is left out. */
  readonly #hidden: string;
  readonly #lines: string[] = [];
  readonly #onLine: ((line: string) => void) | undefined;
  #count = 0;
  #high = 0x811c9dc5;
  #low = 0x9e3779b9;

  constructor(clock: Clock, hidden: string, onLine?: (line: string) => void) {
    this.#clock = clock;
    this.#hidden = hidden;
    this.#onLine = onLine;
  }

  /** With the virtual time in front. */
  protected lineOf(what: string): string {
    const shown = what.includes(this.#hidden) ? what.replaceAll(this.#hidden, '') : what;
    return `${this.#clock.monotonic()} ${shown}`;
  }

  note(what: string): void {
    const line = this.lineOf(what);
    for (let index = 0; index < line.length; index++) {
      const code = line.charCodeAt(index);
      this.#high = Math.imul(this.#high ^ code, 0x01000193);
      this.#low = Math.imul(this.#low ^ code, 0x85ebca6b) ^ (this.#low >>> 15);
    }
    this.#count++;
    this.#lines.push(line);
    if (this.#lines.length > 2 * KEPT) this.#lines.splice(0, KEPT);
    this.#onLine?.(line);
  }

  get count(): number {
    return this.#count;
  }

  /** Of every line so far, in order. */
  get digest(): string {
    return [this.#high, this.#low].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  /** The newest lines, oldest first, with virtual seconds in front. */
  last(count: number): readonly string[] {
    return this.#lines.slice(-count);
  }
}

/** For a world that keeps the lines itself: neither a digest nor lines here. */
export class PassedJournal extends Journal {
  readonly #pass: (line: string) => void;

  constructor(clock: Clock, hidden: string, pass: (line: string) => void) {
    super(clock, hidden);
    this.#pass = pass;
  }

  override note(what: string): void {
    this.#pass(this.lineOf(what));
  }
}
