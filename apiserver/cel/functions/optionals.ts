// What the library lacks of optional values: the macros `optMap` and `optFlatMap`, whose expression sees the value under a name;
// `first` and `last` of lists; `optional.unwrap`.

import { type Environment, Optional } from '@marcbachmann/cel-js';
import type { Checker, Context, Evaluator, MacroCall, Type } from '../library.ts';

interface Macro {
  readonly ast: object;
  readonly name: string;
  readonly value: object;
  readonly expression: object;
  inner?: Context;
}

function expander(flat: boolean): (call: MacroCall) => object {
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
  const present = (list: readonly unknown[]): unknown[] =>
    list.flatMap((one) => (one instanceof Optional && one.hasValue() ? [one.value()] : []));
  environment
    .registerFunction('list<A>.first(): optional<A>', (list: readonly unknown[]) =>
      list.length === 0 ? Optional.none() : Optional.of(list[0]),
    )
    .registerFunction('list<A>.last(): optional<A>', (list: readonly unknown[]) =>
      list.length === 0 ? Optional.none() : Optional.of(list.at(-1)),
    )
    .registerFunction('list<optional<A>>.unwrapOpt(): list<A>', present)
    .registerFunction('OptionalNamespace.unwrap(list<optional<A>>): list<A>', (_: unknown, list: readonly unknown[]) =>
      present(list),
    )
    .registerFunction('optional.optMap(ast, ast): optional<dyn>', expander(false))
    .registerFunction('optional.optFlatMap(ast, ast): optional<dyn>', expander(true));
}
