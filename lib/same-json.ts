// Whether two JSON values are the same. Pure.

import { getOwn } from './own-property.ts';

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The names of the fields that JSON would contain: undefined counts as absent. */
function written(fields: Fields): string[] {
  return Object.keys(fields).filter((name) => getOwn(fields, name) !== undefined);
}

/** Deep equality of JSON values: the order of an object's fields does not matter, a field that is undefined is absent. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => sameJson(item, b[index]));
  }
  if (!isFields(a) || !isFields(b)) return false;
  const names = written(a);
  if (names.length !== written(b).length) return false;
  return names.every((name) => Object.hasOwn(b, name) && sameJson(getOwn(a, name), getOwn(b, name)));
}
