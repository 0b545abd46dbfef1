// Lists and maps of the syntax: optional elements, keys of maps that are not strings, and lists of type set and map within them.

import { Optional } from '@marcbachmann/cel-js';
import {
  type Checker,
  type Context,
  type Evaluator,
  goType,
  isNode,
  type Node,
  nodesOf,
  type Type,
} from './library.ts';
import { asMap, keyOf } from './maps.ts';
import { isMarked, markContainer } from './typed-lists.ts';

export type OptionalElements = ReadonlyMap<Node, ReadonlySet<number>>;
export const NONE: ReadonlySet<number> = new Set();

/** The type of what an optional element adds, if it adds something. */
function elementType(checker: Checker, context: Context, node: Node, isOptional: boolean): Type {
  const type = checker.check(node, context);
  if (!isOptional || type.kind === 'dyn') return type;
  if (type.kind === 'optional') return type.valueType ?? checker.getType('dyn');
  const found = goType(checker.formatType(type));
  throw checker.createError('optional_expected', `expected type 'optional_type(${found})' but found '${found}'`, node);
}

const unified = (checker: Checker, types: readonly Type[]): Type =>
  types.reduce((all, type) => all.unify(checker.registry, type) ?? checker.getType('dyn'));

function optionalValue(value: unknown): Optional {
  if (value instanceof Optional) return value;
  throw new TypeError('cannot initialize optional list element from non-optional value');
}

function setList(node: Node, items: readonly Node[], optional: ReadonlySet<number>): void {
  node.setMeta('macro', {
    typeCheck: (checker: Checker, _own: unknown, context: Context): Type => {
      const types = items.map((item, index) => elementType(checker, context, item, optional.has(index)));
      return checker.getType(`list<${unified(checker, types).name}>`);
    },
    evaluate: (evaluator: Evaluator, _own: unknown, context: Context): unknown => {
      const list: unknown[] = [];
      for (const [index, item] of items.entries()) {
        const value = evaluator.run(item, context);
        if (!optional.has(index)) list.push(value);
        else {
          const element = optionalValue(value);
          if (element.hasValue()) list.push(element.value());
        }
      }
      if (list.some(isMarked)) markContainer(list);
      return list;
    },
  });
  node.setMeta('async', false);
}

function setMap(node: Node, pairs: readonly (readonly [Node, Node])[], optional: ReadonlySet<number>): void {
  node.setMeta('macro', {
    typeCheck: (checker: Checker, _own: unknown, context: Context): Type => {
      const keys = pairs.map(([key]) => checker.check(key, context));
      const values = pairs.map(([, value], index) => elementType(checker, context, value, optional.has(index)));
      return checker.getType(`map<${unified(checker, keys).name}, ${unified(checker, values).name}>`);
    },
    evaluate: (evaluator: Evaluator, _own: unknown, context: Context): unknown => {
      const map = new Map<unknown, unknown>();
      for (const [index, [keyNode, valueNode]] of pairs.entries()) {
        const key = keyOf(evaluator.run(keyNode, context));
        const value = evaluator.run(valueNode, context);
        if (!optional.has(index)) map.set(key, value);
        else {
          const element = optionalValue(value);
          if (element.hasValue()) map.set(key, element.value());
        }
      }
      const made = asMap(map);
      if (typeof made === 'object' && made !== null && [...map.values()].some(isMarked)) markContainer(made);
      return made;
    },
  });
  node.setMeta('async', false);
}

export const isPair = (entry: unknown): entry is readonly [Node, Node] =>
  Array.isArray(entry) && entry.length === 2 && entry.every(isNode);

/** Before the tree is checked. `optional`: which elements of which literals are. */
export function setLiterals(root: object, optional: OptionalElements): void {
  for (const { node } of nodesOf(root)) {
    const literal: unknown = node;
    if (!isNode(literal) || !Array.isArray(literal.args) || literal.args.length === 0) continue;
    const marked = optional.get(literal) ?? NONE;
    const items = literal.args.filter(isNode);
    if (literal.op === 'map') setMap(literal, literal.args.filter(isPair), marked);
    // The library's own way is as good for constants.
    else if (literal.op === 'list' && items.some(({ op }) => op !== 'value')) setList(literal, items, marked);
  }
}
