import { describe, expect, it } from 'vitest';
import { APPLY_TYPE, applyPatch, type PatchType, patchType } from '../../../../apiserver/patch/apply.ts';
import type { JsonObject } from '../../../../apiserver/patch/json-value.ts';
import { failureOf } from '../support.ts';

const POD = 'io.k8s.api.core.v1.Pod';
const JSON_PATCH = 'application/json-patch+json';
const MERGE = 'application/merge-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';

interface Case {
  readonly does: string;
  readonly object: JsonObject;
  readonly patch: unknown;
  readonly result: JsonObject;
}

function table(type: PatchType, cases: readonly Case[], schema = POD): void {
  for (const { does, object, patch, result } of cases) {
    it(does, () => expect(applyPatch(structuredClone(object), patch, type, schema)).toEqual(result));
  }
}

function refusals(type: PatchType, cases: readonly [string, JsonObject, unknown, number, RegExp][]): void {
  for (const [does, object, patch, code, message] of cases) {
    it(does, () => {
      const failure = failureOf(() => applyPatch(structuredClone(object), patch, type, POD));
      expect(failure.code).toBe(code);
      expect(failure.message).toMatch(message);
    });
  }
}

/** What is wrong with a patch is in no message, as upstream. */
const REJECTED = /^the server rejected our request due to an error in our request$/;

describe('a JSON patch', () => {
  table(JSON_PATCH, [
    { does: 'adds a field', object: { a: 1 }, patch: [{ op: 'add', path: '/b', value: 2 }], result: { a: 1, b: 2 } },
    {
      does: 'inserts into a list',
      object: { a: [1, 3] },
      patch: [{ op: 'add', path: '/a/1', value: 2 }],
      result: { a: [1, 2, 3] },
    },
    {
      does: 'appends with "-"',
      object: { a: [1] },
      patch: [{ op: 'add', path: '/a/-', value: 2 }],
      result: { a: [1, 2] },
    },
    { does: 'removes a field', object: { a: 1, b: 2 }, patch: [{ op: 'remove', path: '/b' }], result: { a: 1 } },
    {
      does: 'removes a list element',
      object: { a: [1, 2] },
      patch: [{ op: 'remove', path: '/a/0' }],
      result: { a: [2] },
    },
    {
      does: 'replaces',
      object: { a: { b: 1 } },
      patch: [{ op: 'replace', path: '/a/b', value: 2 }],
      result: { a: { b: 2 } },
    },
    { does: 'moves', object: { a: 1 }, patch: [{ op: 'move', from: '/a', path: '/b' }], result: { b: 1 } },
    {
      does: 'copies without sharing',
      object: { a: { x: 1 } },
      patch: [
        { op: 'copy', from: '/a', path: '/b' },
        { op: 'add', path: '/b/x', value: 2 },
      ],
      result: { a: { x: 1 }, b: { x: 2 } },
    },
    {
      does: 'goes on after a test that holds',
      object: { a: 1 },
      patch: [
        { op: 'test', path: '/a', value: 1 },
        { op: 'remove', path: '/a' },
      ],
      result: {},
    },
    {
      does: 'adds null where there is no value, as upstream',
      object: {},
      patch: [{ op: 'add', path: '/a' }],
      result: { a: null },
    },
    {
      does: 'replaces what is not there, as upstream',
      object: {},
      patch: [{ op: 'replace', path: '/a', value: 1 }],
      result: { a: 1 },
    },
    {
      does: 'tests that something is absent with null',
      object: {},
      patch: [{ op: 'test', path: '/a', value: null }],
      result: {},
    },
    {
      does: 'reads ~1 and ~0 in pointers',
      object: { 'a/b': 1, 'c~d': 2 },
      patch: [
        { op: 'remove', path: '/a~1b' },
        { op: 'remove', path: '/c~0d' },
      ],
      result: {},
    },
  ]);
  refusals(JSON_PATCH, [
    ['fails whole when a test does not hold', { a: 1 }, [{ op: 'test', path: '/a', value: 2 }], 422, REJECTED],
    ['refuses to remove what is not there', {}, [{ op: 'remove', path: '/a' }], 422, REJECTED],
    ['refuses an index past the end', { a: [1] }, [{ op: 'add', path: '/a/3', value: 1 }], 422, REJECTED],
    ['refuses to move a thing into itself', { a: {} }, [{ op: 'move', from: '/a', path: '/a/b' }], 422, REJECTED],
    ['is malformed when it is no list', {}, { op: 'add' }, 400, /list of operations/],
    ['is malformed with an unknown operation', {}, [{ op: 'frob', path: '/a' }], 422, REJECTED],
    ['is malformed with an operation that is no object', {}, [1], 400, /not an object/],
    ['refuses a null for an operation', {}, [null], 422, REJECTED],
    [
      'is refused above ten thousand operations',
      {},
      Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/a', value: null })),
      413,
      /10000/,
    ],
  ]);
});

describe('a JSON merge patch', () => {
  table(MERGE, [
    { does: 'merges objects', object: { a: { b: 1 } }, patch: { a: { c: 2 } }, result: { a: { b: 1, c: 2 } } },
    { does: 'removes with null', object: { a: 1, b: 2 }, patch: { a: null }, result: { b: 2 } },
    { does: 'replaces lists', object: { a: [1, 2] }, patch: { a: [3] }, result: { a: [3] } },
    {
      does: 'replaces a value by an object',
      object: { a: 1 },
      patch: { a: { b: null, c: 1 } },
      result: { a: { c: 1 } },
    },
    { does: 'leaves what it does not name', object: { a: 1 }, patch: {}, result: { a: 1 } },
  ]);
  refusals(MERGE, [['is malformed when it is no object', {}, [1], 400, /is an object/]]);
});

const containers = (...names: string[]): JsonObject => ({
  spec: { containers: names.map((name) => ({ name, image: `${name}:1` })) },
});

describe('a strategic merge patch', () => {
  table(STRATEGIC, [
    {
      does: 'merges a container by name',
      object: containers('a', 'b'),
      patch: { spec: { containers: [{ name: 'b', image: 'b:2' }] } },
      result: {
        spec: {
          containers: [
            { name: 'a', image: 'a:1' },
            { name: 'b', image: 'b:2' },
          ],
        },
      },
    },
    {
      does: 'puts a new container before those only the server has',
      object: containers('a'),
      patch: { spec: { containers: [{ name: 'n', image: 'n:1' }] } },
      result: {
        spec: {
          containers: [
            { name: 'n', image: 'n:1' },
            { name: 'a', image: 'a:1' },
          ],
        },
      },
    },
    {
      does: 'orders by $setElementOrder',
      object: containers('a', 'b'),
      patch: {
        spec: {
          '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }],
          containers: [{ name: 'a', image: 'a:2' }],
        },
      },
      result: {
        spec: {
          containers: [
            { name: 'b', image: 'b:1' },
            { name: 'a', image: 'a:2' },
          ],
        },
      },
    },
    {
      does: 'orders a list it does not change',
      object: containers('a', 'b'),
      patch: { spec: { '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }] } },
      result: {
        spec: {
          containers: [
            { name: 'b', image: 'b:1' },
            { name: 'a', image: 'a:1' },
          ],
        },
      },
    },
    {
      does: 'keeps a server-only element before what stood after it',
      object: containers('a', 's', 'b'),
      patch: {
        spec: {
          '$setElementOrder/containers': [{ name: 'a' }, { name: 'b' }],
          containers: [{ name: 'b', image: 'b:2' }],
        },
      },
      result: {
        spec: {
          containers: [
            { name: 'a', image: 'a:1' },
            { name: 's', image: 's:1' },
            { name: 'b', image: 'b:2' },
          ],
        },
      },
    },
    {
      does: 'deletes an element with $patch: delete',
      object: containers('a', 'b'),
      patch: { spec: { containers: [{ name: 'a', $patch: 'delete' }] } },
      result: { spec: { containers: [{ name: 'b', image: 'b:1' }] } },
    },
    {
      does: 'replaces a list with $patch: replace',
      object: containers('a', 'b'),
      patch: { spec: { containers: [{ $patch: 'replace' }, { name: 'c', image: 'c' }] } },
      result: { spec: { containers: [{ name: 'c', image: 'c' }] } },
    },
    {
      does: 'replaces an object with $patch: replace',
      object: { metadata: { labels: { a: '1', b: '2' } } },
      patch: { metadata: { labels: { $patch: 'replace', c: '3' } } },
      result: { metadata: { labels: { c: '3' } } },
    },
    {
      does: 'empties an object with $patch: delete',
      object: { metadata: { labels: { a: '1' } } },
      patch: { metadata: { labels: { $patch: 'delete' } } },
      result: { metadata: { labels: {} } },
    },
    {
      does: 'drops what $retainKeys does not name',
      object: { spec: { volumes: [{ name: 'v', emptyDir: {} }] } },
      patch: { spec: { volumes: [{ name: 'v', $retainKeys: ['name', 'hostPath'], hostPath: { path: '/x' } }] } },
      result: { spec: { volumes: [{ name: 'v', hostPath: { path: '/x' } }] } },
    },
    {
      does: 'adds to a list of plain values without doubling',
      object: { metadata: { finalizers: ['a/b', 'c/d'] } },
      patch: { metadata: { '$setElementOrder/finalizers': ['a/b', 'c/d', 'e/f'], finalizers: ['e/f', 'a/b'] } },
      result: { metadata: { finalizers: ['a/b', 'c/d', 'e/f'] } },
    },
    {
      does: 'removes plain values by $deleteFromPrimitiveList',
      object: { metadata: { finalizers: ['a/b', 'c/d'] } },
      patch: { metadata: { '$deleteFromPrimitiveList/finalizers': ['a/b'] } },
      result: { metadata: { finalizers: ['c/d'] } },
    },
    {
      does: 'merges ports by containerPort and conditions by type',
      object: {
        spec: { containers: [{ name: 'a', ports: [{ containerPort: 80, name: 'w' }] }] },
        status: { conditions: [{ type: 'Ready', status: 'False' }] },
      },
      patch: {
        spec: { containers: [{ name: 'a', ports: [{ containerPort: 80, protocol: 'TCP' }] }] },
        status: { conditions: [{ type: 'Ready', status: 'True' }] },
      },
      result: {
        spec: { containers: [{ name: 'a', ports: [{ containerPort: 80, name: 'w', protocol: 'TCP' }] }] },
        status: { conditions: [{ type: 'Ready', status: 'True' }] },
      },
    },
    {
      does: 'replaces lists that are not merged',
      object: { spec: { containers: [{ name: 'a', args: ['1', '2'] }], tolerations: [{ key: 'x' }] } },
      patch: { spec: { containers: [{ name: 'a', args: ['3'] }], tolerations: [] } },
      result: { spec: { containers: [{ name: 'a', args: ['3'] }], tolerations: [] } },
    },
    {
      does: 'removes with null',
      object: { metadata: { labels: { a: '1', b: '2' } } },
      patch: { metadata: { labels: { a: null } } },
      result: { metadata: { labels: { b: '2' } } },
    },
    {
      does: 'leaves no directive or null in what is new',
      object: {},
      patch: { spec: { containers: [{ name: 'a', image: null, $patch: 'merge' }] } },
      result: { spec: { containers: [{ name: 'a' }] } },
    },
  ]);
  refusals(STRATEGIC, [
    [
      'is malformed without the merge key',
      containers('a'),
      { spec: { containers: [{ image: 'x' }] } },
      400,
      /declared merge key: name/,
    ],
    [
      'is malformed with an unknown directive',
      containers('a'),
      { spec: { $patch: 'frob' } },
      400,
      /Unknown patch type/,
    ],
    [
      'is malformed when $retainKeys leaves out a field of the patch',
      { spec: {} },
      { spec: { $retainKeys: [], nodeName: 'n' } },
      400,
      /retainKeys/,
    ],
  ]);
});

describe('the content type of a patch', () => {
  it('may carry parameters', () => expect(patchType('application/merge-patch+json; charset=utf-8')).toBe(MERGE));
  it('may be that of a configuration to apply', () => expect(patchType(APPLY_TYPE)).toBe(APPLY_TYPE));
  for (const type of [undefined, 'application/json']) {
    it(`is refused with 415 when it is ${type}`, () => expect(failureOf(() => patchType(type)).code).toBe(415));
  }
});
