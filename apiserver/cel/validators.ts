// What the library's type checker lets pass and cel-go's refuses: literals whose elements differ in type, keys of the wrong
// type, literal arguments with which a function cannot but fail.

import { isExceeded } from './budget.ts';
import { type Finding, placeOf } from './compile-errors.ts';
import { parseDuration } from './functions/text.ts';
import { goType, isNode, type Node, nodesOf, type Type } from './library.ts';
import { isPair, NONE, type OptionalElements } from './literals.ts';
import { regexTest } from './regex.ts';
import { isDateTime } from './times.ts';

function typeOf(node: Node, isOptional = false): Type | undefined {
  const type = node.checkedType;
  return isOptional ? type?.valueType : type;
}

function mismatch(node: Node, expected: Type, found: Type): Finding {
  const message = `expected type '${goType(expected.name)}' but found '${goType(found.name)}'`;
  return { message, start: node.start };
}

/** The first of `parts` that has another type than the one before it. */
function firstMismatch(parts: readonly Node[], optional: ReadonlySet<number>): Finding | undefined {
  const [first] = parts;
  if (first === undefined) return undefined;
  const expected = typeOf(first, optional.has(0));
  for (const [index, part] of parts.entries()) {
    const found = typeOf(part, optional.has(index));
    if (expected === undefined || found === undefined) return undefined;
    // optional.none() and [] are of any type.
    const isOpen = expected.hasPlaceholderType || found.hasPlaceholderType;
    if (found.name !== expected.name && !isOpen) return mismatch(part, expected, found);
  }
  return undefined;
}

function* below(node: object): Iterable<object> {
  for (const { node: inner } of nodesOf(node)) yield inner;
}

/** Literals whose elements differ in type, after the tree has been checked. Arguments of `format` may. */
function literalErrors(root: object, optional: OptionalElements): Finding[] {
  const exempt = new Set<object>();
  for (const { node } of nodesOf(root)) {
    if (isNode(node) && node.op === 'rcall' && Array.isArray(node.args) && node.args[0] === 'format')
      for (const inner of below(node)) exempt.add(inner);
  }
  const errors: Finding[] = [];
  for (const { node } of nodesOf(root)) {
    const literal: unknown = node;
    if (exempt.has(node) || !isNode(literal) || !Array.isArray(literal.args)) continue;
    const marked = optional.get(literal) ?? NONE;
    const pairs = literal.op === 'map' ? literal.args.filter(isPair) : [];
    const parts = literal.op === 'list' ? [literal.args.filter(isNode)] : [pairs.map(([key]) => key)];
    const found = [
      ...parts.map((nodes) => firstMismatch(nodes, literal.op === 'list' ? marked : NONE)),
      firstMismatch(
        pairs.map(([, value]) => value),
        marked,
      ),
    ];
    if (literal.op === 'list' || literal.op === 'map')
      for (const error of found) if (error !== undefined) errors.push(error);
  }
  return errors;
}

/** By the function's name in the tree: whether a literal argument is fit for it. */
const ARGUMENTS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ['goDuration', (text) => succeeds(() => parseDuration(text))],
  ['timestamp', (text) => isDateTime(text)],
  ['matchesRe2', (text) => succeeds(() => regexTest(text, ''))],
]);

const NAMES: ReadonlyMap<string, string> = new Map([
  ['goDuration', 'duration'],
  ['matchesRe2', 'matches'],
]);

function succeeds(call: () => unknown): boolean {
  try {
    call();
    return true;
  } catch (error) {
    if (isExceeded(error) || error instanceof Error) return false;
    throw error;
  }
}

/** Literal arguments with which a call must fail. */
function argumentErrors(root: object): Finding[] {
  const errors: Finding[] = [];
  for (const { node } of nodesOf(root)) {
    if (!isNode(node) || (node.op !== 'call' && node.op !== 'rcall') || !Array.isArray(node.args)) continue;
    const name = String(node.args[0]);
    const [argument]: unknown[] = node.args[node.op === 'call' ? 1 : 2];
    if (!isNode(argument) || argument.op !== 'value' || typeof argument.args !== 'string') continue;
    const isFit = ARGUMENTS.get(name);
    if (isFit === undefined || isFit(argument.args)) continue;
    errors.push({ message: `invalid ${NAMES.get(name) ?? name} argument`, start: argument.start });
  }
  return errors;
}

/** A map's key of another type than its keys have. */
function keyErrors(root: object, expression: string): Finding[] {
  const errors: Finding[] = [];
  for (const { node } of nodesOf(root)) {
    if (!isNode(node) || (node.op !== '[]' && node.op !== '[?]') || !Array.isArray(node.args)) continue;
    const [operand, key]: unknown[] = node.args;
    if (!isNode(operand) || !isNode(key)) continue;
    const [from, found] = [operand.checkedType, key.checkedType];
    if (from === undefined || found === undefined || !isWrongKey(from, found)) continue;
    const types = `(${goType(from.name)}, ${goType(found.name)})`;
    const message = `found no matching overload for '${node.op === '[]' ? '_[_]' : '_[?_]'}' applied to '${types}'`;
    errors.push({ message, start: placeOf(node, expression) });
  }
  return errors;
}

/** Objects have fields and no keys. */
function isWrongKey(from: Type, key: Type): boolean {
  if (from.kind === 'message') return true;
  if (from.kind !== 'map' || from.keyType === undefined || from.keyType.name === key.name) return false;
  return ![from.keyType, key].some((type) => type.kind === 'dyn' || type.hasPlaceholderType);
}

/** In the order of the text, of a tree that has been checked. */
export function findErrors(root: object, expression: string, optional: OptionalElements): Finding[] {
  const types = keyErrors(root, expression);
  // Upstream validates what has its types.
  const errors = types.length > 0 ? types : [...literalErrors(root, optional), ...argumentErrors(root)];
  return errors.toSorted((a, b) => a.start - b.start);
}
