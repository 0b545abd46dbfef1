// Strategic merge patch: a JSON merge patch that merges lists by the key of their elements, or
// as sets, and can carry directives ($patch, $retainKeys, $setElementOrder/…, $deleteFromPrimitiveList/…). Behaves
// as apimachinery's strategicpatch, down to where new elements land. Pure; changes `original`.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { childNode, itemNode, type SchemaNode } from '../schema/definitions.ts';
import { isObject, type JsonObject, jsonIdentity, PatchError, shown } from './json-value.ts';

const PATCH = '$patch';
const RETAIN_KEYS = '$retainKeys';
const ORDER = '$setElementOrder/';
const DELETE_PRIMITIVES = '$deleteFromPrimitiveList/';

function isDirective(key: string): boolean {
  return key === PATCH || key === RETAIN_KEYS || key.startsWith(ORDER) || key.startsWith(DELETE_PRIMITIVES);
}

function malformed(message: string): PatchError {
  return new PatchError('malformed', message);
}

function listOf(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) throw malformed(`${what} must be a list`);
  return value;
}

/** `original` (an object) after `patch`. Throws PatchError. `node` is the schema's view of the object. */
export function applyStrategicPatch(original: JsonObject, patch: unknown, node: SchemaNode): JsonObject {
  if (!isObject(patch)) throw malformed('a strategic merge patch is an object');
  return mergeObject(original, patch, node);
}

function mergeObject(original: JsonObject, patch: JsonObject, node: SchemaNode): JsonObject {
  const directive = patch[PATCH];
  if (directive === 'replace') return withoutDirectives(patch, node);
  if (directive === 'delete') return {};
  if (directive !== undefined && directive !== 'merge') {
    throw malformed(`Unknown patch type found: ${shown(directive)} in map`);
  }
  retainKeys(original, patch);
  for (const key of Object.keys(patch)) {
    if (isDirective(key)) continue;
    const value = getOwn(patch, key);
    if (value === null) delete original[key];
    else setOwn(original, key, mergeField(original, patch, key, value, childNode(node, key)));
  }
  // Directives about lists that the patch does not otherwise mention.
  for (const key of Object.keys(patch)) {
    const prefix = [ORDER, DELETE_PRIMITIVES].find((p) => key.startsWith(p));
    if (prefix === undefined) continue;
    const field = key.slice(prefix.length);
    const list = getOwn(original, field);
    if (Object.hasOwn(patch, field) || !Array.isArray(list)) continue;
    setOwn(original, field, mergeList(list, [], patch, field, childNode(node, field)));
  }
  return original;
}

/** Drops what $retainKeys does not name, so that one member of a union takes another's place. */
function retainKeys(original: JsonObject, patch: JsonObject): void {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return;
  const keep = new Set(listOf(patch[RETAIN_KEYS], RETAIN_KEYS));
  for (const key of Object.keys(patch)) {
    if (!isDirective(key) && getOwn(patch, key) !== null && !keep.has(key)) {
      throw malformed(`fields in ${RETAIN_KEYS} are not complete: "${key}" is in the patch and not among them`);
    }
  }
  for (const key of Object.keys(original)) if (!keep.has(key)) delete original[key];
}

function mergeField(original: JsonObject, patch: JsonObject, key: string, value: unknown, node: SchemaNode): unknown {
  const old = getOwn(original, key);
  const replaces = node.merge?.strategy.includes('replace') === true;
  if (isObject(value)) {
    return isObject(old) && !replaces ? mergeObject(old, value, node) : withoutDirectives(value, node);
  }
  if (!Array.isArray(value)) return value;
  if (node.merge?.strategy.includes('merge') !== true) return value.map((item) => strip(item, itemNode(node)));
  return mergeList(Array.isArray(old) ? old : [], value, patch, key, node);
}

/** A value that is new to the object: directives and nulls have done their work by being there. */
function strip(value: unknown, node: SchemaNode): unknown {
  if (isObject(value)) return withoutDirectives(value, node);
  if (!Array.isArray(value)) return value;
  return value.filter((item) => !isObject(item) || item[PATCH] !== 'delete').map((item) => strip(item, itemNode(node)));
}

function withoutDirectives(patch: JsonObject, node: SchemaNode): JsonObject {
  const result: JsonObject = {};
  for (const key of Object.keys(patch)) {
    const value = getOwn(patch, key);
    if (!isDirective(key) && value !== null) setOwn(result, key, strip(value, childNode(node, key)));
  }
  return result;
}

/** The identity of an element of a list: the value of the merge key, or the whole. */
function identity(item: unknown, key: string | undefined): string | undefined {
  if (key === undefined) return jsonIdentity(item);
  if (!isObject(item)) return undefined;
  const value = getOwn(item, key);
  // Two without the key are the same, as two with the same value are.
  return value === undefined ? '' : jsonIdentity(value);
}

/** The elements of a list while patches are applied: each is found by its identity, however long the list is. */
class Elements {
  readonly #key: string | undefined;
  readonly #items: ({ item: unknown } | undefined)[] = [];
  /** Where the elements with an identity stand, in order. */
  readonly #places = new Map<string, number[]>();

  constructor(items: readonly unknown[], key: string | undefined) {
    this.#key = key;
    for (const item of items) this.push(item);
  }

  push(item: unknown): void {
    const id = identity(item, this.#key);
    if (id !== undefined) {
      const places = this.#places.get(id);
      if (places === undefined) this.#places.set(id, [this.#items.length]);
      else places.push(this.#items.length);
    }
    this.#items.push({ item });
  }

  /** The first element that is the same as `item`, with the means to put another in its place. */
  find(item: unknown): { item: unknown } | undefined {
    const [first = -1] = this.#places.get(identity(item, this.#key) ?? '\0') ?? [];
    return this.#items[first];
  }

  /** Takes out every element that is the same. */
  remove(item: unknown): void {
    const id = identity(item, this.#key) ?? '\0';
    for (const place of this.#places.get(id) ?? []) this.#items[place] = undefined;
    this.#places.delete(id);
  }

  list(): unknown[] {
    return this.#items.flatMap((entry) => (entry === undefined ? [] : [entry.item]));
  }
}

function mergeList(
  original: readonly unknown[],
  patch: readonly unknown[],
  parentPatch: JsonObject,
  field: string,
  node: SchemaNode,
): unknown[] {
  const key = node.merge?.key;
  const order = getOwn(parentPatch, `${ORDER}${field}`);
  const removed = getOwn(parentPatch, `${DELETE_PRIMITIVES}${field}`);
  let kept = original;
  if (removed !== undefined) {
    const gone = new Set(listOf(removed, `${DELETE_PRIMITIVES}${field}`).map(jsonIdentity));
    kept = original.filter((item) => !gone.has(jsonIdentity(item)));
  }
  const merged = new Elements(kept, key);
  const added: unknown[] = [];
  for (const item of patch) {
    if (key === undefined) {
      if (isObject(item)) throw malformed(`list "${field}" holds plain values, not objects`);
      added.push(item);
      if (merged.find(item) === undefined) merged.push(item);
      continue;
    }
    const element = keyed(item, key, field);
    const directive = element[PATCH];
    if (directive === 'replace') return replaceWhole(patch, node);
    if (!Object.hasOwn(element, key)) {
      throw malformed(`map: ${shown(element)} does not contain declared merge key: ${key}`);
    }
    if (directive === 'delete') {
      merged.remove(element);
      continue;
    }
    if (directive !== undefined && directive !== 'merge')
      throw malformed(`Unknown patch type found: ${shown(directive)}`);
    added.push(element);
    const old = merged.find(element);
    if (old !== undefined && isObject(old.item)) old.item = mergeObject(old.item, element, itemNode(node));
    else merged.push(withoutDirectives(element, itemNode(node)));
  }
  const patchOrder = order === undefined ? added : listOf(order, `${ORDER}${field}`);
  return arrange(merged.list(), ranks(patchOrder, key), ranks(original, key), key);
}

function keyed(item: unknown, key: string, field: string): JsonObject {
  if (isObject(item)) return item;
  throw malformed(`list "${field}" is merged by "${key}": its elements must be objects`);
}

/** An element that says only {"$patch": "replace"}: the others are the whole list. */
function replaceWhole(patch: readonly unknown[], node: SchemaNode): unknown[] {
  return patch
    .filter((item) => !isObject(item) || (item[PATCH] !== 'replace' && item[PATCH] !== 'delete'))
    .map((item) => strip(item, itemNode(node)));
}

/** Identity → first place in the list. */
function ranks(list: readonly unknown[], key: string | undefined): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const [place, item] of list.entries()) {
    const id = identity(item, key);
    if (id !== undefined && !found.has(id)) found.set(id, place);
  }
  return found;
}

/**
 * Elements that the patch orders, in its order, interleaved with those that only the server has, in theirs: a server's
 * element goes first only where the list already had it before the patch's next one.
 */
function arrange(
  merged: readonly unknown[],
  patchOrder: ReadonlyMap<string, number>,
  serverOrder: ReadonlyMap<string, number>,
  key: string | undefined,
): unknown[] {
  const ranked = merged.map((item) => {
    const id = identity(item, key) ?? '\0';
    return { item, inPatch: patchOrder.get(id) ?? -1, onServer: serverOrder.get(id) ?? -1 };
  });
  const ordered = ranked.filter(({ inPatch }) => inPatch >= 0).sort((a, b) => a.inPatch - b.inPatch);
  const serverOnly = ranked.filter(({ inPatch }) => inPatch < 0).sort((a, b) => a.onServer - b.onServer);
  const result: unknown[] = [];
  let [left, right] = [0, 0];
  while (left < serverOnly.length || right < ordered.length) {
    const [mine, theirs] = [serverOnly[left], ordered[right]];
    const serverFirst =
      theirs === undefined ||
      (mine !== undefined && mine.onServer >= 0 && theirs.onServer >= 0 && mine.onServer < theirs.onServer);
    if (serverFirst) {
      result.push(mine?.item);
      left++;
    } else {
      result.push(theirs.item);
      right++;
    }
  }
  return result;
}
