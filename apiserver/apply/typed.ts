// What an apply does with typed values: checks a configuration against its type, names the fields it has, merges it into
// an object, and removes fields from one. Follows structured-merge-diff's typed values. Pure; results may share parts
// with what they were made from.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { isEmptyValue } from './compare.ts';
import { type FieldSet, has, isEmpty, MEMBER, NO_FIELDS, nodeOf, under } from './field-set.ts';
import { ElementError, elementOf, fieldElement, shownElement } from './path-element.ts';
import { DEDUCED, type ListType, type MapType, type ScalarType, type ValueType } from './types.ts';

// ---------------------------------------------------------------- the fields of a value

/** Every field of a configuration: leaves, elements of lists, and fields that only the object names. */
export function fieldsOf(type: ValueType, value: unknown): FieldSet {
  return fieldNode(type, value) ?? NO_FIELDS;
}

function fieldNode(type: ValueType, value: unknown): FieldSet | undefined {
  switch (type.kind) {
    case 'scalar':
      return MEMBER;
    case 'any':
      if (type.atomic || !isObject(value)) return MEMBER;
      return mapFields(undefined, value);
    case 'list':
      if (type.relation === 'atomic') return MEMBER;
      return Array.isArray(value) ? listFields(type, value) : undefined;
    case 'map':
      if (type.atomic) return MEMBER;
      return isObject(value) ? mapFields(type, value) : undefined;
  }
}

function mapFields(type: MapType | undefined, value: JsonObject): FieldSet | undefined {
  const children: { [element: string]: FieldSet } = {};
  for (const [name, child] of Object.entries(value)) {
    const named = type?.field(name);
    const below = fieldNode(named ?? type?.element?.() ?? DEDUCED, child);
    const member = named === undefined || child === null || (isObject(child) && isEmptyValue(child));
    const node = below === undefined || isEmpty(below) ? below : nodeOf(member, below);
    if (node !== undefined || member) setOwn(children, fieldElement(name), node ?? MEMBER);
  }
  return nodeOf(false, children);
}

function listFields(type: ListType, list: readonly unknown[]): FieldSet | undefined {
  const item = type.item();
  const children: { [element: string]: FieldSet } = {};
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const value of list) {
    const element = elementOf(type, value);
    if (seen.has(element)) twice.add(element);
    seen.add(element);
  }
  for (const value of list) {
    const element = elementOf(type, value);
    const below = twice.has(element) ? undefined : fieldNode(item, value);
    setOwn(children, element, nodeOf(true, below ?? NO_FIELDS) ?? MEMBER);
  }
  return nodeOf(false, children);
}

// ---------------------------------------------------------------- validation

/** A value of another type than the schema's, or an element that is there twice; the message names every one. */
export class TypeMismatch extends Error {
  override name = 'TypeMismatch';
}

/** Throws TypeMismatch, with the messages of structured-merge-diff. */
export function checkType(type: ValueType, value: unknown): void {
  const errors: string[] = [];
  check(type, value, '', errors);
  const [first] = errors;
  if (first === undefined) return;
  throw new TypeMismatch(errors.length === 1 ? first : ['errors:', ...errors.map((error) => `  ${error}`)].join('\n'));
}

function report(errors: string[], path: string, message: string): void {
  errors.push(path === '' ? message : `${path}: ${message}`);
}

/** How Go prints a value of JSON. */
function goText(value: unknown): string {
  if (isObject(value)) {
    return `map[${Object.keys(value)
      .sort()
      .map((key) => `${key}:${goText(getOwn(value, key))}`)
      .join(' ')}]`;
  }
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`;
  return value === null ? '<nil>' : String(value);
}

function goType(value: unknown): string {
  if (isObject(value)) return 'map[string]interface {}';
  if (Array.isArray(value)) return '[]interface {}';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  return typeof value === 'boolean' ? 'bool' : 'string';
}

function scalarError(type: ScalarType, value: unknown): string | undefined {
  switch (type.scalar) {
    case 'numeric':
      return typeof value === 'number' ? undefined : `expected numeric (int or float), got ${goType(value)}`;
    case 'string':
      return typeof value === 'string'
        ? undefined
        : `expected string, got &value.valueUnstructured{Value:${goText(value)}}`;
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got &{${goText(value)}}`;
    case 'untyped':
      return typeof value === 'object' ? `expected any scalar, got &{${goText(value)}}` : undefined;
  }
}

function check(type: ValueType, value: unknown, path: string, errors: string[]): void {
  if (value === null || type.kind === 'any') return;
  if (type.kind === 'scalar') {
    const error = scalarError(type, value);
    if (error !== undefined) report(errors, path, error);
  } else if (type.kind === 'list') {
    if (Array.isArray(value)) checkList(type, value, path, errors);
    else report(errors, path, `expected list, got &{${goText(value)}}`);
  } else if (isObject(value)) checkMap(type, value, path, errors);
  else report(errors, path, `expected map, got &{${goText(value)}}`);
}

function checkMap(type: MapType, value: JsonObject, path: string, errors: string[]): void {
  for (const [name, child] of Object.entries(value)) {
    const at = `${path}.${name}`;
    const field = type.field(name) ?? type.element?.();
    if (field === undefined) {
      report(errors, at, 'field not declared in schema');
      return;
    }
    check(field, child, at, errors);
  }
}

function checkList(type: ListType, list: readonly unknown[], path: string, errors: string[]): void {
  const seen = new Set<string>();
  const item = type.item();
  for (const [index, value] of list.entries()) {
    let element = `i:${index}`;
    if (type.relation !== 'atomic') {
      try {
        element = elementOf(type, value);
      } catch (error) {
        if (!(error instanceof ElementError)) throw error;
        report(errors, path, `element ${index}: ${error.message}`);
        return;
      }
      if (seen.has(element)) report(errors, path, `duplicate entries for key ${shownElement(element)}`);
      seen.add(element);
    }
    check(item, value, `${path}${shownElement(element)}`, errors);
  }
}

// ---------------------------------------------------------------- merging

/** `left` with `right` laid over it: `right` wins in leaves and orders the lists it has. undefined for nothing. */
export function merge(type: ValueType, left: unknown, right: unknown): unknown {
  const isLeaf =
    type.kind === 'scalar' ||
    (type.kind === 'any' && (type.atomic || !isObject(left ?? right) || !isObject(right ?? left))) ||
    (type.kind === 'list' && type.relation === 'atomic') ||
    (type.kind === 'map' && type.atomic) ||
    (isEmptyValue(left) && isEmptyValue(right));
  if (isLeaf) return right === undefined ? left : right;
  if (type.kind === 'list') return mergeLists(type, left, right);
  return mergeMaps(type.kind === 'map' ? type : undefined, left, right);
}

function mergeMaps(type: MapType | undefined, left: unknown, right: unknown): unknown {
  const before = isObject(left) ? left : {};
  const after = isObject(right) ? right : {};
  const result: JsonObject = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const field = type?.field(name) ?? type?.element?.() ?? DEDUCED;
    const merged = merge(field, getOwn(before, name), getOwn(after, name));
    if (merged !== undefined) setOwn(result, name, merged);
  }
  return Object.keys(result).length === 0 ? undefined : result;
}

/**
 * Elements of both, each merged with its counterpart. They come in the order of `right`, and elements that only `left`
 * has keep their place before the next one that both have.
 */
function mergeLists(type: ListType, left: unknown, right: unknown): unknown {
  const item = type.item();
  const before = identified(type, left);
  const after = identified(type, right);
  const shared = after.order.filter((element) => before.values.has(element));
  const result: unknown[] = [];
  const taken = new Set<string>();
  const add = (was: unknown, is: unknown): void => {
    const merged = merge(item, was, is);
    if (merged !== undefined) result.push(merged);
  };
  let next = shared.shift();
  let l = 0;
  let r = 0;
  while (l < before.order.length || r < after.order.length) {
    const mine = before.order[l];
    const theirs = after.order[r];
    if (mine !== undefined && theirs !== undefined) {
      if (mine === theirs) {
        taken.add(mine);
        add(before.values.get(mine), after.values.get(mine));
        l++;
        r++;
        next = shared.shift();
        continue;
      }
      if (after.values.has(mine) && next !== undefined && next !== mine) {
        l++;
        continue;
      }
    }
    if (mine !== undefined) {
      if (!after.values.has(mine)) {
        add(before.items[l], undefined);
        l++;
        continue;
      }
      if (taken.has(mine)) l++;
    }
    if (theirs !== undefined) {
      taken.add(theirs);
      add(before.values.get(theirs), after.values.get(theirs));
      r++;
      if (next === theirs) next = shared.shift();
    }
  }
  return result.length === 0 ? undefined : result;
}

interface Identified {
  readonly items: readonly unknown[];
  readonly order: readonly string[];
  /** One that is there twice is replaced as a whole, so it counts as null. */
  readonly values: ReadonlyMap<string, unknown>;
}

function identified(type: ListType, list: unknown): Identified {
  const items = Array.isArray(list) ? list : [];
  const order = items.map((item) => elementOf(type, item));
  const values = new Map<string, unknown>();
  for (const [index, element] of order.entries()) values.set(element, values.has(element) ? null : items[index]);
  return { items, order, values };
}

// ---------------------------------------------------------------- removing

/** `value` without the fields in `set`; undefined when nothing is left. Scalars and whatever has one owner stay. */
export function remove(type: ValueType, value: unknown, set: FieldSet): unknown {
  if (Array.isArray(value)) {
    if (type.kind !== 'list' || type.relation === 'atomic' || value.length === 0) return undefined;
    return removeItems(type, value, set);
  }
  if (!isObject(value)) return value;
  const isWhole = type.kind === 'map' || type.kind === 'any' ? type.atomic : true;
  if (isWhole) return undefined;
  const result: JsonObject = {};
  for (const [name, child] of Object.entries(value)) {
    const element = fieldElement(name);
    if (has(set, [element])) continue;
    const subset = under(set, element);
    const field = type.kind === 'map' ? (type.field(name) ?? type.element?.() ?? DEDUCED) : DEDUCED;
    // What is emptied is null, not gone: others may own it without owning anything in it.
    setOwn(result, name, (isEmpty(subset) ? child : remove(field, child, subset)) ?? null);
  }
  return Object.keys(result).length === 0 ? undefined : result;
}

function removeItems(type: ListType, list: readonly unknown[], set: FieldSet): unknown {
  const item = type.item();
  const result: unknown[] = [];
  for (const value of list) {
    const element = elementOf(type, value);
    if (has(set, [element])) continue;
    const subset = under(set, element);
    const left = isEmpty(subset) ? value : remove(item, value, subset);
    if (left !== undefined) result.push(left);
  }
  return result.length === 0 ? undefined : result;
}
