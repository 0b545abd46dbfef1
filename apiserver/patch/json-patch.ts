// JSON patch (RFC 6902) with JSON pointers (RFC 6901). Pure: changes the document it is given and returns it; the
// caller throws both away when it fails half-way.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { sameJson } from '../../lib/same-json.ts';
import { isObject, type JsonObject, PatchError } from './json-value.ts';

/** More operations than this in one patch are refused, as the API server does. */
export const MAX_OPERATIONS = 10_000;
/** What all `copy` operations of one patch may add, in characters of JSON: the API server's limit on a body. */
const MAX_COPIED = 3 * 1024 * 1024;
/** And in values: as many as a body may have. */
const MAX_COPIED_VALUES = 32_768;
/** Elements of lists that insertions and removals of one patch may push along; some milliseconds' work. */
const MAX_MOVED = 10_000_000;

/** As deep as a body may be; operations can nest what they find without end. */
const MAX_DEPTH = 128;

/** What one patch has done that costs more than its own size. */
interface Costs {
  copied: number;
  values: number;
  moved: number;
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

function readOperation(value: unknown, index: number): Operation {
  if (!isObject(value) && value !== null) {
    throw new PatchError('malformed', `operation ${index} of the JSON patch is not an object`);
  }
  const { op, path, from, value: operand = null } = value ?? {};
  if (typeof op !== 'string' || typeof path !== 'string') {
    throw new PatchError('inapplicable', `operation ${index} of the JSON patch needs "op" and "path"`);
  }
  if (!['add', 'remove', 'replace', 'move', 'copy', 'test'].includes(op)) {
    throw new PatchError('inapplicable', `Unexpected kind: ${op}`);
  }
  if ((op === 'move' || op === 'copy') && typeof from !== 'string') {
    throw new PatchError('inapplicable', `operation ${index} of the JSON patch, ${op}, needs "from"`);
  }
  // As upstream: what is added without a value is null.
  return { op, path, value: operand, ...(typeof from === 'string' ? { from } : {}) };
}

function pointer(path: string): string[] {
  if (path === '') return [];
  if (!path.startsWith('/')) throw new PatchError('malformed', `JSON pointer "${path}" does not start with "/"`);
  return path
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function missing(op: string, path: string): PatchError {
  return new PatchError('inapplicable', `${op} operation does not apply: doc is missing path: ${path}: missing value`);
}

/** The index a token names in a list; `end` is the largest that is allowed. "-" is the end, where that is. */
function indexOf(token: string, length: number, end: number, op: string, path: string): number {
  if (token === '-' && end === length) return length;
  if (!/^(0|[1-9]\d*)$/.test(token)) throw missing(op, path);
  const index = Number(token);
  if (index > end) {
    throw new PatchError(
      'inapplicable',
      `${op} operation does not apply: doc is missing index ${index}: invalid index`,
    );
  }
  return index;
}

function child(container: unknown, token: string, op: string, path: string): unknown {
  if (Array.isArray(container)) return container[indexOf(token, container.length, container.length - 1, op, path)];
  if (!isObject(container) || !Object.hasOwn(container, token)) throw missing(op, path);
  return getOwn(container, token);
}

function resolve(document: unknown, tokens: readonly string[], op: string, path: string): unknown {
  let at = document;
  for (const token of tokens) at = child(at, token, op, path);
  return at;
}

/** As splice does, within the limit on what may be pushed along. */
function splice(list: unknown[], index: number, removed: 0 | 1, costs: Costs, ...added: readonly unknown[]): void {
  if (added.length !== removed) {
    costs.moved += list.length - index;
    if (costs.moved > MAX_MOVED) {
      const why = `the operations of a JSON patch may not move more than ${MAX_MOVED} list elements`;
      throw new PatchError('tooLarge', why);
    }
  }
  list.splice(index, removed, ...added);
}

/** A copy of the value, within the limits on all copies of a patch. */
function copyOf(value: unknown, costs: Costs, depth = 0): unknown {
  if (depth > MAX_DEPTH) throw new PatchError('malformed', `a copy exceeded max depth: more than ${MAX_DEPTH} levels`);
  if (++costs.values > MAX_COPIED_VALUES) {
    throw new PatchError('tooLarge', `the copies of a JSON patch may not have more than ${MAX_COPIED_VALUES} values`);
  }
  costs.copied += typeof value === 'string' ? value.length + 2 : 2;
  if (costs.copied > MAX_COPIED) {
    const why = `Unable to complete the copy, the accumulated size increase of copy is ${costs.copied}`;
    throw new PatchError('tooLarge', `${why}, exceeding the limit ${MAX_COPIED}`);
  }
  if (Array.isArray(value)) return value.map((item) => copyOf(item, costs, depth + 1));
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const [key, item] of Object.entries(value)) {
    costs.copied += key.length + 4;
    setOwn(copy, key, copyOf(item, costs, depth + 1));
  }
  return copy;
}

/** The document with `value` put at the pointer. */
function put(document: unknown, op: 'add' | 'replace', path: string, value: unknown, costs: Costs): unknown {
  const tokens = pointer(path);
  const last = tokens.pop();
  if (last === undefined) return value;
  const container = resolve(document, tokens, op, path);
  if (Array.isArray(container)) {
    const end = op === 'add' ? container.length : container.length - 1;
    splice(container, indexOf(last, container.length, end, op, path), op === 'add' ? 0 : 1, costs, value);
  } else if (isObject(container)) {
    // Upstream's library replaces what is not there, too.
    setOwn(container, last, value);
  } else throw missing(op, path);
  return document;
}

function remove(document: unknown, path: string, costs: Costs): unknown {
  const tokens = pointer(path);
  const last = tokens.pop();
  if (last === undefined) throw new PatchError('inapplicable', 'the whole object cannot be removed');
  const container = resolve(document, tokens, 'remove', path);
  child(container, last, 'remove', path);
  if (Array.isArray(container)) splice(container, Number(last), 1, costs);
  else if (isObject(container)) delete container[last];
  return document;
}

/** Whether the pointer leads anywhere; `test` against null passes for what is absent, as the API server's does. */
function lookUp(document: unknown, path: string): unknown {
  try {
    return resolve(document, pointer(path), 'test', path);
  } catch (error) {
    if (error instanceof PatchError && error.kind === 'inapplicable') return undefined;
    throw error;
  }
}

function apply(document: unknown, operation: Operation, costs: Costs): unknown {
  const { op, path, from = '', value } = operation;
  switch (op) {
    case 'add':
    case 'replace':
      return put(document, op, path, value, costs);
    case 'remove':
      return remove(document, path, costs);
    case 'copy':
      return put(document, 'add', path, copyOf(resolve(document, pointer(from), op, from), costs), costs);
    case 'move': {
      if (path === from) return document;
      if (path.startsWith(`${from}/`)) {
        throw new PatchError('inapplicable', `move operation does not apply: ${from} cannot go into itself`);
      }
      const moved = resolve(document, pointer(from), op, from);
      return put(remove(document, from, costs), 'add', path, moved, costs);
    }
    default: {
      if (sameJson(lookUp(document, path) ?? null, value)) return document;
      throw new PatchError('inapplicable', `testing value ${path} failed: test failed`);
    }
  }
}

/** `document` after every operation of `patch`. Throws PatchError. */
export function applyJsonPatch(document: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw new PatchError('malformed', 'a JSON patch is a list of operations');
  const operations = patch.map(readOperation);
  const costs: Costs = { copied: 0, values: 0, moved: 0 };
  return operations.reduce((before: unknown, operation) => apply(before, operation, costs), document);
}
