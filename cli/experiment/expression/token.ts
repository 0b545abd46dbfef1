// The words of an expression: numbers, durations, texts, names and signs, each with its column. Pure.

import { UserError } from '../../../lib/errors.ts';
import { DURATION_EXAMPLES, durationMs } from '../duration.ts';

export type Token =
  | { readonly kind: 'number'; readonly value: number; readonly column: number; readonly text: string }
  | { readonly kind: 'text'; readonly value: string; readonly column: number; readonly text: string }
  | { readonly kind: 'name' | 'sign' | 'end'; readonly column: number; readonly text: string };

/** What is wrong with an expression, and where in it; `column` counts from 1. */
export class ExpressionError extends UserError {
  override name = 'ExpressionError';
  readonly column: number;
  constructor(message: string, column: number) {
    super(message);
    this.column = column;
  }
}

const SPACE = /\s+/y;
const NUMBER = /\d+(?:\.\d+)?(?:[A-Za-z%][\w.%]*)?/y;
const NAME = /[A-Za-z_]\w*/y;
const TEXT = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/y;
const SIGN = /==|!=|<=|>=|[<>+\-*/()[\],.=]/y;

function match(pattern: RegExp, text: string, from: number): string | undefined {
  pattern.lastIndex = from;
  return pattern.exec(text)?.[0];
}

function numberOf(text: string, column: number): number {
  const plain = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined;
  const ratio = /^\d+(?:\.\d+)?%$/.test(text) ? Number(text.slice(0, -1)) / 100 : undefined;
  const value = plain ?? ratio ?? durationMs(text);
  if (value !== undefined) return value;
  throw new ExpressionError(
    `"${text}" is neither a number, a ratio as 5%, nor a duration as ${DURATION_EXAMPLES}`,
    column,
  );
}

/** The tokens, with one of kind "end" last. Throws ExpressionError. Pure. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let place = 0;
  while (place < text.length) {
    const column = place + 1;
    const space = match(SPACE, text, place);
    if (space !== undefined) {
      place += space.length;
      continue;
    }
    const number = match(NUMBER, text, place);
    const name = match(NAME, text, place);
    const quoted = match(TEXT, text, place);
    const sign = match(SIGN, text, place);
    const word = number ?? name ?? quoted ?? sign;
    if (word === undefined) {
      const why = /^["']/.test(text.slice(place)) ? 'this text has no end' : `"${text[place]}" has no meaning here`;
      throw new ExpressionError(why, column);
    }
    if (number !== undefined) tokens.push({ kind: 'number', value: numberOf(word, column), column, text: word });
    else if (name !== undefined) tokens.push({ kind: 'name', column, text: word });
    else if (quoted !== undefined) {
      tokens.push({ kind: 'text', value: word.slice(1, -1).replace(/\\(.)/g, '$1'), column, text: word });
    } else tokens.push({ kind: 'sign', column, text: word });
    place += word.length;
  }
  return [...tokens, { kind: 'end', column: text.length + 1, text: '' }];
}
