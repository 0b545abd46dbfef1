// JSON values as the patches see them. Pure.

import { getOwn } from '../../lib/own-property.ts';

export type JsonObject = { [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether two JSON values say the same; the order of keys does not matter. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => jsonEqual(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  // A field that is undefined is not written, so it is as good as absent.
  const keys = (object: JsonObject): string[] => Object.keys(object).filter((key) => getOwn(object, key) !== undefined);
  const mine = keys(a);
  if (mine.length !== keys(b).length) return false;
  return mine.every((key) => Object.hasOwn(b, key) && jsonEqual(getOwn(a, key), getOwn(b, key)));
}

/** A patch that cannot be read as one (400), or that does not fit the object (422). */
export class PatchError extends Error {
  override name = 'PatchError';
  readonly kind: 'malformed' | 'inapplicable';
  constructor(kind: 'malformed' | 'inapplicable', message: string) {
    super(message);
    this.kind = kind;
  }
}
