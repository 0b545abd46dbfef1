import { expect, test } from 'vitest';
import { percentile, summarize } from '../../bench/stats.ts';

test('a percentile is a sample that was measured, never a mean', () => {
  expect(percentile([5, 1, 4, 2, 3], 0.5)).toBe(3);
  expect(percentile([1, 2, 3, 4], 0.5)).toBe(2);
  expect(percentile([7], 0.95)).toBe(7);
});

test('with twenty runs the 95th percentile is the nineteenth and the largest is the last', () => {
  const runs = Array.from({ length: 20 }, (_, index) => index + 1);
  expect(summarize(runs)).toEqual({ p50: 10, p95: 19, max: 20, runs: 20 });
});

test('no samples are an error, not a zero', () => expect(() => summarize([])).toThrow(RangeError));
