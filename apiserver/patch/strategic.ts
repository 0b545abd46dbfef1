// Strategic merge patch: a JSON merge patch that knows which lists are sets and by what field their elements are told
// apart, and that can carry directives ($patch, $retainKeys, $setElementOrder/…, $deleteFromPrimitiveList/…). Behaves
// as apimachinery's strategicpatch, down to where new elements land. Pure; changes `original`.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { childNode, itemNode, type SchemaNode } from '../schema/definitions.ts';
import { isObject, type JsonObject, jsonEqual, PatchError } from './json-value.ts';

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
    throw malformed(`Unknown patch type found: ${String(directive)} in map`);
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
  const same = (a: unknown, b: unknown): boolean =>
    key === undefined ? jsonEqual(a, b) : isObject(a) && isObject(b) && jsonEqual(getOwn(a, key), getOwn(b, key));
  const serverOrder = [...original];
  let merged = [...original];
  if (removed !== undefined) {
    const gone = listOf(removed, `${DELETE_PRIMITIVES}${field}`);
    merged = merged.filter((item) => !gone.some((value) => jsonEqual(item, value)));
  }
  const added: unknown[] = [];
  for (const item of patch) {
    if (key === undefined) {
      if (isObject(item)) throw malformed(`list "${field}" holds plain values, not objects`);
      added.push(item);
      if (!merged.some((other) => jsonEqual(other, item))) merged.push(item);
      continue;
    }
    const element = keyed(item, key, field);
    const directive = element[PATCH];
    if (directive === 'replace') return replaceWhole(patch, node);
    if (!Object.hasOwn(element, key)) {
      throw malformed(`map: ${JSON.stringify(element)} does not contain declared merge key: ${key}`);
    }
    if (directive === 'delete') {
      merged = merged.filter((other) => !same(other, element));
      continue;
    }
    if (directive !== undefined && directive !== 'merge')
      throw malformed(`Unknown patch type found: ${String(directive)}`);
    added.push(element);
    const at = merged.findIndex((other) => same(other, element));
    const old = merged[at];
    if (at >= 0 && isObject(old)) merged[at] = mergeObject(old, element, itemNode(node));
    else merged.push(withoutDirectives(element, itemNode(node)));
  }
  const patchOrder = order === undefined ? added : listOf(order, `${ORDER}${field}`);
  return arrange(merged, patchOrder, serverOrder, same);
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

/**
 * Elements that the patch orders, in its order, interleaved with those that only the server has, in theirs: a server's
 * element goes first only where the list already had it before the patch's next one.
 */
function arrange(
  merged: readonly unknown[],
  patchOrder: readonly unknown[],
  serverOrder: readonly unknown[],
  same: (a: unknown, b: unknown) => boolean,
): unknown[] {
  const rank = (list: readonly unknown[], item: unknown): number => list.findIndex((other) => same(other, item));
  const ordered = merged.filter((item) => rank(patchOrder, item) >= 0);
  const serverOnly = merged.filter((item) => rank(patchOrder, item) < 0);
  ordered.sort((a, b) => rank(patchOrder, a) - rank(patchOrder, b));
  serverOnly.sort((a, b) => rank(serverOrder, a) - rank(serverOrder, b));
  const result: unknown[] = [];
  let [left, right] = [0, 0];
  while (left < serverOnly.length || right < ordered.length) {
    if (left >= serverOnly.length) result.push(ordered[right++]);
    else if (right >= ordered.length) result.push(serverOnly[left++]);
    else {
      const [li, ri] = [rank(serverOrder, serverOnly[left]), rank(serverOrder, ordered[right])];
      result.push(li >= 0 && ri >= 0 && li < ri ? serverOnly[left++] : ordered[right++]);
    }
  }
  return result;
}
