// Maps of expressions: plain objects where all keys are strings, as in JSON, else JavaScript's maps. A number is one key, whatever
// its type: 1, 1u and 1.0.

import { UnsignedInt } from '@marcbachmann/cel-js/evaluator';
import { setOwn } from '../../lib/own-property.ts';

/** A key as it is stored. Throws RangeError for a value that is no key. */
export function keyOf(value: unknown): string | bigint | boolean | number {
  if (typeof value === 'string' || typeof value === 'bigint' || typeof value === 'boolean') return value;
  if (value instanceof UnsignedInt) return value.value;
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  throw new RangeError('unsupported key type');
}

export function keyText(key: unknown): string {
  return String(key);
}

/** The map that an expression sees. */
export function asMap(map: ReadonlyMap<unknown, unknown>): unknown {
  if ([...map.keys()].some((key) => typeof key !== 'string')) return map;
  const object: Record<string, unknown> = {};
  for (const [key, value] of map) setOwn(object, String(key), value);
  return object;
}

/** Of a list by index, of a map by key. Throws RangeError for anything else. */
export function entriesOf(value: unknown): Iterable<readonly [unknown, unknown]> {
  if (Array.isArray(value)) return indexed(value);
  if (value instanceof Map) return value;
  if (typeof value === 'object' && value !== null && isPlain(value)) return Object.entries(value);
  throw new RangeError('no such overload');
}

function* indexed(list: readonly unknown[]): Iterable<readonly [bigint, unknown]> {
  let index = 0n;
  for (const item of list) yield [index++, item];
}

/** Fields of a typed object cannot be iterated. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
