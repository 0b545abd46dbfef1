// Bounds on JSON text before it is parsed: parsing costs time for every value, more for every key and object, and stack
// for every level. All four are counted in one pass over the bytes. Does not check the syntax: JSON.parse does.

export interface JsonLimits {
  /** Lists and objects inside each other. */
  readonly depth: number;
  readonly objects: number;
  /** In all objects together. */
  readonly keys: number;
  /** Lists, objects and the values in them. */
  readonly values: number;
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** How much of each the text has; counting ends where a limit is passed. */
export function jsonSize(utf8: Uint8Array, limits: JsonLimits): JsonLimits {
  let [level, depth, objects, keys, values] = [0, 0, 0, 0, 1];
  for (let at = 0; at < utf8.length; at++) {
    switch (utf8[at]) {
      case QUOTE:
        at = endOfString(utf8, at);
        break;
      case OPEN_OBJECT:
      case OPEN_LIST:
        if (utf8[at] === OPEN_OBJECT) objects++;
        level++;
        values++;
        if (level > depth) depth = level;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        level--;
        break;
      case COLON:
        keys++;
        break;
      case COMMA:
        values++;
        break;
    }
    if (values > limits.values || keys > limits.keys || objects > limits.objects || depth > limits.depth) break;
  }
  return { depth, objects, keys, values };
}

/** The first limit that a size goes beyond; undefined when none. */
export function beyond(size: JsonLimits, limits: JsonLimits): keyof JsonLimits | undefined {
  if (size.depth > limits.depth) return 'depth';
  if (size.objects > limits.objects) return 'objects';
  if (size.keys > limits.keys) return 'keys';
  return size.values > limits.values ? 'values' : undefined;
}

/** Where the string that starts at `start` ends. */
function endOfString(utf8: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < utf8.length && utf8[at] !== QUOTE) at += utf8[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** The same of a value that is there already; counting ends where a limit is passed. Iterative, so that depth cannot overflow the stack. */
export function valueSize(root: unknown, limits: JsonLimits): JsonLimits {
  let [depth, objects, keys, values] = [0, 0, 0, 0];
  const left: { readonly value: unknown; readonly level: number }[] = [{ value: root, level: 0 }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    values++;
    const { value } = next;
    if (typeof value !== 'object' || value === null) continue;
    const level = next.level + 1;
    if (level > depth) depth = level;
    const inside: unknown[] = Array.isArray(value) ? value : Object.values(value);
    if (!Array.isArray(value)) {
      objects++;
      keys += inside.length;
    }
    if (values + inside.length > limits.values || keys > limits.keys || objects > limits.objects) {
      values += inside.length;
      break;
    }
    if (depth > limits.depth) break;
    for (const each of inside) left.push({ value: each, level });
  }
  return { depth, objects, keys, values };
}
