import { describe, expect, test } from 'vitest';
import { fieldText, formatMap, goQuote, resourceText } from '../../../../agent/volumes/downward-values.ts';
import { commonUser, downwardFiles, objectFiles, ownedFile } from '../../../../agent/volumes/projection.ts';
import { aggregate } from '../../../../lib/aggregate.ts';
import { configMap, pod, secret } from './support.ts';

const shown = (files: ReturnType<typeof objectFiles>) =>
  Object.fromEntries(files.map(([path, { data, mode }]) => [path, [Buffer.from(data).toString(), mode]]));
const source = (kind: 'configMap' | 'secret', more: object = {}) => ({
  kind,
  name: 'x',
  items: undefined,
  optional: false,
  ...more,
});

describe('the files of a ConfigMap or Secret', () => {
  test('are all its keys with the default mode, binary ones decoded', () => {
    const object = configMap('x', { a: 'Ä' }, { b: Buffer.from([1, 2]).toString('base64') });
    const files = new Map(objectFiles(source('configMap'), object, 0o440));
    expect(Buffer.from(files.get('a')?.data ?? []).toString()).toBe('Ä');
    expect([...(files.get('b')?.data ?? [])]).toEqual([1, 2]);
    expect(files.get('b')?.mode).toBe(0o440);
    expect(shown(objectFiles(source('secret'), secret('x', { k: 'v' }), 0o600))).toEqual({ k: ['v', 0o600] });
    expect(shown(objectFiles(source('secret', { items: [] }), secret('x', { k: 'v' }), 0o600))).toEqual({
      k: ['v', 0o600],
    });
  });

  test('are only the items, at their paths, with their own modes', () => {
    const items = [
      { key: 'a', path: 'dir/a', mode: 0o400 },
      { key: 'b', path: 'b' },
    ];
    const object = configMap('x', { a: '1', b: '2', c: '3' });
    expect(shown(objectFiles(source('configMap', { items }), object, 0o644))).toEqual({
      'dir/a': ['1', 0o400],
      b: ['2', 0o644],
    });
  });

  test.each([
    ['configMap', 'configmap "x" not found'],
    ['secret', 'secret "x" not found'],
  ] as const)('a missing %s is an error in the kubelet’s words', (kind, message) => {
    expect(() => objectFiles(source(kind), undefined, 0o644)).toThrow(message);
  });

  test.each([
    ['configMap', 'configmap references non-existent config key: nope'],
    ['secret', 'references non-existent secret key: nope'],
  ] as const)('a missing key of a %s is one too', (kind, message) => {
    const object = kind === 'configMap' ? configMap('x', {}) : secret('x', {});
    expect(() => objectFiles(source(kind, { items: [{ key: 'nope', path: 'p' }] }), object, 0o644)).toThrow(message);
  });

  test('optional forgives both', () => {
    expect(objectFiles(source('secret', { optional: true }), undefined, 0o644)).toEqual([]);
    const items = [
      { key: 'nope', path: 'p' },
      { key: 'a', path: 'a' },
    ];
    const files = objectFiles(source('configMap', { items, optional: true }), configMap('x', { a: '1' }), 0o644);
    expect(files.map(([path]) => path)).toEqual(['a']);
  });
});

describe('downward API values', () => {
  const labelled = pod({}, { labels: { b: 'two "x"\n', a: '1' }, annotations: { 'k/z': 'v' } });
  test.each([
    ['metadata.name', 'web'],
    ['metadata.namespace', 'demo'],
    ['metadata.uid', 'uid-1'],
    ['metadata.labels', 'a="1"\nb="two \\"x\\"\\n"'],
    ["metadata.labels['a']", '1'],
    ["metadata.labels['missing']", ''],
    ["metadata.annotations['k/z']", 'v'],
    ['metadata.annotations', 'k/z="v"'],
  ])('%s', (path, text) => {
    expect(fieldText(labelled, path)).toBe(text);
  });
  test('a field that volumes do not have is refused', () => {
    expect(() => fieldText(labelled, 'status.podIP')).toThrow('unsupported fieldPath: status.podIP');
  });
  test('an empty map is an empty file', () => {
    expect(formatMap(undefined)).toBe('');
  });
  test.each([
    ['plain', '"plain"'],
    ['tab\tnl\n', '"tab\\tnl\\n"'],
    ['\u0001\u007f', '"\\x01\\x7f"'],
    ['ünï€', '"ünï€"'],
    ['\u200b', '"\\u200b"'],
    ['\\"', '"\\\\\\""'],
  ])('quotes %j as Go does', (text, quoted) => {
    expect(goQuote(text)).toBe(quoted);
  });

  const sized = pod({
    containers: [
      { name: 'c', image: 'i', resources: { limits: { cpu: '1500m', memory: '64Mi' }, requests: { cpu: '100m' } } },
      { name: 'bare', image: 'i' },
    ],
  });
  test.each([
    ['c', 'limits.cpu', undefined, '2'],
    ['c', 'limits.cpu', '1m', '1500'],
    ['c', 'requests.cpu', '1', '1'],
    ['c', 'limits.memory', undefined, '67108864'],
    ['c', 'limits.memory', '1Mi', '64'],
    ['c', 'limits.memory', '0', '67108864'],
    ['c', 'requests.memory', undefined, '0'],
    ['bare', 'limits.cpu', undefined, '4'],
    ['bare', 'limits.memory', '1Gi', '2'],
    ['bare', 'requests.cpu', undefined, '0'],
  ])('%s %s by %s is %s', (containerName, resource, divisor, text) => {
    const ref = { containerName, resource, ...(divisor === undefined ? {} : { divisor }) };
    expect(resourceText(sized, ref, { cpu: '4', memory: '2Gi' })).toBe(text);
  });
  test('a container or resource that is not there is refused', () => {
    expect(() => resourceText(sized, { containerName: 'x', resource: 'limits.cpu' }, {})).toThrow(
      'container x not found',
    );
    expect(() => resourceText(sized, { containerName: 'c', resource: 'limits.gpu' }, {})).toThrow(
      'unsupported container resource',
    );
  });
  test('become files with their modes', () => {
    const items = [{ path: 'n', fieldRef: { fieldPath: 'metadata.name' }, mode: 0o400 }];
    expect(shown(downwardFiles(items, labelled, {}, 0o644))).toEqual({ n: ['web', 0o400] });
  });
});

describe('token files', () => {
  const token = { kind: 'token', path: 't', audience: undefined, expirationSeconds: 600 } as const;
  test.each([
    [{ uid: undefined, gid: undefined }, { mode: 0o644 }],
    [
      { uid: 1000, gid: undefined },
      { mode: 0o600, uid: 1000 },
    ],
    [{ uid: undefined, gid: 2000 }, { mode: 0o600 }],
  ])('for %j are %j', (owner, expected) => {
    expect(ownedFile(token, 'x', owner, 0o644)[1]).toEqual({ data: Buffer.from('x'), ...expected });
  });

  const container = (runAsUser?: number) => ({
    name: 'c',
    image: 'i',
    securityContext: runAsUser === undefined ? {} : { runAsUser },
  });
  test.each([
    ['all the same', pod({ containers: [container(5), container(5)] }), 5],
    ['from the pod', pod({ containers: [container()], securityContext: { runAsUser: 7 } }), 7],
    ['different', pod({ containers: [container(5)], initContainers: [container(6)] }), undefined],
    ['one that does not say', pod({ containers: [container(5), container()] }), undefined],
    ['none', pod({ containers: [container()] }), undefined],
  ])('the common user of containers: %s', (_, subject, user) => {
    expect(commonUser(subject)).toBe(user);
  });
});

test('several failures are reported as one list, the same one once', () => {
  expect(aggregate(['a'])).toBe('a');
  expect(aggregate(['a', 'b', 'a'])).toBe('[a, b]');
});
