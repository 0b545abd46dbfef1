// A bound that is a number or a part in per cent, as maxSurge and maxUnavailable are. Pure.

/** A number, or a part of `total` in per cent; what is neither counts as 0. */
export function scaledValue(
  value: number | string | undefined,
  total: number,
  round: (value: number) => number,
): number {
  if (typeof value === 'number') return value;
  const percent = /^(\d+)%$/.exec(value ?? '0%');
  return percent === null ? 0 : round((Number(percent[1]) * total) / 100);
}
