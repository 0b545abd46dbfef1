import { expect, it } from 'vitest';
import { steadily } from '../../bench/apiserver/deliveries.ts';

it.each([
  ['often', 100, 20],
  ['once in the time', 4, 1],
  ['nearly once', 3, 1],
  ['once in an hour', 1 / 3600, 0],
])('calls that come %s end with the time, the nearest whole number of them', async (_name, perSecond, count) => {
  const calls: number[] = [];
  expect(await steadily(perSecond, 0.2, (index) => calls.push(index))).toBe(count);
  expect(calls).toEqual(Array.from({ length: count }, (_, index) => index));
});
