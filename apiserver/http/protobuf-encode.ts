// JSON objects of built-in kinds as Kubernetes' protobuf, for clients that take nothing else: the inverse of protobuf.ts.
// What a message has no field for is left out; a value that does not fit its field throws RangeError. Pure.

import { parseGoDuration } from '../../lib/go-duration.ts';
import { getOwn } from '../../lib/own-property.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { MAGIC, messageName, messages } from './protobuf-messages.ts';
import { BackwardWriter } from './protobuf-writer.ts';

const LIST_META = 'meta.v1.ListMeta';
/** Of every list. */
const METADATA = 1;
const ITEMS = 2;
/** Of runtime.Unknown, the envelope. */
const ENVELOPE = { typeMeta: 1, raw: 2, contentEncoding: 3, contentType: 4 } as const;

interface Field {
  readonly number: number;
  readonly name: string;
  readonly form: 'one' | 'list' | 'map' | 'inline';
  readonly type: string;
}

const plans = new Map<string, readonly Field[]>();

/** The fields of a message, the last one first. */
function planOf(message: string): readonly Field[] {
  let plan = plans.get(message);
  if (plan === undefined) {
    const fields = getOwn(messages(), message);
    if (fields === undefined) throw new RangeError(`protobuf.json has no message ${message}`);
    plan = Object.entries(fields)
      .map(([number, text]) => fieldOf(Number(number), text))
      .sort((a, b) => b.number - a.number);
    plans.set(message, plan);
  }
  return plan;
}

function fieldOf(number: number, text: string): Field {
  const colon = text.indexOf(':');
  const name = text.slice(0, colon);
  const type = text.slice(colon + 1);
  if (name === '') return { number, name, form: 'inline', type };
  if (type.startsWith('[]')) return { number, name, form: 'list', type: type.slice('[]'.length) };
  if (type.startsWith('map:')) return { number, name, form: 'map', type: type.slice('map:'.length) };
  return { number, name, form: 'one', type };
}

function misfit(type: string, value: unknown): RangeError {
  return new RangeError(`a value of JSON type ${Array.isArray(value) ? 'array' : typeof value} is not a ${type}`);
}

function objectOf(type: string, value: unknown): JsonObject {
  if (!isObject(value)) throw misfit(type, value);
  return value;
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw misfit('list', value);
  return value;
}

function textOf(type: string, value: unknown): string {
  if (typeof value !== 'string') throw misfit(type, value);
  return value;
}

function numberOf(type: string, value: unknown): number {
  if (typeof value !== 'number') throw misfit(type, value);
  return value;
}

function putTime(writer: BackwardWriter, value: unknown): void {
  const text = textOf('time', value);
  const ms = parseRfc3339(text);
  if (ms === undefined) throw new RangeError(`not a time: ${JSON.stringify(text)}`);
  const [, fraction = ''] = /\.(\d{1,9})/.exec(text) ?? [];
  writer.integer(2, Number(fraction.padEnd(9, '0')));
  writer.integer(1, Math.floor(ms / 1000));
}

function putDuration(writer: BackwardWriter, value: unknown): void {
  const text = textOf('duration', value);
  const ms = parseGoDuration(text);
  if (ms === undefined) throw new RangeError(`not a duration: ${JSON.stringify(text)}`);
  writer.integer(1, Math.round(ms * 1e6));
}

function putIntOrString(writer: BackwardWriter, value: unknown): void {
  const isText = typeof value === 'string';
  writer.text(3, isText ? value : '');
  writer.integer(2, isText ? 0 : numberOf('intstr', value));
  writer.integer(1, isText ? 1 : 0);
}

/** A schema, or a list of schemas or of strings. */
function putOrList(writer: BackwardWriter, ofStrings: boolean, message: string, value: unknown): void {
  if (Array.isArray(value)) putList(writer, 2, ofStrings ? 'string' : `#${message}`, value);
  else putOne(writer, 1, `#${message}`, value);
}

/** A schema, or whether anything is allowed. */
function putOrBool(writer: BackwardWriter, message: string, value: unknown): void {
  if (typeof value !== 'boolean') putOne(writer, 2, `#${message}`, value);
  writer.integer(1, value === false ? 0 : 1);
}

/** The content of a field that is a message. */
function putContent(writer: BackwardWriter, type: string, value: unknown): void {
  switch (type) {
    case 'time':
      putTime(writer, value);
      break;
    case 'duration':
      putDuration(writer, value);
      break;
    case 'quantity':
      writer.text(1, typeof value === 'number' ? String(value) : textOf(type, value));
      break;
    case 'intstr':
      putIntOrString(writer, value);
      break;
    case 'raw':
      writer.text(1, JSON.stringify(value));
      break;
    case 'strings':
      putList(writer, 1, 'string', listOf(value));
      break;
    default: {
      const [alternative = '', message] = type.split(':', 2);
      if (message === undefined) putMessage(writer, type.slice(1), objectOf(type.slice(1), value));
      else if (alternative === 'or-bool') putOrBool(writer, message, value);
      else putOrList(writer, alternative === 'or-strings', message, value);
    }
  }
}

/** One field, or one element of a list. */
function putOne(writer: BackwardWriter, field: number, type: string, value: unknown): void {
  switch (type) {
    case 'string':
      writer.text(field, textOf(type, value));
      break;
    case 'bool':
      if (typeof value !== 'boolean') throw misfit(type, value);
      writer.integer(field, value ? 1 : 0);
      break;
    case 'int32':
    case 'int64':
      if (!Number.isInteger(value)) throw misfit(type, value);
      writer.integer(field, numberOf(type, value));
      break;
    case 'double':
      writer.double(field, numberOf(type, value));
      break;
    case 'bytes':
      writer.bytes(field, Buffer.from(textOf(type, value), 'base64'));
      break;
    default: {
      const before = writer.length;
      // Of a list or a map: elsewhere a field that is null is left out.
      if (value !== null) putContent(writer, type, value);
      writer.message(field, before);
    }
  }
}

function putList(writer: BackwardWriter, field: number, type: string, list: readonly unknown[]): void {
  for (let index = list.length - 1; index >= 0; index--) putOne(writer, field, type, list[index]);
}

function putMap(writer: BackwardWriter, { number, type }: Field, map: JsonObject): void {
  for (const [key, value] of Object.entries(map).reverse()) {
    const before = writer.length;
    putOne(writer, 2, type, value);
    writer.text(1, key);
    writer.message(number, before);
  }
}

function putMessage(writer: BackwardWriter, message: string, object: JsonObject): void {
  for (const field of planOf(message)) {
    if (field.form === 'inline') {
      const before = writer.length;
      putMessage(writer, field.type.slice(1), object);
      if (writer.length > before) writer.message(field.number, before);
      continue;
    }
    const value = getOwn(object, field.name);
    if (value === undefined || value === null) continue;
    if (field.form === 'one') putOne(writer, field.number, field.type, value);
    else if (field.form === 'map') putMap(writer, field, objectOf('map', value));
    else putList(writer, field.number, field.type, listOf(value));
  }
}

/** What is before and behind `raw`, which has `length` bytes. The fields that upstream leaves empty are there, as there. */
function envelope(apiVersion: string, kind: string, length: number): { readonly head: Buffer; readonly tail: Buffer } {
  const tail = new BackwardWriter();
  tail.text(ENVELOPE.contentType, '');
  tail.text(ENVELOPE.contentEncoding, '');
  const head = new BackwardWriter();
  head.lengthOf(ENVELOPE.raw, length);
  const before = head.length;
  head.text(2, kind);
  head.text(1, apiVersion);
  head.message(ENVELOPE.typeMeta, before);
  head.raw(MAGIC);
  return { head: head.result(), tail: tail.result() };
}

function typeMeta(object: JsonObject): { readonly apiVersion: string; readonly kind: string } {
  return { apiVersion: textOf('apiVersion', object['apiVersion']), kind: textOf('kind', object['kind']) };
}

/** Whether objects of a kind can be encoded. */
export function hasMessage(apiVersion: string, kind: string): boolean {
  return getOwn(messages(), messageName(apiVersion, kind)) !== undefined;
}

/** One object, with apiVersion and kind: no list. */
export function encodeProtobuf(object: JsonObject): Buffer {
  const { apiVersion, kind } = typeMeta(object);
  const writer = new BackwardWriter();
  putMessage(writer, messageName(apiVersion, kind), object);
  const raw = writer.result();
  const { head, tail } = envelope(apiVersion, kind, raw.length);
  return Buffer.concat([head, raw, tail]);
}

/** Some items of a list, each as the field that it is there. `list`: all of it but the items. */
export function encodeItems(list: JsonObject, items: readonly unknown[]): Buffer {
  const { apiVersion, kind } = typeMeta(list);
  const writer = new BackwardWriter();
  putList(writer, ITEMS, `#${messageName(apiVersion, kind.replace(/List$/, ''))}`, items);
  return writer.result();
}

/** What is before the items of a list, which have `length` bytes, and behind them. */
export function encodeListFrame(list: JsonObject, length: number): { readonly head: Buffer; readonly tail: Buffer } {
  const { apiVersion, kind } = typeMeta(list);
  const writer = new BackwardWriter();
  putOne(writer, METADATA, `#${LIST_META}`, list['metadata'] ?? {});
  const metadata = writer.result();
  const { head, tail } = envelope(apiVersion, kind, metadata.length + length);
  return { head: Buffer.concat([head, metadata]), tail };
}

/** A meta.v1.WatchEvent with its length before it. `object`: as `encodeProtobuf` has it. */
export function encodeWatchEvent(type: string, object: Uint8Array): Buffer {
  const writer = new BackwardWriter();
  writer.bytes(1, object);
  writer.message(2, 0);
  writer.text(1, type);
  const event = writer.result();
  const frame = Buffer.allocUnsafe(4 + event.length);
  frame.writeUInt32BE(event.length);
  event.copy(frame, 4);
  return frame;
}
