import { describe, expect, test } from 'vitest';
import { poll, repeat, retry, retryUntilAborted, steadyPauses } from '../../../lib/retry.ts';
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

  test('repeats with growing pauses, and passes each try the time that is left', async () => {
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

describe('retry, woken and limited', () => {
  test('goes on at once when what it waits for has come, and rests again after the next failure', async () => {
    const clock = new VirtualClock();
    const wakes = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const tries: number[] = [];
    const work = async (): Promise<string> => {
      if (tries.push(clock.monotonic()) < 3) throw new Error(`try ${tries.length}`);
      return 'done';
    };
    const wake = (): Promise<void> | undefined => wakes[tries.length - 1]?.promise;
    const result = outcome(retry(work, { clock, policy: steadyPauses(100), wake }));
    await clock.advance(30);
    wakes[0]?.resolve();
    await clock.advance(99);
    expect(tries).toEqual([0, 30]);
    await clock.advance(1);
    expect(tries).toEqual([0, 30, 130]);
    await expect(result).resolves.toBe('done');
    expect(clock.timers).toBe(0);
  });

  test('says each failure that is followed by another try, and how long it rests', async () => {
    const clock = new VirtualClock();
    const failures: string[] = [];
    const work = (): Promise<never> => Promise.reject(new Error(`at ${clock.monotonic()}`));
    const onFailure = (error: unknown, delayMs: number): number => failures.push(`${String(error)}: ${delayMs}`);
    const result = outcome(retry(work, { clock, policy, maxTries: 3, onFailure }));
    await clock.advance(100);
    await expect(result).resolves.toBe('failed: at 30');
    expect(failures).toEqual(['Error: at 0: 10', 'Error: at 10: 20']);
  });

  test('until aborted, comes to nothing without a failure, and does nothing where it was aborted before', async () => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const never = Promise.withResolvers<void>().promise;
    let tries = 0;
    const work = (): Promise<never> => Promise.reject(new Error(`try ${++tries}`));
    const options = { clock, policy, signal: stop.signal };
    const results = [retryUntilAborted(work, options), retryUntilAborted(work, { ...options, wake: () => never })];
    await clock.advance(5);
    stop.abort(new Error('over'));
    await expect(Promise.all(results)).resolves.toEqual([undefined, undefined]);
    await expect(retryUntilAborted(work, options)).resolves.toBeUndefined();
    expect(tries).toBe(2);
    expect(clock.timers).toBe(0);
  });
});

describe('repeat', () => {
  test('rests as long as it is to, or as its work wants, until the signal aborts', async () => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const rounds: number[] = [];
    const pauses = [undefined, 5, 0, undefined];
    const work = async (): Promise<number | undefined> => {
      rounds.push(clock.monotonic());
      return pauses[rounds.length - 1];
    };
    const ended = outcome(repeat(work, { clock, firstMs: 3, everyMs: 50, signal: stop.signal }));
    await clock.advance(60);
    expect(rounds).toEqual([3, 53, 58, 58]);
    stop.abort();
    await expect(ended).resolves.toBe('undefined');
    expect(clock.timers).toBe(0);
    await repeat(work, { clock, firstMs: 3, everyMs: 50, signal: stop.signal });
    expect(rounds).toHaveLength(4);
  });
});

describe('poll', () => {
  test('looks at once when it is woken, and an abort ends it', async () => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const woken = Promise.withResolvers<void>();
    let isSo = false;
    const result = poll(() => isSo, { clock, everyMs: 40, wake: woken.promise.then(() => (isSo = true)) });
    await clock.advance(10);
    woken.resolve();
    await expect(result).resolves.toBe(true);
    expect(clock.timers).toBe(0);
    const aborted = outcome(poll(() => false, { clock, everyMs: 40, signal: stop.signal }));
    await clock.advance(100);
    stop.abort(new Error('over'));
    await expect(aborted).resolves.toBe('failed: over');
  });

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
