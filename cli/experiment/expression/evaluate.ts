// The value of an expression over the observations of a run. Never runs code of the file, never changes the world; the
// check of an expression finds unknown names and wrong numbers of arguments before anything is started.

import { type FunctionDefinition, PURE_FUNCTIONS } from './functions.ts';
import type { ObservationIndex } from './index-of-observations.ts';
import { callMethod, OBSERVED_FUNCTIONS, observe } from './observed.ts';
import { arithmetic, compare, OperationError, truth } from './operators.ts';
import { type Expression, partsOf } from './parse.ts';
import { ExpressionError } from './token.ts';
import { type Arguments, isList, RecordValue, typeOf, type Value } from './value.ts';

export interface Scope {
  readonly index: ObservationIndex;
  /** ms since the world was ready. */
  readonly elapsed: () => number;
  /** Measures that have their values, and the names of the world. */
  readonly names: ReadonlyMap<string, Value>;
}

/** Every function of the language, by name. */
export const FUNCTIONS: ReadonlyMap<string, FunctionDefinition> = new Map([...PURE_FUNCTIONS, ...OBSERVED_FUNCTIONS]);

/** Throws ExpressionError. */
export function evaluate(expression: Expression, scope: Scope): Value {
  try {
    return compute(expression, scope);
  } catch (error) {
    if (error instanceof OperationError) throw new ExpressionError(error.message, expression.column);
    throw error;
  }
}

function compute(expression: Expression, scope: Scope): Value {
  const inner = (each: Expression): Value => evaluate(each, scope);
  switch (expression.kind) {
    case 'value':
      return expression.value;
    case 'list':
      return expression.items.map(inner);
    case 'name':
      return nameValue(expression.name, scope);
    case 'logic':
      return logic(expression, scope);
    case 'not': {
      const value = truth(inner(expression.of), 'not');
      return value === null ? null : !value;
    }
    case 'minus':
      return arithmetic('-', 0, inner(expression.of));
    case 'comparison':
      return compare(expression.sign, inner(expression.left), inner(expression.right));
    case 'arithmetic':
      return arithmetic(expression.sign, inner(expression.left), inner(expression.right));
    case 'field':
      return fieldOf(inner(expression.of), expression.name);
    case 'index':
      return itemOf(inner(expression.of), inner(expression.index));
    case 'call':
      return call(expression, scope);
  }
}

function nameValue(name: string, { names }: Scope): Value {
  const value = names.get(name);
  if (value === undefined) throw new OperationError(`${name} has no value`);
  return value;
}

/** and, or with a third value for what is not known. */
function logic({ sign, left, right }: Expression & { readonly kind: 'logic' }, scope: Scope): Value {
  const decisive = sign === 'or';
  const a = truth(evaluate(left, scope), sign);
  if (a === decisive) return decisive;
  const b = truth(evaluate(right, scope), sign);
  if (b === decisive) return decisive;
  return a === null || b === null ? null : !decisive;
}

/** A list's field is the list of its items' fields. */
function fieldOf(value: Value, name: string): Value {
  if (value === null) return null;
  if (isList(value)) return value.map((item) => fieldOf(item, name));
  if (!(value instanceof RecordValue)) throw new OperationError(`${typeOf(value)} has no field ${name}`);
  const field = value.field(name);
  if (field === undefined) {
    throw new OperationError(`${value.title} has no field ${name}; it has ${value.names().join(', ')}`);
  }
  return field;
}

function itemOf(value: Value, index: Value): Value {
  if (value === null || index === null) return null;
  if (isList(value) && typeof index === 'number') return value.at(Math.trunc(index)) ?? null;
  if (value instanceof RecordValue && typeof index === 'string') return value.field(index) ?? null;
  if (isList(value) && typeof index === 'string') {
    return (
      value.find(
        (item) => item instanceof RecordValue && (item.field('name') === index || item.field('type') === index),
      ) ?? null
    );
  }
  throw new OperationError(`${typeOf(value)} has no item ${typeOf(index)}`);
}

function call(expression: Expression & { readonly kind: 'call' }, scope: Scope): Value {
  const given: Arguments = {
    positional: expression.positional.map((each) => evaluate(each, scope)),
    named: new Map([...expression.named].map(([name, each]) => [name, evaluate(each, scope)])),
  };
  if (expression.of !== undefined) return callMethod(evaluate(expression.of, scope), expression.name, given);
  const pure = PURE_FUNCTIONS.get(expression.name);
  if (pure !== undefined) return pure.run(given);
  return observe(scope.index, scope.elapsed, expression.name, given);
}

/** Methods of records, and how many arguments each has. */
const METHODS: ReadonlyMap<string, number> = new Map([
  ['condition', 1],
  ['history', 1],
]);

/** Throws ExpressionError for names and functions that are not there, and for a wrong number of arguments. Pure. */
export function check(expression: Expression, names: ReadonlySet<string>): void {
  const { kind, column } = expression;
  if (kind === 'name' && !names.has(expression.name)) {
    const known = names.size === 0 ? 'there are none' : `known are ${[...names].join(', ')}`;
    throw new ExpressionError(`"${expression.name}" is no measure: ${known}`, column);
  }
  if (kind === 'call') checkCall(expression);
  for (const part of partsOf(expression)) check(part, names);
}

function checkCall({ of, name, positional, named, column }: Expression & { readonly kind: 'call' }): void {
  if (of !== undefined) {
    const wanted = METHODS.get(name);
    if (wanted === undefined) throw new ExpressionError(`no value has a method ${name}()`, column);
    if (positional.length !== wanted || named.size > 0)
      throw new ExpressionError(`.${name}() needs one argument`, column);
    return;
  }
  const definition = FUNCTIONS.get(name);
  if (definition === undefined) {
    throw new ExpressionError(
      `there is no function ${name}; there are ${[...FUNCTIONS.keys()].sort().join(', ')}`,
      column,
    );
  }
  const [least, most] = definition.arity;
  if (positional.length < least || positional.length > most) {
    throw new ExpressionError(`${name} is used as ${definition.usage}`, column);
  }
  for (const key of named.keys()) {
    if (definition.named?.includes('*') === true || definition.named?.includes(key) === true) continue;
    throw new ExpressionError(`${name} has no argument ${key}: it is used as ${definition.usage}`, column);
  }
}
