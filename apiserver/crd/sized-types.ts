// How large values of a schema may become: by maxLength, maxItems and maxProperties where they are set, else by what fits into
// a request (k8s.io/apiserver/pkg/cel/common). For the estimated costs of rules. Pure.

import { setOwn } from '../../lib/own-property.ts';
import type { SizedType } from '../cel/cost-sizes.ts';
import { escapeField, HEAD } from './cel-types.ts';
import { type JsonSchema, properties, valueSchema } from './types.ts';

/** Of a request, upstream's. Bytes. */
export const MAX_REQUEST = 3 * 1024 * 1024;
const MAX_TEXT = MAX_REQUEST - 2;
/** A character has up to four bytes. */
const BYTES_A_CHARACTER = 4;

/** A type, and the bytes that its smallest value takes as JSON. */
export interface Declared {
  readonly type: SizedType;
  readonly minBytes: number;
}

const scalar = (minBytes: number, maxElements = 0): Declared => ({ type: { kind: 'scalar', maxElements }, minBytes });
/** Durations, dates and times as JSON: the smallest, and the longest text. */
const TIMES: ReadonlyMap<string, Declared> = new Map([
  ['duration', scalar(3, 32)],
  ['date', scalar(12, 12)],
  ['date-time', scalar(21, 32)],
  ['datetime', scalar(2, MAX_TEXT)],
]);

const known = new WeakMap<JsonSchema, { readonly declared: Declared | undefined }>();

/**
 * `root`: the schema of the whole object, or of an embedded one. Undefined for what expressions do not see. A schema does not
 * change once it has been declared.
 */
export function declaredType(schema: JsonSchema, root = false): Declared | undefined {
  const declared = known.get(schema)?.declared ?? declare(schema, root);
  known.set(schema, { declared });
  return declared;
}

function declare(schema: JsonSchema, root: boolean): Declared | undefined {
  const { maxLength } = schema;
  if (schema['x-kubernetes-int-or-string'] === true) {
    const maxElements = maxLength === undefined ? MAX_TEXT : Math.max(0, maxLength) * BYTES_A_CHARACTER;
    return { type: { kind: 'dyn', maxElements }, minBytes: 1 };
  }
  switch (schema.type) {
    case 'boolean':
      return scalar(4);
    case 'integer':
    case 'number':
      return scalar(1);
    case 'string':
      return text(schema);
    case 'array':
      return list(schema);
    case 'object':
      return object(schema, root || schema['x-kubernetes-embedded-resource'] === true);
    default:
      return undefined;
  }
}

function text({ format = '', maxLength, enum: values = [] }: JsonSchema): Declared {
  const time = TIMES.get(format);
  if (time !== undefined && format !== 'datetime') return time;
  const isBytes = format === 'byte';
  let maxElements = MAX_TEXT;
  if (maxLength !== undefined) maxElements = Math.max(0, maxLength) * (isBytes ? 1 : BYTES_A_CHARACTER);
  else if (!isBytes && values.length > 0) {
    maxElements = Math.max(0, ...values.map((value) => (typeof value === 'string' ? Buffer.byteLength(value) : 0)));
  }
  return { type: { kind: isBytes ? 'bytes' : 'string', maxElements }, minBytes: 2 };
}

function list({ items, maxItems }: JsonSchema): Declared | undefined {
  const item = items === undefined ? undefined : declaredType(items);
  if (item === undefined) return undefined;
  const maxElements = Math.max(0, maxItems ?? Math.floor(MAX_TEXT / (item.minBytes + 1)));
  return { type: { kind: 'list', maxElements, items: item.type }, minBytes: 2 };
}

function object(schema: JsonSchema, embedded: boolean): Declared | undefined {
  const values = valueSchema(schema);
  if (values !== undefined) {
    const value = declaredType(values);
    if (value === undefined) return undefined;
    const maxElements = Math.max(0, schema.maxProperties ?? Math.floor(MAX_TEXT / (value.minBytes + 6)));
    return { type: { kind: 'map', maxElements, items: value.type }, minBytes: 2 };
  }
  const head = embedded ? properties(HEAD) : [];
  const named = new Set(head.map(([name]) => name));
  const fields: Record<string, SizedType> = {};
  let minBytes = 2;
  for (const [name, child] of [...head, ...properties(schema).filter(([key]) => !named.has(key))]) {
    const declared = declaredType(child);
    if (declared === undefined) continue;
    const escaped = escapeField(name);
    if (escaped !== undefined) setOwn(fields, escaped, declared.type);
    if (escaped === `__${name}__`) setOwn(fields, name, declared.type);
    if (schema.required?.includes(name) && child.default === undefined) {
      minBytes += Buffer.byteLength(name) + declared.minBytes + 4;
    }
  }
  return { type: { kind: 'object', maxElements: 0, fields }, minBytes };
}
