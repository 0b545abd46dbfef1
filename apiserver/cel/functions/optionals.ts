// The macros of optional values that the library lacks: `optMap` and `optFlatMap`, whose expression sees the value under a name.

import { type Environment, Optional } from '@marcbachmann/cel-js';

/** As far as the macros use the library's parts, which have no published types. */
interface Context {
  forkWithVariable(name: string, type: unknown): Context;
  reuse(context: Context): Context;
  setIterValue(value: unknown, evaluator: Evaluator): Context;
}
interface Evaluator {
  run(node: object, context: Context): unknown;
}
interface Type {
  readonly kind?: string;
  readonly name: string;
  readonly valueType?: Type;
}
interface Checker {
  check(node: object, context: Context): Type;
  getType(name: string): Type;
  createError(code: string, message: string, node: object): Error;
}
interface Call {
  readonly ast: object;
  readonly args: readonly { readonly op?: unknown; readonly args?: unknown }[];
  readonly receiver: object;
}
interface Macro {
  readonly ast: object;
  readonly name: string;
  readonly value: object;
  readonly expression: object;
  inner?: Context;
}

function expander(flat: boolean): (call: Call) => object {
  const called = flat ? 'optFlatMap' : 'optMap';
  return ({ ast, args, receiver }) => {
    const [variable, expression = {}] = args;
    if (variable?.op !== 'id') throw new TypeError(`${called}() variable name must be a simple identifier`);
    const macro: Macro = { ast, name: String(variable.args), value: receiver, expression };
    return {
      ...macro,
      async: false,
      typeCheck: (checker: Checker, own: Macro, context: Context): Type => {
        const type = checker.check(own.value, context);
        if (type.kind !== 'optional' && type.kind !== 'dyn') {
          throw checker.createError('optional_expected', `${called}() receiver must be optional`, own.value);
        }
        own.inner = context.forkWithVariable(own.name, type.valueType ?? checker.getType('dyn'));
        const result = checker.check(own.expression, own.inner);
        return flat ? result : checker.getType(`optional<${result.name}>`);
      },
      evaluate: (evaluator: Evaluator, own: Macro, context: Context): unknown => {
        const value = evaluator.run(own.value, context);
        if (!(value instanceof Optional)) throw new TypeError(`${called}() receiver must be optional`);
        if (!value.hasValue() || own.inner === undefined) return Optional.none();
        const result = evaluator.run(own.expression, own.inner.reuse(context).setIterValue(value.value(), evaluator));
        return flat ? result : Optional.of(result);
      },
    };
  };
}

export function registerOptionals(environment: Environment): void {
  environment
    .registerFunction('optional.optMap(ast, ast): optional<dyn>', expander(false))
    .registerFunction('optional.optFlatMap(ast, ast): optional<dyn>', expander(true));
}
