import { describe, expect, it, test } from 'vitest';
import { SyncLoop, syncLoopLimits, syncLoopProblem } from '../../../../agent/pods/sync-loop.ts';
import { type MonotonicMs, monotonicMs, plusMs } from '../../../../lib/clock.ts';
import { settle, VirtualClock } from '../../../support/virtual-clock.ts';

const MINUTE = 60_000;
const LIMITS = { roundMs: 5 * MINUTE, stepMs: 8 * MINUTE };

test.for([
  // syncFrequency, runtimeRequestTimeout: round, step
  [1 * MINUTE, 2 * MINUTE, 5 * MINUTE, 8 * MINUTE],
  [10_000, 10_000, 5 * MINUTE, 5 * MINUTE],
  [10 * MINUTE, 2 * MINUTE, 20 * MINUTE, 20 * MINUTE],
  [1 * MINUTE, 15 * MINUTE, 5 * MINUTE, 60 * MINUTE],
] as const)('syncFrequency %i and a request timeout of %i ms allow %i for a round and %i for a step', (row) => {
  const [resync, request, roundMs, stepMs] = row;
  expect(syncLoopLimits(resync, request)).toEqual({ roundMs, stepMs });
});

describe('the loop', () => {
  const now = monotonicMs(60 * MINUTE);
  const at = (minutes: number): MonotonicMs => plusMs(now, -minutes * MINUTE);
  test.for([
    ['that has not begun moves', undefined, [], undefined],
    ['whose last round was just now moves', at(1), [], undefined],
    ['may take its time', at(5), [['syncPod a/b', at(8)]], undefined],
    ['without a round is stuck', plusMs(at(5), -1), [], 'no round over all pods for 5m0.001s'],
    ['with a step that does not end is stuck', at(0), [['syncPod a/b', at(9)]], 'syncPod a/b for 9m0s'],
    [
      'names the oldest step',
      at(0),
      [
        ['syncPod a/b', at(9)],
        ['syncPod a/c', at(20)],
        ['syncPod a/d', at(1)],
      ],
      'syncPod a/c for 20m0s',
    ],
  ] as const)('%s', ([_what, round, steps, stuck]) => {
    const problem = stuck === undefined ? undefined : `sync Loop took longer than expected: ${stuck}`;
    expect(syncLoopProblem({ round, steps }, LIMITS, now)).toBe(problem);
  });
});

it('watches a step from its beginning to its end, however it ends', async () => {
  const clock = new VirtualClock();
  const loop = new SyncLoop(clock, LIMITS);
  const { promise, reject } = Promise.withResolvers<void>();
  const step = loop.step('syncPod demo/web', () => promise);
  const failed = expect(step).rejects.toThrow('at last');
  await clock.advance(8 * MINUTE);
  expect(loop.problem()).toBeUndefined();
  await clock.advance(1000);
  expect(loop.problem()).toBe('sync Loop took longer than expected: syncPod demo/web for 8m1s');
  reject(new Error('at last'));
  await failed;
  await settle();
  expect(loop.problem()).toBeUndefined();
});
