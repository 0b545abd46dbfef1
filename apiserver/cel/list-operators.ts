// `==`, `!=`, `in` and `+` on lists of type set and map (typed-lists.ts), and on what contains them.

import { isNode, nodesOf } from './library.ts';
import { isMarked, listTypeOf, unionOf } from './typed-lists.ts';
import { celEqual } from './values.ts';

type Handle = (left: unknown, right: unknown, node: unknown, evaluator: unknown) => unknown;
const isHandle = (value: unknown): value is Handle => typeof value === 'function';

/** An item of a stored list is compared with the value, the value with an item of a new list. */
function isIn(value: unknown, list: readonly unknown[]): boolean {
  const isStored = isMarked(list);
  return list.some((item) => (isStored ? celEqual(item, value) : celEqual(value, item)));
}

/** What takes the place of an operator, where an operand is marked. */
const OPERATORS: ReadonlyMap<unknown, (left: unknown, right: unknown) => unknown> = new Map<
  string,
  (left: unknown, right: unknown) => unknown
>([
  ['==', (left, right) => celEqual(left, right)],
  ['!=', (left, right) => !celEqual(left, right)],
  ['in', (left, right) => (Array.isArray(right) ? isIn(left, right) : undefined)],
  [
    '+',
    (left, right) => {
      const type = Array.isArray(left) ? listTypeOf(left) : undefined;
      return type !== undefined && Array.isArray(left) && Array.isArray(right) ? unionOf(left, right, type) : undefined;
    },
  ],
]);

/** Makes the operators of a checked tree know such lists. */
export function useTypedLists(root: object): void {
  for (const { node } of nodesOf(root)) {
    if (!isNode(node)) continue;
    const operator = OPERATORS.get(node.op);
    const handle: unknown = Reflect.get(node, 'handle');
    if (operator === undefined || !isHandle(handle)) continue;
    const typed: Handle = (left, right, self, evaluator) => {
      const result = isMarked(left) || isMarked(right) ? operator(left, right) : undefined;
      return result === undefined ? handle(left, right, self, evaluator) : result;
    };
    Reflect.set(node, 'handle', typed);
  }
}
