// Runs a go-template over JSON, as crictl does: a key that is not there is an error, numbers of the data are json.Number
// (their text). Pure.

import { getOwn } from '../../lib/own-property.ts';
import { type Call, type Node, type Operand, type Pipeline, parseTemplate, TemplateError } from './template-parse.ts';

/** A number of the data, in its own spelling. */
class JsonNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | number | boolean | null | JsonNumber | readonly Value[] | { readonly [key: string]: Value };
type Table = { readonly [key: string]: Value };

const isList = (value: Value): value is readonly Value[] => Array.isArray(value);
const isTable = (value: Value): value is Table =>
  typeof value === 'object' && value !== null && !isList(value) && !(value instanceof JsonNumber);

/** Go sorts the keys of maps, by bytes, wherever it prints or ranges over one. */
const keysOf = (value: Table): string[] =>
  Object.keys(value).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

function parseData(json: string): Value {
  return JSON.parse(json, (_key, value: Value, context?: { source: string }) =>
    typeof value === 'number' && context !== undefined ? new JsonNumber(context.source) : value,
  );
}

class Scope {
  readonly #names = new Map<string, Value>();
  readonly #parent: Scope | undefined;

  constructor(parent?: Scope) {
    this.#parent = parent;
  }

  get(name: string): Value {
    if (this.#names.has(name)) return this.#names.get(name) ?? null;
    if (this.#parent === undefined) throw new TemplateError(`undefined variable "${name}"`);
    return this.#parent.get(name);
  }

  declare(name: string, value: Value): void {
    this.#names.set(name, value);
  }

  assign(name: string, value: Value): void {
    if (this.#names.has(name)) this.#names.set(name, value);
    else if (this.#parent === undefined) throw new TemplateError(`undefined variable "${name}"`);
    else this.#parent.assign(name, value);
  }
}

function field(value: Value, name: string): Value {
  if (value === null) throw new TemplateError(`nil data; no entry for key "${name}"`);
  if (!isTable(value)) throw new TemplateError(`can't evaluate field ${name} in ${printed(value)}`);
  const found = getOwn(value, name);
  if (found === undefined) throw new TemplateError(`map has no entry for key "${name}"`);
  return found;
}

function truth(value: Value): boolean {
  if (value === null || value === false || value === 0 || value === '') return false;
  if (isList(value)) return value.length > 0;
  return isTable(value) ? keysOf(value).length > 0 : true;
}

/** As Go's %v. `top`: by itself, where nothing is "<no value>". */
function printed(value: Value, top = false): string {
  if (value === null) return top ? '<no value>' : '<nil>';
  if (value instanceof JsonNumber) return value.text;
  if (isList(value)) return `[${value.map((item) => printed(item)).join(' ')}]`;
  if (isTable(value))
    return `map[${keysOf(value)
      .map((key) => `${key}:${printed(getOwn(value, key) ?? null)}`)
      .join(' ')}]`;
  return String(value);
}

function toJson(value: Value): string {
  if (value instanceof JsonNumber) return value.text;
  if (isList(value)) return `[${value.map(toJson).join(',')}]`;
  if (isTable(value)) {
    return `{${keysOf(value)
      .map((key) => `${goJson(key)}:${toJson(getOwn(value, key) ?? null)}`)
      .join(',')}}`;
  }
  return goJson(value);
}

/** encoding/json is careful with HTML. */
export function goJson(value: string | number | boolean | null): string {
  return escapeHtml(JSON.stringify(value));
}

/** `<`, `>`, `&` and the two line separators in JSON text as encoding/json writes them. */
export function escapeHtml(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const numberOf = (value: Value): number | undefined => {
  if (typeof value === 'number') return value;
  return value instanceof JsonNumber ? Number(value.text) : undefined;
};

/** -1, 0 or 1; undefined where the two cannot be compared. */
function compared(a: Value, b: Value): number | undefined {
  const sign = <T extends string | number | boolean>(x: T, y: T): number => (x < y ? -1 : x > y ? 1 : 0);
  if (typeof a === 'boolean' && typeof b === 'boolean') return sign(a, b);
  const [x, y] = [numberOf(a), numberOf(b)];
  if (x !== undefined && y !== undefined) return sign(x, y);
  // A json.Number is a string to Go.
  const text = (value: Value): string | undefined => (value instanceof JsonNumber ? value.text : undefined);
  const [s, t] = [typeof a === 'string' ? a : text(a), typeof b === 'string' ? b : text(b)];
  if (s !== undefined && t !== undefined) return sign(s, t);
  return a === null && b === null ? 0 : undefined;
}

function compare(func: string, a: Value, b: Value): number {
  const order = compared(a, b);
  if (order === undefined && (a === null || b === null) && (func === 'eq' || func === 'ne')) return 1;
  if (order === undefined) throw new TemplateError(`error calling ${func}: incompatible types for comparison`);
  return order;
}

function at(value: Value, key: Value): Value {
  if (isTable(value)) {
    if (typeof key !== 'string') throw new TemplateError(`error calling index: ${printed(key)} is no key of a map`);
    return getOwn(value, key) ?? null;
  }
  const position = numberOf(key);
  if (!isList(value) || position === undefined) {
    throw new TemplateError(`error calling index: can't index ${printed(value)} with ${printed(key)}`);
  }
  const found = value[position];
  if (found === undefined) throw new TemplateError(`error calling index: index out of range: ${position}`);
  return found;
}

function lengthOf(value: Value): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (isList(value)) return value.length;
  if (isTable(value)) return keysOf(value).length;
  throw new TemplateError(`error calling len: len of ${printed(value)}`);
}

function verb(flags: string, width: string, precision: string | undefined, letter: string, value: Value): string {
  let text: string;
  const number = numberOf(value);
  if (letter === 'v' || letter === 's') text = printed(value);
  else if (letter === 'q') text = JSON.stringify(printed(value));
  else if (letter === 't' && typeof value === 'boolean') text = String(value);
  else if (letter === 'd' && number !== undefined && Number.isInteger(number)) text = printed(value);
  else if (letter === 'f' && number !== undefined)
    text = number.toFixed(precision === undefined ? 6 : Number(precision));
  else if (letter === 'x' && number !== undefined) text = number.toString(16);
  else if ('tdfx'.includes(letter)) throw new TemplateError(`error calling printf: %${letter} of ${printed(value)}`);
  else throw new TemplateError(`printf: the verb %${letter} is not supported`);
  if ('sv'.includes(letter) && precision !== undefined) text = text.slice(0, Number(precision));
  if (flags.includes('-')) return text.padEnd(Number(width));
  return flags.includes('0') && number !== undefined ? text.padStart(Number(width), '0') : text.padStart(Number(width));
}

function printf(format: Value, values: readonly Value[]): string {
  if (typeof format !== 'string') throw new TemplateError('error calling printf: the format is no string');
  const left = [...values];
  const text = format.replace(/%([-+ 0#]*)(\d*)(?:\.(\d+))?(.)/g, (_whole, flags, width, precision, letter: string) => {
    if (letter === '%') return '%';
    const value = left.shift();
    if (value === undefined) throw new TemplateError(`error calling printf: no value for %${letter}`);
    return verb(flags, width, precision, letter, value);
  });
  if (left.length > 0) throw new TemplateError('error calling printf: more values than verbs');
  return text;
}

/** Go's print puts a space between two values when neither is a string. */
function print(values: readonly Value[]): string {
  return values
    .map((value, index) => {
      const before = values[index - 1];
      const space = before !== undefined && typeof before !== 'string' && typeof value !== 'string' ? ' ' : '';
      return space + printed(value);
    })
    .join('');
}

const title = (text: string): string => text.replace(/(^|[^\p{L}\p{N}'])(\p{L})/gu, (whole) => whole.toUpperCase());

/** Everything but `and` and `or`, which evaluate their arguments one by one. */
function apply(func: string, args: readonly Value[]): Value {
  const need = (count: number): void => {
    if (args.length < count)
      throw new TemplateError(`wrong number of args for ${func}: want ${count} got ${args.length}`);
  };
  const [first = null, second = null, ...more] = args;
  switch (func) {
    case 'not':
      need(1);
      return !truth(first);
    case 'eq':
      need(2);
      return [second, ...more].some((other) => compare(func, first, other) === 0);
    case 'ne':
      need(2);
      return compare(func, first, second) !== 0;
    case 'lt':
      need(2);
      return compare(func, first, second) < 0;
    case 'le':
      need(2);
      return compare(func, first, second) <= 0;
    case 'gt':
      need(2);
      return compare(func, first, second) > 0;
    case 'ge':
      need(2);
      return compare(func, first, second) >= 0;
    case 'index':
      need(1);
      return args.slice(1).reduce(at, first);
    case 'len':
      need(1);
      return lengthOf(first);
    case 'print':
      return print(args);
    case 'println':
      return `${args.map((value) => printed(value)).join(' ')}\n`;
    case 'printf':
      need(1);
      return printf(first, args.slice(1));
    case 'json':
      need(1);
      return `${toJson(first)}\n`;
    case 'lower':
    case 'upper':
    case 'title': {
      need(1);
      const text = printed(first);
      return func === 'title' ? title(text) : func === 'lower' ? text.toLowerCase() : text.toUpperCase();
    }
    default:
      throw new TemplateError(`function "${func}" not defined`);
  }
}

class Run {
  readonly #out: string[] = [];

  operand(operand: Operand, dot: Value, scope: Scope): Value {
    if (operand.kind === 'literal') return operand.value;
    const root =
      operand.kind === 'group'
        ? this.pipeline(operand.pipe, dot, scope)
        : operand.root === '.'
          ? dot
          : scope.get(operand.root);
    return operand.fields.reduce(field, root);
  }

  #call(call: Call, piped: readonly Value[], dot: Value, scope: Scope): Value {
    const { func, args } = call;
    if (func === 'and' || func === 'or') {
      let value: Value = null;
      const lazily = [...args.map((arg) => () => this.operand(arg, dot, scope)), ...piped.map((last) => () => last)];
      if (lazily.length === 0) throw new TemplateError(`wrong number of args for ${func}: want at least 1 got 0`);
      for (const evaluate of lazily) {
        value = evaluate();
        if (truth(value) === (func === 'or')) return value;
      }
      return value;
    }
    const values = [...args.map((arg) => this.operand(arg, dot, scope)), ...piped];
    if (func !== undefined) return apply(func, values);
    if (piped.length > 0) throw new TemplateError('a value is no function and takes nothing from a pipeline');
    return values[0] ?? null;
  }

  pipeline(pipe: Pipeline, dot: Value, scope: Scope): Value {
    let value: Value = null;
    for (const [index, call] of pipe.calls.entries()) value = this.#call(call, index === 0 ? [] : [value], dot, scope);
    return value;
  }

  /** Sets the variables of a pipeline; those of `range` are set at each turn instead. */
  #evaluate(pipe: Pipeline, dot: Value, scope: Scope): Value {
    const value = this.pipeline(pipe, dot, scope);
    const [name, ...others] = pipe.declares;
    if (others.length > 0) throw new TemplateError('two variables are declared outside of range');
    if (name !== undefined) {
      if (pipe.assigns) scope.assign(name, value);
      else scope.declare(name, value);
    }
    return value;
  }

  nodes(nodes: readonly Node[], dot: Value, scope: Scope): void {
    for (const node of nodes) {
      if (node.kind === 'text') this.#out.push(node.text);
      else if (node.kind === 'print') {
        const value = this.#evaluate(node.pipe, dot, scope);
        if (node.pipe.declares.length === 0) this.#out.push(printed(value, true));
      } else if (node.kind === 'range') this.#range(node, dot, scope);
      else {
        const inner = new Scope(scope);
        const value = this.#evaluate(node.pipe, dot, inner);
        if (truth(value)) this.nodes(node.body, node.kind === 'with' ? value : dot, inner);
        else this.nodes(node.otherwise, dot, inner);
      }
    }
  }

  #range(node: Extract<Node, { readonly body: readonly Node[] }>, dot: Value, scope: Scope): void {
    const value = this.pipeline(node.pipe, dot, scope);
    const items: (readonly [Value, Value])[] = [];
    if (isList(value)) items.push(...value.map((item, index) => [index, item] as const));
    else if (value !== null && isTable(value)) {
      items.push(...keysOf(value).map((key) => [key, getOwn(value, key) ?? null] as const));
    } else if (value !== null) throw new TemplateError(`range can't iterate over ${printed(value)}`);
    if (items.length === 0) this.nodes(node.otherwise, dot, new Scope(scope));
    for (const [key, item] of items) {
      const inner = new Scope(scope);
      const [first, second] = node.pipe.declares;
      if (first !== undefined) inner.declare(first, second === undefined ? item : key);
      if (second !== undefined) inner.declare(second, item);
      this.nodes(node.body, item, inner);
    }
  }

  get output(): string {
    return this.#out.join('');
  }
}

/** What the template makes of a JSON text. Throws TemplateError. */
export function runTemplate(template: string, json: string): string {
  const nodes = parseTemplate(template);
  const data = parseData(json);
  const run = new Run();
  const scope = new Scope();
  scope.declare('$', data);
  run.nodes(nodes, data, scope);
  return run.output;
}
