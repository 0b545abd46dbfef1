// Regular expressions in RE2's syntax and in linear time, whatever the pattern: those of expressions and of schemas. Compiled
// patterns are kept, the most recent ones. Each use charges the budget of the expression that runs.

import { RE2JS } from 're2js';
import { errorMessage } from '../../lib/errors.ts';
import { charge } from './budget.ts';

const MAX_KEPT = 512;
const kept = new Map<string, RE2JS>();

/** Longer ones are refused: the automaton of a pattern is many times as large as its text. */
export const MAX_PATTERN = 4096;

export class RegexError extends Error {
  override name = 'RegexError';
}

/** Throws RegexError for a pattern that RE2 refuses. */
export function regex(pattern: string): RE2JS {
  let compiled = kept.get(pattern);
  if (compiled === undefined) {
    if (pattern.length > MAX_PATTERN) throw new RegexError(`the pattern has more than ${MAX_PATTERN} characters`);
    charge(pattern.length);
    try {
      compiled = RE2JS.compile(pattern);
    } catch (error) {
      throw new RegexError(`error parsing regexp: ${errorMessage(error).replace(/^error parsing regexp: /, '')}`);
    }
  } else kept.delete(pattern);
  kept.set(pattern, compiled);
  if (kept.size > MAX_KEPT)
    for (const [oldest] of kept) {
      kept.delete(oldest);
      break;
    }
  return compiled;
}

/** What is wrong with the pattern; undefined when nothing is. */
export function regexError(pattern: string): string | undefined {
  try {
    regex(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof RegexError) return error.message;
    throw error;
  }
}

/** A match takes time by the product of both lengths, at worst. */
function chargeMatch(text: string, pattern: string): void {
  charge(1 + (text.length * Math.min(pattern.length, 64)) / 16);
}

/** Whether the pattern is found anywhere in the text. */
export function regexTest(pattern: string, text: string): boolean {
  chargeMatch(text, pattern);
  return regex(pattern).matcher(text).find();
}

/** Up to `limit` matches in order; all for a negative limit. */
export function regexFind(pattern: string, text: string, limit: number): string[] {
  chargeMatch(text, pattern);
  const matcher = regex(pattern).matcher(text);
  const found: string[] = [];
  while (found.length !== limit && matcher.find()) {
    charge(1);
    found.push(matcher.group() ?? '');
  }
  return found;
}
