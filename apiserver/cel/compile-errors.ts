// Errors of compilation as cel-go words and places them: the library stops at its first one and has messages of its own.

import type { ParseError } from '@marcbachmann/cel-js';
import { goType, isNode, type Node, type Type } from './library.ts';

/** What is wrong with an expression, and its place in the text. */
export interface Finding {
  readonly message: string;
  readonly start: number;
}

/** `ERROR: <input>:1:5: …`, the line and a mark below, as cel-go prints it. Pure. */
export function printFinding(expression: string, { message, start }: Finding): string {
  const before = expression.slice(0, start).split('\n');
  const column = before.at(-1)?.length ?? 0;
  const line = expression.split('\n')[before.length - 1] ?? '';
  return `ERROR: <input>:${before.length}:${column + 1}: ${message}\n | ${line}\n | ${'.'.repeat(column)}^`;
}

const SIGNS: ReadonlyMap<string, string> = new Map([
  ['?:', '?'],
  ['.', '.'],
  ['.?', '.'],
  ['[]', '['],
  ['[?]', '['],
]);
const UNARY: ReadonlySet<string> = new Set(['!_', '-_', 'value', 'id', 'list', 'map']);

/** Where cel-go places a node: at its operator, its parenthesis, or its beginning. */
export function placeOf(node: Node, expression: string): number {
  const found = placeOfSign(node, expression);
  return found === -1 ? node.start : found;
}

function placeOfSign(node: Node, expression: string): number {
  const [first, second]: unknown[] = Array.isArray(node.args) ? node.args : [];
  if (node.op === 'call') return expression.indexOf('(', node.start);
  if (node.op === 'rcall') {
    return isNode(second) ? expression.indexOf('(', expression.indexOf('.', second.end)) : -1;
  }
  if (UNARY.has(node.op) || !isNode(first)) return -1;
  return expression.indexOf(SIGNS.get(node.op) ?? node.op, first.end);
}

/** `_+_`, `@in`, `_[_]`: the function that an operator is. */
function operatorName(op: string): string {
  switch (op) {
    case 'in':
      return '@in';
    case '?:':
      return '_?_:_';
    case '[]':
      return '_[_]';
    case '[?]':
      return '_[?_]';
    case '!_':
    case '-_':
      return op;
    default:
      return `_${op}_`;
  }
}

const typeName = (node: unknown): string => {
  const type: Type | undefined = isNode(node) ? node.checkedType : undefined;
  return goType(type?.name ?? 'dyn');
};

const list = (nodes: unknown): string => (Array.isArray(nodes) ? nodes : [nodes]).map(typeName).join(', ');

/** `found no matching overload for '_+_' applied to '(int, string)'`. `names`: of functions that run under another name. */
function noOverload(node: Node, names: ReadonlyMap<string, string>): string {
  const args: readonly unknown[] = Array.isArray(node.args) ? node.args : [node.args];
  if (node.op !== 'call' && node.op !== 'rcall') {
    return `found no matching overload for '${operatorName(node.op)}' applied to '(${list(args)})'`;
  }
  const name = names.get(String(args[0])) ?? String(args[0]);
  const types = node.op === 'call' ? `(${list(args[1])})` : `${typeName(args[1])}.(${list(args[2])})`;
  return `found no matching overload for '${name}' applied to '${types}'`;
}

/** What the checker of an expression knows beside the tree. */
export interface Vocabulary {
  /** All functions. */
  readonly functions: ReadonlySet<string>;
  /** The names of functions that run under another one, by that. */
  readonly written: ReadonlyMap<string, string>;
}

/** An error of the library's checker, at its node. `parent`: what that node is a part of. */
export function findingOf(
  error: { readonly code: string; readonly summary: string },
  node: Node,
  parent: Node | undefined,
  expression: string,
  { functions, written }: Vocabulary,
): Finding {
  const start = placeOf(node, expression);
  const called = String(Array.isArray(node.args) ? node.args[0] : '');
  const isCall = node.op === 'call' || node.op === 'rcall';
  switch (error.code) {
    case 'unknown_variable':
      return { message: undeclared(String(node.args)), start };
    case 'no_such_key':
      if (node.op === '[]' || node.op === '[?]') return { message: noOverload(node, written), start };
      return { message: `undefined field '${error.summary.replace('No such key: ', '')}'`, start };
    case 'cannot_index_type':
      return { message: notSelectable(node, written), start };
    case 'no_such_overload':
    case 'no_matching_overload':
      if (isCall && !functions.has(called)) return { message: undeclared(written.get(called) ?? called), start };
      return { message: isOwn(error.summary) ? error.summary : noOverload(node, written), start };
    case 'invalid_index_type':
    case 'incompatible_ternary_branches':
      return { message: noOverload(node, written), start };
    case 'invalid_logical_operand':
      return notBool(operandOf(node), expression);
    case 'incompatible_argument_type':
      if (parent === undefined) return { message: error.summary, start };
      return { message: noOverload(parent, written), start: placeOf(parent, expression) };
    case 'invalid_condition_type':
      if (parent?.op !== '?:' || error.summary.includes('predicate')) return notBool(node, expression);
      return { message: noOverload(parent, written), start: placeOf(parent, expression) };
    case 'invalid_macro_argument':
      return { message: 'invalid argument to has() macro', start };
    case 'invalid_comprehension_range': {
      const message = `expression of type '${typeName(node)}' cannot be range of a comprehension (must be list, map, or dynamic)`;
      return { message, start };
    }
    default:
      return { message: error.summary, start };
  }
}

function notBool(node: Node, expression: string): Finding {
  return { message: `expected type 'bool' but found '${typeName(node)}'`, start: placeOf(node, expression) };
}

/** The first operand of && or || that is no bool. */
function operandOf(node: Node): Node {
  const operands: readonly unknown[] = Array.isArray(node.args) ? node.args : [];
  const found = operands.find(
    (one) => isNode(one) && one.checkedType?.name !== 'bool' && one.checkedType?.kind !== 'dyn',
  );
  return isNode(found) ? found : node;
}

/** Words of functions/ and literals.ts, which are cel-go's already. */
function isOwn(summary: string): boolean {
  return summary.includes("' applied to '") || summary.startsWith('expected type ');
}

function notSelectable(node: Node, written: ReadonlyMap<string, string>): string {
  if (node.op !== '.' && node.op !== '.?') return noOverload(node, written);
  const [operand]: unknown[] = Array.isArray(node.args) ? node.args : [];
  return `type '${typeName(operand)}' does not support field selection`;
}

export function undeclared(name: string): string {
  return `undeclared reference to '${name}' (in container '')`;
}

const OPERAND =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

function parserMessage({ code, summary }: ParseError): string {
  if (code === 'invalid_macro_argument') {
    return summary.endsWith('iteration variable') ? 'argument must be a simple name' : summary;
  }
  if (code === 'reserved_identifier') return summary.replace('Reserved', 'reserved');
  if (summary === 'Unexpected token: EOF') return `Syntax error: mismatched input '<EOF>' expecting ${OPERAND}`;
  if (summary === 'Expected RPAREN, got EOF') return "Syntax error: missing ')' at '<EOF>'";
  return `Syntax error: ${summary}`;
}

/** An error of the library's parser. */
export function printParseError(expression: string, error: ParseError): string {
  return printFinding(expression, { message: parserMessage(error), start: error.range?.start ?? 0 });
}
