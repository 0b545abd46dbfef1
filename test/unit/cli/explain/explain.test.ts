// How the facts are read, which finding is the verdict, how it is worded and printed.

import { describe, expect, test } from 'vitest';
import { eventFact } from '../../../../cli/explain/collect/events.ts';
import { termDisposition } from '../../../../cli/explain/collect/machine.ts';
import { logsWanted } from '../../../../cli/explain/collect/pod.ts';
import { driverNames, namedObjects } from '../../../../cli/explain/collect/references.ts';
import { Gaps } from '../../../../cli/explain/collect/source.ts';
import { callsIn } from '../../../../cli/explain/collect/spans.ts';
import type { Explanation, Finding, Rule } from '../../../../cli/explain/finding.ts';
import { explain, findingsOf } from '../../../../cli/explain/findings.ts';
import { finePod } from '../../../../cli/explain/fine.ts';
import { parseOomKills } from '../../../../cli/explain/kernel-log.ts';
import { newsOf, parseTarget } from '../../../../cli/explain/main.ts';
import { explanationJson, renderText } from '../../../../cli/explain/render.ts';
import { POD_RULES, unknownPod } from '../../../../cli/explain/rules/pod-rules.ts';
import { bytes, duration, exitCode, list, nearest, plural } from '../../../../cli/explain/words.ts';
import { ApiError, UnreachableError } from '../../../../client/errors.ts';
import { plusMs } from '../../../../lib/clock.ts';
import { parseListening } from '../../../../lib/listening-sockets.ts';
import { crashed, event, facts, NOW, pod, waiting } from './facts.ts';

describe('words', () => {
  test.each([
    [0, '0 s'],
    [59_000, '59 s'],
    [125_000, '2 min 5 s'],
    [3_600_000, '1 h'],
    [90_000_000, '25 h'],
    [200_000_000, '2 days 7 h'],
  ])('%d ms are %s', (ms, text) => {
    expect(duration(ms)).toBe(text);
  });

  test.each([
    [3, 0, 'exit code 3'],
    [127, 0, 'exit code 127: from a shell, a command that was not found'],
    [137, 0, 'exit code 137: SIGKILL, killed at once, without a chance to end by itself'],
    [143, 15, 'exit code 143: SIGTERM, requested to end'],
    [255, 0, 'exit code 255'],
  ])('%d (signal %d) is %s', (code, signal, text) => {
    expect(exitCode(code, signal)).toBe(text);
  });

  test('amounts and lists', () => {
    expect([bytes(512), bytes(16 * 2 ** 20), bytes(1.5 * 2 ** 30)]).toEqual(['512 bytes', '16 MiB', '1.5 GiB']);
    expect([list([]), list(['a']), list(['a', 'b', 'c'])]).toEqual(['', 'a', 'a, b and c']);
    expect([plural(1, 'pod'), plural(2, 'pod')]).toEqual(['1 pod', '2 pods']);
  });

  test('the name that may have been meant', () => {
    expect(nearest('setings', ['other', 'settings'])).toBe('settings');
    expect(nearest('setings', ['completely-different'])).toBeUndefined();
    expect(nearest('same', ['same'])).toBeUndefined();
  });
});

describe('reading', () => {
  test('an event, counted in either way', () => {
    const object = { involvedObject: {}, metadata: { creationTimestamp: '2026-01-02T11:00:00Z' } };
    const old = { firstTimestamp: '2026-01-02T11:00:00Z', lastTimestamp: '2026-01-02T11:10:00Z', count: 5 };
    expect(eventFact({ ...object, ...old, type: 'Warning' })).toMatchObject({ count: 5, type: 'Warning' });
    const series = { count: 7, lastObservedTime: '2026-01-02T11:20:00Z' };
    const fact = eventFact({ ...object, eventTime: '2026-01-02T11:00:00Z', series });
    expect(fact.count).toBe(7);
    expect(fact.last - fact.first).toBe(20 * 60_000);
    const about = { fieldPath: 'spec.initContainers{main}' };
    expect(eventFact({ ...object, involvedObject: about }).container).toBe('main');
    expect(eventFact(object).container).toBeUndefined();
  });

  test('kills for lack of memory of this pod, with the process’ memory', () => {
    const id = 'a'.repeat(64);
    const kill = (uid: string, pid: number) =>
      `4,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=${id},mems_allowed=0,oom_memcg=/kubepods/pod${uid},task_memcg=/kubepods/burstable/pod${uid}/${id},task=sh,pid=${pid},uid=0\n3,1,2,-;Memory cgroup out of memory: Killed process ${pid} (sh) total-vm:4400kB, anon-rss:1024kB, file-rss:0kB\n`;
    expect(parseOomKills(kill('u-1', 7) + kill('other', 8), 'u-1')).toEqual([
      { pid: 7, process: 'sh', container: id, residentBytes: 1024 * 1024 },
    ]);
    // systemd's names.
    expect(parseOomKills(kill('u_1', 7), 'u-1')).toHaveLength(1);
  });

  test('sockets that listen, on loopback or not', () => {
    const tcp = [
      '  sl  local_address rem_address   st tx_queue',
      '   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1',
      '   1: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1',
      '   2: 0100007F:1F92 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 1 1',
    ].join('\n');
    expect(parseListening('TCP', tcp)).toEqual([
      { protocol: 'TCP', port: 8080, loopback: false },
      { protocol: 'TCP', port: 8081, loopback: true },
    ]);
    const six = '   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0\n';
    expect(parseListening('TCP', six)).toEqual([{ protocol: 'TCP', port: 80, loopback: true }]);
  });

  test('what a process does with SIGTERM', () => {
    const status = (ignored: string, caught: string): string => `SigIgn:\t${ignored}\nSigCgt:\t${caught}\n`;
    expect(termDisposition(status('0000000000004000', '0000000000000000'))).toBe('ignored');
    expect(termDisposition(status('0000000000000000', '0000000000004000'))).toBe('handled');
    expect(termDisposition(status('0000000000000000', '0000000000000000'))).toBe('default');
  });

  test('spans and calls under way, without the line that is not complete', () => {
    const text =
      '{"id":1,"pod":{"uid":"a"},"outcome":"ok"}\n{"id":2,"pod":{"uid":"b"}}\n{"id":3,"pod":{"uid":"a"}}\n{"id":4,"po';
    const { spans, open } = callsIn(text, ({ pod: about }) => about?.uid === 'a');
    expect(spans.map(({ id }) => id)).toEqual([1]);
    expect(open.map(({ id }) => id)).toEqual([3]);
  });

  test('logs of what has ended, and of the instance before', () => {
    expect(logsWanted(pod({ state: crashed({ exitCode: 1 }) }))).toEqual([{ container: 'main', previous: false }]);
    const running = { restartCount: 1, state: { running: {} } };
    expect(logsWanted(pod({ state: running }))).toEqual([{ container: 'main', previous: true }]);
    expect(logsWanted(pod({ state: waiting('ContainerCreating') }))).toEqual([]);
    // It never ran.
    expect(logsWanted(pod({ state: { state: { terminated: { exitCode: 137 } } } }))).toEqual([]);
  });

  test('names of ConfigMaps and Secrets', () => {
    const named = namedObjects(
      pod({
        spec: {
          volumes: [{ name: 'v', projected: { sources: [{ configMap: { name: 'a' } }, { secret: { name: 'b' } }] } }],
          imagePullSecrets: [{ name: 'c' }],
        },
        container: { envFrom: [{ configMapRef: { name: 'd' } }] },
      }),
    );
    expect([...named.configMaps, '-', ...named.secrets]).toEqual(['a', 'd', '-', 'b', 'c']);
  });

  test('a failure outside becomes a gap, a mistake is thrown', async () => {
    const gaps = new Gaps();
    const away = new UnreachableError('connection refused', 'ECONNREFUSED');
    expect(await gaps.attempt('events', 0, () => Promise.reject(away))).toBe(0);
    const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 404, reason: 'NotFound' } as const;
    expect(await gaps.lookup('claim', () => Promise.reject(new ApiError(status, 404, 'GET')))).toEqual({
      state: 'absent',
    });
    expect(await gaps.lookup('class', () => Promise.reject(away))).toEqual({
      state: 'unknown',
      why: 'connection refused',
    });
    expect(gaps.list.map(({ what }) => what)).toEqual(['events', 'class']);
    await expect(gaps.attempt('x', 0, () => Promise.reject(new TypeError('mine')))).rejects.toThrow('mine');
  });
});

describe('the command’s words', () => {
  test.each([
    ['pod', 'demo/web', { kind: 'pod', namespace: 'demo', name: 'web' }],
    ['po', 'web', { kind: 'pod', namespace: 'here', name: 'web' }],
    ['svc', 'web', { kind: 'service', namespace: 'here', name: 'web' }],
    ['node', 'n1', { kind: 'node', namespace: '', name: 'n1' }],
  ])('%s %s', (kind, name, target) => {
    expect(parseTarget(kind, name, 'here')).toEqual(target);
  });

  test.each([
    ['secret', 'web', /cannot be explained/],
    ['pod', 'a/b/c', /is not NAMESPACE\/NAME/],
    ['pod', '/web', /is not NAMESPACE\/NAME/],
    ['node', 'demo/n1', /in no namespace/],
  ])('%s %s is refused', (kind, name, message) => {
    expect(() => parseTarget(kind, name, 'here')).toThrow(message);
  });
});

const finding = (verdict: string, state: Finding['state'] = 'broken'): Finding => ({
  verdict,
  state,
  chain: [],
  commands: [],
});
const rule = (name: string, found: Finding | undefined): Rule => ({ name, find: () => found });

describe('the verdict', () => {
  test('is the first group’s that knows something, by its first rule; nothing comes after the end', () => {
    const groups = [
      [rule('none', undefined)],
      [rule('special', finding('a')), rule('general', finding('b'))],
      [rule('end', finding('c', 'ended'))],
      [rule('late', finding('d'))],
    ];
    expect(findingsOf(groups, facts()).map((each) => each.rule)).toEqual(['special', 'end']);
  });

  test('where no rule knows anything, the warnings are shown', () => {
    const running = { phase: 'Running', conditions: [{ type: 'Ready', status: 'False', message: 'why' }] };
    const given = facts(
      { status: running, state: { state: { running: {} } } },
      { events: [event('Odd', 'something odd')] },
    );
    const answer = explain({ kind: 'pod', namespace: 'demo', name: 'web' }, given, POD_RULES, unknownPod, finePod);
    expect(answer.finding).toMatchObject({
      rule: 'unknown',
      verdict: 'it is Running and not Ready, and no rule knows why: why',
    });
    expect(answer.finding.chain[0]?.text).toBe('Odd: something odd');
    expect(answer.fine).toEqual(['it is on node n1', 'its node is Ready', 'container main runs']);
  });

  test('times alone are no news', () => {
    const at = (text: string): Explanation => ({ ...explanation, finding: { rule: 'r', ...finding(text) } });
    expect(newsOf(at('for 3 s'))).toBe(newsOf(at('for 12 s')));
    expect(newsOf(at('for 3 s'))).not.toBe(newsOf(at('it is Ready')));
  });
});

const explanation: Explanation = {
  target: { kind: 'pod', namespace: 'demo', name: 'web' },
  at: NOW,
  finding: {
    rule: 'image-pull',
    state: 'broken',
    verdict: 'image a:1 cannot be pulled',
    chain: [
      { text: 'container main waits', since: plusMs(NOW, -65_000) },
      {
        text: 'the runtime could not pull it',
        call: { name: 'PullImage', to: 'the runtime', with: 'a:1', answer: 'no\nsuch host' },
        since: plusMs(NOW, -60_000),
        count: 3,
        next: plusMs(NOW, 20_000),
      },
      { text: 'it was removed', at: plusMs(NOW, -3_000), next: plusMs(NOW, -1_000) },
    ],
    details: [{ title: 'Last lines', lines: ['one', 'two'] }],
    commands: [{ command: 'getent hosts a', why: 'whether the name is there' }],
  },
  others: [{ rule: 'x', ...finding('something else') }],
  fine: ['its node is Ready'],
  gaps: [{ what: 'the kernel’s log', why: 'not root' }],
};

test('the text', () => {
  expect(renderText(explanation)).toBe(`pod demo/web: image a:1 cannot be pulled.

Why
  container main waits (for 1 min 5 s)
  └─ the runtime could not pull it (3 times in 1 min, tried again in 20 s)
     call:   PullImage → the runtime, with a:1
     answer: no such host
     └─ it was removed (3 s ago, tried again now)

Last lines
  | one
  | two

Also
  - something else.

Fine already
  - its node is Ready

Try
  # whether the name is there
  getent hosts a

Not looked at
  - the kernel’s log: not root
`);
});

test('more than three things besides are counted', () => {
  const others = [1, 2, 3, 4, 5].map((number) => ({ rule: 'x', ...finding(`thing ${number}`) }));
  const text = renderText({ ...explanation, others });
  expect(text).toContain('  - thing 3.\n  - and 2 more, which -o json has\n');
  expect(text).not.toContain('thing 4');
});

test('no line is wider than the terminal, as far as words go', () => {
  const lines = renderText(explanation, 40).split('\n');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(50);
});

test('the JSON', () => {
  expect(explanationJson(explanation)).toEqual({
    kind: 'pod',
    namespace: 'demo',
    name: 'web',
    at: '2026-01-02T12:00:00Z',
    rule: 'image-pull',
    state: 'broken',
    verdict: 'image a:1 cannot be pulled',
    chain: [
      { text: 'container main waits', since: '2026-01-02T11:58:55Z' },
      {
        text: 'the runtime could not pull it',
        call: { name: 'PullImage', to: 'the runtime', with: 'a:1', answer: 'no\nsuch host' },
        since: '2026-01-02T11:59:00Z',
        count: 3,
        nextTry: '2026-01-02T12:00:20Z',
      },
      { text: 'it was removed', at: '2026-01-02T11:59:57Z', nextTry: '2026-01-02T11:59:59Z' },
    ],
    details: [{ title: 'Last lines', lines: ['one', 'two'] }],
    commands: [{ command: 'getent hosts a', why: 'whether the name is there' }],
    alsoFound: [{ rule: 'x', state: 'broken', verdict: 'something else', chain: [], commands: [], details: [] }],
    fine: ['its node is Ready'],
    notLookedAt: [{ what: 'the kernel’s log', why: 'not root' }],
  });
});

test('every rule’s name is that of its file', async () => {
  const { readdir } = await import('node:fs/promises');
  const { CLAIM_RULES } = await import('../../../../cli/explain/rules/claim-rules.ts');
  const { NODE_RULES } = await import('../../../../cli/explain/rules/node-rules.ts');
  const { SERVICE_RULES } = await import('../../../../cli/explain/rules/service-rules.ts');
  const { GONE_POD_RULES } = await import('../../../../cli/explain/rules/gone-pod-rules.ts');
  const { WORKLOAD_RULES } = await import('../../../../cli/explain/rules/workload-rules.ts');
  const files = await readdir(new URL('../../../../cli/explain/rules/', import.meta.url));
  const expected = files.filter((name) => !name.endsWith('-rules.ts')).map((name) => name.replace('.ts', ''));
  const all = [POD_RULES, NODE_RULES, SERVICE_RULES, CLAIM_RULES, GONE_POD_RULES, WORKLOAD_RULES];
  const names = all.flatMap((groups) =>
    groups.flatMap((group) =>
      group.flatMap((entry) => ('each' in entry ? entry.rules.map(({ name }) => name) : [entry.name])),
    ),
  );
  expect(names.toSorted()).toEqual(expected.toSorted());
});

test.each([
  ['{"spec": {"drivers": [{"name": "a.example.com", "nodeID": "n1"}]}}', ['a.example.com']],
  ['{"spec": {"drivers": null}}', []],
  ['{"spec": {}}', []],
])('the drivers of the CSINode %s', (text, names) => {
  expect(driverNames(JSON.parse(text))).toEqual(names);
});
