// Sets of fields, in the form in which FieldsV1 stores them: a tree of path elements, where {} is a member, "." marks a
// member that has others below it, and anything else only leads to members. Sets are never changed; results may share
// parts with what they were made from. Pure.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { isObject } from '../patch/json-value.ts';
import { canonicalElement, compareElements, fieldName } from './path-element.ts';
import type { ValueType } from './types.ts';

/** A set: element → what is at and below it. As a node of one, also with ".". */
export interface FieldSet {
  readonly [element: string]: FieldSet;
}
interface MutableSet {
  [element: string]: FieldSet;
}

export const NO_FIELDS: FieldSet = {};
/** A node that is a member without others below. */
export const MEMBER: FieldSet = {};
const SELF = '.';

export function isEmpty(set: FieldSet): boolean {
  for (const _ in set) return false;
  return true;
}

export function isMember(node: FieldSet): boolean {
  return isEmpty(node) || Object.hasOwn(node, SELF);
}

/** What is below a node, as a set of its own. */
function below(node: FieldSet): FieldSet {
  if (!Object.hasOwn(node, SELF)) return node;
  const { [SELF]: _self, ...rest } = node;
  return rest;
}

/** A node; undefined for one that would mean nothing. */
export function nodeOf(member: boolean, children: FieldSet): FieldSet | undefined {
  if (isEmpty(children)) return member ? MEMBER : undefined;
  return member ? { [SELF]: MEMBER, ...children } : children;
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(a)) return b;
  if (isEmpty(b)) return a;
  const result: MutableSet = { ...a };
  for (const [element, right] of Object.entries(b)) {
    const left = getOwn(a, element);
    if (left === undefined) setOwn(result, element, right);
    else if (left !== right) {
      const node = nodeOf(isMember(left) || isMember(right), union(below(left), below(right)));
      if (node !== undefined) setOwn(result, element, node);
    }
  }
  return result;
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  const result: MutableSet = {};
  for (const [element, left] of Object.entries(a)) {
    const right = getOwn(b, element);
    if (right === undefined) continue;
    const node = nodeOf(isMember(left) && isMember(right), intersection(below(left), below(right)));
    if (node !== undefined) setOwn(result, element, node);
  }
  return result;
}

/** `a` without the members of `b`; what is below a member of `b` stays. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(b)) return a;
  const result: MutableSet = {};
  for (const [element, left] of Object.entries(a)) {
    const right = getOwn(b, element);
    const node =
      right === undefined ? left : nodeOf(isMember(left) && !isMember(right), difference(below(left), below(right)));
    if (node !== undefined) setOwn(result, element, node);
  }
  return result;
}

/** `a` without the members of `b` and all that is below them. */
export function without(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(b)) return a;
  const result: MutableSet = {};
  for (const [element, left] of Object.entries(a)) {
    const right = getOwn(b, element);
    if (right !== undefined && isMember(right)) continue;
    const node = right === undefined ? left : nodeOf(isMember(left), without(below(left), right));
    if (node !== undefined) setOwn(result, element, node);
  }
  return result;
}

export function has(set: FieldSet, path: readonly string[]): boolean {
  const node = at(set, path);
  return path.length > 0 && node !== undefined && isMember(node);
}

function at(set: FieldSet, path: readonly string[]): FieldSet | undefined {
  let node: FieldSet | undefined = set;
  for (const element of path) node = node === undefined ? undefined : getOwn(node, element);
  return node;
}

/** The subset under an element, without it. */
export function under(set: FieldSet, element: string): FieldSet {
  const node = getOwn(set, element);
  return node === undefined ? NO_FIELDS : below(node);
}

/** A set of one path. */
export function setOf(path: readonly string[]): FieldSet {
  return path.reduceRight<FieldSet>((node, element) => ({ [element]: node }), MEMBER);
}

/** Every member's path, parents first. */
export function* members(set: FieldSet, prefix: readonly string[] = []): Generator<readonly string[]> {
  const elements = Object.keys(set).filter((element) => element !== SELF);
  elements.sort(compareElements);
  for (const element of elements) if (isMember(getOwn(set, element) ?? NO_FIELDS)) yield [...prefix, element];
  for (const element of elements) yield* members(getOwn(set, element) ?? NO_FIELDS, [...prefix, element]);
}

/** The set with every field that the schema names and that leads to a member, too: pruning looks at those as well. */
export function withNamedFields(set: FieldSet, type: ValueType | undefined): FieldSet {
  const result: MutableSet = {};
  for (const [element, node] of Object.entries(set)) {
    const name = fieldName(element);
    let child: ValueType | undefined;
    let named = false;
    if (name !== undefined && type?.kind === 'map') {
      const field = type.field(name);
      named = field !== undefined;
      child = field ?? type.element?.();
    } else if (name !== undefined && type?.kind === 'any' && !type.atomic) child = type;
    else if (element.startsWith('k:') && type?.kind === 'list') child = type.item();
    const children = withNamedFields(below(node), child);
    const made = nodeOf(isMember(node) || named, children);
    if (made !== undefined) setOwn(result, element, made);
  }
  return result;
}

/** The set as FieldsV1 is written: of each node "." first, then fields, keys, values and indexes in order. */
export function encode(set: FieldSet): FieldSet {
  const elements = Object.keys(set);
  const ordered = isOrdered(elements) ? elements : elements.toSorted(compareElements);
  const result: MutableSet = {};
  for (const element of ordered) setOwn(result, element, encode(getOwn(set, element) ?? NO_FIELDS));
  return result;
}

function isOrdered(elements: readonly string[]): boolean {
  return elements.every((element, index) => index === 0 || compareElements(elements[index - 1] ?? '', element) < 0);
}

/** A client's FieldsV1 in canonical form; elements of kinds that are not known are dropped. Throws ElementError. */
export function decode(value: unknown): FieldSet {
  const node = decodeNode(value);
  return node === undefined || Object.hasOwn(node, SELF) ? below(node ?? NO_FIELDS) : node;
}

function decodeNode(value: unknown): FieldSet | undefined {
  if (!isObject(value)) return MEMBER;
  let member = false;
  const children: MutableSet = {};
  for (const [text, child] of Object.entries(value)) {
    if (text === SELF) {
      member = true;
      continue;
    }
    const element = canonicalElement(text);
    if (element === undefined) continue;
    setOwn(children, element, decodeNode(child) ?? MEMBER);
  }
  return isEmpty(children) ? MEMBER : nodeOf(member, children);
}
