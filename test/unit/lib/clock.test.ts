import { expect, test } from 'vitest';
import { systemClock } from '../../../lib/clock.ts';

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
