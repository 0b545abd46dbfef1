// Turns observed calls into the lines of a recording. A call is one line, written when it ends; what takes longer, or is
// larger, is written in parts, so that nothing is held for long. Knows the format, no file and no socket.

import type { CallEnd, CallObserver, CallSink, Metadata } from './calls.ts';
import { type EndFields, FORMAT_VERSION, type Piece, printRecord } from './format.ts';
import { redactedRequest, redactMetadata } from './redact.ts';

/** What is gathered of one call before it is written in parts, in characters of base64. */
const MAX_GATHERED = 256 * 1024;
/** A request that has to be changed is gathered whole; a larger one is left out. Bytes. */
const MAX_REDACTED_BYTES = 1024 * 1024;

export interface RecorderOptions {
  /** The wall clock's time at the start, RFC 3339. */
  readonly start: string;
  readonly to: string;
  readonly redact: boolean;
  /** ms since the start, monotonic. */
  readonly at: () => number;
  readonly write: (line: string) => void;
}

const round = (ms: number): number => Math.round(ms * 1000) / 1000;

export class Recorder implements CallSink {
  readonly #options: RecorderOptions;
  readonly #open = new Set<RecordedCall>();
  #calls = 0;

  constructor(options: RecorderOptions) {
    this.#options = options;
    const { start, to, redact } = options;
    options.write(printRecord({ record: 'recording', version: FORMAT_VERSION, start, to, redacted: redact }));
  }

  /** Calls that have begun. */
  get calls(): number {
    return this.#calls;
  }

  begin(connection: number, method: string, metadata: Metadata): CallObserver {
    const { redact } = this.#options;
    const call = new RecordedCall(
      { ...this.#options, ended: () => this.#open.delete(call) },
      { call: ++this.#calls, connection, method, metadata: redact ? redactMetadata(metadata) : metadata },
    );
    this.#open.add(call);
    return call;
  }

  unreadable(connection: number, why: string): void {
    this.#options.write(printRecord({ record: 'unreadable', at: round(this.#options.at()), connection, why }));
  }

  /** Writes what is gathered of calls that are still open: to be called every second, and at the end. */
  flush(): void {
    for (const call of this.#open) call.flush();
  }

  /** Writes the last line. */
  finish(): void {
    this.flush();
    this.#options.write(printRecord({ record: 'end', at: round(this.#options.at()) }));
  }
}

interface CallOptions extends RecorderOptions {
  readonly ended: () => void;
}

interface Identity {
  readonly call: number;
  readonly connection: number;
  readonly method: string;
  readonly metadata: Metadata;
}

class RecordedCall implements CallObserver {
  readonly #options: CallOptions;
  readonly #identity: Identity;
  readonly #begin: number;
  #isFirstLine = true;
  #headers: Metadata | undefined;
  #request: Piece[] = [];
  #response: Piece[] = [];
  #gathered = 0;
  /** A request that is changed before it is written; undefined for all others, and once it is written. */
  #unredacted: { parts: Buffer[]; size: number } | undefined;

  constructor(options: CallOptions, identity: Identity) {
    this.#options = options;
    this.#identity = identity;
    this.#begin = round(options.at());
    if (options.redact && identity.method.endsWith('/PullImage')) this.#unredacted = { parts: [], size: 0 };
  }

  request(bytes: Buffer): void {
    if (this.#unredacted === undefined) {
      this.#request.push(this.#piece(bytes));
      this.#flushLarge();
      return;
    }
    this.#unredacted.size += bytes.length;
    if (this.#unredacted.size <= MAX_REDACTED_BYTES) this.#unredacted.parts.push(Buffer.from(bytes));
    else this.#unredacted.parts = [];
  }

  requestEnd(): void {
    if (this.#unredacted === undefined) return;
    const { parts, size } = this.#unredacted;
    this.#unredacted = undefined;
    const bytes = size > MAX_REDACTED_BYTES ? undefined : redactedRequest(Buffer.concat(parts));
    // What cannot be read might hold the credentials anywhere.
    if (bytes !== undefined) this.request(bytes);
  }

  headers(metadata: Metadata): void {
    this.#headers = metadata;
  }

  response(bytes: Buffer): void {
    this.#response.push(this.#piece(bytes));
    this.#flushLarge();
  }

  end(end: CallEnd): void {
    this.requestEnd();
    this.#options.ended();
    this.#write(endFields(end, round(this.#options.at())));
  }

  flush(): void {
    if (this.#isFirstLine || this.#gathered > 0) this.#write(undefined);
  }

  #piece(bytes: Buffer): Piece {
    const base64 = bytes.toString('base64');
    this.#gathered += base64.length;
    return [round(this.#options.at()), base64];
  }

  #flushLarge(): void {
    if (this.#gathered > MAX_GATHERED) this.#write(undefined);
  }

  #write(end: EndFields | undefined): void {
    const { call, ...identity } = this.#identity;
    const first = this.#isFirstLine;
    this.#isFirstLine = false;
    this.#options.write(
      printRecord({
        record: first ? 'call' : 'more',
        call,
        at: first ? this.#begin : round(this.#options.at()),
        ...(first ? identity : {}),
        ...(this.#headers === undefined ? {} : { headers: this.#headers }),
        ...(this.#request.length === 0 ? {} : { request: this.#request }),
        ...(this.#response.length === 0 ? {} : { response: this.#response }),
        ...(end === undefined ? {} : { end }),
      }),
    );
    this.#headers = undefined;
    this.#request = [];
    this.#response = [];
    this.#gathered = 0;
  }
}

function endFields(end: CallEnd, at: number): EndFields {
  if (end.kind === 'reset') return { at, reset: end.by, code: end.code };
  if (end.kind === 'connection') return { at, connection: end.why };
  return {
    at,
    ...(end.status === undefined ? {} : { status: end.status }),
    ...(end.message === '' ? {} : { message: end.message }),
    ...(end.trailers.length === 0 ? {} : { trailers: end.trailers }),
  };
}
