import { expect, test } from 'vitest';
import { type Figures, goals, renderReport } from '../../bench/report.ts';

const summary = (p50: number) => ({ p50, p95: p50 * 2, max: p50 * 3, runs: 20 });
const figures: Figures = {
  machine: { cpu: 'Test CPU', cores: 2, memoryGiB: 4, kernel: '6.1', containerd: '1.6.20', node: 'v24' },
  runs: 20,
  bareStart: summary(150),
  floorStart: summary(200),
  start: { ...summary(230), runs: 60 },
  startRatio: { low: 1.1, high: 1.2 },
  floorRemove: summary(250),
  delete: summary(300),
  exitToStatus: summary(50.1),
  burst: { pods: 30, floorMs: [4000, 5000, 9000], nodeletMs: [5000, 5100, 5200] },
  agent: { peakRssMiB: 119.9, idleRssMiB: 100, idlePods: 30, idleSeconds: 20, idleCpuPercent: 0.4 },
};

test('a goal is reached at its limit and missed above it', () => {
  expect(goals(figures).map((goal) => [goal.name, goal.reached])).toEqual([
    ['start p50 / floor p50', true],
    ['exit → status p50', false],
    ['burst / floor', true],
    ['agent peak RSS', true],
    ['agent idle CPU', true],
  ]);
});

test('rows without a floor follow the others', () => {
  const text = renderReport({ ...figures, more: [{ name: 'x → y', summary: summary(7) }] });
  expect(text).toContain('| x → y | 7.0 | 14.0 | 21.0 |  |');
});

test('a row with a limit for its p50 or its worst has goals of its own', () => {
  const more = [
    { name: 'nodelet: a', summary: summary(10), limitMs: 10 },
    { name: 'nodelet: b', summary: summary(11), limitMs: 10, maxLimitMs: 33 },
    { name: 'nodelet: d', summary: summary(5), limitMs: 10, maxLimitMs: 14 },
    { name: 'nodelet: c', summary: summary(99) },
  ];
  const own = goals({ ...figures, more }).slice(5);
  expect(own.map(({ name, reached }) => [name, reached])).toEqual([
    ['a p50', true],
    ['b p50', false],
    ['b max', true],
    ['d p50', true],
    ['d max', false],
  ]);
});

test('the report says which goals were missed, and gives ratios against the floor of the same run', () => {
  const text = renderReport(figures);
  expect(text).toContain('| nodelet: pod created → Running seen | 230.0 | 460.0 | 690.0 | 1.15 × |');
  expect(text).toContain('| nodelet: burst of 30 | 5100.0 | | 5200.0 | 1.02 × |');
  expect(text).toContain('60 starts, 3 bursts, 20 runs of the rest');
  expect(text).toContain('95 of 100 runs like this one give 1.10 to 1.20 × for one pod, 0.58 to 1.25 × for the burst');
  expect(text).toContain('- NOT reached: exit → status p50 50.10 ms');
});

test('large ConfigMaps and Secrets have a line and a goal of their own', () => {
  const fullNode = { pods: 110, megabytes: 110, peakRssMiB: 150.4, idleRssMiB: 120 };
  expect(renderReport({ ...figures, fullNode })).toContain(
    'With 110 pods that mount 110 MB of ConfigMaps and Secrets, and a restart of the agent: peak RSS 150 MiB, afterwards RSS 120 MiB.',
  );
  const own = goals({ ...figures, fullNode }).find(({ name }) => name.includes('large ConfigMaps'));
  expect([own?.value, own?.reached]).toEqual([150.4, true]);
});
