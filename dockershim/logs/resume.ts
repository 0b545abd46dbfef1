// Where to go on in Docker's log after a restart: behind the last message that CRI's log has. Docker's messages are not
// quite in the order of their times (two streams are stamped by two threads), so the last one is looked for by what it
// is, from a little before it on. Pure.

import type { LogMessage } from './messages.ts';

export interface LogTail {
  /** The last messages of CRI's log, in order; none for an empty log. */
  readonly messages: readonly LogMessage[];
  /** Bytes of the log that are whole lines: what is behind them was cut off by a crash. */
  readonly wholeBytes: number;
}

/** Messages further apart than this are in the order of their times. s. */
const DISORDER_S = 2;

function same(a: LogMessage, b: LogMessage): boolean {
  return a.time === b.time && a.stream === b.stream && a.partial === b.partial && a.data.equals(b.data);
}

/** Docker's `since` for a time: seconds with a fraction. `seconds`: the epoch seconds of the time without its fraction. */
export function sinceOf(time: string, seconds: number): string {
  return `${seconds}.${time.slice(20, 29)}`;
}

const earliest = (messages: readonly LogMessage[]): string | undefined =>
  messages.reduce<string | undefined>(
    (least, { time }) => (least === undefined || time < least ? time : least),
    undefined,
  );

export class ResumePoint {
  /** What Docker is asked for: the messages from this time on; undefined for all of them. */
  readonly since: string | undefined;
  readonly #last: LogMessage | undefined;
  readonly #lastSecond: number;
  /** How many messages like the last one are still to come, the last one among them. */
  #missing: number;
  #waiting: LogMessage[] = [];
  readonly #secondOf: (time: string) => number;

  /** `secondOf`: epoch seconds of a message's time. */
  constructor(tail: readonly LogMessage[], secondOf: (time: string) => number) {
    const last = tail.at(-1);
    this.since = earliest(tail);
    this.#last = last;
    this.#secondOf = secondOf;
    this.#lastSecond = last === undefined ? 0 : secondOf(last.time);
    this.#missing = last === undefined ? 0 : tail.filter((message) => same(message, last)).length;
  }

  /** What is to be written now that this message has come. */
  take(message: LogMessage): readonly LogMessage[] {
    const last = this.#last;
    if (this.#missing === 0 || last === undefined) return [message];
    if (same(message, last)) {
      this.#missing--;
      // All that came before has been written.
      if (this.#missing === 0) this.#waiting = [];
      return [];
    }
    this.#waiting.push(message);
    // Docker no longer has the last one: what is younger is new.
    return this.#secondOf(message.time) > this.#lastSecond + DISORDER_S ? this.end() : [];
  }

  /** At the end of Docker's log: what is to be written of the messages that waited. */
  end(): readonly LogMessage[] {
    const last = this.#last;
    const waiting = this.#waiting;
    this.#waiting = [];
    if (this.#missing === 0 || last === undefined) return [];
    this.#missing = 0;
    return waiting.filter(({ time }) => time > last.time);
  }
}
