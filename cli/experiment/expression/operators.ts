// The operators of expressions. null is "not known" and makes what is computed from it not known, so that an expectation
// about something that never happened is not met. Arithmetic and order work item by item on lists. Pure.

import type { ArithmeticSign, ComparisonSign } from './parse.ts';
import { equal, isList, typeOf, type Value } from './value.ts';

/** What is wrong; the evaluator adds the place. */
export class OperationError extends Error {
  override name = 'OperationError';
}

/** Item by item where one of them is a list; two lists must be of the same length. */
function byItem(left: Value, right: Value, one: (left: Value, right: Value) => Value): Value {
  if (isList(left) && isList(right)) {
    if (left.length !== right.length) {
      throw new OperationError(`lists of ${left.length} and ${right.length} items have no pairs`);
    }
    return left.map((item, index) => byItem(item, right[index] ?? null, one));
  }
  if (isList(left)) return left.map((item) => byItem(item, right, one));
  if (isList(right)) return right.map((item) => byItem(left, item, one));
  return one(left, right);
}

export function arithmetic(sign: ArithmeticSign, left: Value, right: Value): Value {
  return byItem(left, right, (a, b) => {
    if (a === null || b === null) return null;
    if (sign === '+' && typeof a === 'string' && typeof b === 'string') return a + b;
    if (typeof a !== 'number' || typeof b !== 'number') {
      throw new OperationError(`"${sign}" needs numbers, not ${typeOf(a)} and ${typeOf(b)}`);
    }
    if (sign === '+') return a + b;
    if (sign === '-') return a - b;
    if (sign === '*') return a * b;
    // A ratio to nothing is not known.
    return b === 0 ? null : a / b;
  });
}

export function compare(sign: ComparisonSign, left: Value, right: Value): Value {
  if (sign === '==') return equal(left, right);
  if (sign === '!=') return !equal(left, right);
  if (sign === 'in') {
    if (typeof left === 'string' && typeof right === 'string') return right.includes(left);
    if (right === null) return null;
    if (!isList(right)) throw new OperationError(`"in" needs a list or two texts, not ${typeOf(right)}`);
    return right.some((item) => equal(item, left));
  }
  return byItem(left, right, (a, b) => {
    if (a === null || b === null) return null;
    const comparable =
      (typeof a === 'number' && typeof b === 'number') || (typeof a === 'string' && typeof b === 'string');
    if (!comparable)
      throw new OperationError(`"${sign}" needs two numbers or two texts, not ${typeOf(a)} and ${typeOf(b)}`);
    if (sign === '<') return a < b;
    if (sign === '<=') return a <= b;
    return sign === '>' ? a > b : a >= b;
  });
}

/** true, false or null (not known). */
export function truth(value: Value, where: string): boolean | null {
  if (value === null || typeof value === 'boolean') return value;
  const hint = isList(value) ? ': use all(…) or any(…)' : '';
  throw new OperationError(`${where} needs true or false, not ${typeOf(value)}${hint}`);
}
