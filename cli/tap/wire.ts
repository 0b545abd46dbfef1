// Protocol Buffers on the wire: fields of a message, with or without a description of it. Fields that the description does
// not know are kept and shown by number. Knows no CRI.

import { setOwn } from '../../lib/own-property.ts';

export class WireError extends Error {
  override name = 'WireError';
}

export type Json = string | number | boolean | Json[] | { [key: string]: Json };
export type JsonMessage = { [key: string]: Json };

export type FieldKind = 'message' | 'enum' | 'string' | 'bytes' | 'bool' | 'int' | 'uint' | 'sint' | 'fixed' | 'float';

export interface FieldType {
  readonly name: string;
  readonly number: number;
  readonly kind: FieldKind;
  readonly repeated: boolean;
  /** Of kind "message"; resolved when it is used: types may contain themselves. */
  readonly message: () => MessageType | undefined;
  readonly enumNames: ReadonlyMap<number, string>;
}

export interface MessageType {
  readonly name: string;
  /** An entry of a map field: key and value. */
  readonly isMapEntry: boolean;
  readonly fields: ReadonlyMap<number, FieldType>;
}

/** One field as it is on the wire. */
export interface WireField {
  readonly number: number;
  /** A number, or the bytes of what has a length. */
  readonly value: bigint | Buffer;
  /** 4 or 8 for fixed-size numbers, else 0. */
  readonly fixed: number;
  /** Tag and value. */
  readonly raw: Buffer;
}

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;
/** Deeper than any message of a runtime; a hostile one must not exhaust the stack. */
const MAX_DEPTH = 64;

function readVarint(bytes: Buffer, start: number): { readonly value: bigint; readonly at: number } {
  let value = 0n;
  for (let at = start, shift = 0n; shift < 70n; at++, shift += 7n) {
    const byte = bytes[at];
    if (byte === undefined) throw new WireError('a number is cut off');
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return { value: BigInt.asUintN(64, value), at: at + 1 };
  }
  throw new WireError('a number is longer than 64 bits');
}

/** Throws WireError for bytes that are no message. */
export function readFields(bytes: Buffer): WireField[] {
  const fields: WireField[] = [];
  for (let start = 0; start < bytes.length; ) {
    const tag = readVarint(bytes, start);
    const number = Number(tag.value >> 3n);
    if (number === 0 || number > 0x1fffffff) throw new WireError(`no field has number ${number}`);
    const type = Number(tag.value & 7n);
    let end = tag.at;
    let value: bigint | Buffer;
    let fixed = 0;
    if (type === VARINT) ({ value, at: end } = readVarint(bytes, end));
    else if (type === LENGTH) {
      const length = readVarint(bytes, end);
      end = length.at + Number(length.value);
      value = bytes.subarray(length.at, end);
    } else if (type === FIXED64 || type === FIXED32) {
      fixed = type === FIXED64 ? 8 : 4;
      end += fixed;
      if (end > bytes.length) throw new WireError('a field is cut off');
      value = fixed === 8 ? bytes.readBigUInt64LE(end - 8) : BigInt(bytes.readUInt32LE(end - 4));
    } else throw new WireError(`field ${number} has wire type ${type}`);
    if (end > bytes.length) throw new WireError(`field ${number} is cut off`);
    fields.push({ number, value, fixed, raw: bytes.subarray(start, end) });
    start = end;
  }
  return fields;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest % 128) | 0x80);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}

export function lengthField(number: number, content: Uint8Array): Buffer {
  return Buffer.concat([varint(number * 8 + LENGTH), varint(content.length), content]);
}

/** Text where the bytes are printable UTF-8, else "base64:…". */
export function printBytes(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffd]/.test(text) ? `base64:${bytes.toString('base64')}` : text;
}

const safe = (value: bigint): Json =>
  value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= BigInt(Number.MIN_SAFE_INTEGER) ? Number(value) : String(value);

function printNumber(field: FieldType, value: bigint, fixed: number): Json {
  switch (field.kind) {
    case 'bool':
      return value !== 0n;
    case 'enum': {
      const number = Number(BigInt.asIntN(32, value));
      return field.enumNames.get(number) ?? number;
    }
    case 'sint':
      return safe((value >> 1n) ^ -(value & 1n));
    case 'float': {
      const bytes = Buffer.alloc(8);
      bytes.writeBigUInt64LE(value);
      return fixed === 4 ? bytes.readFloatLE() : bytes.readDoubleLE();
    }
    case 'int':
      return safe(BigInt.asIntN(64, value));
    default:
      return safe(value);
  }
}

/** The default of a field that is not repeated is as good as its absence: Go leaves it out, others write it. */
function isDefault(value: Json, field: FieldType): boolean {
  if (field.kind === 'enum') return value === 0 || value === field.enumNames.get(0);
  return value === 0 || value === '' || value === false;
}

function packed(field: FieldType, bytes: Buffer): Json[] {
  const values: Json[] = [];
  const fixed = field.kind === 'float' || field.kind === 'fixed';
  if (fixed) throw new WireError(`${field.name} is a packed list of fixed-size numbers`);
  for (let at = 0; at < bytes.length; ) {
    const next = readVarint(bytes, at);
    values.push(printNumber(field, next.value, 0));
    at = next.at;
  }
  return values;
}

/**
 * A message by the names of its fields; a map is an object of its keys. Fields that the type lacks, and all of them without
 * a type, are called "#number". Throws WireError.
 */
export function decodeMessage(bytes: Buffer, type: MessageType | undefined, depth = 0): JsonMessage {
  if (depth > MAX_DEPTH) throw new WireError(`messages are nested deeper than ${MAX_DEPTH}`);
  const message: JsonMessage = {};
  const lists = new Map<string, Json[]>();
  const maps = new Map<string, JsonMessage>();
  const append = (name: string, values: readonly Json[]): void => {
    const list = lists.get(name) ?? [];
    list.push(...values);
    lists.set(name, list);
    setOwn<Json>(message, name, list);
  };
  for (const { number, value, fixed } of readFields(bytes)) {
    const field = type?.fields.get(number);
    if (field === undefined) {
      const shown = typeof value === 'bigint' ? safe(value) : unknownBytes(value, depth);
      const name = `#${number}`;
      const before = lists.get(name);
      if (before === undefined) lists.set(name, [shown]);
      else before.push(shown);
      const list = lists.get(name) ?? [];
      setOwn<Json>(message, name, list.length === 1 ? shown : list);
      continue;
    }
    if (typeof value === 'bigint') {
      const number_ = printNumber(field, value, fixed);
      if (field.repeated) append(field.name, [number_]);
      else if (!isDefault(number_, field)) setOwn<Json>(message, field.name, number_);
      continue;
    }
    if (field.kind === 'string' || field.kind === 'bytes') {
      const text = field.kind === 'string' ? value.toString('utf8') : printBytes(value);
      if (field.repeated) append(field.name, [text]);
      else if (text !== '') setOwn<Json>(message, field.name, text);
      continue;
    }
    if (field.kind !== 'message') {
      append(field.name, packed(field, value));
      continue;
    }
    const inner = field.message();
    const decoded = decodeMessage(value, inner, depth + 1);
    if (inner?.isMapEntry === true) {
      const map = maps.get(field.name) ?? {};
      maps.set(field.name, map);
      setOwn<Json>(map, String(decoded['key'] ?? ''), decoded['value'] ?? '');
      setOwn<Json>(message, field.name, map);
    } else if (field.repeated) append(field.name, [decoded]);
    else setOwn<Json>(message, field.name, decoded);
  }
  return message;
}

/** Without a description a text and a message look alike: what is printable is taken as text. */
function unknownBytes(bytes: Buffer, depth: number): Json {
  const text = printBytes(bytes);
  if (!text.startsWith('base64:') || depth >= MAX_DEPTH) return text;
  try {
    return decodeMessage(bytes, undefined, depth + 1);
  } catch (error) {
    if (error instanceof WireError) return text;
    throw error;
  }
}

/**
 * The message with every text that `rewrite` changes in its place. All other fields stay byte for byte, unknown ones too.
 * Throws WireError.
 */
export function rewriteTexts(bytes: Buffer, type: MessageType, rewrite: (text: string) => string, depth = 0): Buffer {
  if (depth > MAX_DEPTH) throw new WireError(`messages are nested deeper than ${MAX_DEPTH}`);
  const parts = readFields(bytes).map(({ number, value, raw }) => {
    const field = type.fields.get(number);
    if (field === undefined || typeof value === 'bigint') return raw;
    if (field.kind === 'string') {
      const text = value.toString('utf8');
      const replaced = rewrite(text);
      return replaced === text ? raw : lengthField(number, Buffer.from(replaced));
    }
    const inner = field.kind === 'message' ? field.message() : undefined;
    return inner === undefined ? raw : lengthField(number, rewriteTexts(value, inner, rewrite, depth + 1));
  });
  return Buffer.concat(parts);
}
