// Which fields two values of a type differ in. Follows structured-merge-diff's comparison: leaves are scalars and
// everything with one owner; a container that is new or gone is a member itself. Pure.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { sameJson } from '../../lib/same-json.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { type FieldSet, MEMBER, NO_FIELDS, nodeOf } from './field-set.ts';
import { elementOf, fieldElement } from './path-element.ts';
import { DEDUCED, type ListType, type MapType, type ValueType } from './types.ts';

export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** One place: nodes of the three sets. */
type Difference = { readonly [kind in keyof Comparison]: FieldSet | undefined };
type Compared = 'objects' | 'apply';
type Children = { [kind in keyof Comparison]: { [element: string]: FieldSet } };

const NOWHERE: Difference = { added: undefined, modified: undefined, removed: undefined };
const KINDS = ['added', 'modified', 'removed'] as const;

/**
 * From `left` to `right`, two objects; `right` may come from an apply, which adds only what its configuration has: nothing of
 * what Go writes of itself. Throws ElementError for a list's element without identity.
 */
export function compare(
  type: ValueType,
  left: unknown,
  right: unknown,
  of: 'objects' | 'apply' = 'objects',
): Comparison {
  const difference = compareValues(type, left, right, of) ?? NOWHERE;
  const { added = NO_FIELDS, modified = NO_FIELDS, removed = NO_FIELDS } = difference;
  return { added, modified, removed };
}

export function isEmptyValue(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

/** undefined when they are the same; undefined as a value is none. */
function compareValues(type: ValueType, left: unknown, right: unknown, of: Compared): Difference | undefined {
  if (left === right) return undefined;
  if (type.kind === 'any' && !type.atomic) return compareDeduced(left, right, of);
  const hasOneOwner =
    type.kind === 'scalar' ||
    type.kind === 'any' ||
    (type.kind === 'list' ? type.relation === 'atomic' : type.atomic) ||
    (isEmptyValue(left) && isEmptyValue(right));
  if (hasOneOwner) return compareLeaves(left, right);
  const children: Children = { added: {}, modified: {}, removed: {} };
  if (type.kind === 'list') compareLists(type, left, right, children, of);
  else compareMaps(type, left, right, children, of);
  return container(left, right, children);
}

function compareLeaves(left: unknown, right: unknown): Difference | undefined {
  if (left === undefined) return { ...NOWHERE, added: MEMBER };
  if (right === undefined) return { ...NOWHERE, removed: MEMBER };
  return sameJson(left, right) ? undefined : { ...NOWHERE, modified: MEMBER };
}

function container(left: unknown, right: unknown, children: Children): Difference | undefined {
  const added = nodeOf(left === undefined, children.added);
  const removed = nodeOf(right === undefined, children.removed);
  const modified = nodeOf(false, children.modified);
  if (added === undefined && removed === undefined && modified === undefined) return undefined;
  return { added, modified, removed };
}

function put(children: Children, element: string, difference: Difference | undefined): void {
  if (difference === undefined) return;
  for (const kind of KINDS) {
    const node = difference[kind];
    if (node !== undefined) setOwn(children[kind], element, node);
  }
}

/** Without a schema: objects by field, everything else as a whole. */
function compareDeduced(left: unknown, right: unknown, of: Compared): Difference | undefined {
  const maps = isObject(left ?? right) && isObject(right ?? left);
  if (!maps || (isEmptyValue(left) && isEmptyValue(right))) return compareLeaves(left, right);
  const children: Children = { added: {}, modified: {}, removed: {} };
  const before = isObject(left) ? left : {};
  const after = isObject(right) ? right : {};
  for (const name of namesOf(before, after)) {
    put(children, fieldElement(name), compareValues(DEDUCED, getOwn(before, name), getOwn(after, name), of));
  }
  return container(left, right, children);
}

function namesOf(before: JsonObject, after: JsonObject): Iterable<string> {
  const names = Object.keys(after);
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) names.push(name);
  return names;
}

function compareMaps(type: MapType, left: unknown, right: unknown, children: Children, of: Compared): void {
  const before = isObject(left) ? left : undefined;
  const after = isObject(right) ? right : undefined;
  const { present } = type;
  for (const name of namesOf(before ?? {}, after ?? {})) {
    if (!Object.hasOwn(present, name)) {
      const field = type.field(name) ?? type.element?.() ?? DEDUCED;
      put(children, fieldElement(name), compareValues(field, getOwn(before, name), getOwn(after, name), of));
    }
  }
  for (const [name, none] of Object.entries(present)) {
    const field = type.field(name);
    const was = before === undefined ? undefined : (getOwn(before, name) ?? none);
    const filled = of === 'objects' || before !== undefined ? none : undefined;
    const is = after === undefined ? undefined : (getOwn(after, name) ?? filled);
    if (field !== undefined) put(children, fieldElement(name), compareValues(field, was, is, of));
  }
}

/** Elements by identity; more than one of the same identity have one owner together. */
function compareLists(type: ListType, left: unknown, right: unknown, children: Children, of: Compared): void {
  const before = byElement(type, left);
  const after = byElement(type, right);
  const item = type.item();
  for (const element of new Set([...before.keys(), ...after.keys()])) {
    const was = before.get(element) ?? [];
    const is = after.get(element) ?? [];
    if (was.length <= 1 && is.length <= 1) {
      put(children, element, compareValues(item, was[0], is[0], of));
    } else if (was.length > 1 && is.length > 1) {
      if (!sameJson(was, is)) put(children, element, { ...NOWHERE, modified: MEMBER });
    } else if (was.length > 1) {
      if (is.length > 0) put(children, element, compareValues(item, undefined, is[0], of));
      put(children, element, { ...NOWHERE, removed: MEMBER });
    } else {
      if (was.length > 0) put(children, element, compareValues(item, was[0], undefined, of));
      put(children, element, { ...NOWHERE, added: MEMBER });
    }
  }
}

function byElement(type: ListType, list: unknown): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>();
  for (const item of Array.isArray(list) ? list : []) {
    const element = elementOf(type, item);
    const same = found.get(element);
    if (same === undefined) found.set(element, [item]);
    else same.push(item);
  }
  return found;
}
