// What each of several switches does to a measured value, when all are changed together: every sample is a pair of runs, one
// with a random half of the switches on and one with the other half, so that each pair says something about every switch.
// Pure.

import { Dice } from '../../labs/sim/dice.ts';
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

/** Solves the symmetric system by elimination; undefined when it has no single solution. */
function solve(matrix: readonly (readonly number[])[], right: readonly number[]): readonly number[] | undefined {
  const rows = matrix.map((row, index) => [...row, right[index] ?? 0]);
  const size = rows.length;
  for (let column = 0; column < size; column++) {
    const at = (index: number): number => Math.abs(rows[index]?.[column] ?? 0);
    let best = column;
    for (let index = column + 1; index < size; index++) if (at(index) > at(best)) best = index;
    const pivot = rows[best];
    const other = rows[column];
    if (pivot === undefined || other === undefined || at(best) < 1e-9) return undefined;
    rows[best] = other;
    rows[column] = pivot;
    const head = pivot[column] ?? 1;
    for (const [index, row] of rows.entries()) {
      if (index === column) continue;
      const factor = (row[column] ?? 0) / head;
      for (let k = column; k <= size; k++) row[k] = (row[k] ?? 0) - factor * (pivot[k] ?? 0);
    }
  }
  return rows.map((row, index) => (row[size] ?? 0) / (row[index] ?? 1));
}

/** Least squares: the savings that explain the differences within the pairs best. */
function estimate(samples: readonly PairSample[], switches: number): readonly number[] | undefined {
  const sign = (sample: PairSample, index: number): number => (sample.on[index] === true ? 1 : -1);
  const indices = Array.from({ length: switches }, (_, index) => index);
  const sum = (of: (sample: PairSample) => number): number => samples.reduce((total, sample) => total + of(sample), 0);
  const matrix = indices.map((i) => indices.map((j) => sum((sample) => sign(sample, i) * sign(sample, j))));
  return solve(
    matrix,
    indices.map((i) => sum((sample) => sign(sample, i) * (sample.second - sample.first))),
  );
}

/** One saving for each switch. Throws RangeError when there are too few pairs to separate the switches. */
export function savings(samples: readonly PairSample[], switches: number): readonly Saving[] {
  const best = estimate(samples, switches);
  if (best === undefined) throw new RangeError(`${samples.length} pairs do not tell ${switches} switches apart`);
  const dice = new Dice(1);
  const drawn: (readonly number[])[] = [];
  for (let resample = 0; resample < RESAMPLES; resample++) {
    const picked = samples.flatMap(() => samples[dice.below(samples.length)] ?? []);
    const found = estimate(picked, switches);
    if (found !== undefined) drawn.push(found);
  }
  return best.map((saving, index) => {
    const values = drawn.map((found) => found[index] ?? NaN);
    return { saving, range: { low: percentile(values, 0.025), high: percentile(values, 0.975) } };
  });
}
