// Kubernetes' functions on lists, and the extension `sets`.

import type { Environment } from '@marcbachmann/cel-js';
import { Duration } from '@marcbachmann/cel-js/evaluator';
import { charge } from '../budget.ts';
import { celCompare, celEqual } from '../values.ts';

type List = readonly unknown[];

function most(list: List, name: string, sign: number): unknown {
  if (list.length === 0) throw new RangeError(`${name} called on empty list`);
  return list.reduce((best, item) => (celCompare(item, best) * sign > 0 ? item : best));
}

const contains = (list: List, item: unknown): boolean => list.some((each) => celEqual(each, item));

function subset(list: List, of: List): boolean {
  charge(list.length * of.length);
  return of.every((item) => contains(list, item));
}

class Sets {}

export function registerLists(env: Environment): void {
  env
    .registerFunction('list.isSorted(): bool', (list: List) =>
      list.every((item, index) => index === 0 || celCompare(list[index - 1], item) <= 0),
    )
    .registerFunction('list<int>.sum(): int', (list: readonly bigint[]) => list.reduce((a, b) => a + b, 0n))
    .registerFunction('list<double>.sum(): double', (list: readonly number[]) => list.reduce((a, b) => a + b, 0))
    .registerFunction('list<google.protobuf.Duration>.sum(): google.protobuf.Duration', (list: readonly Duration[]) =>
      list.reduce((a, b) => a.addDuration(b), new Duration(0)),
    )
    .registerFunction('list<A>.min(): A', (list: List) => most(list, 'min', -1))
    .registerFunction('list<A>.max(): A', (list: List) => most(list, 'max', 1))
    .registerFunction('list<A>.indexOf(A): int', (list: List, item: unknown) =>
      BigInt(list.findIndex((each) => celEqual(each, item))),
    )
    .registerFunction('list<A>.lastIndexOf(A): int', (list: List, item: unknown) =>
      BigInt(list.findLastIndex((each) => celEqual(each, item))),
    )
    .registerType('SetsLibrary', Sets)
    .registerConstant('sets', 'SetsLibrary', new Sets())
    .registerFunction('SetsLibrary.contains(list<A>, list<A>): bool', (_: Sets, list: List, of: List) =>
      subset(list, of),
    )
    .registerFunction(
      'SetsLibrary.equivalent(list<A>, list<A>): bool',
      (_: Sets, a: List, b: List) => subset(a, b) && subset(b, a),
    )
    .registerFunction('SetsLibrary.intersects(list<A>, list<A>): bool', (_: Sets, a: List, b: List) => {
      charge(a.length * b.length);
      return a.some((item) => contains(b, item));
    });
}
