// kubectl's words for machines without kubectl: what is read from them, and how objects are printed.

import { describe, expect, it } from 'vitest';
import { evaluateJsonPath } from '../../../../cli/exercises/json-path.ts';
import {
  kindOf,
  labelChanges,
  namedObjects,
  runKubectl,
  taintsAfter,
  timeoutMs,
} from '../../../../cli/exercises/kubectl.ts';
import { NO_COLUMNS, NODE_COLUMNS, SERVICE_COLUMNS, tableOf } from '../../../../cli/exercises/object-table.ts';
import type { Node, Service } from '../../../../client/types.ts';

describe('words', () => {
  it.for([['pod'], ['pods'], ['Pod']])('%s is a kind', ([word = '']) => expect(kindOf(word).plural).toBe('pods'));
  it('other kinds are refused by name', () => expect(() => kindOf('deployments')).toThrow('kind "deployments"'));
  it('objects are named after a kind, or with it', () => {
    const names = (...words: string[]): readonly string[] =>
      namedObjects(words).map(({ kind, name }) => `${kind.kind} ${name}`);
    expect(names('pod', 'a', 'b')).toEqual(['Pod a', 'Pod b']);
    expect(names('pod/a', 'node/b')).toEqual(['Pod a', 'Node b']);
  });
  it('times', () => {
    expect([timeoutMs('30s'), timeoutMs('2m'), timeoutMs('1h')]).toEqual([30_000, 120_000, 3_600_000]);
    expect(() => timeoutMs('soon')).toThrow('"soon"');
  });
  it('labels', () => {
    expect(labelChanges(['a=b', 'c-', 'd='])).toEqual({ a: 'b', c: null, d: '' });
    expect(() => labelChanges(['a'])).toThrow('KEY=VALUE');
  });
  it('taints', () => {
    const [a, b] = [
      { key: 'a', value: '1', effect: 'NoSchedule' },
      { key: 'b', value: '', effect: 'NoExecute' },
    ];
    expect(taintsAfter([a, b], ['a-'])).toEqual([b]);
    expect(taintsAfter([a, b], ['b:NoSchedule-'])).toEqual([a, b]);
    expect(taintsAfter([a, b], ['b:NoExecute-'])).toEqual([a]);
    expect(taintsAfter([b], ['a=1:NoSchedule'])).toEqual([b, a]);
    expect(taintsAfter([a], ['a=2:NoSchedule'])).toEqual([{ ...a, value: '2' }]);
  });
  it.for<[string, string[], string | undefined]>([
    ['has no command "rollout"', ['rollout', 'status'], '/k'],
    ['this kubectl: ', ['get', '--watch-only', 'pods'], '/k'],
    ['KUBECONFIG is not set', ['get', 'pods'], undefined],
    ['no such file', ['get', 'pods'], '/nonexistent'],
  ])('refused: %s', ([message, argv, kubeconfig]) =>
    expect(runKubectl(argv, kubeconfig, () => undefined)).rejects.toThrow(message),
  );
});

describe('JSONPath', () => {
  const object = { a: { b: [{ c: 1 }, { c: 'two' }], 'x.y/z': 3 }, list: [1], none: null };
  it.for<[string, string]>([
    ['{.a.b[1].c}', 'two'],
    ['{.a.b[0]}', '{"c":1}'],
    ['{.a.b[7].c}', ''],
    ['{.none.more}', ''],
    ['{.toString}', ''],
    ['{.list}{"\\n"}', '[1]\n'],
    ['name: {.a.b[0].c}, {.list[0]}', 'name: 1, 1'],
  ])('%s', ([template, expected]) => expect(evaluateJsonPath(template, object)).toBe(expected));
  it('what is more is refused', () => {
    expect(() => evaluateJsonPath('{.a.b[*].c}', object)).toThrow('more than this JSONPath knows');
    expect(() => evaluateJsonPath('{range .a}', object)).toThrow('more than this JSONPath knows');
  });
});

describe('tables', () => {
  const metadata = { name: 'a', uid: 'u', resourceVersion: '1' };
  const plain = { wide: false, labels: false };
  it('names alone, and labels', () => {
    expect(tableOf(NO_COLUMNS, [], plain)).toBe('No resources found\n');
    expect(tableOf(NO_COLUMNS, [{ metadata }], plain)).toBe('NAME\na\n');
    const labelled = { metadata: { ...metadata, labels: { x: '1', y: '2' } } };
    expect(tableOf(NO_COLUMNS, [labelled, { metadata }], { wide: false, labels: true })).toBe(
      'NAME   LABELS\na      x=1,y=2\na      <none>\n',
    );
  });
  it('columns of a kind, and more of them', () => {
    const node: Node = { apiVersion: 'v1', kind: 'Node', metadata };
    expect(tableOf(NODE_COLUMNS, [node], plain)).toBe('NAME   STATUS\na      NotReady\n');
    const spec = { clusterIP: '10.0.0.1', ports: [{ port: 80 }], selector: { app: 'a' } };
    const service: Service = { apiVersion: 'v1', kind: 'Service', metadata, spec };
    expect(tableOf(SERVICE_COLUMNS, [service], { wide: true, labels: false })).toBe(
      'NAME   CLUSTER-IP   PORTS   SELECTOR\na      10.0.0.1     80      app=a\n',
    );
  });
});
