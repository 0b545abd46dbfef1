// Appends lines to a recording from a queue of limited size. A disk that is slow or full never holds up who adds lines:
// what finds no room is counted, and the count is written as soon as there is room again.

import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { type LostRecord, printRecord } from './format.ts';

/** Of lines that wait to be written, bytes. */
export const MAX_QUEUE_BYTES = 16 * 1024 * 1024;
/** Written at a time, bytes. */
const MAX_BATCH_BYTES = 1024 * 1024;
/** After a failed write, ms until the next one. */
const RETRY_MS = 250;

/** What of an open file is needed. */
export interface RecordingFile {
  /** Appends; may write less than asked. Resolves with the number of bytes. */
  append(bytes: Buffer): Promise<number>;
}

export interface WriterOptions {
  readonly file: RecordingFile;
  readonly clock: Pick<Clock, 'after' | 'sleep'>;
  /** ms since the recording's start. */
  readonly at: () => number;
  readonly maxQueueBytes?: number;
  /** The first loss, and the first after lines could be written again. */
  readonly onLoss: (why: string) => void;
}

export interface Loss {
  readonly lines: number;
  readonly bytes: number;
}

interface Line {
  readonly text: string;
  readonly bytes: number;
}

export class RecordingWriter {
  readonly #options: WriterOptions;
  readonly #maxQueueBytes: number;
  #queue: Line[] = [];
  #queuedBytes = 0;
  #writing: Promise<void> | undefined;
  #closing = false;
  /** Not yet written as a record. */
  #lost = { lines: 0, bytes: 0, why: '' };
  #total = { lines: 0, bytes: 0 };
  /** The file may end within a line. */
  #torn = false;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#maxQueueBytes = options.maxQueueBytes ?? MAX_QUEUE_BYTES;
  }

  /** Since the start. */
  get lost(): Loss {
    return this.#total;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Queues a line, which ends with its newline. Never waits and never throws. */
  add(text: string): void {
    const line: Line = { text, bytes: Buffer.byteLength(text) };
    if (this.#queuedBytes + line.bytes > this.#maxQueueBytes) {
      this.#lose([line], `more than ${this.#maxQueueBytes} bytes wait to be written`);
      return;
    }
    this.#queue.push(line);
    this.#queuedBytes += line.bytes;
    this.#writing ??= this.#drain();
  }

  /** Writes what is queued, and the count of what was lost. Resolves also when the disk does not take it. */
  async close(): Promise<void> {
    this.#closing = true;
    while (this.#writing !== undefined) await this.#writing;
    if (this.#lost.lines > 0) await this.#write([]);
  }

  async #drain(): Promise<void> {
    // Lines that are added meanwhile go into the same write.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (this.#queue.length > 0) {
      // Not `retry`: what failed is gone, and the pause is before the next batch.
      const batch = this.#takeBatch();
      const ok = await this.#write(batch);
      this.#queuedBytes -= batch.reduce((sum, line) => sum + line.bytes, 0);
      if (!ok && !this.#closing) await this.#options.clock.sleep(RETRY_MS);
    }
    this.#writing = undefined;
  }

  #takeBatch(): readonly Line[] {
    let bytes = 0;
    let count = 0;
    for (const line of this.#queue) {
      if (count > 0 && bytes + line.bytes > MAX_BATCH_BYTES) break;
      bytes += line.bytes;
      count++;
    }
    const batch = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    return batch;
  }

  async #write(batch: readonly Line[]): Promise<boolean> {
    const { lines, bytes, why } = this.#lost;
    const lost: LostRecord | undefined =
      lines === 0 ? undefined : { record: 'lost', at: this.#options.at(), lines, bytes, why };
    const text = `${this.#torn ? '\n' : ''}${lost === undefined ? '' : printRecord(lost)}${batch.map((line) => line.text).join('')}`;
    let rest = Buffer.from(text);
    try {
      while (rest.length > 0) {
        const written = await this.#options.file.append(rest);
        if (written === 0) throw new Error('the disk takes no more bytes');
        rest = rest.subarray(written);
        this.#torn = rest.length > 0;
      }
    } catch (error) {
      this.#torn = true;
      this.#lose(batch, errorMessage(error));
      return false;
    }
    this.#lost = { lines: this.#lost.lines - lines, bytes: this.#lost.bytes - bytes, why: this.#lost.why };
    return true;
  }

  #lose(batch: readonly Line[], why: string): void {
    if (this.#lost.lines === 0 && batch.length > 0) this.#options.onLoss(why);
    const bytes = batch.reduce((sum, line) => sum + line.bytes, 0);
    this.#lost = { lines: this.#lost.lines + batch.length, bytes: this.#lost.bytes + bytes, why };
    this.#total = { lines: this.#total.lines + batch.length, bytes: this.#total.bytes + bytes };
  }
}
