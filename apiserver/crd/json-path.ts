// JSONPath as kubectl and the API server have it, as far as printer columns, scale and selectable fields need it: fields,
// indexes, slices, wildcards, descents and filters `[?(@.type=="Ready")]`. No script is ever evaluated.

import { getOwn } from '../../lib/own-property.ts';
import { isObject } from '../patch/json-value.ts';

interface Filter {
  readonly left: Operand;
  readonly operator: string;
  readonly right: Operand | undefined;
}
type Operand = { readonly path: readonly Step[] } | { readonly value: unknown };
type Step =
  | { readonly kind: 'field'; readonly names: readonly string[] }
  | { readonly kind: 'wildcard' }
  | { readonly kind: 'descent' }
  | { readonly kind: 'slice'; readonly from: number | undefined; readonly to: number | undefined; readonly by: number }
  | { readonly kind: 'filter'; readonly filter: Filter };

export type JsonPath = readonly Step[];

export class JsonPathError extends Error {
  override name = 'JsonPathError';
}

const MAX_PATH = 1024;
/** Values that one path may go through. */
const MAX_VISITS = 10_000;

class Parser {
  #position = 0;
  readonly #text: string;
  constructor(text: string) {
    this.#text = text;
  }

  steps(end: (rest: string) => boolean): Step[] {
    const steps: Step[] = [];
    for (;;) {
      const rest = this.#text.slice(this.#position);
      if (rest === '' || end(rest)) return steps;
      if (rest.startsWith('..')) {
        this.#position += 2;
        steps.push({ kind: 'descent' });
        if (!this.#text.startsWith('[', this.#position)) steps.push(this.#name());
      } else if (rest.startsWith('.')) {
        this.#position++;
        if (!this.#text.startsWith('[', this.#position)) steps.push(this.#name());
      } else if (rest.startsWith('[')) steps.push(this.#bracket());
      else throw new JsonPathError(`unrecognized character in action: ${JSON.stringify(rest[0])}`);
    }
  }

  #name(): Step {
    const [text = ''] = /^(?:\\.|[^.[\]\s=!<>()\\,|&'"])+/.exec(this.#text.slice(this.#position)) ?? [];
    if (text === '') throw new JsonPathError('a field name is missing');
    this.#position += text.length;
    return text === '*' ? { kind: 'wildcard' } : { kind: 'field', names: [text.replace(/\\(.)/g, '$1')] };
  }

  #bracket(): Step {
    if (this.#text.startsWith('[?(', this.#position)) {
      this.#position += 3;
      const filter = this.#filter();
      this.#expect(')]');
      return { kind: 'filter', filter };
    }
    const close = this.#text.indexOf(']', this.#position);
    if (close < 0) throw new JsonPathError('unterminated array');
    const inner = this.#text.slice(this.#position + 1, close).trim();
    this.#position = close + 1;
    if (inner === '*') return { kind: 'wildcard' };
    const quoted = /^'([^']*)'$|^"([^"]*)"$/.exec(inner);
    if (quoted !== null) return { kind: 'field', names: [quoted[1] ?? quoted[2] ?? ''] };
    const slice = /^(-?\d{1,9})?(:(-?\d{1,9})?(:(\d{1,9}))?)?$/.exec(inner);
    if (slice === null || inner === '') throw new JsonPathError(`invalid array index ${inner}`);
    const [, from, colon, to, , by] = slice;
    const start = from === undefined ? undefined : Number(from);
    if (colon === undefined) {
      const next = start === -1 ? undefined : (start ?? 0) + 1;
      return { kind: 'slice', from: start, to: next, by: 1 };
    }
    return { kind: 'slice', from: start, to: to === undefined ? undefined : Number(to), by: Number(by ?? 1) || 1 };
  }

  #filter(): Filter {
    const left = this.#operand();
    const [all = '', operator = ''] = /^\s*(==|!=|<=|>=|<|>)\s*/.exec(this.#text.slice(this.#position)) ?? [];
    if (operator === '') return { left, operator: 'exists', right: undefined };
    this.#position += all.length;
    return { left, operator, right: this.#operand() };
  }

  #operand(): Operand {
    const rest = this.#text.slice(this.#position);
    const text = /^'([^']*)'|^"([^"]*)"/.exec(rest);
    if (text !== null) {
      this.#position += text[0].length;
      return { value: text[1] ?? text[2] ?? '' };
    }
    const literal = /^(-?\d+(\.\d+)?|true|false|null)/.exec(rest);
    if (literal !== null) {
      this.#position += literal[0].length;
      return { value: JSON.parse(literal[0]) };
    }
    if (!rest.startsWith('@')) throw new JsonPathError(`unrecognized filter at ${JSON.stringify(rest.slice(0, 16))}`);
    this.#position++;
    return { path: this.steps((left) => /^[\s)=!<>]/.test(left)) };
  }

  #expect(text: string): void {
    if (!this.#text.startsWith(text, this.#position))
      throw new JsonPathError(`unterminated filter, ${text} is missing`);
    this.#position += text.length;
  }
}

/** Reads ".spec.replicas" and "{.spec.replicas}". Throws JsonPathError. */
export function parseJsonPath(text: string): JsonPath {
  if (text.length > MAX_PATH) throw new JsonPathError(`a path has at most ${MAX_PATH} characters`);
  const bare = text.replace(/^\{(.*)\}$/, '$1').replace(/^[$@]/, '');
  return new Parser(bare).steps(() => false);
}

function childrenOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? Object.values(value) : [];
}

function apply(step: Step, value: unknown): unknown[] {
  switch (step.kind) {
    case 'field':
      return step.names.flatMap((name) => {
        const found = isObject(value) ? getOwn(value, name) : undefined;
        return found === undefined ? [] : [found];
      });
    case 'wildcard':
      return childrenOf(value);
    case 'descent': {
      const all: unknown[] = [value];
      for (let index = 0; index < all.length && all.length < MAX_VISITS; index++) {
        for (const child of childrenOf(all[index])) all.push(child);
      }
      return all;
    }
    case 'slice':
      if (!Array.isArray(value)) return [];
      return value.slice(step.from, step.to).filter((_, index) => index % step.by === 0);
    case 'filter':
      return childrenOf(value).filter((item) => holds(step.filter, item));
  }
}

function operandOf(operand: Operand, item: unknown): unknown {
  return 'value' in operand ? operand.value : evaluateJsonPath(operand.path, item)[0];
}

function holds({ left, operator, right }: Filter, item: unknown): boolean {
  const a = operandOf(left, item);
  if (operator === 'exists' || right === undefined) return a !== undefined;
  const b = operandOf(right, item);
  if (operator === '==') return a === b;
  if (operator === '!=') return a !== b;
  if ((typeof a !== 'number' || typeof b !== 'number') && (typeof a !== 'string' || typeof b !== 'string'))
    return false;
  if (operator === '<') return a < b;
  if (operator === '>') return a > b;
  return operator === '<=' ? a <= b : a >= b;
}

/** All values that the path leads to, in order. */
export function evaluateJsonPath(path: JsonPath, root: unknown): unknown[] {
  let values: unknown[] = [root];
  for (const step of path) values = values.slice(0, MAX_VISITS).flatMap((value) => apply(step, value));
  return values;
}

/** The names of a path of plain fields (".spec.replicas"); undefined for any other path. */
export function plainFields(path: JsonPath): string[] | undefined {
  const names = path.map((step) => (step.kind === 'field' && step.names.length === 1 ? step.names[0] : undefined));
  const known = names.filter((name) => name !== undefined);
  return known.length === path.length && path.length > 0 ? known : undefined;
}
