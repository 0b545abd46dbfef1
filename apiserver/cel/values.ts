// Values as expressions see them: whole numbers are bigints, times Dates, the rest is as in JSON. Equality and order as the
// language defines them.

import { Optional } from '@marcbachmann/cel-js';
import { Duration, UnsignedInt } from '@marcbachmann/cel-js/evaluator';
import { setOwn } from '../../lib/own-property.ts';
import { charge } from './budget.ts';
import { timeText } from './times.ts';
import { equalLists, listTypeOf } from './typed-lists.ts';

/** Plain JSON without a schema: a whole number is an int, as the API machinery reads it. */
export function celValue(json: unknown): unknown {
  if (typeof json === 'number') return Number.isInteger(json) ? BigInt(json) : json;
  if (Array.isArray(json)) return json.map(celValue);
  if (typeof json !== 'object' || json === null) return json;
  const map: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(json)) if (value !== undefined) setOwn(map, key, celValue(value));
  return map;
}

/** An expression's result as JSON. Throws RangeError for what JSON has no form for (types, times in a list …). */
export function jsonValue(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof UnsignedInt) return Number(value.value);
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number')
    return value;
  if (value instanceof Date) return timeText(value);
  if (value instanceof Duration) return value.toString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Optional) return value.hasValue() ? jsonValue(value.value()) : null;
  if (Array.isArray(value)) return value.map(jsonValue);
  if (typeof value !== 'object') throw new RangeError(`a ${typeof value} has no form in JSON`);
  const entries: Iterable<readonly [unknown, unknown]> = value instanceof Map ? value : Object.entries(value);
  const object: Record<string, unknown> = {};
  for (const [key, each] of entries) setOwn(object, String(key), jsonValue(each));
  return object;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function equalUnsigned(a: unknown, b: unknown): boolean {
  const value = (one: unknown): unknown => (one instanceof UnsignedInt ? one.value : one);
  return celEqual(value(a), value(b));
}

function equalOptionals(a: unknown, b: unknown): boolean {
  if (!(a instanceof Optional) || !(b instanceof Optional) || a.hasValue() !== b.hasValue()) return false;
  return !a.hasValue() || celEqual(a.value(), b.value());
}

function equalMaps(a: object, b: object): boolean {
  const [left, right] = [a, b].map((one) => (one instanceof Map ? one : new Map(Object.entries(one))));
  if (left === undefined || right === undefined || left.size !== right.size) return false;
  return [...left].every(([key, value]) => right.has(key) && celEqual(value, right.get(key)));
}

/** Deep equality; numbers of different types are equal when their values are. */
export function celEqual(a: unknown, b: unknown): boolean {
  charge(1);
  if (a === b) return true;
  if (typeof a === 'bigint' && typeof b === 'number') return Number(a) === b;
  if (typeof a === 'number' && typeof b === 'bigint') return a === Number(b);
  if (a instanceof Date || b instanceof Date) return a instanceof Date && b instanceof Date && +a === +b;
  if (a instanceof Duration || b instanceof Duration)
    return a instanceof Duration && b instanceof Duration && +a === +b;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    const type = listTypeOf(a);
    if (type !== undefined) return equalLists(a, b, type, celEqual);
    return a.every((item, index) => celEqual(item, b[index]));
  }
  if (a instanceof UnsignedInt || b instanceof UnsignedInt) return equalUnsigned(a, b);
  if (a instanceof Optional || b instanceof Optional) return equalOptionals(a, b);
  if (a instanceof Uint8Array || b instanceof Uint8Array)
    return a instanceof Uint8Array && b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  if (!isPlain(a) || !isPlain(b)) return false;
  if (a instanceof Map || b instanceof Map) return equalMaps(a, b);
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && celEqual(Reflect.get(a, key), Reflect.get(b, key)))
  );
}

/** Negative, 0 or positive. Throws RangeError for values without an order. */
export function celCompare(a: unknown, b: unknown): number {
  charge(1);
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b);
  const [left, right] = [orderOf(a), orderOf(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

function orderOf(value: unknown): number | bigint {
  if (typeof value === 'number' || typeof value === 'bigint') return value;
  if (value instanceof Date || value instanceof Duration) return +value;
  if (value instanceof UnsignedInt) return value.value;
  throw new RangeError('no such overload');
}
