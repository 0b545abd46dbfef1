import { expect, test } from 'vitest';
import { sameJson } from '../../../lib/same-json.ts';

test.each<[unknown, unknown, boolean]>([
  [1, 1, true],
  [1, '1', false],
  [null, undefined, false],
  [null, {}, false],
  [[], {}, false],
  [[1, 2], [1, 2], true],
  [[1, 2], [2, 1], false],
  [[1], [1, undefined], false],
  [{ a: 1, b: { c: [null] } }, { b: { c: [null] }, a: 1 }, true],
  [{ a: 1 }, { a: 1, b: undefined }, true],
  [{ a: undefined }, { b: undefined }, true],
  [{ a: 1 }, { b: 1 }, false],
  [{ a: 1 }, { a: 1, b: null }, false],
  // Names that objects inherit are no fields.
  [{ toString: 1 }, {}, false],
  [{}, JSON.parse('{"__proto__": 1}'), false],
])('%j and %j: %s', (a, b, expected) => {
  expect([sameJson(a, b), sameJson(b, a)]).toEqual([expected, expected]);
});
