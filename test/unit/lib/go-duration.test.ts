import { describe, expect, test } from 'vitest';
import { formatGoDuration, goDuration, parseGoDuration } from '../../../lib/go-duration.ts';

describe('parseGoDuration', () => {
  test.each([
    ['0', 0],
    ['0s', 0],
    ['10s', 10_000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
    ['-1.5h', -5_400_000],
    ['.5s', 500],
    ['100ms', 100],
    ['250us', 0.25],
    ['-2m', -120_000],
    ['+1s', 1000],
  ])('reads %s as %d ms', (text, ms) => {
    expect(parseGoDuration(text)).toBeCloseTo(ms, 6);
  });

  test.each(['', '5', '1 m', 's', '1d', '1m 2s', '--1s', 'abc', '1..5s'])('refuses "%s" as Go does', (text) => {
    expect(parseGoDuration(text)).toBeUndefined();
  });
});

test.each([
  [0, '0s', '0s'],
  [0.25, '250µs', '0s'],
  [850, '850ms', '850ms'],
  [1200.4, '1.2004s', '1.2s'],
  [80_000, '1m20s', '1m20s'],
  [300_000, '5m0s', '5m0s'],
  [-5_400_000, '-1h30m0s', '-1h30m0s'],
])('%d ms is %s, and %s to the millisecond', (ms, exact, short) => {
  expect([formatGoDuration(ms), goDuration(ms)]).toEqual([exact, short]);
});
