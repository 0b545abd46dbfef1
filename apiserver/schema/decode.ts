// Decodes a request body against its definition as the real server's JSON decoder does: wrong types end it with one
// message, unknown and duplicate fields are collected, quantities and times take their canonical form, and zeros that
// Go would not write are dropped. Values are not validated here.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { parseRfc3339, rfc3339 } from '../../lib/rfc3339.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import { type Definition, definition, type TypeText } from './definitions.ts';
import { fieldPath, MAX_STRICT_ERRORS, strictErrors } from './duplicates.ts';
import { canonicalQuantity, quantityError } from './quantity.ts';

export interface Decoded {
  /** `unknown field "spec.foo"`, `duplicate field "spec.bar"`: errors under fieldValidation=Strict, warnings under Warn. */
  readonly strict: readonly string[];
  /** Why the body cannot be read as its kind; answered with 400. The object is then half decoded and of no use. */
  readonly fatal?: string;
}

/** `json: cannot unmarshal …`, and what the types with a parser of their own say. */
class DecodeError extends Error {
  override name = 'DecodeError';
}

/**
 * Decodes `object` in place as a body of `kind`. `text` is the JSON it was parsed from, for duplicate fields; they are
 * not looked for when it is absent or YAML.
 */
export function checkBody(kind: ResourceKind, object: Record<string, unknown>, text?: string): Decoded {
  return checkBodyAs(kind.schema, object, text);
}

/** The same for a body that is no row's object: "io.k8s.api.policy.v1.Eviction". */
export function checkBodyAs(schemaName: string, object: Record<string, unknown>, text?: string): Decoded {
  const unknown = new Set<string>();
  try {
    decodeFields(schemaName, object, { path: '', goPath: '', unknown });
  } catch (error) {
    if (error instanceof DecodeError) return { strict: strictErrors(unknown, text), fatal: error.message };
    throw error;
  }
  return { strict: strictErrors(unknown, text) };
}

interface Place {
  /** "spec.containers[0].ports", as strict errors name it. */
  readonly path: string;
  /** "spec.containers.ports", as Go names it: without indexes and map keys. */
  readonly goPath: string;
  /** Paths of fields that the schema does not have: as many as the real server reports, and no more. */
  readonly unknown: Set<string>;
  /** Name of the innermost Go struct. */
  readonly struct?: string;
}

function shortName(schemaName: string): string {
  return schemaName.slice(schemaName.lastIndexOf('.') + 1);
}

function decodeFields(schemaName: string, object: Record<string, unknown>, place: Place): void {
  const definitionOf = definition(schemaName);
  const struct = shortName(schemaName);
  for (const [name, value] of Object.entries(object)) {
    const path = fieldPath(place.path, name);
    const type = getOwn(definitionOf.fields, name);
    if (type === undefined) {
      if (place.unknown.size < MAX_STRICT_ERRORS) place.unknown.add(path);
      delete object[name];
      continue;
    }
    const goPath = place.goPath === '' ? name : `${place.goPath}.${name}`;
    const decoded = decodeValue(type, value, { path, goPath, unknown: place.unknown, struct });
    if (decoded === undefined || isUnwrittenZero(definitionOf, name, type, decoded)) delete object[name];
    else setOwn(object, name, decoded);
  }
}

function isUnwrittenZero(definitionOf: Definition, name: string, type: TypeText, value: unknown): boolean {
  if (definitionOf.required?.includes(name)) return false;
  if (Array.isArray(value)) return value.length === 0 && type.startsWith('[]');
  if (type.startsWith('map:') && isRecord(value)) return Object.keys(value).length === 0;
  if (type === 'string' && value === '') return definitionOf.pointers?.includes(name) !== true;
  if (value === false || value === 0) return definitionOf.omitZero?.includes(name) === true;
  return false;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** undefined represents JSON null, which leaves a field at its zero. */
function decodeValue(type: TypeText, value: unknown, place: Place): unknown {
  if (type === 'raw') return value === null ? undefined : value;
  if (value === null || value === undefined) return undefined;
  if (type.startsWith('#')) {
    if (!isRecord(value)) throw mismatch(type, value, place);
    decodeFields(type.slice(1), value, place);
    return value;
  }
  if (type.startsWith('[]')) {
    if (!Array.isArray(value)) throw mismatch(type, value, place);
    const item = type.slice(2);
    return value.map(
      (element, index) => decodeValue(item, element, { ...place, path: `${place.path}[${index}]` }) ?? zero(item),
    );
  }
  if (type.startsWith('map:')) {
    if (!isRecord(value)) throw mismatch(type, value, place);
    const item = type.slice(4);
    for (const [key, element] of Object.entries(value)) {
      setOwn(value, key, decodeValue(item, element, { ...place, path: fieldPath(place.path, key) }) ?? zero(item));
    }
    return value;
  }
  return decodeScalar(type, value, place);
}

function zero(type: TypeText): unknown {
  if (type.startsWith('#')) return {};
  if (type.startsWith('[]')) return [];
  if (type === 'int32' || type === 'int64' || type === 'double' || type === 'intstr') return 0;
  if (type === 'bool') return false;
  return type === 'quantity' ? '0' : '';
}

const LIMITS = { int32: 2 ** 31, int64: 2 ** 63 } as const;

function decodeScalar(type: TypeText, value: unknown, place: Place): unknown {
  switch (type) {
    case 'bool':
      if (typeof value !== 'boolean') throw mismatch(type, value, place);
      return value;
    case 'int32':
    case 'int64':
      if (typeof value !== 'number') throw mismatch(type, value, place);
      if (!Number.isInteger(value) || value >= LIMITS[type] || value < -LIMITS[type])
        throw mismatch(type, value, place, true);
      return value;
    case 'double':
      if (typeof value !== 'number') throw mismatch(type, value, place);
      return value;
    case 'quantity':
      return decodeQuantity(value);
    case 'intstr':
      if (typeof value === 'string') return value;
      if (typeof value !== 'number') throw plainMismatch(value, 'int32');
      if (!Number.isInteger(value) || value >= LIMITS.int32 || value < -LIMITS.int32)
        throw plainMismatch(value, 'int32', true);
      return value;
    case 'time':
    case 'microtime':
      if (typeof value !== 'string') throw plainMismatch(value, 'string');
      return canonicalTime(value, type === 'microtime');
    case 'bytes':
      if (typeof value !== 'string') throw mismatch(type, value, place);
      return canonicalBase64(value);
    default:
      if (typeof value !== 'string') throw mismatch(type, value, place);
      return value;
  }
}

function decodeQuantity(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text === '') return '0';
  const wrong = quantityError(text);
  if (wrong !== undefined) throw new DecodeError(wrong);
  return canonicalQuantity(text);
}

/** Of what is not a time, in characters. */
const MAX_SHOWN = 256;
const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

/** UTC, in whole seconds or in microseconds. */
function canonicalTime(text: string, micro: boolean): string | undefined {
  if (text === '') return undefined;
  const match = text.length > MAX_SHOWN ? null : RFC3339.exec(text);
  const [, , , , , , , fraction = ''] = match ?? [];
  const time = match === null ? undefined : parseRfc3339(fraction === '' ? text : text.replace(fraction, ''));
  if (time === undefined) {
    const shown = JSON.stringify(text.slice(0, MAX_SHOWN));
    throw new DecodeError(`parsing time ${shown} as "2006-01-02T15:04:05Z07:00": cannot parse ${shown} as "2006"`);
  }
  const seconds = rfc3339(time).slice(0, -1);
  return micro ? `${seconds}.${fraction.slice(1, 7).padEnd(6, '0')}Z` : `${seconds}Z`;
}

/** Line breaks are ignored, as Go does. */
function canonicalBase64(text: string): string {
  const compact = text.replace(/[\r\n]/g, '');
  const bad = compact.search(/[^A-Za-z0-9+/]/);
  const padding = bad === -1 ? '' : compact.slice(bad, bad + 3);
  const ends = padding === '' || (bad + padding.length === compact.length && /^==?$/.test(padding));
  if (!ends || compact.length % 4 !== 0) {
    throw new DecodeError(
      `illegal base64 data at input byte ${bad === -1 ? compact.length - (compact.length % 4) : bad}`,
    );
  }
  return compact;
}

function jsonKind(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  return typeof value;
}

/** How Go prints a field's type: "[]v1.Container", "map[string]string". */
function goType(type: TypeText): string {
  if (type.startsWith('[]')) return `[]${goType(type.slice(2))}`;
  if (type.startsWith('map:')) return `map[string]${goType(type.slice(4))}`;
  if (type.startsWith('#')) return `v1.${shortName(type)}`;
  if (type === 'bytes') return '[]uint8';
  if (type === 'quantity') return 'resource.Quantity';
  if (type === 'intstr') return 'intstr.IntOrString';
  if (type === 'double') return 'float64';
  return type;
}

/** Resource lists are a named type in Go. */
function goFieldType(type: TypeText): string {
  return type === 'map:quantity' ? 'v1.ResourceList' : goType(type);
}

function mismatch(type: TypeText, value: unknown, place: Place, withValue = false): DecodeError {
  const found = withValue ? `number ${String(value)}` : jsonKind(value);
  if (place.struct === undefined) return plainMismatch(value, goFieldType(type), withValue);
  return new DecodeError(
    `json: cannot unmarshal ${found} into Go struct field ${place.struct}.${place.goPath} of type ${goFieldType(type)}`,
  );
}

function plainMismatch(value: unknown, type: string, withValue = false): DecodeError {
  const found = withValue ? `number ${String(value)}` : jsonKind(value);
  return new DecodeError(`json: cannot unmarshal ${found} into Go value of type ${type}`);
}
