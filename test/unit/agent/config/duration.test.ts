import { describe, expect, test } from 'vitest';
import { parseGoDuration } from '../../../../agent/config/duration.ts';

describe('parseGoDuration', () => {
  test.each([
    ['0', 0],
    ['0s', 0],
    ['10s', 10_000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
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
