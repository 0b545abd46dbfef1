// The simulated logind: who holds a shutdown back, and for how long.

import { expect, test } from 'vitest';
import { VirtualClock } from '../../../../labs/sim/clock.ts';
import { SimLogind } from '../../../../labs/sim/logind.ts';

function start() {
  const clock = new VirtualClock();
  const off: number[] = [];
  const heard: boolean[] = [];
  const logind = new SimLogind({ clock, goesOff: () => void off.push(clock.monotonic()) });
  const stop = new AbortController();
  return {
    clock,
    logind,
    off,
    heard,
    stop,
    listen: () => logind.watch((begins) => void heard.push(begins), stop.signal),
  };
}

test('without a lock the machine goes off at once', async () => {
  const { logind, off, heard, listen } = start();
  await listen();
  logind.shutDown();
  expect([off, heard]).toEqual([[0], [true]]);
});

test('the last lock that is released ends the wait', async () => {
  const { clock, logind, off } = start();
  const [one, two] = [await logind.inhibit(), await logind.inhibit()];
  logind.shutDown();
  await clock.advance(1_000);
  one.release();
  await clock.advance(1_000);
  expect(off).toEqual([]);
  two.release();
  expect(off).toEqual([2_000]);
  await clock.advance(60_000);
  expect(off).toHaveLength(1);
});

test('a lock delays no longer than was configured, nor than the machine grants', async () => {
  const { clock, logind, off } = start();
  await logind.inhibit();
  expect(await logind.inhibitDelayMs()).toBe(5_000);
  await logind.allowDelay(30_000);
  logind.shutDown();
  await clock.advance(60_000);
  expect(off).toEqual([30_000]);
  logind.shutDown(2_000);
  await clock.advance(60_000);
  expect(off).toEqual([30_000, 62_000]);
});

test('a process that ends holds nothing back, and one that has stopped listening hears nothing', async () => {
  const { logind, off, heard, listen, stop } = start();
  const { ended } = await listen();
  await logind.inhibit();
  stop.abort();
  await ended;
  logind.shutDown();
  expect([off, heard]).toEqual([[], []]);
  logind.forgetClients();
  expect([off, logind.locks]).toEqual([[0], 0]);
});
