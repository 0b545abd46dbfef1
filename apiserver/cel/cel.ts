// CEL, as Kubernetes has it: expressions are compiled once, with the types of their variables, and evaluated on a budget. The
// language is @marcbachmann/cel-js; functions/ has what Kubernetes adds, budget.ts what an evaluation may cost. Messages
// are worded as cel-go's where the library's differ, because users see them.

import { Environment, EvaluationError, Optional, ParseError } from '@marcbachmann/cel-js';
import { errorMessage } from '../../lib/errors.ts';
import { type CelBudget, isExceeded, meter, onBudget, rename } from './budget.ts';
import { checkTypes } from './check.ts';
import { printFinding, printParseError } from './compile-errors.ts';
import { estimateCost } from './cost.ts';
import type { SizedType } from './cost-sizes.ts';
import { registerComprehensions } from './functions/comprehensions.ts';
import { registerConversions } from './functions/conversions.ts';
import { registerLists } from './functions/lists.ts';
import { registerNet } from './functions/net.ts';
import { registerNumbers } from './functions/numbers.ts';
import { registerOptionals } from './functions/optionals.ts';
import { RENAMED, registerText } from './functions/text.ts';
import { isNode } from './library.ts';
import { useTypedLists } from './list-operators.ts';
import { setLiterals } from './literals.ts';
import { replaceMarks, takeMarks } from './optional-marks.ts';
import { selectsField } from './selects.ts';
import { findErrors } from './validators.ts';

export { CelBudget, DEFAULT_BUDGET } from './budget.ts';
export { celValue, jsonValue } from './values.ts';

/** Why an expression cannot be compiled: `ERROR: <input>:1:5: undefined field 'x'`, with the line below. */
export class CelCompileError extends Error {
  override name = 'CelCompileError';
}

/** Why an evaluation has no result: "no such key: x", "division by zero". */
export class CelEvaluationError extends Error {
  override name = 'CelEvaluationError';
}

/** The budget is used up; nothing more may be evaluated on it. */
export class CelBudgetError extends CelEvaluationError {
  override name = 'CelBudgetError';
}

export interface CelProgram {
  readonly expression: string;
  /** "bool", "string", "dyn", "list<string>" … */
  readonly type: string;
  /** The same as declarations have it: "list<dyn>" where `type` is "list". */
  readonly checkedType: string;
  /** What an evaluation may cost at most in upstream's units, given the limits of its variables. */
  readonly cost: (variables: Readonly<Record<string, SizedType>>) => number;
  /** Whether it reads the field of the variable by its name: `variable.field`. */
  readonly selects: (variable: string, field: string) => boolean;
  readonly run: (variables: Readonly<Record<string, unknown>>) => unknown;
}

/** A longer expression is refused. Characters. */
const MAX_EXPRESSION = 64 * 1024;
/** An expression is compiled in one turn of the event loop. */
const MAX_NODES = 3000;

let base: Environment | undefined;

/** The language with Kubernetes' functions and no variables. */
function baseEnvironment(): Environment {
  if (base !== undefined) return base;
  const environment = new Environment({
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: false,
    limits: { maxAstNodes: MAX_NODES, maxDepth: 100 },
  });
  for (const register of [
    registerText,
    registerConversions,
    registerLists,
    registerNet,
    registerNumbers,
    registerOptionals,
    registerComprehensions,
  ])
    register(environment);
  base = environment;
  return environment;
}

/** Environments in which `cel.bind` is known: upstream has it for devices alone. */
const withBindings = new WeakSet<Environment>();

/**
 * An environment for `compile`: the variables' types by name ("dyn", "string", "int", "map<string, dyn>", "list<string>",
 * or a type that `extend` registers).
 */
export function celEnvironment(
  variables: Readonly<Record<string, string>>,
  extend?: (environment: Environment) => void,
  libraries: { readonly bindings?: boolean } = {},
): Environment {
  const environment = baseEnvironment().clone();
  if (libraries.bindings === true) withBindings.add(environment);
  extend?.(environment);
  for (const [name, type] of Object.entries(variables)) environment.registerVariable(name, type);
  return environment;
}

/** Throws CelCompileError. */
export function compile(expression: string, environment: Environment): CelProgram {
  if (expression.length > MAX_EXPRESSION) {
    throw new CelCompileError(
      `expression code point size exceeds limit: size: ${expression.length}, limit ${MAX_EXPRESSION}`,
    );
  }
  try {
    const { text, marks } = replaceMarks(expression);
    const parsed = environment.parse(text);
    const optional = takeMarks(parsed.ast, marks);
    setLiterals(parsed.ast, optional);
    rename(parsed.ast, RENAMED);
    const { type, findings } = checkTypes(expression, parsed, environment, withBindings.has(environment));
    const found = findings.length > 0 ? findings : findErrors(parsed.ast, expression, optional);
    if (found.length > 0) throw new CelCompileError(found.map((one) => printFinding(expression, one)).join('\n'));
    useTypedLists(parsed.ast);
    meter(parsed.ast);
    const cost: CelProgram['cost'] = (variables) => estimateCost(parsed.ast, variables);
    const checkedType = (isNode(parsed.ast) ? parsed.ast.checkedType?.name : undefined) ?? type;
    const selects: CelProgram['selects'] = (variable, field) => selectsField(parsed.ast, variable, field);
    return { expression, type, checkedType, cost, selects, run: (variables) => parsed({ ...variables }) };
  } catch (error) {
    if (error instanceof CelCompileError) throw error;
    if (error instanceof ParseError) throw new CelCompileError(printParseError(expression, error));
    throw new CelCompileError(`ERROR: <input>:1:1: ${errorMessage(error)}`);
  }
}

/** The result, as values.ts describes values. Throws CelEvaluationError. */
export function evaluate(
  program: CelProgram,
  variables: Readonly<Record<string, unknown>>,
  budget: CelBudget,
): unknown {
  // An error is made for each item of a comprehension that fails: its stack would cost more than everything else.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const result = onBudget(budget, () => program.run(variables));
    // An operator such as || may have caught it.
    if (budget.exceeded) throw new CelBudgetError(EXCEEDED);
    return result;
  } catch (error) {
    if (isExceeded(error) || budget.exceeded) throw new CelBudgetError(EXCEEDED);
    if (error instanceof EvaluationError) throw new CelEvaluationError(inGoWords(error.summary, error.code));
    // Of a function: the expression is the client's, and so is what it makes a function fail with.
    throw new CelEvaluationError(errorMessage(error));
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** What prepares an evaluation, on the same budget. Throws CelBudgetError. */
export function onCelBudget<T>(budget: CelBudget, prepare: () => T): T {
  try {
    return onBudget(budget, prepare);
  } catch (error) {
    throw isExceeded(error) ? new CelBudgetError(EXCEEDED) : error;
  }
}

const EXCEEDED = 'operation cancelled: actual cost limit exceeded';

export function optionalOf(value: unknown): Optional {
  return value === undefined ? Optional.none() : Optional.of(value);
}

/** The library's message as cel-go has it. Pure. */
function inGoWords(message: string, code: string): string {
  const text = message
    .replaceAll('matchesRe2', 'matches')
    .replaceAll('goDuration', 'duration')
    .replaceAll('AsciiOnly', 'Ascii');
  switch (code) {
    case 'unknown_variable':
      return `undeclared reference to '${text.replace('Unknown variable: ', '')}' (in container '')`;
    case 'no_such_key':
      return text.replace('No such key: ', 'no such key: ');
    case 'index_out_of_bounds':
      return text.replace(/.*index (-?\d+).*/, 'index out of bounds: $1');
    case 'no_such_overload':
    case 'no_matching_overload':
      return 'no such overload';
    case 'division_by_zero':
      return 'division by zero';
    case 'modulo_by_zero':
      return 'modulus by zero';
    case 'optional_value_missing':
      return 'optional.none() dereference';
    default:
      return text;
  }
}
