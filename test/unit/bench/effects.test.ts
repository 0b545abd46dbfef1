import { describe, expect, test } from 'vitest';
import { Dice } from '../../../labs/sim/dice.ts';
import { type PairSample, randomHalves, savings } from '../../bench/effects.ts';

/** Pairs of a value of 100 that each switch lowers by its saving when it is on, with noise of up to ±`noise`. */
function measured(pairs: number, saved: readonly number[], noise: number): readonly PairSample[] {
  const dice = new Dice(7);
  const value = (on: readonly boolean[]): number =>
    100 -
    saved.reduce((sum, saving, index) => sum + (on[index] === true ? saving : 0), 0) +
    (dice.below(201) / 100 - 1) * noise;
  return randomHalves(saved.length, pairs, 1).map((on) => ({
    on,
    first: value(on),
    second: value(on.map((is) => !is)),
  }));
}

describe('what switches save', () => {
  test('is found for each of them though all change together', () => {
    const found = savings(measured(400, [10, 0, -5], 3), 3);
    for (const [index, saved] of [10, 0, -5].entries()) {
      expect(found[index]?.range.low).toBeLessThanOrEqual(saved);
      expect(found[index]?.range.high).toBeGreaterThanOrEqual(saved);
    }
    expect(found[0]?.range.low).toBeGreaterThan(0);
    expect(found[2]?.range.high).toBeLessThan(0);
  });

  test('of one switch is the mean difference, and certain without noise', () => {
    expect(savings(measured(10, [4], 0), 1)).toEqual([{ saving: 4, range: { low: 4, high: 4 } }]);
  });

  test('has an interval that narrows with the pairs', () => {
    const [few, many] = [20, 500].map((pairs) => savings(measured(pairs, [3, 8], 20), 2)[0]?.range);
    expect((many?.high ?? 0) - (many?.low ?? 0)).toBeLessThan((few?.high ?? 0) - (few?.low ?? 0));
  });

  test('of no pairs is an error', () => expect(() => savings([], 2)).toThrow(RangeError));

  test('halves are the same for the same seed, and others for another', () => {
    expect(randomHalves(6, 8, 1)).toEqual(randomHalves(6, 8, 1));
    expect(randomHalves(6, 8, 1)).not.toEqual(randomHalves(6, 8, 2));
  });
});
