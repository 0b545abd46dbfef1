// What each of several switches does to a measured value, when all are changed together: every sample is a pair of runs, one
// with a random half of the switches on and one with the other half, so that each pair says something about every switch.
// Pure.

import { Dice } from '../sim/world/dice.ts';
import { percentile, type Range } from './stats.ts';

const RESAMPLES = 1000;

/** Which switches are on (true) in the first run of a pair; in the second the others are. */
export type Half = readonly boolean[];

/** The same halves for the same seed. */
export function randomHalves(switches: number, pairs: number, seed: number): readonly Half[] {
  const dice = new Dice(seed);
  return Array.from({ length: pairs }, () => Array.from({ length: switches }, () => dice.below(2) === 1));
}

export interface PairSample {
  readonly on: Half;
  /** Measured with `on`, and with the complement. */
  readonly first: number;
  readonly second: number;
}

export interface Saving {
  /** Off less on, in the unit of the samples. */
  readonly saving: number;
  /** 95 of 100 runs like this one give a saving in this range. */
  readonly range: Range;
}

/**
 * One saving for each switch: the mean over all pairs of what was measured without it less what was measured with it. The
 * other switches are as often on as off beside it, so on average they take no part. Throws RangeError without pairs.
 */
export function savings(samples: readonly PairSample[], switches: number): readonly Saving[] {
  if (samples.length === 0) throw new RangeError('savings of no pairs');
  return Array.from({ length: switches }, (_, index) => {
    const differences = samples.map(({ on, first, second }) => (on[index] === true ? second - first : first - second));
    return { saving: mean(differences), range: meanRange(differences) };
  });
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Bootstrap, as ratioRange. */
function meanRange(values: readonly number[]): Range {
  const dice = new Dice(1);
  const means = Array.from({ length: RESAMPLES }, () =>
    mean(values.map(() => values[dice.below(values.length)] ?? NaN)),
  );
  return { low: percentile(means, 0.025), high: percentile(means, 0.975) };
}
