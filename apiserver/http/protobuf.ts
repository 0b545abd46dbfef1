// Request bodies in Kubernetes' protobuf, which kubectl 1.32 and later send for the kinds they know: four magic bytes, an
// envelope that says what it is, and the object. Decodes to what the JSON form would have been; answers stay JSON.
// Field numbers are in apiserver/gen/protobuf.json, read when the first such body comes.

import { readFileSync } from 'node:fs';
import { getOwn, setOwn } from '../../lib/own-property.ts';
import type { JsonObject } from '../patch/json-value.ts';
import { badRequest } from './errors.ts';

export const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';

const MAGIC = Buffer.from([0x6b, 0x38, 0x73, 0x00]);
/** Deeper than any object of the API. */
const MAX_DEPTH = 64;
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

type Messages = Readonly<Record<string, Readonly<Record<string, string>>>>;
type Value = bigint | Buffer;

let loaded: Messages | undefined;

function messages(): Messages {
  if (loaded === undefined) {
    const read: Messages = JSON.parse(readFileSync(new URL('../gen/protobuf.json', import.meta.url), 'utf8'));
    loaded = read;
  }
  return loaded;
}

function malformed(why: string): Error {
  return badRequest(`the protobuf body cannot be decoded: ${why}`);
}

/** The fields of one message, in order, as number and value. */
function* fieldsOf(bytes: Buffer): Generator<readonly [number: number, value: Value]> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw malformed('it ends inside a number');
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw malformed('a number is too long');
  };
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw malformed('it ends inside a field');
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    switch (Number(tag & 7n)) {
      case VARINT:
        yield [number, varint()];
        break;
      case FIXED64:
        yield [number, take(8)];
        break;
      case BYTES:
        yield [number, take(Number(varint()))];
        break;
      case FIXED32:
        yield [number, take(4)];
        break;
      default:
        throw malformed(`field ${number} has an unknown wire type`);
    }
  }
}

function bytesOf(value: Value): Buffer {
  if (typeof value === 'bigint') throw malformed('a number stands where text is expected');
  return value;
}

function integerOf(value: Value): number {
  if (typeof value !== 'bigint') throw malformed('text stands where a number is expected');
  return Number(BigInt.asIntN(64, value));
}

/** One field of a small message by its number. */
function pick(bytes: Buffer, wanted: number): Value | undefined {
  let found: Value | undefined;
  for (const [number, value] of fieldsOf(bytes)) if (number === wanted) found = value;
  return found;
}

/** Seconds and nanoseconds as RFC 3339; undefined for the zero time. */
function timeOf(bytes: Buffer): string | undefined {
  const seconds = pick(bytes, 1);
  if (seconds === undefined) return undefined;
  const nanos = Number(pick(bytes, 2) ?? 0n);
  const date = new Date(integerOf(seconds) * 1000);
  if (Number.isNaN(date.getTime())) throw malformed('a time is out of range');
  const whole = date.toISOString().slice(0, 19);
  return nanos === 0 ? `${whole}Z` : `${whole}.${String(Math.floor(nanos / 1000)).padStart(6, '0')}Z`;
}

function intOrString(bytes: Buffer): string | number {
  if ((pick(bytes, 1) ?? 0n) === 0n) return integerOf(pick(bytes, 2) ?? 0n);
  return bytesOf(pick(bytes, 3) ?? Buffer.alloc(0)).toString('utf8');
}

/** A value of one type; undefined is one that JSON leaves out. */
function decodeValue(type: string, value: Value, depth: number): unknown {
  switch (type) {
    case 'string':
      return bytesOf(value).toString('utf8');
    case 'bool':
      return integerOf(value) !== 0;
    case 'int32':
    case 'int64':
      return integerOf(value);
    case 'double':
      return bytesOf(value).readDoubleLE(0);
    case 'bytes':
      return bytesOf(value).toString('base64');
    case 'time':
      return timeOf(bytesOf(value));
    case 'duration':
      return `${integerOf(pick(bytesOf(value), 1) ?? 0n) / 1e9}s`;
    case 'quantity':
      return bytesOf(pick(bytesOf(value), 1) ?? Buffer.alloc(0)).toString('utf8');
    case 'intstr':
      return intOrString(bytesOf(value));
    case 'raw': {
      const text = bytesOf(pick(bytesOf(value), 1) ?? Buffer.alloc(0)).toString('utf8');
      return text === '' ? undefined : JSON.parse(text);
    }
    case 'strings':
      return [...fieldsOf(bytesOf(value))].map(([, item]) => bytesOf(item).toString('utf8'));
    case 'skip':
      return undefined;
    default:
      return messageOf(type.slice(1), bytesOf(value), {}, depth + 1);
  }
}

function addEntry(object: JsonObject, name: string, type: string, bytes: Buffer, depth: number): void {
  const key = bytesOf(pick(bytes, 1) ?? Buffer.alloc(0)).toString('utf8');
  const map = getOwn(object, name);
  const entries: JsonObject = typeof map === 'object' && map !== null ? { ...map } : {};
  const raw = pick(bytes, 2) ?? (type === 'bool' || type.startsWith('int') ? 0n : Buffer.alloc(0));
  setOwn(entries, key, decodeValue(type, raw, depth));
  setOwn(object, name, entries);
}

/** Decodes a message into `object`. */
function messageOf(message: string, bytes: Buffer, object: JsonObject, depth: number): JsonObject {
  const fields = getOwn(messages(), message);
  if (fields === undefined) throw malformed(`${message} is not known here`);
  if (depth > MAX_DEPTH) throw malformed('it is nested too deeply');
  for (const [number, value] of fieldsOf(bytes)) {
    const field = getOwn(fields, String(number));
    // A field from a newer API: dropped, as the real server drops it.
    if (field === undefined) continue;
    const colon = field.indexOf(':');
    const name = field.slice(0, colon);
    const type = field.slice(colon + 1);
    if (name === '') messageOf(type.slice(1), bytesOf(value), object, depth + 1);
    else if (type.startsWith('[]')) {
      const list = getOwn(object, name);
      const item = decodeValue(type.slice(2), value, depth);
      if (Array.isArray(list)) list.push(item);
      else setOwn(object, name, [item]);
    } else if (type.startsWith('map:')) addEntry(object, name, type.slice(4), bytesOf(value), depth);
    else {
      const decoded = decodeValue(type, value, depth);
      if (decoded !== undefined) setOwn(object, name, decoded);
    }
  }
  return object;
}

/** "authentication.k8s.io/v1", "TokenReview" → "authentication.v1.TokenReview" */
function messageName(apiVersion: string, kind: string): string {
  if (kind === 'DeleteOptions') return 'meta.v1.DeleteOptions';
  const slash = apiVersion.indexOf('/');
  if (slash < 0) return `core.${apiVersion}.${kind}`;
  return `${apiVersion.slice(0, slash).split('.')[0]}.${apiVersion.slice(slash + 1)}.${kind}`;
}

/** The object of a protobuf body as JSON values, with apiVersion and kind. Throws 400. */
export function decodeProtobuf(body: Uint8Array): JsonObject {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw malformed('it does not start with "k8s\\0"');
  const envelope = bytes.subarray(MAGIC.length);
  const meta = bytesOf(pick(envelope, 1) ?? Buffer.alloc(0));
  const apiVersion = bytesOf(pick(meta, 1) ?? Buffer.alloc(0)).toString('utf8');
  const kind = bytesOf(pick(meta, 2) ?? Buffer.alloc(0)).toString('utf8');
  const raw = bytesOf(pick(envelope, 2) ?? Buffer.alloc(0));
  const object = messageOf(messageName(apiVersion, kind), raw, {}, 0);
  return { ...object, kind, apiVersion };
}
