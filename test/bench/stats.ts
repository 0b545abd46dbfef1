// The few numbers a benchmark prints. Pure.

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
