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
  const lines = timeLines(value);
  if (lines !== undefined) return lines.map((line) => lineText(line, unit)).join('; ');
  const texts = value.map((each) => valueText(each, unit));
  if (texts.length === 0) return 'empty';
  const shown = texts.slice(0, LIST_ITEMS).join(', ');
  return texts.length > LIST_ITEMS ? `${shown}, … (${texts.length} values)` : shown;
}

function lineText({ label, points }: NumberLine, unit: Unit): string {
  const text =
    points.length > TIMED_ITEMS
      ? spanText(points, unit)
      : points.map(([at, y]) => `${scalarText(y, unit)} at ${durationText(at)}`).join(', ');
  return label === '' ? text : `${label}: ${text}`;
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

export interface NumberLine {
  /** What x is. */
  readonly by: 'index' | 'time';
  /** What tells it from the other lines of the value: "pod=default/web"; '' for the only one. */
  readonly label: string;
  readonly points: readonly Point[];
}

/** Of a list of [ms, number] or [ms, number, label]: a line for each label. Undefined for any other list, and an empty one. */
function timeLines(value: readonly MeasuredValue[]): readonly NumberLine[] | undefined {
  const lines = new Map<string, Point[]>();
  for (const each of value) {
    if (!Array.isArray(each) || each.length < 2 || each.length > 3) return undefined;
    const [x, y, label = '']: readonly unknown[] = each;
    if (typeof x !== 'number' || typeof y !== 'number' || typeof label !== 'string') return undefined;
    const points = lines.get(label);
    if (points === undefined) lines.set(label, [[x, y]]);
    else points.push([x, y]);
  }
  return lines.size === 0 ? undefined : [...lines].map(([label, points]) => ({ by: 'time', label, points }));
}

/** What of a measured list can be drawn: none of what is no list, or has no numbers. */
export function linesOf(value: MeasuredValue | undefined): readonly NumberLine[] {
  if (!Array.isArray(value)) return [];
  const list: readonly MeasuredValue[] = value;
  const timed = timeLines(list);
  if (timed !== undefined) return timed;
  const points = list.flatMap((each, index): Point[] =>
    typeof each === 'number' && Number.isFinite(each) ? [[index + 1, each]] : [],
  );
  return points.length === 0 ? [] : [{ by: 'index', label: '', points }];
}
