// One step of a field's path as FieldsV1 writes it: "f:<field>", "k:<keys of an element as JSON>", "v:<value of a set>",
// "i:<index>". Elements are compared and stored as these texts, so each has one canonical form. Pure.

import { getOwn } from '../../lib/own-property.ts';
import { isObject } from '../patch/json-value.ts';
import type { ListType } from './types.ts';

/** What a list's element lacks to be found again: the type's keys, or a plain value. */
export class ElementError extends Error {
  override name = 'ElementError';
}

export function fieldElement(name: string): string {
  return `f:${name}`;
}

/** "f:image" → "image"; undefined for elements of lists. */
export function fieldName(element: string): string | undefined {
  return element.startsWith('f:') ? element.slice(2) : undefined;
}

function keyElement(pairs: readonly (readonly [string, unknown])[]): string {
  const sorted = pairs.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `k:{${sorted.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join()}}`;
}

/** Which element of its list `item` is. Throws ElementError for one without identity. */
export function elementOf(type: ListType, item: unknown): string {
  if (type.relation === 'set') {
    if (isObject(item)) throw new ElementError("associative list without keys has an element that's a map type");
    if (Array.isArray(item)) throw new ElementError('not supported: associative list with lists as elements');
    if (item === null) throw new ElementError("associative list without keys has an element that's an explicit null");
    return `v:${JSON.stringify(item)}`;
  }
  if (item === null) throw new ElementError('associative list with keys may not have a null element');
  if (!isObject(item)) throw new ElementError('associative list with keys may not have non-map elements');
  const pairs: [string, unknown][] = [];
  for (const key of type.keys) {
    const value = getOwn(item, key) ?? getOwn(type.keyDefaults, key);
    if (value !== undefined) pairs.push([key, value]);
  }
  if (pairs.length === 0) {
    const keys = type.keys.map((key) => JSON.stringify(key)).join(' ');
    throw new ElementError(
      `associative list with keys has an element that omits all key fields [${keys}] (and doesn't have default values for any key fields)`,
    );
  }
  return keyElement(pairs);
}

/** An element from a client in its canonical form; undefined for kinds of elements that are not known. Throws ElementError. */
export function canonicalElement(text: string): string | undefined {
  if (text.length < 2) throw new ElementError('key must be 2 characters long:');
  if (text.charAt(1) !== ':') throw new ElementError(`missing colon: ${text}`);
  const rest = text.slice(2);
  switch (text.charAt(0)) {
    case 'f':
      return text;
    case 'i':
      if (!/^[+-]?\d{1,15}$/.test(rest))
        throw new ElementError(`strconv.Atoi: parsing ${JSON.stringify(rest)}: invalid syntax`);
      return `i:${Number(rest)}`;
    case 'v':
      return `v:${JSON.stringify(parse(rest))}`;
    case 'k': {
      const keys = parse(rest);
      if (!isObject(keys)) throw new ElementError(`ReadObjectCB: expect { or n, in ${text}`);
      return keyElement(Object.entries(keys));
    }
    default:
      return undefined;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new ElementError(error.message);
    throw error;
  }
}

/** As it stands in messages: ".spec", `[name="a"]`, "[=1]", "[0]". */
export function shownElement(element: string): string {
  const rest = element.slice(2);
  switch (element.charAt(0)) {
    case 'f':
      return `.${rest}`;
    case 'k': {
      const keys = parse(rest);
      const pairs = isObject(keys) ? Object.entries(keys) : [];
      return `[${pairs.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join()}]`;
    }
    case 'v':
      return `[=${rest}]`;
    default:
      return `[${rest}]`;
  }
}

export function shownPath(path: readonly string[]): string {
  return path.map(shownElement).join('');
}

const ORDER = '.fkvi';

/** Order of elements in an encoded set: ".", which stands for the node itself, fields by name, then elements by their keys, values, indexes. */
export function compareElements(a: string, b: string): number {
  const kind = a.charAt(0);
  if (kind !== b.charAt(0)) return ORDER.indexOf(kind) - ORDER.indexOf(b.charAt(0));
  if (a === b) return 0;
  if (kind === 'f') return a < b ? -1 : a > b ? 1 : 0;
  return compareValues(parse(a.slice(2)), parse(b.slice(2)));
}

function compareValues(a: unknown, b: unknown): number {
  if (isObject(a) && isObject(b)) {
    const left = Object.entries(a);
    const right = Object.entries(b);
    for (const [index, [key, value]] of left.entries()) {
      const other = right[index];
      if (other === undefined) return 1;
      if (key !== other[0]) return key < other[0] ? -1 : 1;
      const order = compareValues(value, other[1]);
      if (order !== 0) return order;
    }
    return left.length - right.length;
  }
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  const left = typeof a === 'string' ? a : (JSON.stringify(a) ?? '');
  const right = typeof b === 'string' ? b : (JSON.stringify(b) ?? '');
  return left < right ? -1 : left > right ? 1 : 0;
}
