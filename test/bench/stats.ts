// The few numbers a benchmark prints. Pure.

import { Dice } from '../sim/world/dice.ts';

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

/**
 * How far the ratio of the two medians can be trusted: in 95 of 100 runs like this one it lies in this range. Found by
 * drawing pairs from those that were measured, again and again (bootstrap); the same samples give the same range.
 */
export function ratioRange(values: readonly number[], floors: readonly number[]): Range {
  if (values.length !== floors.length) throw new RangeError('samples that were not taken in pairs');
  return bootstrap(values.length, (drawn) => {
    const p50 = (samples: readonly number[]): number =>
      percentile(
        drawn.map((index) => samples[index] ?? NaN),
        0.5,
      );
    return p50(values) / p50(floors);
  });
}

/** How far the median of samples can be trusted, as ratioRange. */
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
