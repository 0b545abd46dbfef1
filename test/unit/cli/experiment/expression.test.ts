// The language of experiments: each row is an expression and its value over the observations below.

import { expect, test } from 'vitest';
import { check, evaluate, FUNCTIONS } from '../../../../cli/experiment/expression/evaluate.ts';
import { ObservationIndex } from '../../../../cli/experiment/expression/index-of-observations.ts';
import { parseExpression } from '../../../../cli/experiment/expression/parse.ts';
import { toMeasured } from '../../../../cli/experiment/expression/value.ts';
import type { Observation } from '../../../../cli/experiment/observation.ts';
import { epochMs, monotonicMs } from '../../../../lib/clock.ts';

function container(
  at: number,
  change: 'created' | 'started' | 'exited' | 'removed',
  attempt: number,
  exitCode?: number,
) {
  const base = {
    type: 'container',
    at: monotonicMs(at),
    change,
    pod: 'default/web',
    container: 'crash',
    attempt,
  } as const;
  return exitCode === undefined ? base : { ...base, exitCode, reason: 'Error' };
}

function pod(at: number, change: 'ADDED' | 'MODIFIED' | 'DELETED', phase: string, ready: string, restartCount: number) {
  const status = {
    phase,
    conditions: [{ type: 'Ready', status: ready, reason: 'ContainersNotReady' }],
    containerStatuses: [{ name: 'crash', restartCount }],
  };
  const object = { kind: 'Pod', metadata: { name: 'web', namespace: 'default', labels: { app: 'a' } }, status };
  return { type: 'object', at: monotonicMs(at), change, object } as const;
}

function event(at: number, reason: string, count: number) {
  const involvedObject = { kind: 'Pod', namespace: 'default', name: 'web' };
  const object = {
    kind: 'Event',
    metadata: { name: `web.${reason}` },
    reason,
    count,
    message: `${reason} it`,
    involvedObject,
  };
  return { type: 'object', at: monotonicMs(at), change: count === 1 ? 'ADDED' : 'MODIFIED', object } as const;
}

function span(at: number, name: string, durationMs: number, outcome: 'ok' | 'error') {
  const about = { namespace: 'default', name: 'web', uid: 'u' };
  const attributes = { image: 'busybox' };
  return {
    type: 'span',
    at: monotonicMs(at),
    span: { id: at, kind: 'cri', name, pod: about, start: epochMs(0), durationMs, outcome, attributes },
  } as const;
}

const OBSERVATIONS: readonly Observation[] = [
  { type: 'step', at: monotonicMs(0), index: 0, text: 'create it', phase: 'began' },
  pod(5, 'ADDED', 'Pending', 'False', 0),
  { type: 'step', at: monotonicMs(10), index: 0, text: 'create it', phase: 'ended' },
  span(20, 'RunPodSandbox', 100, 'ok'),
  container(90, 'created', 0),
  container(100, 'started', 0),
  pod(120, 'MODIFIED', 'Running', 'True', 0),
  container(1100, 'exited', 0, 1),
  pod(1120, 'MODIFIED', 'Running', 'False', 0),
  event(1130, 'BackOff', 1),
  span(11_000, 'StartContainer', 40, 'error'),
  container(11_100, 'started', 1),
  pod(11_120, 'MODIFIED', 'Running', 'True', 1),
  container(12_100, 'exited', 1, 2),
  event(12_130, 'BackOff', 2),
  { type: 'sample', at: monotonicMs(13_000), series: 'memory', labels: { pod: 'default/web' }, value: 5 },
  { type: 'sample', at: monotonicMs(14_000), series: 'memory', labels: { pod: 'default/other' }, value: 7 },
  container(32_100, 'started', 2),
];

const SCOPE = {
  index: new ObservationIndex(OBSERVATIONS),
  elapsed: () => 40_000,
  names: new Map([['waits', [10_000, 20_000]]]),
};

function valueOfText(text: string): unknown {
  const expression = parseExpression(text);
  check(expression, new Set(SCOPE.names.keys()));
  return toMeasured(evaluate(expression, SCOPE));
}

test.each<[string, unknown]>([
  // Numbers, durations, texts
  ['1 + 2 * 3', 7],
  ['(1 + 2) * 3', 9],
  ['-2 - -3', 1],
  ['7 / 2', 3.5],
  ['1 / 0', null],
  ['5%', 0.05],
  ['10s', 10_000],
  ['1h30m', 5_400_000],
  ['1.5s + 250ms', 1750],
  ['"a" + \'b\'', 'ab'],
  ['"it\\"s"', 'it"s'],
  // Comparison and logic
  ['1 < 2 and 2 <= 2', true],
  ['not 1 > 2', true],
  ['not not true', true],
  ['1 == 1 or 1 / 0 > 1', true],
  ['1 / 0 > 1', null],
  ['1 / 0 > 1 and false', false],
  ['1 / 0 > 1 or false', null],
  ['not (1 / 0 > 1)', null],
  ['[1, 2] == [1, 2]', true],
  ['[1, 2] != [1, 3]', true],
  ['2 in [1, 2]', true],
  ['"ell" in "hello"', true],
  ['null == null', true],
  // Lists
  ['[1, 2, 3][0]', 1],
  ['[1, 2, 3][-1]', 3],
  ['[1, 2, 3][9]', null],
  ['[10, 20] / 10', [1, 2]],
  ['[1, 2] + [10, 20]', [11, 22]],
  ['[1, 5] < 3', [true, false]],
  ['all([1, 5] < 3)', false],
  ['any([1, 5] < 3)', true],
  ['all([])', null],
  ['any([])', false],
  ['count([1, 2])', 2],
  ['first([4, 5])', 4],
  ['last([4, 5])', 5],
  ['first([])', null],
  ['diff([1, 4, 9])', [3, 5]],
  ['sort([3, 1, 2])', [1, 2, 3]],
  ['distinct([1, 2, 1])', [1, 2]],
  ['slice([1, 2, 3], 1)', [2, 3]],
  ['slice([1, 2, 3], 0, 2)', [1, 2]],
  ['[min([3, 1]), max([3, 1]), sum([3, 1]), mean([3, 1])]', [1, 3, 4, 2]],
  ['median([5, 1, 3])', 3],
  ['median([1, 2])', 1.5],
  ['percentile([0, 10, 20], 75)', 15],
  ['min([])', null],
  ['abs(-3)', 3],
  ['abs([-3, 2])', [3, 2]],
  ['round(2.6)', 3],
  ['within(10, 12, 2)', true],
  ['within(10, 12.5, 2)', false],
  ['within([10, 20], [11, 21], 1)', true],
  ['within([10, 20], [11], 1)', false],
  ['within([10, 20], 15, 5)', true],
  ['within(null, 1, 1)', null],
  ['within([], 1, 1)', null],
  ['near(105, 100, 5%)', true],
  ['near(106, 100, 5%)', false],
  ['between([1, 10], [4, 15])', [3, 5]],
  ['between([1, 20], [4])', [3]],
  ['between(10s, [12s])', [2000]],
  ['matches("back-off 10s", "back-off *")', true],
  ['quantity("64Mi")', 67_108_864],
  ['quantity("250m")', 0.25],
  // Containers
  ['container("crash").started', [100, 11_100, 32_100]],
  ['container("crash").exitCodes', [1, 2]],
  ['container("crash").waits', [10_000, 20_000]],
  ['container("crash").waits == waits', true],
  ['container("crash").runs.lasted', [1000, 1000, null]],
  ['container("crash").running', true],
  ['container("crash", pod="other").started', []],
  ['container("crash", pod="default/w*").started[0]', 100],
  ['container("crash").exits.reason', ['Error', 'Error']],
  ['count(where(container("crash").exits, exitCode=2))', 1],
  ['containers(pod="web").created', [90]],
  ['container("none").started', []],
  ['first(container("none").started) < 10s', null],
  ['times(container("crash").exits)', [1100, 12_100]],
  ['after(container("crash").started, 10s)', [11_100, 32_100]],
  ['before(container("crash").starts, 10s).attempt', [0]],
  // Objects
  ['pod("web").phase', 'Running'],
  ['pod("web").phases.value', ['Pending', 'Running']],
  ['pod("web").condition("Ready").status', 'True'],
  ['pod("web").condition("Ready").becameTrue', [120, 11_120]],
  ['pod("web").condition("Ready").becameFalse', [5, 1120]],
  ['pod("web").condition("Ready").changes.at', [5, 120, 1120, 11_120]],
  ['pod("web").restarts', 1],
  ['pod("web").created', 5],
  ['pod("web").deleted', null],
  ['pod("web").exists', true],
  ['pod("web").metadata.labels["app"]', 'a'],
  ['pod("web").status.containerStatuses["crash"].restartCount', 1],
  ['pod("none").exists', false],
  ['pod("none").phase', null],
  ['pod("none").status.phase', null],
  ['pod("none").phase == "Running"', false],
  ['history("Pod", "web", "status.containerStatuses[0].restartCount").value', [0, 1]],
  ['history("Pod", "web", "status.conditions[Ready].status").at', [5, 120, 1120, 11_120]],
  ['pod("web").history("status.containerStatuses[crash].restartCount").at', [5, 11_120]],
  ['object("Pod", "web", namespace="other").exists', false],
  // Events, spans, samples, steps
  ['times(events("BackOff"))', [1130, 12_130]],
  ['events("Back*", pod="web").count', [1, 2]],
  ['count(events("BackOff", message="*nothing*"))', 0],
  ['spans("RunPodSandbox").duration', [100]],
  ['spans("*", kind="cri", outcome="error").name', ['StartContainer']],
  ['spans("RunPodSandbox")[0].attributes.image', 'busybox'],
  ['samples("memory").value', [5, 7]],
  ['samples("memory", pod="*/web").value', [5]],
  // Series over time, with what tells them apart.
  ['samples("memory", pod="*/web")', [[13_000, 5]]],
  [
    'samples("memory")',
    [
      [13_000, 5, 'pod=default/web'],
      [14_000, 7, 'pod=default/other'],
    ],
  ],
  ['after(samples("memory"), 13500ms)', [[14_000, 7]]],
  ['samples("disk")', []],
  [
    'pod("web").history("status.containerStatuses[crash].restartCount")',
    [
      [5, 0],
      [11_120, 1],
    ],
  ],
  ['last(samples("memory")).value', 7],
  ['step("create it").ended', 10],
  ['step("none").ended', null],
  ['now()', 40_000],
])('%s', (text, value) => {
  expect(valueOfText(text)).toEqual(value);
});

test.each([
  ['1 +', 'a value is expected, not the end', 4],
  ['(1', '")" is expected, not the end', 3],
  ['1 2', 'an operator or the end is expected', 3],
  ['1 < 2 < 3', 'comparisons are not chained', 7],
  ['a = 1', 'equality is written ==', 3],
  ['5x', 'neither a number', 1],
  ['"open', 'this text has no end', 1],
  ['1 ; 2', '";" has no meaning here', 3],
  ['nothing + 1', '"nothing" is no measure: known are waits', 1],
  ['frobnicate(1)', 'there is no function frobnicate; there are abs', 1],
  ['count()', 'count is used as count(list)', 1],
  ['count([1], pod="a")', 'count has no argument pod', 1],
  ['pod("web").conditions("Ready")', 'no value has a method conditions()', 11],
  ['pod("web", namespace="a", namespace="b")', 'namespace is given twice', 27],
  ['spans(kind="cri", "name")', 'arguments with a name come last', 19],
  ['1 + "a"', '"+" needs numbers, not a number and a text', 3],
  ['1 < "a"', 'needs two numbers or two texts', 3],
  ['1 and true', 'and needs true or false, not a number', 3],
  ['[true] and true', 'use all(…) or any(…)', 8],
  ['container("crash").begun', 'has no field begun; it has created, started', 19],
  ['(5).length', 'a number has no field length', 4],
  ['"a".constructor', 'a text has no field constructor', 4],
  ['[1] + [1, 2]', 'lists of 1 and 2 items have no pairs', 5],
  ['history("Pod", "web", "a..b")', 'is no path of a field', 1],
  ['percentile([1], 101)', 'from 0 to 100', 1],
  ['quantity("x")', 'is not a resource quantity', 1],
  [`${'('.repeat(100)}1`, 'too deep', 61],
])('%s is refused', (text, message, column) => {
  expect(() => valueOfText(text)).toThrow(
    expect.objectContaining({ message: expect.stringContaining(message), column }),
  );
});

test('names that every JavaScript object has are no fields and no functions', () => {
  expect(valueOfText('pod("web").constructor')).toBe(null);
  expect(valueOfText('pod("web").metadata["__proto__"]')).toBe(null);
  expect(() => valueOfText('constructor(1)')).toThrow('there is no function constructor');
});

test('what is observed later is in the value of the same expression', () => {
  const observations: Observation[] = [];
  const scope = { index: new ObservationIndex(observations), elapsed: () => 0, names: new Map() };
  const expression = parseExpression('count(container("crash").started)');
  expect(evaluate(expression, scope)).toBe(0);
  observations.push(container(1, 'started', 0));
  expect(evaluate(expression, scope)).toBe(1);
});

test('every function has its usage, and it begins with its name', () => {
  expect(FUNCTIONS.size).toBeGreaterThan(30);
  for (const [name, { usage }] of FUNCTIONS) expect(usage.startsWith(`${name}(`)).toBe(true);
});
