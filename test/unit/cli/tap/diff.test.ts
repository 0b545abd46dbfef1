// Two recordings of the same pod are equal whatever their ids, times and addresses; what differs is named.

import { expect, test } from 'vitest';
import { align } from '../../../../cli/tap/align.ts';
import { compareRecordings } from '../../../../cli/tap/diff.ts';
import { printDiff } from '../../../../cli/tap/diff-report.ts';
import { differences } from '../../../../cli/tap/field-diff.ts';
import { isIgnored, parseIgnore } from '../../../../cli/tap/ignore.ts';
import { maskText } from '../../../../cli/tap/mask.ts';
import { compareRates } from '../../../../cli/tap/rates.ts';
import { loadSchema } from '../../../../cli/tap/schema.ts';
import { IDS_A, IDS_B, id, podLife, recordingOf, type TestCall, uid } from './messages.ts';

const schema = loadSchema();

function diff(a: readonly TestCall[], b: readonly TestCall[], ignore?: string) {
  return compareRecordings(
    recordingOf(a),
    recordingOf(b),
    schema,
    ignore === undefined ? undefined : parseIgnore(ignore, 'rules'),
  );
}

/** What was found, a line each. */
function found(...args: Parameters<typeof diff>): string[] {
  const result = diff(...args);
  const calls = result.pods.flatMap(({ pod, differences: all }) =>
    all.map((each) => {
      const name = `${pod} ${each.call.method}`;
      if (each.kind !== 'fields') return `${name} ${each.kind}${each.kind === 'only' ? ` ${each.in}` : ''}`;
      return `${name} ${each.what} ${each.fields.map(({ path, a, b }) => `${path}: ${JSON.stringify(a)} → ${JSON.stringify(b)}`).join(', ')}`;
    }),
  );
  expect(result.count).toBe(
    calls.length + result.rates.filter(({ verdict }) => !['equal', 'too few calls to say'].includes(verdict)).length,
  );
  return calls;
}

const STATIC_UID = '5f9d88f3e6b7a8c9d0e1f2a3b4c5d6e7';
const life = podLife(IDS_A);

test('the same pod twice is equal, with other ids, times and more looks', () => {
  const other = podLife(IDS_B, 5000);
  expect(found(life, other)).toEqual([]);
  expect(diff(life, other).count).toBe(0);
});

test('number, order, fields, and what only one has', () => {
  const other = podLife(IDS_B, 1000, {
    envs: [
      { key: 'B', value: '2' },
      { key: 'A', value: 'x' },
    ],
    tty: true,
  });
  const [stop, remove] = [
    other.findIndex(({ method }) => method === 'StopContainer'),
    other.findIndex(({ method }) => method === 'RemoveContainer'),
  ];
  expect(found(life, other)).toEqual([
    'demo/web CreateContainer request config.envs[A].value: "1" → "x", config.tty: undefined → true',
  ]);
  expect(
    found(
      life,
      podLife(IDS_B).filter((_, index) => index !== stop),
    ),
  ).toEqual(['demo/web StopContainer only A']);
  const swapped = podLife(IDS_B).map((call, index) => (index === stop ? { ...call, at: call.at + 150 } : call));
  expect(found(life, swapped).sort()).toEqual(['demo/web StopContainer order']);
  expect(remove).toBe(stop + 1);
});

test('an answer and a failure that differ', () => {
  const failing = podLife(IDS_B).map((call) => {
    if (call.method !== 'StartContainer') return call;
    const { response: _, ...rest } = call;
    return { ...rest, end: { status: 13, message: `container ${IDS_B.container} at 10.0.0.7 failed` } };
  });
  expect(found(life, failing)).toEqual([
    'demo/web StartContainer end status: "OK" → "INTERNAL", message: "" → "container <id> at <address> failed"',
  ]);
});

test('a pod that only one has, and known differences', () => {
  const renamed = JSON.parse(
    JSON.stringify(podLife(IDS_B)).replaceAll('"web"', '"web-n2"').replaceAll('demo_web', 'demo_web-n2'),
  );
  expect(found(life, renamed).every((line) => / only [AB]$/.test(line))).toBe(true);
  expect(found(life, renamed, 'replace: [{from: web-n2, to: web}]')).toEqual([]);
  const other = podLife(IDS_B, 1000, { tty: true, envs: [{ key: 'A', value: 'x' }] });
  expect(found(life, other, 'ignore: [{method: Create*, field: config.envs}]')).toEqual([
    'demo/web CreateContainer request config.tty: undefined → true',
  ]);
  expect(found(life, other, 'ignore: [{method: CreateContainer, field: "*.tty"}, {field: config.envs}]')).toEqual([]);
});

test('a method that only one asks, and polling that differs', () => {
  const polls = (count: number, at = 0): TestCall[] =>
    Array.from({ length: count }, (_, index) => ({
      method: 'ListContainers',
      at: at + index * 10,
      response: { containers: [] },
    }));
  const rates = diff([...life, ...polls(100)], podLife(IDS_B)).rates.map(({ method, verdict }) => [method, verdict]);
  expect(rates).toContainEqual(['ListContainers', 'only in A']);
  expect(diff([...life, ...polls(100)], [...podLife(IDS_B), ...polls(20)]).count).toBe(1);
  expect(diff([...life, ...polls(100)], [...podLife(IDS_B), ...polls(80)]).count).toBe(0);
});

test('a stream is no call that does something, and what it tells is not compared', () => {
  const subscribed = (at: number): ReturnType<typeof recordingOf> => {
    const { info, calls } = recordingOf(life);
    const stream = {
      id: 99,
      connection: 1,
      method: '/containerd.services.events.v1.Events/Subscribe',
      begin: 0,
      metadata: [],
      headers: [],
      requests: [{ at: 0, bytes: Buffer.alloc(0) }],
      responses: [{ at, bytes: Buffer.from([0x0a, 0x02, 0x08, at]) }],
      end: undefined,
    };
    return { info, calls: [...calls, stream] };
  };
  expect(compareRecordings(subscribed(1), subscribed(2), schema).count).toBe(0);
});

test('the report names everything', () => {
  const [a, b] = [recordingOf(life), recordingOf(podLife(IDS_B, 1000, { tty: true }))];
  const side = (path: string, { info, calls }: typeof a) => ({ path, info, calls: calls.length });
  const text = printDiff(compareRecordings(a, b, schema), side('a.crirec', a), side('b.crirec', b)).join('\n');
  expect(text).toContain('A  a.crirec: 11 calls in 10.0 s, to /run/runtime.sock');
  expect(text).toContain('  CreateContainer main: request\n    config.tty\n      A (absent)\n      B true');
  expect(text).toMatch(/ListPodSandbox +0\.30 +0\.30\n/);
  expect(text).toMatch(/1 difference$/);
});

test.each([
  [`/var/lib/kubelet/pods/${uid('1')}/etc-hosts`, '/var/lib/kubelet/pods/<uid>/etc-hosts'],
  [`/kubepods/pod${uid('a')}`, '/kubepods/pod<uid>'],
  [STATIC_UID, '<uid>'],
  [`/var/log/pods/kube-system_web-n1_${STATIC_UID}/web/0.log`, '/var/log/pods/kube-system_web-n1_<uid>/web/0.log'],
  [`/kubepods/pod${STATIC_UID}`, '/kubepods/pod<uid>'],
  [`kubepods-burstable-pod${STATIC_UID}.slice`, 'kubepods-burstable-pod<uid>.slice'],
  [`${STATIC_UID}ab`, `${STATIC_UID}ab`],
  [`kubepods-pod${uid('a').replaceAll('-', '_')}.slice`, 'kubepods-pod<uid>.slice'],
  [id('a'), '<id>'],
  [`sha256:${id('a')}`, `sha256:${id('a')}`],
  ['http://127.0.0.1:41231/exec/Ab12_-xyz', 'http://<address>:<port>/exec/<token>'],
  ['10.0.0.1', '<address>'],
  ['version 1.2.3.4.5', 'version 1.2.3.4.5'],
  ['fd00:10::1', '<address>'],
  ['12:30:45', '12:30:45'],
  ['at 2026-01-02T03:04:05.678Z', 'at <time>'],
  ['kube-api-access-x2z9q', 'kube-api-access-<random>'],
  ['/x/containers/main/0a1b2c3d', '/x/containers/main/<random>'],
  ['web', 'web'],
])('%s is compared as %s', (text, masked) => {
  expect(maskText(text, undefined)).toBe(masked);
});

test.each([
  { a: { x: [1, 2] }, b: { x: [1, 3, 4] }, paths: ['x[1]', 'x[2]'] },
  { a: { m: [{ name: 'a', v: 1 }, { name: 'b' }] }, b: { m: [{ name: 'b' }, { name: 'a', v: 2 }] }, paths: ['m[a].v'] },
  { a: { m: [{ name: 'a' }, { name: 'a' }] }, b: { m: [{ name: 'a' }] }, paths: ['m[1]'] },
  {
    a: { ports: [{ container_port: 53 }, { container_port: 53, protocol: 'UDP', host_port: 1 }] },
    b: { ports: [{ container_port: 9 }, { container_port: 53, protocol: 'UDP' }, { container_port: 53 }] },
    paths: ['ports[53/UDP].host_port', 'ports[9]'],
  },
  { a: { labels: { 'a.b/c': '1' } }, b: { labels: {} }, paths: ['labels[a.b/c]'] },
  { a: { x: {} }, b: {}, paths: ['x'] },
  { a: { x: 'a' }, b: { x: { y: 1 } }, paths: ['x'] },
  { a: { x: false }, b: { x: false }, paths: [] },
])('$a and $b differ in $paths', ({ a, b, paths }) => {
  expect(differences(a, b).map(({ path }) => path)).toEqual(paths);
});

test.each([
  ['', '', ''],
  ['abc', 'abc', 'abc'],
  ['abc', 'ac', 'a-bc'],
  ['ac', 'abc', 'a+bc'],
  ['abcd', 'xbyd', '-a+xb-c+yd'],
])('%s beside %s', (a, b, expected) => {
  const aligned = align([...a], [...b], (each) => each);
  expect(
    aligned.map((each) => (each.kind === 'both' ? each.a : each.kind === 'a' ? `-${each.a}` : `+${each.b}`)).join(''),
  ).toBe(expected);
});

test.each([
  [100, 100, 10, 10, 'equal'],
  [100, 10, 100, 10, 'equal'],
  [100, 20, 10, 10, 'different'],
  [3, 1, 10, 10, 'equal'],
  [6, 6, 5, 20, 'equal'],
  [100, 0, 10, 10, 'only in A'],
  [0, 100, 10, 10, 'only in B'],
  [2, 0, 10, 10, 'too few calls to say'],
  [100, 0, 100, 1, 'too few calls to say'],
] as const)('%i and %i calls in %i and %i s: %s', (a, b, secondsA, secondsB, verdict) => {
  const [rate] = compareRates(new Map([['X', a]]), new Map([['X', b]]), [secondsA, secondsB]);
  expect(rate?.verdict).toBe(verdict);
});

test.each([
  ['- 1', 'must have "ignore" or "replace"'],
  ['other: 1', '"other" is neither'],
  ['ignore: 1', 'ignore must be a list'],
  ['ignore: [{}]', 'ignore[0] must have'],
  ['ignore: [{method: 1}]', 'ignore[0].method must be a text'],
  ['ignore: [{methods: x}]', 'ignore[0].methods is none of'],
  ['replace: [{from: x}]', 'replace[0] must have'],
  ['replace: [', 'rules: '],
])('the rules %s are refused', (text, why) => {
  expect(() => parseIgnore(text, 'rules')).toThrow(why);
});

test.each([
  [{ method: 'A*' }, 'Abc', 'x.y', true],
  [{ method: 'A*' }, 'Abc', undefined, true],
  [{ method: 'A*' }, 'Bbc', 'x.y', false],
  [{ field: 'x' }, 'A', 'x.y', true],
  [{ field: 'x' }, 'A', 'x[1].y', true],
  [{ field: 'x' }, 'A', 'xy', false],
  [{ field: 'x' }, 'A', undefined, false],
  [{ pod: 'demo/*' }, 'A', 'x', true],
  [{ pod: 'other/*' }, 'A', 'x', false],
])('%j on %s %s: %s', (rule, method, field, ignored) => {
  expect(isIgnored([{ method: undefined, field: undefined, pod: undefined, ...rule }], method, 'demo/web', field)).toBe(
    ignored,
  );
});
