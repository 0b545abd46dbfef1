// Keeps a log small and its writer running: a limit for the size of a record, a limit for how often an equal record is
// written, and lines that are dropped, and counted, while they cannot be written. Nothing here throws for a full disk.

import { writeSync } from 'node:fs';
import { elapsedMs, type MonotonicMs } from './clock.ts';
import { cutWithMark } from './cut.ts';
import { errnoOf } from './errors.ts';
import { setOwn } from './own-property.ts';

/** Bytes of a record's message, and of all its fields together. */
const MAX_MESSAGE_BYTES = 4096;
const MAX_FIELDS_BYTES = 8192;

export type Fields = Readonly<Record<string, unknown>>;

/** Fields that take no more room than a line may have; what is cut becomes text. */
export function limitFields(fields: Fields): Fields {
  let left = MAX_FIELDS_BYTES;
  let cut = false;
  const limited: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
    const kept = cutWithMark(text, Math.max(0, left));
    left -= kept.length + name.length;
    cut ||= kept !== text;
    setOwn(limited, name, kept === text ? value : kept);
  }
  return cut ? limited : fields;
}

export function limitMessage(message: string): string {
  return cutWithMark(message, MAX_MESSAGE_BYTES);
}

/** The same record is written again after this long (ms), then after twice as long, and so on up to the longest. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 300_000;
/** A record that has not come for this long (ms) counts as new. */
const FORGOTTEN_MS = 600_000;
/** The number of different records that are kept. */
const REMEMBERED = 256;

interface Repeat {
  writtenAt: MonotonicMs;
  seenAt: MonotonicMs;
  waitMs: number;
  suppressed: number;
}

/** Decides whether a record that was written before is written again. */
export class RepeatFilter {
  readonly #now: () => MonotonicMs;
  readonly #known = new Map<string, Repeat>();

  /** `now`: monotonic ms. */
  constructor(now: () => MonotonicMs) {
    this.#now = now;
  }

  /** How many equal records were left out before this one; undefined when this one is left out too. */
  admit(record: string): number | undefined {
    const now = this.#now();
    const known = this.#known.get(record);
    this.#known.delete(record);
    if (known === undefined || elapsedMs(known.seenAt, now) >= FORGOTTEN_MS) {
      this.#remember(record, { writtenAt: now, seenAt: now, waitMs: FIRST_WAIT_MS, suppressed: 0 });
      return 0;
    }
    known.seenAt = now;
    this.#remember(record, known);
    if (elapsedMs(known.writtenAt, now) < known.waitMs) {
      known.suppressed++;
      return undefined;
    }
    const { suppressed } = known;
    known.writtenAt = now;
    known.waitMs = Math.min(known.waitMs * 2, LONGEST_WAIT_MS);
    known.suppressed = 0;
    return suppressed;
  }

  #remember(record: string, repeat: Repeat): void {
    this.#known.set(record, repeat);
    const [oldest] = this.#known.keys();
    if (this.#known.size > REMEMBERED && oldest !== undefined) this.#known.delete(oldest);
  }
}

/** Writes bytes to a file that is open: all, or fewer; throws as fs.writeSync does. */
export type WriteBytes = (bytes: Buffer) => number;

const stderr: WriteBytes = (bytes) => writeSync(2, bytes);

/** A pipe that is full is tried this often, with this pause (ms): a reader that does not read must not block the process. */
const FULL_PIPE_TRIES = 4;
const FULL_PIPE_PAUSE_MS = 5;

/**
 * Writes lines to a file or pipe. A line that cannot be written (the disk is full, the reader is gone or does not read)
 * is dropped; with the first one that can be, a line reports how many were lost and why. Dropped lines are not kept.
 */
export class LineWriter {
  readonly #write: WriteBytes;
  readonly #lostLine: (lost: number, code: string) => string;
  #lost = 0;
  #code = '';
  /** The last line was written in part: the next one begins with a new line. */
  #torn = false;

  constructor(lostLine: (lost: number, code: string) => string, write: WriteBytes = stderr) {
    this.#lostLine = lostLine;
    this.#write = write;
  }

  /** `line` ends with a newline. */
  write(line: string): void {
    if (this.#lost > 0) {
      if (!this.#put(`${this.#torn ? '\n' : ''}${this.#lostLine(this.#lost, this.#code)}`)) {
        this.#lost++;
        return;
      }
      this.#lost = 0;
      this.#torn = false;
    }
    if (!this.#put(line)) this.#lost++;
  }

  #put(text: string): boolean {
    let rest: Buffer = Buffer.from(text);
    for (let tries = 1; rest.length > 0; ) {
      try {
        const written = this.#write(rest);
        this.#torn ||= written > 0 && written < rest.length;
        rest = rest.subarray(written);
      } catch (error) {
        const code = errnoOf(error);
        if (code === undefined) throw error;
        this.#code = code;
        // While lines are being lost there is no waiting for the reader.
        if (code !== 'EAGAIN' || this.#lost > 0 || ++tries > FULL_PIPE_TRIES) return false;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_PAUSE_MS);
      }
    }
    this.#torn = false;
    return true;
  }
}
