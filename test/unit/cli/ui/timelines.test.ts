import { describe, expect, test } from 'vitest';
import { UiStore } from '../../../../cli/ui/store.ts';
import { concerns, Timelines } from '../../../../cli/ui/timelines.ts';
import { type MonotonicMs, monotonicMs, plusMs } from '../../../../lib/clock.ts';
import { podStart, span } from '../timeline/support.ts';

const DB = { namespace: 'demo', name: 'db', uid: 'u-2' };

/** A clock on which each build takes so long. */
function setup(buildMs = 0): { readonly store: UiStore; readonly timelines: Timelines } {
  const store = new UiStore();
  let now = monotonicMs(0);
  const monotonic = (): MonotonicMs => {
    now = plusMs(now, buildMs);
    return now;
  };
  const timelines = new Timelines(store, { monotonic });
  for (const each of podStart()) store.addSpan(each);
  store.addSpan(span(900, 'cri', 'RunPodSandbox', 0, 1, { pod: DB }));
  return { store, timelines };
}

test('a timeline is built once for all pages, and again after something new of its pod', () => {
  const { store, timelines } = setup();
  const web = timelines.of('demo/web');
  store.addSpan(span(901, 'cri', 'StopContainer', 2, 3, { pod: DB }));
  expect(timelines.of('demo/web')).toBe(web);
  store.addSpan(span(902, 'cri', 'StopContainer', 500, 510));
  const later = timelines.of('demo/web');
  expect(later).not.toBe(web);
  expect(later.bars).toHaveLength(web.bars.length + 1);
});

test('everything, and a pod by its name alone, follow every change of theirs', () => {
  const { store, timelines } = setup();
  const [all, db] = [timelines.of(undefined), timelines.of('db')];
  store.addSpan(span(903, 'cri', 'StopContainer', 2, 3, { pod: DB }));
  expect(timelines.of(undefined).bars.length).toBe(all.bars.length + 1);
  expect(timelines.of('db').bars.length).toBe(db.bars.length + 1);
});

test('a pod that nothing is known of is refused with the names that there are', () => {
  expect(() => setup().timelines.of('demo/nothing')).toThrow('its pods are demo/db, demo/web');
});

test.each([
  [0, ['demo/web'], 250],
  [0, [], 2_000],
  [100, ['demo/web'], 2_000],
  [100, ['demo/web', 'demo/db'], 4_000],
  [500, [], 10_000],
])('where a build takes %d ms, a page of %j waits %d ms', (buildMs, pods, pauseMs) => {
  const { timelines } = setup(buildMs);
  for (const pod of pods.length === 0 ? [undefined] : pods) timelines.of(pod);
  expect(timelines.pauseMs(pods)).toBe(pauseMs);
});

describe('what concerns a page', () => {
  test.each([
    ['demo/web', { pod: 'demo/web' }, true],
    ['web', { pod: 'demo/web' }, true],
    ['demo/web', { pod: 'demo/db' }, false],
    ['demo/web', 'node', false],
    ['demo/web', 'problems', true],
    ['', 'node', true],
  ] as const)('%s, and a change of %j: %s', (pod, change, expected) => {
    expect(concerns(pod, change)).toBe(expected);
  });
});
