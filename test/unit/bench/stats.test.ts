import { expect, test } from 'vitest';
import { Dice } from '../../../labs/sim/dice.ts';
import { medianRange, pairedRatio, percentile, summarize } from '../../bench/stats.ts';

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

test('the range of a ratio holds the ratio, narrows with the pairs, and is the same for the same samples', () => {
  const noise = (index: number): number => 200 + ((index * 37) % 101);
  const samples = (count: number, factor: number) =>
    Array.from({ length: count }, (_, index) => noise(index * 3 + count) * factor);
  const [few, many] = [10, 200].map((count) => pairedRatio(samples(count, 1.2).reverse(), samples(count, 1)).range);
  for (const { low, high } of [few, many].filter((range) => range !== undefined)) {
    expect(low).toBeLessThanOrEqual(1.2);
    expect(high).toBeGreaterThanOrEqual(1.2);
  }
  const width = (range: typeof few): number => (range?.high ?? 0) - (range?.low ?? 0);
  expect(width(many)).toBeLessThan(width(few) / 2);
  expect(pairedRatio(samples(10, 1.2).reverse(), samples(10, 1)).range).toEqual(few);
});

test('in some 95 of 100 runs the range holds the true ratio, also where a quarter of the times is twice as long', () => {
  const dice = new Dice(7);
  const time = (): number => (dice.below(4) === 0 ? 400 : 200) + dice.below(60);
  const held = Array.from({ length: 1000 }, () => {
    const floors = Array.from({ length: 40 }, time);
    const values = Array.from({ length: 40 }, () => time() * 1.1);
    const { low, high } = pairedRatio(values, floors).range;
    return low <= 1.1 && high >= 1.1;
  }).filter(Boolean).length;
  expect(held).toBeGreaterThan(930);
  expect(held).toBeLessThan(975);
});

test('pairs that belong together by their order make a ratio certain', () => {
  const floors = [100, 180, 120, 300, 150, 200, 90];
  const { value, range } = pairedRatio(
    floors.map((ms) => ms * 1.1),
    floors,
  );
  expect([value, range.low, range.high].map((ratio) => ratio.toFixed(6))).toEqual(['1.100000', '1.100000', '1.100000']);
  expect(() => pairedRatio([1, 2], [1])).toThrow(RangeError);
});

test.each([
  [1, 1.5, 1.5],
  [5, 1.1, 1.5],
])('of %d pairs the range is that of all', (count, low, high) => {
  const values = Array.from({ length: count }, (_, index) => 150 - index * 10);
  const { range } = pairedRatio(
    values,
    Array.from({ length: count }, () => 100),
  );
  expect([range.low.toFixed(6), range.high.toFixed(6)]).toEqual([low.toFixed(6), high.toFixed(6)]);
});

test('the range of a median holds it, is the same for the same samples, and is a point for equal ones', () => {
  const samples = Array.from({ length: 30 }, (_, index) => 100 + ((index * 37) % 30));
  const range = medianRange(samples);
  expect(range.low).toBeLessThanOrEqual(percentile(samples, 0.5));
  expect(range.high).toBeGreaterThanOrEqual(percentile(samples, 0.5));
  expect(range.low).toBeLessThan(range.high);
  expect(medianRange(samples)).toEqual(range);
  expect(medianRange([4, 4, 4])).toEqual({ low: 4, high: 4 });
  expect(() => medianRange([])).toThrow(RangeError);
});
