// Lists with `x-kubernetes-list-type: set` or `map`, as rules see them: equal whatever the order, and `+` is a union, as in
// k8s.io/apiserver/pkg/cel/common. The operand on the left decides. Lists are JavaScript's own; what they are is known beside them.

import { charge } from './budget.ts';

/** What identifies an item: itself, or the values of its keys. */
export type ListType = { readonly kind: 'set' } | { readonly kind: 'map'; readonly keys: readonly string[] };

const types = new WeakMap<object, ListType>();
/** Values that are or contain such a list: the library's own comparison does not know them. */
const containers = new WeakSet<object>();

export function markList(list: object, type: ListType | undefined): void {
  if (type !== undefined) types.set(list, type);
  containers.add(list);
}

export function markContainer(value: object): void {
  containers.add(value);
}

export function listTypeOf(list: object): ListType | undefined {
  return types.get(list);
}

export const isMarked = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && containers.has(value);

function tagged(value: unknown): string {
  return `${typeof value} ${String(value)}`;
}

function identify(item: unknown, type: ListType): string {
  if (type.kind === 'set') return tagged(item);
  const object = typeof item === 'object' && item !== null ? item : {};
  return JSON.stringify(type.keys.map((key) => tagged(Reflect.get(object, key))));
}

/** Whether `other` has the items of `list` in any order. */
export function equalLists(
  list: readonly unknown[],
  other: readonly unknown[],
  type: ListType,
  equal: (a: unknown, b: unknown) => boolean,
): boolean {
  if (list.length !== other.length) return false;
  charge(list.length);
  const known = new Map(list.map((item) => [identify(item, type), item]));
  return other.every((item) => {
    const key = identify(item, type);
    return known.has(key) && (type.kind === 'set' || equal(known.get(key), item));
  });
}

/** The items of `list` in their places, those of `other` with a known key put there, the rest after them. */
export function unionOf(list: readonly unknown[], other: readonly unknown[], type: ListType): unknown[] {
  charge(list.length + other.length);
  const places = new Map(list.map((item, index) => [identify(item, type), index]));
  const result = [...list];
  for (const item of other) {
    const key = identify(item, type);
    const place = places.get(key);
    if (place !== undefined) {
      if (type.kind === 'map') result[place] = item;
      continue;
    }
    if (type.kind === 'set') places.set(key, result.length);
    result.push(item);
  }
  markList(result, type);
  return result;
}
