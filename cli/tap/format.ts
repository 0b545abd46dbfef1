// The format of a recording: one JSON object a line, described in docs/tap.md. Writes and reads lines; opens no file.

import { parseRfc3339 } from '../../lib/rfc3339.ts';
import { isJsonObject, type JsonObject } from './json.ts';

export const FORMAT_VERSION = 1;

/** Bytes that passed together: ms since the recording's start, and the bytes in base64. */
export type Piece = readonly [at: number, base64: string];
export type Pairs = readonly (readonly [name: string, value: string])[];

export interface StartRecord {
  readonly record: 'recording';
  readonly version: number;
  /** RFC 3339 with milliseconds, UTC. */
  readonly start: string;
  /** Where calls were passed on to. */
  readonly to: string;
  /** Whether registry credentials were masked. */
  readonly redacted: boolean;
}

export interface EndFields {
  readonly at: number;
  /** gRPC's code; absent where the server sent none. */
  readonly status?: number;
  readonly message?: string;
  readonly trailers?: Pairs;
  /** Who reset the stream, and HTTP/2's error code. */
  readonly reset?: 'client' | 'server';
  readonly code?: number;
  /** Why the call ended with its connection. */
  readonly connection?: string;
}

/** What a line says of a call: the first line of a call has its method, the last one its end. */
export interface CallRecord {
  readonly record: 'call' | 'more';
  readonly call: number;
  readonly at: number;
  readonly connection?: number;
  readonly method?: string;
  readonly metadata?: Pairs;
  readonly headers?: Pairs;
  readonly request?: readonly Piece[];
  readonly response?: readonly Piece[];
  readonly end?: EndFields;
}

export interface LostRecord {
  readonly record: 'lost';
  readonly at: number;
  /** Lines of calls that could not be written before this line. */
  readonly lines: number;
  readonly bytes: number;
  readonly why: string;
}

export interface NoteRecord {
  readonly record: 'unreadable';
  readonly at: number;
  readonly connection: number;
  readonly why: string;
}

/** Written when the tap stops in order: a recording without it goes on or was cut off. */
export interface FinishRecord {
  readonly record: 'end';
  readonly at: number;
}

export type TapRecord = StartRecord | CallRecord | LostRecord | NoteRecord | FinishRecord;

export function printRecord(record: TapRecord): string {
  return `${JSON.stringify(record)}\n`;
}

const KINDS = new Set(['recording', 'call', 'more', 'lost', 'unreadable', 'end']);

/** What is wrong with a line, or the record in it. */
export function parseRecord(line: string): TapRecord | { readonly damage: string } {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    if (error instanceof SyntaxError) return { damage: 'is cut off or no JSON' };
    throw error;
  }
  if (!isJsonObject(value) || typeof value['record'] !== 'string') return { damage: 'is no record' };
  if (!KINDS.has(value['record'])) return { damage: `is a record of unknown kind "${value['record']}"` };
  return isRecord(value) ? value : { damage: `is no "${value['record']}" record as it should be` };
}

const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
const isAbsent = (value: unknown, test: (value: unknown) => boolean): boolean => value === undefined || test(value);
const isText = (value: unknown): boolean => typeof value === 'string';

function isPieces(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((each) => Array.isArray(each) && isNumber(each[0]) && typeof each[1] === 'string')
  );
}

function isPairs(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => Array.isArray(each) && isText(each[0]) && isText(each[1]));
}

function isEnd(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  return (
    isNumber(value['at']) &&
    isAbsent(value['status'], isNumber) &&
    isAbsent(value['code'], isNumber) &&
    isAbsent(value['message'], isText) &&
    isAbsent(value['connection'], isText) &&
    isAbsent(value['trailers'], isPairs) &&
    isAbsent(value['reset'], (by) => by === 'client' || by === 'server')
  );
}

function isRecord(value: JsonObject): value is JsonObject & TapRecord {
  if (value['record'] === 'recording')
    return (
      isNumber(value['version']) &&
      isText(value['start']) &&
      parseRfc3339(String(value['start'])) !== undefined &&
      isText(value['to']) &&
      typeof value['redacted'] === 'boolean'
    );
  if (!isNumber(value['at'])) return false;
  if (value['record'] === 'end') return true;
  if (value['record'] === 'lost') return isNumber(value['lines']) && isNumber(value['bytes']) && isText(value['why']);
  if (value['record'] === 'unreadable') return isNumber(value['connection']) && isText(value['why']);
  const first = value['record'] === 'call';
  return (
    isNumber(value['call']) &&
    (first ? isText(value['method']) && isNumber(value['connection']) : true) &&
    isAbsent(value['metadata'], isPairs) &&
    isAbsent(value['headers'], isPairs) &&
    isAbsent(value['request'], isPieces) &&
    isAbsent(value['response'], isPieces) &&
    isAbsent(value['end'], isEnd)
  );
}
