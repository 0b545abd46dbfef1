// Request bodies in Kubernetes' protobuf, which kubectl 1.32 and later send for built-in kinds: four magic bytes, an
// envelope with apiVersion and kind, and the object. Decodes to the JSON form; protobuf-encode.ts is the way back.

import { epochMs } from '../../lib/clock.ts';
import { beyond, jsonSize } from '../../lib/json-limits.ts';
import { getOwn, setOwn } from '../../lib/own-property.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { badRequest } from '../errors.ts';
import { excess, JSON_LIMITS } from '../limits.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { MAGIC, messageName, messages } from './protobuf-messages.ts';

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;
const EMPTY = Buffer.alloc(0);

type Value = bigint | Buffer;

function malformed(why: string): Error {
  return badRequest(`the protobuf body cannot be decoded: ${why}`);
}

/** Counts what one body decodes to against the limits that hold for JSON. */
class Budget {
  #size = { depth: 0, objects: 0, keys: 0, values: 0 };

  message(depth: number): void {
    this.#size.objects++;
    this.#size.depth = depth;
    this.#check();
  }

  /** A field that is there, a map's entry or a list's element. */
  value(isKey: boolean): void {
    this.#size.values++;
    if (isKey) this.#size.keys++;
    this.#check();
  }

  /** JSON inside the message. */
  raw(utf8: Uint8Array): void {
    const { depth, objects, keys, values } = jsonSize(utf8, JSON_LIMITS);
    this.#size.objects += objects;
    this.#size.keys += keys;
    this.#size.values += values;
    this.#size.depth = depth;
    this.#check();
  }

  #check(): void {
    const limit = beyond(this.#size, JSON_LIMITS);
    if (limit !== undefined) throw excess(limit, 'the body');
  }
}

/** The fields of one message, in order. */
class Fields {
  readonly #bytes: Buffer;
  #at = 0;
  /** Of the field that `next` has read. */
  number = 0;
  value: Value = EMPTY;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Reads one field; false at the end. Throws 400. */
  next(): boolean {
    if (this.#at >= this.#bytes.length) return false;
    const tag = this.#size();
    this.number = Math.floor(tag / 8);
    switch (tag % 8) {
      case VARINT:
        this.value = this.#varint();
        break;
      case FIXED64:
        this.value = this.#take(8);
        break;
      case BYTES:
        this.value = this.#take(this.#size());
        break;
      case FIXED32:
        this.value = this.#take(4);
        break;
      default:
        throw malformed(`field ${this.number} has an unknown wire type`);
    }
    return true;
  }

  /** A tag or a length: exact up to 2^53, which is more than any body has. */
  #size(): number {
    let value = 0;
    let scale = 1;
    for (let length = 0; length < 10; length++) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw malformed('it ends inside a number');
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw malformed('a number is too long');
  }

  #varint(): bigint {
    const start = this.#at;
    const small = this.#size();
    if (Number.isSafeInteger(small)) return BigInt(small);
    let value = 0n;
    for (let at = this.#at - 1; at >= start; at--) value = (value << 7n) | BigInt((this.#bytes[at] ?? 0) & 0x7f);
    return value;
  }

  #take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw malformed('it ends inside a field');
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}

function bytesOf(value: Value): Buffer {
  if (typeof value === 'bigint') throw malformed('a number where text is expected');
  return value;
}

function integerOf(value: Value): number {
  if (typeof value !== 'bigint') throw malformed('text where a number is expected');
  return Number(BigInt.asIntN(64, value));
}

/** One field of a small message by its number. */
function pick(bytes: Buffer, wanted: number): Value | undefined {
  const fields = new Fields(bytes);
  let found: Value | undefined;
  while (fields.next()) if (fields.number === wanted) found = fields.value;
  return found;
}

/** ECMAScript's limit: 100 million days before and after 1970. */
const MAX_TIME_MS = 8.64e15;

/** Seconds and nanoseconds as RFC 3339; undefined for the zero time. */
function timeOf(bytes: Buffer): string | undefined {
  const seconds = pick(bytes, 1);
  if (seconds === undefined) return undefined;
  const nanos = integerOf(pick(bytes, 2) ?? 0n);
  if (nanos < 0 || nanos >= 1e9) throw malformed('a time has a fraction of more than a second');
  const ms = integerOf(seconds) * 1000;
  if (Math.abs(ms) > MAX_TIME_MS) throw malformed('a time is out of range');
  const whole = rfc3339(epochMs(ms)).slice(0, -1);
  return nanos === 0 ? `${whole}Z` : `${whole}.${String(Math.floor(nanos / 1000)).padStart(6, '0')}Z`;
}

function intOrString(bytes: Buffer): string | number {
  if ((pick(bytes, 1) ?? 0n) === 0n) return integerOf(pick(bytes, 2) ?? 0n);
  return bytesOf(pick(bytes, 3) ?? EMPTY).toString('utf8');
}

function doubleOf(bytes: Buffer): number {
  if (bytes.length !== 8) throw malformed('a floating-point number does not have 8 bytes');
  const number = bytes.readDoubleLE(0);
  if (!Number.isFinite(number)) throw malformed('a floating-point number is not finite');
  return number;
}

function rawOf(bytes: Buffer, budget: Budget): unknown {
  const json = bytesOf(pick(bytes, 1) ?? EMPTY);
  if (json.length === 0) return undefined;
  budget.raw(json);
  try {
    return JSON.parse(json.toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) throw malformed(`a raw field is not JSON: ${error.message}`);
    throw error;
  }
}

function stringsOf(bytes: Buffer, budget: Budget): string[] {
  const fields = new Fields(bytes);
  const strings: string[] = [];
  while (fields.next()) {
    budget.value(false);
    strings.push(bytesOf(fields.value).toString('utf8'));
  }
  return strings;
}

/** A message in field 1 or a list of messages or strings in field 2: in JSON that message or that list. */
function messageOrList(message: string, ofStrings: boolean, bytes: Buffer, depth: number, budget: Budget): unknown {
  const fields = new Fields(bytes);
  const list: unknown[] = [];
  while (fields.next()) {
    budget.value(false);
    const value = bytesOf(fields.value);
    if (fields.number === 1) return messageOf(message, value, {}, depth + 1, budget);
    if (fields.number === 2)
      list.push(ofStrings ? value.toString('utf8') : messageOf(message, value, {}, depth + 1, budget));
  }
  return list;
}

/** A message in field 2, else the bool of field 1. */
function messageOrBool(message: string, bytes: Buffer, depth: number, budget: Budget): unknown {
  const found = pick(bytes, 2);
  if (found !== undefined) return messageOf(message, bytesOf(found), {}, depth + 1, budget);
  return integerOf(pick(bytes, 1) ?? 0n) !== 0;
}

/** A value of one type; undefined is one that JSON leaves out. */
function decodeValue(type: string, value: Value, depth: number, budget: Budget): unknown {
  switch (type) {
    case 'string':
      return bytesOf(value).toString('utf8');
    case 'bool':
      return integerOf(value) !== 0;
    case 'int32':
    case 'int64':
      return integerOf(value);
    case 'double':
      return doubleOf(bytesOf(value));
    case 'bytes':
      return bytesOf(value).toString('base64');
    case 'time':
      return timeOf(bytesOf(value));
    case 'duration':
      return `${integerOf(pick(bytesOf(value), 1) ?? 0n) / 1e9}s`;
    case 'quantity':
      return bytesOf(pick(bytesOf(value), 1) ?? EMPTY).toString('utf8');
    case 'intstr':
      return intOrString(bytesOf(value));
    case 'raw':
      return rawOf(bytesOf(value), budget);
    case 'strings':
      return stringsOf(bytesOf(value), budget);
  }
  const bytes = bytesOf(value);
  const [alternative, message] = type.startsWith('or-') ? type.split(':', 2) : ['', type.slice(1)];
  if (message === undefined) throw new RangeError(`protobuf.json has an unknown type: ${type}`);
  if (alternative === 'or-bool') return messageOrBool(message, bytes, depth, budget);
  if (alternative !== '') return messageOrList(message, alternative === 'or-strings', bytes, depth, budget);
  return messageOf(message, bytes, {}, depth + 1, budget);
}

/** The list or map under `name`, which is made when it is not there. */
function listOf(object: JsonObject, name: string): unknown[] {
  const list = getOwn(object, name);
  if (Array.isArray(list)) return list;
  const made: unknown[] = [];
  setOwn(object, name, made);
  return made;
}

function mapOf(object: JsonObject, name: string): JsonObject {
  const map = getOwn(object, name);
  if (isObject(map)) return map;
  const made: JsonObject = {};
  setOwn(object, name, made);
  return made;
}

function addEntry(map: JsonObject, type: string, bytes: Buffer, depth: number, budget: Budget): void {
  const key = bytesOf(pick(bytes, 1) ?? EMPTY).toString('utf8');
  const raw = pick(bytes, 2) ?? (type === 'bool' || type.startsWith('int') ? 0n : EMPTY);
  setOwn(map, key, decodeValue(type, raw, depth, budget));
}

const JSON_SCHEMA = 'apiextensions.v1.JSONSchemaProps';

/**
 * Of a JSON schema: clients send each field that is no pointer in Go, empty ones too, which JSON leaves out. Elsewhere the schemas of kinds
 * say that later; parts of a JSON schema are values of any form there (a schema or a bool).
 */
function isOmitted(name: string, value: unknown): boolean {
  return value === '' || (value === false && !POINTERS.includes(name) && !SCHEMA_OR_BOOL.includes(name));
}
const POINTERS: readonly string[] = ['x-kubernetes-preserve-unknown-fields'];
const SCHEMA_OR_BOOL: readonly string[] = ['additionalProperties', 'additionalItems'];

/** Decodes a message into `object`. */
function messageOf(message: string, bytes: Buffer, object: JsonObject, depth: number, budget: Budget): JsonObject {
  const known = getOwn(messages(), message);
  if (known === undefined) throw malformed(`${message} is not known here`);
  budget.message(depth);
  const omitsZeros = message === JSON_SCHEMA;
  const fields = new Fields(bytes);
  while (fields.next()) {
    const field = getOwn(known, String(fields.number));
    // A field from a newer API: dropped, as the real server drops it.
    if (field === undefined) continue;
    const colon = field.indexOf(':');
    const name = field.slice(0, colon);
    const type = field.slice(colon + 1);
    const { value } = fields;
    budget.value(!type.startsWith('[]'));
    if (name === '') messageOf(type.slice(1), bytesOf(value), object, depth + 1, budget);
    else if (type.startsWith('[]')) listOf(object, name).push(decodeValue(type.slice(2), value, depth, budget));
    else if (type.startsWith('map:')) addEntry(mapOf(object, name), type.slice(4), bytesOf(value), depth, budget);
    else {
      const decoded = decodeValue(type, value, depth, budget);
      if (decoded !== undefined && !(omitsZeros && isOmitted(name, decoded))) setOwn(object, name, decoded);
    }
  }
  return object;
}

/** The object of a protobuf body as JSON values, with apiVersion and kind. Throws 400. */
export function decodeProtobuf(body: Uint8Array): JsonObject {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw malformed('it does not start with "k8s\\0"');
  const envelope = bytes.subarray(MAGIC.length);
  const meta = bytesOf(pick(envelope, 1) ?? EMPTY);
  const apiVersion = bytesOf(pick(meta, 1) ?? EMPTY).toString('utf8');
  const kind = bytesOf(pick(meta, 2) ?? EMPTY).toString('utf8');
  const raw = bytesOf(pick(envelope, 2) ?? EMPTY);
  const object = messageOf(messageName(apiVersion, kind), raw, {}, 0, new Budget());
  return { ...object, kind, apiVersion };
}
