// Formats the bytes of a CRI log by the reader's options: lines cut out, filtered, dated and limited. Holds only
// the unfinished end of its input. Pure but for that.

import type { LogOptions } from '../../ports/logs.ts';
import { fixedTimestamp, parseCriLogLine, timestampNanos } from './cri-log.ts';

const NEWLINE = 0x0a;

/** A piece of output, with the stream that it was written to. */
export interface LogPart {
  readonly stream: 'stdout' | 'stderr';
  readonly bytes: Buffer;
}

type FormatOptions = Pick<LogOptions, 'timestamps' | 'sinceTime' | 'limitBytes' | 'stream'>;

export class LogFormatter {
  readonly #options: FormatOptions;
  readonly #since: bigint | undefined;
  #rest: Buffer[] = [];
  #left: number;
  /** Streams whose last line is not finished yet: its continuation gets no date of its own. */
  readonly #open = new Set<string>();

  constructor(options: FormatOptions) {
    this.#options = options;
    this.#since = options.sinceTime === undefined ? undefined : BigInt(Math.round(options.sinceTime * 1000)) * 1000n;
    this.#left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  }

  /** limitBytes is reached: nothing more will come. */
  get full(): boolean {
    return this.#left <= 0;
  }

  /** The output for the next piece of the file; `chunk` must not be reused by the caller. */
  push(chunk: Buffer): Buffer {
    return joined(this.pushParts(chunk));
  }

  /** The same, stream by stream in the order of the log. */
  pushParts(chunk: Buffer): readonly LogPart[] {
    const out: LogPart[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      const piece = chunk.subarray(from, end + 1);
      this.#line(this.#rest.length === 0 ? piece : Buffer.concat([...this.#rest, piece]), out);
      this.#rest = [];
      from = end + 1;
    }
    if (from < chunk.length) this.#rest.push(chunk.subarray(from));
    return out;
  }

  /** The file ends here: what is left of it counts as a line if it can be read as one. */
  end(): Buffer {
    return joined(this.endParts());
  }

  endParts(): readonly LogPart[] {
    const out: LogPart[] = [];
    if (this.#rest.length > 0) this.#line(Buffer.concat(this.#rest), out);
    this.#rest = [];
    return out;
  }

  #line(raw: Buffer, out: LogPart[]): void {
    const line = parseCriLogLine(raw);
    if (line === undefined || this.full) return;
    const { stream, timestamps } = this.#options;
    if (stream !== undefined && line.stream !== stream) return;
    if (this.#since !== undefined && (timestampNanos(line.timestamp) ?? 0n) < this.#since) return;
    const emit = (bytes: Buffer): void => this.#emit(line.stream, bytes, out);
    if (timestamps && !this.#open.has(line.stream)) emit(Buffer.from(`${fixedTimestamp(line.timestamp)} `));
    if (line.partial) this.#open.add(line.stream);
    else this.#open.delete(line.stream);
    emit(line.content);
  }

  #emit(stream: LogPart['stream'], bytes: Buffer, out: LogPart[]): void {
    const kept = bytes.length > this.#left ? bytes.subarray(0, Math.max(0, this.#left)) : bytes;
    this.#left -= kept.length;
    if (kept.length > 0) out.push({ stream, bytes: kept });
  }
}

const joined = (parts: readonly LogPart[]): Buffer => Buffer.concat(parts.map(({ bytes }) => bytes));
