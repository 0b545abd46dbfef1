import { expect, test } from 'vitest';
import { type BackoffEntry, backoffRemaining, nextBackoff } from '../../../lib/backoff.ts';

const crashLoop = { initialMs: 10_000, maxMs: 300_000, factor: 2, resetMs: 600_000 };

test('each failure doubles the delay up to the largest', () => {
  const delays: number[] = [];
  let entry: BackoffEntry<number> | undefined;
  let now = 0;
  for (let failure = 0; failure < 8; failure++) {
    entry = nextBackoff(crashLoop, entry, now);
    delays.push(entry.delayMs);
    now += entry.delayMs;
  }
  expect(delays).toEqual([10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]);
});

test('a failure after the reset time starts from the first delay again', () => {
  const entry = { delayMs: 300_000, since: 0 };
  expect(nextBackoff(crashLoop, entry, 600_001)).toEqual({ delayMs: 10_000, since: 600_001 });
  expect(nextBackoff(crashLoop, entry, 600_000)).toEqual({ delayMs: 300_000, since: 600_000 });
});

test.each([
  ['nothing without an entry', undefined, 0, 0],
  ['the whole delay at the moment of failure', { delayMs: 10_000, since: 0 }, 5_000, 10_000],
  ['the rest later on', { delayMs: 10_000, since: 0 }, 0, 5_000],
  ['nothing when it is over', { delayMs: 3_000, since: 0 }, 0, 0],
] as const)('what remains is %s', (_sentence, entry, lastAttempt, remaining) =>
  expect(backoffRemaining(entry, lastAttempt, 5_000)).toBe(remaining),
);

test('a clock that jumps back never makes the wait longer than the delay', () =>
  expect(backoffRemaining({ delayMs: 10_000, since: 0 }, 1_000_000, 5_000)).toBe(10_000));
