import { expect, test } from 'vitest';
import { type EpochMs, elapsedMs, epochMs, monotonicMs, plusMs, systemClock } from '../../../lib/clock.ts';

test('a cancelled timer never fires', async () => {
  let fired = false;
  const timer = systemClock.after(1, () => {
    fired = true;
  });
  timer.cancel();
  await systemClock.sleep(10);
  expect(fired).toBe(false);
});

test('sleep rejects with the reason when its signal aborts, before or during the wait', async () => {
  const reason = new Error('stopped');
  await expect(systemClock.sleep(60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
  const controller = new AbortController();
  const sleeping = systemClock.sleep(60_000, controller.signal);
  controller.abort(reason);
  await expect(sleeping).rejects.toBe(reason);
});

test('a delay longer than setTimeout can hold does not fire at once', async () => {
  let fired = false;
  const timer = systemClock.after(2 ** 31 + 1000, () => {
    fired = true;
  });
  await systemClock.sleep(20);
  timer.cancel();
  expect(fired).toBe(false);
});

test('moments of the two clocks are kept apart by their types', () => {
  const [wall, steady] = [epochMs(1_000), monotonicMs(400)];
  expect(plusMs(wall, 500)).toBe(1_500);
  expect(plusMs(steady, -100)).toBe(300);
  expect(elapsedMs(wall, plusMs(wall, 7))).toBe(7);
  expect(elapsedMs(plusMs(steady, 7), steady)).toBe(-7);
  // @ts-expect-error: one moment of each clock.
  elapsedMs(wall, steady);
  // @ts-expect-error: a number of milliseconds is no moment.
  elapsedMs(wall, 5);
  // @ts-expect-error: a moment of one clock is none of the other.
  const mixed: EpochMs = steady;
  expect(mixed).toBe(400);
});
