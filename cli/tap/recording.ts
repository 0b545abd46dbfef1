// Reads a recording back: lines become calls with whole messages. What is damaged or missing is reported and left out; a
// last line that is cut off is what a killed tap leaves.

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { type EpochMs, ZERO_TIME } from '../../lib/clock.ts';
import { errnoOf, errorMessage, UserError } from '../../lib/errors.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import {
  type CallRecord,
  type EndFields,
  FORMAT_VERSION,
  type Pairs,
  type Piece,
  parseRecord,
  type TapRecord,
} from './format.ts';
import { MessageReader } from './grpc-messages.ts';

export interface RecordedMessage {
  /** When its last byte passed, ms since the recording's start. */
  readonly at: number;
  readonly bytes: Buffer;
}

export interface RecordedCall {
  readonly id: number;
  readonly connection: number;
  readonly method: string;
  readonly begin: number;
  readonly metadata: Pairs;
  readonly headers: Pairs;
  readonly requests: readonly RecordedMessage[];
  readonly responses: readonly RecordedMessage[];
  /** Absent for a call that was open when the recording ended. */
  readonly end: EndFields | undefined;
}

export interface RecordingInfo {
  readonly start: EpochMs;
  readonly to: string;
  readonly redacted: boolean;
  /** Of the last line, ms. */
  readonly durationMs: number;
  /** One line each: torn lines, losses, what could not be read along. */
  readonly problems: readonly string[];
}

class OpenCall {
  readonly record: CallRecord;
  readonly requests: RecordedMessage[] = [];
  readonly responses: RecordedMessage[] = [];
  headers: Pairs = [];
  readonly #requestReader = new MessageReader();
  readonly #responseReader = new MessageReader();

  constructor(record: CallRecord) {
    this.record = record;
  }

  add(record: CallRecord): void {
    if (record.headers !== undefined) this.headers = record.headers;
    read(this.#requestReader, record.request, this.requests);
    read(this.#responseReader, record.response, this.responses);
  }

  close(end: EndFields | undefined): RecordedCall {
    const { call, at, connection = 0, method = '', metadata = [] } = this.record;
    const { requests, responses, headers } = this;
    return { id: call, connection, method, begin: at, metadata, headers, requests, responses, end };
  }
}

function read(reader: MessageReader, pieces: readonly Piece[] | undefined, messages: RecordedMessage[]): void {
  for (const [at, base64] of pieces ?? []) {
    for (const bytes of reader.push(Buffer.from(base64, 'base64'))) messages.push({ at, bytes });
  }
}

/** Gets a call, and the recording's start. */
export type OnCall = (call: RecordedCall, start: EpochMs) => void;

/** Fed line by line; hands out each call when its last line has come. */
export class RecordingReader {
  readonly #open = new Map<number, OpenCall>();
  readonly #onCall: OnCall;
  readonly #problems: string[] = [];
  #lines = 0;
  #start: { readonly start: EpochMs; readonly to: string; readonly redacted: boolean } | undefined;
  #last = 0;
  #finished = false;

  constructor(onCall: OnCall) {
    this.#onCall = onCall;
  }

  /** Throws UserError for a file that is no recording. */
  push(line: string): void {
    this.#lines++;
    if (line === '') return;
    const record = parseRecord(line);
    if ('damage' in record) {
      if (this.#start === undefined) throw new UserError(`line ${this.#lines} ${record.damage}: this is no recording`);
      this.#problems.push(`line ${this.#lines} ${record.damage}, and is left out`);
      return;
    }
    this.#take(record);
  }

  #take(record: TapRecord): void {
    if (record.record === 'recording' || this.#start === undefined) {
      if (record.record !== 'recording')
        throw new UserError('the first line is no "recording" record: this is no recording');
      if (record.version !== FORMAT_VERSION)
        throw new UserError(`the recording has format ${record.version}; this version reads ${FORMAT_VERSION}`);
      this.#start = { start: parseRfc3339(record.start) ?? ZERO_TIME, to: record.to, redacted: record.redacted };
      return;
    }
    this.#last = Math.max(this.#last, record.at);
    if (record.record === 'end') this.#finished = true;
    else if (record.record === 'lost')
      this.#problems.push(
        `${record.lines} lines (${record.bytes} bytes) were lost before ${at(record.at)}: ${record.why}`,
      );
    else if (record.record === 'unreadable')
      this.#problems.push(`connection ${record.connection} was not recorded after ${at(record.at)}: ${record.why}`);
    else this.#takeCall(record, this.#start.start);
  }

  #takeCall(record: CallRecord, start: EpochMs): void {
    let call = this.#open.get(record.call);
    if (record.record === 'call') {
      call = new OpenCall(record);
      this.#open.set(record.call, call);
    }
    if (call === undefined) {
      this.#problems.push(`line ${this.#lines} goes on with call ${record.call}, whose beginning is missing`);
      return;
    }
    try {
      call.add(record);
    } catch (error) {
      // zlib's errors have a code; whatever else is a fault of ours.
      if (errnoOf(error) === undefined) throw error;
      this.#problems.push(
        `line ${this.#lines}: a message of call ${record.call} cannot be read: ${errorMessage(error)}`,
      );
    }
    if (record.end === undefined) return;
    this.#last = Math.max(this.#last, record.end.at);
    this.#open.delete(record.call);
    this.#onCall(call.close(record.end), start);
  }

  /** Hands out the calls that have no end. */
  finish(): RecordingInfo {
    if (this.#start === undefined) throw new UserError('the file is empty: this is no recording');
    for (const call of this.#open.values()) this.#onCall(call.close(undefined), this.#start.start);
    this.#open.clear();
    const cut = this.#finished ? [] : ['the recording goes on, or its tap was killed: there is no last line'];
    return { ...this.#start, durationMs: this.#last, problems: [...this.#problems, ...cut] };
  }
}

const at = (ms: number): string => `${(ms / 1000).toFixed(3)} s`;

/** Reads a file and hands out its calls in the order of their ends. Rejects with UserError. */
export async function readRecording(path: string, onCall: OnCall): Promise<RecordingInfo> {
  const reader = new RecordingReader(onCall);
  try {
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY }))
      reader.push(line);
    return reader.finish();
  } catch (error) {
    if (error instanceof UserError || errnoOf(error) !== undefined)
      throw new UserError(`cannot read the recording ${path}: ${errorMessage(error)}`);
    throw error;
  }
}

/** A whole recording, in the order of the calls' beginnings. */
export async function loadRecording(
  path: string,
): Promise<{ readonly info: RecordingInfo; readonly calls: readonly RecordedCall[] }> {
  const calls: RecordedCall[] = [];
  const info = await readRecording(path, (call) => calls.push(call));
  calls.sort((a, b) => a.begin - b.begin || a.id - b.id);
  return { info, calls };
}
