import { expect, test } from 'vitest';
import { buildTimeline } from '../../../../cli/timeline/build.ts';
import type { Segment } from '../../../../cli/timeline/model.ts';
import type { Span } from '../../../../lib/trace.ts';
import { evidence, podStart, span } from './support.ts';

const pathOf = (spans: readonly Span[]): readonly Segment[] => buildTimeline(evidence(spans)).critical?.segments ?? [];

const lines = (spans: readonly Span[]): string[] =>
  pathOf(spans).map(({ start, end, owner, text }) => `${start}-${end} ${owner}: ${text}`);

test('from the write of Ready back to the watch event, through rounds, actions, calls and plugins', () => {
  expect(lines(podStart())).toEqual([
    '0-2 agent: until the pod worker’s round begins',
    '2-4 agent: the agent: syncPod',
    '4-10 agent: the agent: createSandbox',
    '10-20 runtime: the runtime: RunPodSandbox',
    '20-21 CNI: around the plugins: ADD network lab',
    '21-59 CNI: the plugin: ADD bridge',
    '59-60 CNI: around the plugins: ADD network lab',
    '60-89 runtime: the runtime: RunPodSandbox',
    '89-90 agent: the agent: createSandbox',
    '90-91 agent: until the pod worker’s round begins',
    '91-93 agent: the agent: syncPod',
    '93-94 agent: the agent: startContainer web',
    '94-110 runtime: the runtime: CreateContainer web',
    '110-111 agent: the agent: startContainer web',
    '111-139 runtime: the runtime: StartContainer web',
    '139-140 agent: the agent: startContainer web',
    '140-141 agent: until the pod worker’s round begins',
    '141-145 agent: the agent: syncPod',
    '145-147 waiting: waiting before the status is written (a more important one may take it along)',
    '147-153 API server: waiting for the API server: PATCH pods/status',
  ]);
});

test('the pieces leave no hole, and are as long as the whole', () => {
  const segments = pathOf(podStart());
  for (const [index, { end }] of segments.slice(0, -1).entries()) expect(segments[index + 1]?.start).toBe(end);
  expect(segments[0]?.start).toBe(0);
  expect(segments.at(-1)?.end).toBe(153);
});

test('of two things that go on at once, the one that ends last counts', () => {
  const spans = [
    ...podStart(),
    span(50, 'volume', 'MountVolume.SetUp', 15, 18, { parent: 3, attributes: { volume: 'fast' } }),
    span(51, 'volume', 'MountVolume.SetUp', 15, 19, { parent: 3, attributes: { volume: 'slow' } }),
  ];
  const texts = pathOf(spans).map(({ text }) => text);
  expect(texts).toContain('MountVolume.SetUp slow');
  expect(texts).not.toContain('MountVolume.SetUp fast');
});

test.each([
  [
    'a probe',
    span(60, 'probe', 'readiness', 195, 200, { attributes: { container: 'web' } }),
    'waiting for the next run of the readiness web probe',
  ],
  ['a timer', undefined, 'waiting for a timer: a back-off, a deadline or the resync'],
])('what delays Ready is named: %s', (_, cause, expected) => {
  const spans = [
    ...podStart().slice(0, 11),
    span(12, 'worker', 'syncPod', 151, 155, { links: [9] }),
    ...(cause === undefined ? [] : [cause]),
    span(13, 'worker', 'syncPod', 201, 203, {
      links: [cause?.id ?? 12],
      cause: cause === undefined ? 'timer' : 'readiness probe succeeded',
      attributes: { ready: true },
    }),
    span(14, 'api', 'PATCH pods/status', 203, 210, { links: [13] }),
  ];
  expect(pathOf(spans).map(({ text }) => text)).toContain(expected);
});

test('calls that a tap recorded, which know nothing of causes, are in the order of time', () => {
  const spans = [
    span(1, 'cri', 'RunPodSandbox', 0, 50),
    span(2, 'cri', 'CreateContainer', 60, 70),
    span(3, 'cri', 'StartContainer', 71, 90),
  ];
  expect(lines(spans)).toEqual([
    '0-50 runtime: the runtime: RunPodSandbox',
    '50-60 agent: the kubelet, between RunPodSandbox and CreateContainer',
    '60-70 runtime: the runtime: CreateContainer',
    '70-71 agent: the kubelet, between CreateContainer and StartContainer',
    '71-90 runtime: the runtime: StartContainer',
  ]);
});

test('causes that form a circle end the path instead of going round', () => {
  const spans = [
    span(1, 'worker', 'syncPod', 0, 10, { links: [2] }),
    span(2, 'worker', 'syncPod', 5, 20, { links: [1], attributes: { ready: true } }),
  ];
  expect(pathOf(spans).at(-1)?.end).toBe(20);
});
