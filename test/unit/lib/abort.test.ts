import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { abortable, resolvesWithin, sleepUnlessAborted, whenAborted } from '../../../lib/abort.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

const never = new Promise<never>(() => undefined);

describe('abortable', () => {
  test('is the promise while the signal is quiet', async () => {
    const { signal } = new AbortController();
    await expect(abortable(Promise.resolve(7), signal)).resolves.toBe(7);
    await expect(abortable(Promise.reject(new Error('broken')), signal)).rejects.toThrow('broken');
  });

  test('rejects with the reason as soon as the signal aborts, or has aborted', async () => {
    const stop = new AbortController();
    const waiting = abortable(never, stop.signal);
    stop.abort(new Error('over'));
    await expect(waiting).rejects.toThrow('over');
    await expect(abortable(Promise.reject(new Error('unheard')), stop.signal)).rejects.toThrow('over');
  });
});

test('whenAborted resolves with the abort, and at once after it', async () => {
  const stop = new AbortController();
  let resolved = false;
  const waiting = whenAborted(stop.signal).then(() => {
    resolved = true;
  });
  await settle();
  expect(resolved).toBe(false);
  stop.abort();
  await waiting;
  await whenAborted(stop.signal);
});

describe('sleepUnlessAborted', () => {
  test('lasts as long as requested, and ends early without a failure', async () => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    let ended = 0;
    for (const ms of [10, 1000]) void sleepUnlessAborted(clock, ms, stop.signal).then(() => ended++);
    await clock.advance(10);
    expect(ended).toBe(1);
    stop.abort();
    await settle();
    expect(ended).toBe(2);
  });

  test('passes on a failure that is not the abort', async () => {
    const clock = { sleep: () => Promise.reject(new Error('no clock')) };
    await expect(sleepUnlessAborted(clock, 1, new AbortController().signal)).rejects.toThrow('no clock');
  });
});

describe('resolvesWithin', () => {
  test('true when the promise resolves in time, and no timer stays', async () => {
    const clock = new VirtualClock();
    await expect(resolvesWithin(clock, 10, Promise.resolve('x'))).resolves.toBe(true);
    await settle();
    expect(clock.timers).toBe(0);
  });

  test('false when the time is over or the signal aborts first', async () => {
    const clock = new VirtualClock();
    const late = resolvesWithin(clock, 10, never);
    await clock.advance(10);
    await expect(late).resolves.toBe(false);
    const stop = new AbortController();
    const stopped = resolvesWithin(clock, 10, never, stop.signal);
    stop.abort();
    await expect(stopped).resolves.toBe(false);
  });

  test('what has resolved is in time though the signal has aborted, what has not is late at once', async () => {
    const clock = new VirtualClock();
    await expect(resolvesWithin(clock, 10, Promise.resolve('x'), AbortSignal.abort())).resolves.toBe(true);
    await expect(resolvesWithin(clock, 10, never, AbortSignal.abort())).resolves.toBe(false);
    expect(clock.timers).toBe(0);
  });

  test('a signal that outlives thousands of calls keeps no listener of them', async () => {
    const { signal } = new AbortController();
    const clock = new VirtualClock();
    await resolvesWithin(clock, 10, Promise.resolve('x'), signal);
    await expect(resolvesWithin(clock, 10, Promise.reject(new Error('broken')), signal)).rejects.toThrow('broken');
    const late = resolvesWithin(clock, 10, never, signal);
    await clock.advance(10);
    await late;
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('rejects as the promise does', async () => {
    await expect(resolvesWithin(new VirtualClock(), 10, Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  });
});
