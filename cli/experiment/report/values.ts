// Measured values as a person reads them, and as numbers for a plot. Pure.

import type { MeasuredValue, MeasureSpec } from '../model.ts';

export type Unit = MeasureSpec['unit'];

/** A point of a plot: [x, y] in the measure's unit; x is an index from 1, or ms since the world was ready. */
export type Point = readonly [x: number, y: number];

/** Of a list, as many are written out. */
const LIST_ITEMS = 12;
/** Of a series over time. */
const TIMED_ITEMS = 6;
/** Digits that a measured number has; more would be noise. */
const DIGITS = 4;

/** At most four significant digits, but never fewer than the whole part has, and no zeros at the end. */
export function numberText(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value)) return String(value);
  const whole = Math.abs(value) >= 10 ** (DIGITS - 1);
  return String(whole ? Math.round(value) : Number(value.toPrecision(DIGITS)));
}

function durationText(ms: number): string {
  const size = Math.abs(ms);
  if (size < 1000) return `${numberText(ms)} ms`;
  if (size < 120_000) return `${numberText(ms / 1000)} s`;
  const seconds = Math.round(size / 1000);
  const parts = [
    [Math.floor(seconds / 3600), 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  const text = parts.flatMap(([count, letter]) => (count === 0 ? [] : [`${count}${letter}`])).join('');
  return ms < 0 ? `-${text}` : text;
}

function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, Math.abs(bytes))) / 10)));
  return `${numberText(bytes / 1024 ** step)} ${units[step]}`;
}

function scalarText(value: number, unit: Unit): string {
  switch (unit) {
    case 'ms':
      return durationText(value);
    case 's':
      return durationText(value * 1000);
    case 'bytes':
      return bytesText(value);
    case 'cores':
      return Math.abs(value) < 1 ? `${numberText(value * 1000)} millicores` : `${numberText(value)} cores`;
    case 'ratio':
    case 'count':
    case undefined:
      return numberText(value);
  }
}

/** `undefined`: the run has no such measure. */
export function valueText(value: MeasuredValue | undefined, unit?: Unit): string {
  if (value === undefined || value === null) return 'none';
  if (typeof value === 'number') return scalarText(value, unit);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return value;
  const points = timePoints(value);
  if (points !== undefined && points.length > TIMED_ITEMS) return spanText(points, unit);
  const texts =
    points === undefined
      ? value.map((each) => valueText(each, unit))
      : points.map(([at, y]) => `${scalarText(y, unit)} at ${durationText(at)}`);
  if (texts.length === 0) return 'empty';
  const shown = texts.slice(0, LIST_ITEMS).join(', ');
  return texts.length > LIST_ITEMS ? `${shown}, … (${texts.length} values)` : shown;
}

/** Many points in a few words. */
export function spanText(points: readonly Point[], unit: Unit): string {
  const [low, high] = points.reduce(
    ([least, most], [, y]) => [Math.min(least, y), Math.max(most, y)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
  const last = points.at(-1)?.[1] ?? 0;
  return `${points.length} values from ${scalarText(low, unit)} to ${scalarText(high, unit)}, at last ${scalarText(last, unit)}`;
}

/** A list of pairs [ms, number]; undefined for any other. An empty list is none. */
function timePoints(value: readonly MeasuredValue[]): readonly Point[] | undefined {
  const points = value.flatMap((each): Point[] => {
    if (!Array.isArray(each) || each.length !== 2) return [];
    const [x, y]: readonly unknown[] = each;
    return typeof x === 'number' && typeof y === 'number' ? [[x, y]] : [];
  });
  return points.length > 0 && points.length === value.length ? points : undefined;
}

export interface NumberSeries {
  /** What x is. */
  readonly by: 'index' | 'time';
  readonly points: readonly Point[];
}

/** What of a measured list can be drawn; undefined for what is no list, or has no numbers. */
export function seriesOf(value: MeasuredValue | undefined): NumberSeries | undefined {
  if (!Array.isArray(value)) return undefined;
  const list: readonly MeasuredValue[] = value;
  const timed = timePoints(list);
  if (timed !== undefined) return { by: 'time', points: timed };
  const points = list.flatMap((each, index): Point[] =>
    typeof each === 'number' && Number.isFinite(each) ? [[index + 1, each]] : [],
  );
  return points.length === 0 ? undefined : { by: 'index', points };
}
