// The schema and the object of the rules whose costs and results are compared with kube-apiserver's own code.

import type { JsonSchema } from '../../../../apiserver/crd/types.ts';

const text = (maxLength: number): JsonSchema => ({ type: 'string', maxLength });
export const list = (items: JsonSchema, maxItems?: number): JsonSchema => ({
  type: 'array',
  items,
  ...(maxItems === undefined ? {} : { maxItems }),
});
const set: JsonSchema = { ...list(text(3), 5), 'x-kubernetes-list-type': 'set' };
const keyed: JsonSchema = { type: 'object', required: ['k'], properties: { k: text(4), v: { type: 'integer' } } };
const byKey: JsonSchema = {
  ...list(keyed, 7),
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['k'],
};
const deep = list({ type: 'object', properties: { set } }, 3);
const sets: JsonSchema = { type: 'object', maxProperties: 3, additionalProperties: set };

export const RULE_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['req'],
  properties: {
    req: { type: 'string' },
    n: { type: 'integer' },
    m: { type: 'number' },
    b: { type: 'boolean' },
    s: text(10),
    t: { type: 'string' },
    e: { type: 'string', enum: ['abc', 'de'] },
    d: { type: 'string', format: 'duration' },
    at: { type: 'string', format: 'date-time' },
    day: { type: 'string', format: 'date' },
    by: { type: 'string', format: 'byte', maxLength: 20 },
    ios: { 'x-kubernetes-int-or-string': true },
    l: list(text(3), 5),
    ll: list({ type: 'string' }),
    nums: list({ type: 'integer' }, 100),
    lo: list(keyed, 7),
    lm: list(list({ type: 'integer' }, 4), 3),
    mp: { type: 'object', maxProperties: 6, additionalProperties: text(8) },
    mu: { type: 'object', additionalProperties: { type: 'integer' } },
    o: { type: 'object', properties: { x: text(2), y: { type: 'integer' } } },
    set,
    set2: set,
    ml: byKey,
    ml2: structuredClone(byKey),
    deep,
    deep2: structuredClone(deep),
    ms: sets,
    ms2: sets,
  },
};

const items = [
  { k: 'a', v: 1 },
  { k: 'b', v: 2 },
];
export const RULE_OBJECT: Readonly<Record<string, unknown>> = {
  req: 'r',
  n: 3,
  m: 1.5,
  b: true,
  s: 'abc',
  t: 'text',
  e: 'abc',
  d: '1h',
  at: '2020-01-01T00:00:00Z',
  day: '2020-01-02',
  by: 'YWJj',
  ios: 5,
  l: ['a', 'b', 'c'],
  ll: ['x'],
  nums: [1, 2, 3],
  lo: items,
  lm: [[1, 2], [3]],
  mp: { a: 'x', b: 'y' },
  mu: { a: 1, b: 2 },
  o: { x: 'x', y: 1 },
  set: ['a', 'b', 'c'],
  set2: ['c', 'a', 'b'],
  ml: items,
  ml2: items.toReversed(),
  deep: [{ set: ['a', 'b'] }],
  deep2: [{ set: ['b', 'a'] }],
  ms: { x: ['a', 'b'] },
  ms2: { x: ['b', 'a'] },
};
