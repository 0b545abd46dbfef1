// Comprehensions with two variables, an index and an item of a list or a key and a value of a map: `all(i, v, p)`, `exists`,
// `existsOne` (and `exists_one`), `transformList`, `transformMap`, `transformMapEntry`, the last three with a filter, too.
// As cel-go's extension of that name.

import { type Environment, ParseError } from '@marcbachmann/cel-js';
import { charge, isExceeded } from '../budget.ts';
import {
  type Checker,
  type Context,
  type Evaluator,
  goType,
  identifierOf,
  type Macro,
  type MacroCall,
  type Node,
  type Type,
} from '../library.ts';
import { asMap, entriesOf, keyText } from '../maps.ts';

/** What an item costs beside what its expressions cost, in units of the budget. */
const ITEM = 3;

/** One of the macros: `step` is called for each item until it returns true, then `result`. */
interface Fold {
  step(item: Item): boolean;
  result(): unknown;
}
interface Item {
  readonly key: unknown;
  /** Whether the filter or the predicate holds. Throws what it throws. */
  holds(): boolean;
  /** The value of the last argument. */
  value(): unknown;
}

interface Kind {
  readonly fold: () => Fold;
  /** The result's type, of the last argument's and the key's. */
  readonly type: (checker: Checker, body: Type, key: Type, node: Node) => Type;
  /** The last argument is a predicate. */
  readonly isPredicate: boolean;
}

const bool = (checker: Checker): Type => checker.getType('bool');

/** `all` and `exists`: the first item for which the predicate is `decisive` decides; an error counts where none does. */
const quantifier = (decisive: boolean): Kind => ({
  isPredicate: true,
  type: bool,
  fold: () => {
    let result = !decisive;
    let failure: { readonly error: unknown } | undefined;
    return {
      step: (item) => {
        try {
          if (item.holds() === decisive) result = decisive;
        } catch (error) {
          if (isExceeded(error)) throw error;
          failure ??= { error };
        }
        return result === decisive;
      },
      result: () => {
        if (result !== decisive && failure !== undefined) throw failure.error;
        return result;
      },
    };
  },
});

const existsOne: Kind = {
  isPredicate: true,
  type: bool,
  fold: () => {
    let count = 0;
    return {
      step: (item) => {
        if (item.holds()) count++;
        return false;
      },
      result: () => count === 1,
    };
  },
};

const transformList: Kind = {
  isPredicate: false,
  type: (checker, body) => checker.getType(`list<${body.name}>`),
  fold: () => {
    const list: unknown[] = [];
    return {
      step: (item) => {
        if (item.holds()) list.push(item.value());
        return false;
      },
      result: () => list,
    };
  },
};

function insert(map: Map<unknown, unknown>, key: unknown, value: unknown): void {
  if (map.has(key)) throw new RangeError(`insert failed: key ${keyText(key)} already exists`);
  map.set(key, value);
}

const transformMap: Kind = {
  isPredicate: false,
  type: (checker, body, key) => checker.getType(`map<${key.name}, ${body.name}>`),
  fold: () => {
    const map = new Map<unknown, unknown>();
    return {
      step: (item) => {
        if (item.holds()) insert(map, item.key, item.value());
        return false;
      },
      result: () => asMap(map),
    };
  },
};

const transformMapEntry: Kind = {
  isPredicate: false,
  type: (checker, body, _key, node) => {
    if (body.kind === 'map' || body.kind === 'dyn') return body;
    throw checker.createError(
      'no_matching_overload',
      `found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), ${goType(body.name)})'`,
      node,
    );
  },
  fold: () => {
    const map = new Map<unknown, unknown>();
    return {
      step: (item) => {
        if (!item.holds()) return false;
        for (const [key, value] of entriesOf(item.value())) insert(map, key, value);
        return false;
      },
      result: () => asMap(map),
    };
  },
};

function variables([first, second]: readonly Node[]): [string, string] {
  const [one, other] = [identifierOf(first), identifierOf(second)];
  if (one === undefined || other === undefined) {
    throw wrongArgument('argument must be a simple name', one === undefined ? first : second);
  }
  if (one === other) throw wrongArgument(`duplicate variable name: ${one}`, second);
  return [one, other];
}

function wrongArgument(message: string, node: Node | undefined): ParseError {
  const range = node === undefined ? {} : { range: { start: node.start, end: node.end } };
  return new ParseError({ code: 'invalid_macro_argument', message, ...range });
}

/** The types of both variables. */
function itemTypes(checker: Checker, range: Type, node: Node): readonly [Type, Type] {
  const dyn = checker.getType('dyn');
  switch (range.kind) {
    case 'list':
      return [checker.getType('int'), range.valueType ?? dyn];
    case 'map':
      return [range.keyType ?? dyn, range.valueType ?? dyn];
    case 'dyn':
      return [dyn, dyn];
    default:
      throw checker.createError(
        'invalid_comprehension_range',
        `expression of type '${goType(checker.formatType(range))}' cannot be range of a comprehension (must be list, map, or dynamic)`,
        node,
      );
  }
}

function checkPredicate(checker: Checker, context: Context, node: Node): void {
  const type = checker.check(node, context);
  if (type.name === 'bool' || type.kind === 'dyn') return;
  throw checker.createError(
    'no_matching_overload',
    `expected type 'bool' but found '${goType(checker.formatType(type))}'`,
    node,
  );
}

function truth(evaluator: Evaluator, node: Node, context: Context): boolean {
  const value = evaluator.run(node, context);
  if (typeof value !== 'boolean') throw new TypeError('no such overload');
  return value;
}

function expander(kind: Kind): (call: MacroCall) => Macro & { readonly parts: readonly Node[] } {
  return ({ ast, args, receiver }) => {
    const [keyName, valueName] = variables(args);
    const parts = [receiver, ...args.slice(2)];
    const filter = kind.isPredicate || args.length === 4 ? args[2] : undefined;
    const body = args.at(-1) ?? receiver;
    let outer: Context | undefined;
    let inner: Context | undefined;
    return {
      parts,
      async: false,
      typeCheck: (checker, _own, context) => {
        const [key, value] = itemTypes(checker, checker.check(receiver, context), receiver);
        outer = context.forkWithVariable(keyName, key);
        inner = outer.forkWithVariable(valueName, value);
        if (filter !== undefined) checkPredicate(checker, inner, filter);
        return kind.type(checker, checker.check(body, inner), key, ast);
      },
      evaluate: (evaluator, _own, context) => {
        const fold = kind.fold();
        for (const [key, value] of entriesOf(evaluator.run(receiver, context))) {
          charge(ITEM);
          if (outer === undefined || inner === undefined) throw new TypeError('the expression is not checked');
          // Expressions within may fork the same names anew.
          const scope = inner.reuse(outer.reuse(context).setIterValue(key, evaluator)).setIterValue(value, evaluator);
          const holds = (): boolean => filter === undefined || truth(evaluator, filter, scope);
          if (fold.step({ key, holds, value: () => evaluator.run(body, scope) })) break;
        }
        return fold.result();
      },
    };
  };
}

const MACROS: readonly (readonly [string, Kind, readonly number[]])[] = [
  ['all', quantifier(false), [3]],
  ['exists', quantifier(true), [3]],
  ['existsOne', existsOne, [3]],
  ['exists_one', existsOne, [3]],
  ['transformList', transformList, [3, 4]],
  ['transformMap', transformMap, [3, 4]],
  ['transformMapEntry', transformMapEntry, [3, 4]],
];

export function registerComprehensions(environment: Environment): void {
  for (const [name, kind, counts] of MACROS) {
    for (const count of counts) {
      const args = Array.from({ length: count }, () => 'ast').join(', ');
      environment.registerFunction(`list.${name}(${args}): dyn`, expander(kind));
    }
  }
}
