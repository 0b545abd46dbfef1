import { describe, expect, test } from 'vitest';
import { poll, retry } from '../../../lib/retry.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const policy = { initialMs: 10, maxMs: 40, factor: 2, resetMs: Number.POSITIVE_INFINITY };
const outcome = (promise: Promise<unknown>): Promise<string> =>
  promise.then(String, (error: unknown) => (error instanceof Error ? `failed: ${error.message}` : 'failed'));

describe('retry', () => {
  function failing(times: number) {
    const calls: number[] = [];
    return {
      calls,
      work: async (leftMs: number): Promise<string> => {
        calls.push(leftMs);
        if (calls.length <= times) throw new Error(`try ${calls.length}`);
        return 'done';
      },
    };
  }

  test('repeats with growing pauses, and tells each try what time is left', async () => {
    const clock = new VirtualClock();
    const { calls, work } = failing(4);
    const result = outcome(retry(work, { clock, policy, limitMs: 1000, mends: () => true }));
    await clock.advance(110);
    expect(calls).toEqual([1000, 990, 970, 930, 890]);
    await expect(result).resolves.toBe('done');
  });

  test('gives up with the last failure when the next pause would end past the limit', async () => {
    const clock = new VirtualClock();
    const { calls, work } = failing(99);
    const result = outcome(retry(work, { clock, policy, limitMs: 60, mends: () => true }));
    await clock.advance(1000);
    await expect(result).resolves.toBe('failed: try 3');
    expect(calls).toHaveLength(3);
  });

  test('does not repeat what another try cannot mend', async () => {
    const { calls, work } = failing(99);
    const result = outcome(retry(work, { clock: new VirtualClock(), policy, mends: () => false }));
    await expect(result).resolves.toBe('failed: try 1');
    expect(calls).toHaveLength(1);
  });

  test('an abort ends the pause, and a try that fails after it is the last', async () => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const { work } = failing(99);
    const paused = outcome(retry(work, { clock, policy, mends: () => true, signal: stop.signal }));
    await clock.advance(5);
    stop.abort(new Error('over'));
    await expect(paused).resolves.toBe('failed: over');
    const late = outcome(retry(failing(99).work, { clock, policy, mends: () => true, signal: stop.signal }));
    await expect(late).resolves.toBe('failed: try 1');
  });
});

describe('poll', () => {
  test('looks until it is so', async () => {
    const clock = new VirtualClock();
    const looks: number[] = [];
    const result = poll(() => looks.push(clock.monotonic()) === 4, { clock, firstMs: 1, everyMs: 3, limitMs: 100 });
    await clock.advance(10);
    await expect(result).resolves.toBe(true);
    expect(looks).toEqual([0, 1, 3, 6]);
  });

  test('looks a last time at the limit', async () => {
    const clock = new VirtualClock();
    const looks: number[] = [];
    const look = async (): Promise<boolean> => looks.push(clock.monotonic()) === 99;
    const result = poll(look, { clock, everyMs: 40, limitMs: 100 });
    await clock.advance(200);
    await expect(result).resolves.toBe(false);
    expect(looks).toEqual([0, 40, 80, 100]);
  });
});
