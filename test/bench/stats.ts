// The few numbers a benchmark prints. Pure.

import { Dice } from '../../labs/sim/dice.ts';

const RESAMPLES = 2000;

/** The smallest sample that at least `fraction` of the samples do not exceed (nearest rank). */
export function percentile(samples: readonly number[], fraction: number): number {
  if (samples.length === 0) throw new RangeError('a percentile of no samples');
  const sorted = [...samples].sort((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(fraction * sorted.length) - 1)];
  if (value === undefined) throw new RangeError(`no percentile ${fraction}`);
  return value;
}

export interface Summary {
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
  readonly runs: number;
}

/** Unit in, unit out: nothing is converted. */
export function summarize(samples: readonly number[]): Summary {
  return {
    p50: percentile(samples, 0.5),
    p95: percentile(samples, 0.95),
    max: Math.max(...samples),
    runs: samples.length,
  };
}

export interface Range {
  readonly low: number;
  readonly high: number;
}

export interface Estimate {
  readonly value: number;
  readonly range: Range;
}

/** For a two-sided interval of 95 %. */
const NORMAL_975 = 1.96;

/**
 * How many times the floor the values are, of pairs that were measured one right after the other. The estimate of Hodges and
 * Lehmann on the logarithms of the pairs' ratios, with the interval that belongs to Wilcoxon's signed-rank test: both are
 * made for pairs, need no normal distribution, and use more of the samples than the ratio of two medians does, which is
 * decided by the two or three times in the middle. They assume that ratios scatter evenly to both sides, which taking turns
 * provides: what comes second in a pair comes first in the next. With fewer than six pairs no interval of 95 % exists, and
 * the range of all is given.
 */
export function pairedRatio(values: readonly number[], floors: readonly number[]): Estimate {
  if (values.length !== floors.length) throw new RangeError('samples that were not taken in pairs');
  const logs = values.map((value, index) => Math.log(value / (floors[index] ?? NaN)));
  const means = logs.flatMap((a, index) => logs.slice(index).map((b) => (a + b) / 2)).sort((a, b) => a - b);
  const count = logs.length;
  const spread = Math.sqrt((count * (count + 1) * (2 * count + 1)) / 24);
  const outside = Math.max(0, Math.floor(means.length / 2 - NORMAL_975 * spread));
  const at = (index: number): number => Math.exp(means[index] ?? NaN);
  const last = means.length - 1;
  return {
    value: Math.exp(((means[Math.floor(last / 2)] ?? NaN) + (means[Math.ceil(last / 2)] ?? NaN)) / 2),
    range: { low: at(outside), high: at(last - outside) },
  };
}

/**
 * How far the median of samples can be trusted: in 95 of 100 runs like this one it lies in this range. Found by drawing from
 * those that were measured, again and again (bootstrap); the same samples give the same range.
 */
export function medianRange(values: readonly number[]): Range {
  if (values.length === 0) throw new RangeError('the range of no samples');
  return bootstrap(values.length, (drawn) =>
    percentile(
      drawn.map((index) => values[index] ?? NaN),
      0.5,
    ),
  );
}

/** The middle 95 % of a figure of `count` samples that are drawn again and again, each drawing by its indices. */
function bootstrap(count: number, figure: (drawn: readonly number[]) => number): Range {
  const dice = new Dice(1);
  const indices = Array.from({ length: count });
  const figures = Array.from({ length: RESAMPLES }, () => figure(indices.map(() => dice.below(count))));
  return { low: percentile(figures, 0.025), high: percentile(figures, 0.975) };
}
