// From the text of an expression to its tree. The grammar, from what binds least: or, and, not, one comparison, sums,
// products, minus, then fields, calls and indices. Pure.

import { ExpressionError, type Token, tokenize } from './token.ts';

export type ComparisonSign = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in';
export type ArithmeticSign = '+' | '-' | '*' | '/';

/** `column`: where it begins in the text, from 1. */
export type Expression = { readonly column: number } & (
  | { readonly kind: 'value'; readonly value: number | string | boolean | null }
  | { readonly kind: 'list'; readonly items: readonly Expression[] }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'logic'; readonly sign: 'and' | 'or'; readonly left: Expression; readonly right: Expression }
  | { readonly kind: 'not' | 'minus'; readonly of: Expression }
  | {
      readonly kind: 'comparison';
      readonly sign: ComparisonSign;
      readonly left: Expression;
      readonly right: Expression;
    }
  | {
      readonly kind: 'arithmetic';
      readonly sign: ArithmeticSign;
      readonly left: Expression;
      readonly right: Expression;
    }
  | { readonly kind: 'field'; readonly of: Expression; readonly name: string }
  | { readonly kind: 'index'; readonly of: Expression; readonly index: Expression }
  | {
      readonly kind: 'call';
      /** Undefined for a function; else the value whose method it is. */
      readonly of: Expression | undefined;
      readonly name: string;
      readonly positional: readonly Expression[];
      readonly named: ReadonlyMap<string, Expression>;
    }
);

const COMPARISONS: ReadonlySet<string> = new Set<ComparisonSign>(['==', '!=', '<', '<=', '>', '>=', 'in']);
/** Names that are part of the grammar. */
const WORDS: ReadonlySet<string> = new Set(['and', 'or', 'not', 'in', 'true', 'false', 'null']);
/** Deeper ones are refused. */
const MAX_DEPTH = 60;

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
  }

  get #token(): Token {
    const token = this.#tokens[this.#next];
    if (token === undefined) throw new ExpressionError('the expression ends too early', 1);
    return token;
  }

  #take(): Token {
    const token = this.#token;
    if (token.kind !== 'end') this.#next++;
    return token;
  }

  #is(...texts: readonly string[]): boolean {
    const { kind, text } = this.#token;
    return (kind === 'sign' || kind === 'name') && texts.includes(text);
  }

  #expect(text: string): void {
    if (!this.#is(text)) this.#unexpected(`"${text}"`);
    this.#take();
  }

  #unexpected(wanted: string): never {
    const { kind, text, column } = this.#token;
    const found = kind === 'end' ? 'the end' : `"${text}"`;
    throw new ExpressionError(`${wanted} is expected, not ${found}`, column);
  }

  whole(): Expression {
    const expression = this.#or();
    if (this.#token.kind !== 'end') this.#unexpected('an operator or the end');
    return expression;
  }

  #or(): Expression {
    if (++this.#depth > MAX_DEPTH) throw new ExpressionError('the expression is too deep', this.#token.column);
    let left = this.#and();
    while (this.#is('or')) {
      const { column } = this.#take();
      left = { kind: 'logic', sign: 'or', left, right: this.#and(), column };
    }
    this.#depth--;
    return left;
  }

  #and(): Expression {
    let left = this.#not();
    while (this.#is('and')) {
      const { column } = this.#take();
      left = { kind: 'logic', sign: 'and', left, right: this.#not(), column };
    }
    return left;
  }

  #not(): Expression {
    // A chain of them needs no recursion.
    const columns: number[] = [];
    while (this.#is('not')) columns.push(this.#take().column);
    let expression = this.#comparison();
    for (const column of columns.reverse()) expression = { kind: 'not', of: expression, column };
    return expression;
  }

  #comparison(): Expression {
    const left = this.#sum();
    const { text, column, kind } = this.#token;
    if (kind === 'sign' && text === '=') throw new ExpressionError('equality is written ==', column);
    if (!this.#is(...COMPARISONS)) return left;
    this.#take();
    const right = this.#sum();
    if (this.#is(...COMPARISONS)) {
      throw new ExpressionError('comparisons are not chained: write "a < b and b < c"', this.#token.column);
    }
    return { kind: 'comparison', sign: text as ComparisonSign, left, right, column };
  }

  #sum(): Expression {
    let left = this.#product();
    while (this.#is('+', '-')) {
      const { text, column } = this.#take();
      left = { kind: 'arithmetic', sign: text as ArithmeticSign, left, right: this.#product(), column };
    }
    return left;
  }

  #product(): Expression {
    let left = this.#minus();
    while (this.#is('*', '/')) {
      const { text, column } = this.#take();
      left = { kind: 'arithmetic', sign: text as ArithmeticSign, left, right: this.#minus(), column };
    }
    return left;
  }

  #minus(): Expression {
    const columns: number[] = [];
    while (this.#is('-')) columns.push(this.#take().column);
    let expression = this.#postfix();
    for (const column of columns.reverse()) expression = { kind: 'minus', of: expression, column };
    return expression;
  }

  #postfix(): Expression {
    let expression = this.#primary();
    for (;;) {
      const { column } = this.#token;
      if (this.#is('[')) {
        this.#take();
        expression = { kind: 'index', of: expression, index: this.#or(), column };
        this.#expect(']');
      } else if (this.#is('.')) {
        this.#take();
        const { kind, text: name } = this.#token;
        if (kind !== 'name') this.#unexpected('the name of a field');
        this.#take();
        expression = this.#is('(')
          ? this.#call(expression, name, column)
          : { kind: 'field', of: expression, name, column };
      } else return expression;
    }
  }

  #call(of: Expression | undefined, name: string, column: number): Expression {
    this.#expect('(');
    const positional: Expression[] = [];
    const named = new Map<string, Expression>();
    while (!this.#is(')')) {
      if (positional.length + named.size > 0) this.#expect(',');
      const { kind, text, column: begins } = this.#token;
      const after = this.#tokens[this.#next + 1];
      if (kind === 'name' && after?.kind === 'sign' && after.text === '=') {
        if (named.has(text)) throw new ExpressionError(`${text} is given twice`, begins);
        this.#next += 2;
        named.set(text, this.#or());
      } else {
        if (named.size > 0) throw new ExpressionError('arguments with a name come last', begins);
        positional.push(this.#or());
      }
    }
    this.#expect(')');
    return { kind: 'call', of, name, positional, named, column };
  }

  #primary(): Expression {
    const token = this.#token;
    const { column, text } = token;
    if (token.kind === 'number' || token.kind === 'text') {
      this.#take();
      return { kind: 'value', value: token.value, column };
    }
    if (this.#is('(')) {
      this.#take();
      const inner = this.#or();
      this.#expect(')');
      return inner;
    }
    if (this.#is('[')) return this.#list(column);
    if (token.kind !== 'name') this.#unexpected('a value');
    if (text === 'true' || text === 'false') {
      this.#take();
      return { kind: 'value', value: text === 'true', column };
    }
    if (text === 'null') {
      this.#take();
      return { kind: 'value', value: null, column };
    }
    if (WORDS.has(text)) this.#unexpected('a value');
    this.#take();
    return this.#is('(') ? this.#call(undefined, text, column) : { kind: 'name', name: text, column };
  }

  #list(column: number): Expression {
    this.#expect('[');
    const items: Expression[] = [];
    while (!this.#is(']')) {
      if (items.length > 0) this.#expect(',');
      items.push(this.#or());
    }
    this.#expect(']');
    return { kind: 'list', items, column };
  }
}

/** Throws ExpressionError. Pure. */
export function parseExpression(text: string): Expression {
  return new Parser(text).whole();
}

/** The expressions directly inside one. Pure. */
export function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'value':
    case 'name':
      return [];
    case 'list':
      return expression.items;
    case 'logic':
    case 'comparison':
    case 'arithmetic':
      return [expression.left, expression.right];
    case 'not':
    case 'minus':
    case 'field':
      return [expression.of];
    case 'index':
      return [expression.of, expression.index];
    case 'call':
      return [
        ...(expression.of === undefined ? [] : [expression.of]),
        ...expression.positional,
        ...expression.named.values(),
      ];
  }
}

/** The names in it, each once. Pure. */
export function namesIn(expression: Expression): ReadonlySet<string> {
  const own = expression.kind === 'name' ? [expression.name] : [];
  return new Set([...own, ...partsOf(expression).flatMap((part) => [...namesIn(part)])]);
}
