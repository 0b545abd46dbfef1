// Axes of a plot: the unit that suits the numbers, and ticks at round ones. Pure.

import { numberText, type Unit } from './values.ts';

export interface Axis {
  /** What it shows, with its unit: "restart delay (s)". */
  readonly title: string;
  readonly min: number;
  readonly max: number;
  readonly ticks: readonly { readonly value: number; readonly text: string }[];
}

interface Scale {
  readonly factor: number;
  readonly name: string;
}

/** In which unit numbers up to `max` are shown. `factor`: how many of the measure's unit are one of it. */
export function displayScale(unit: Unit, max: number): Scale {
  if (unit === 'ms') return timeScale(max, 1);
  if (unit === 's') return timeScale(max * 1000, 1 / 1000);
  if (unit === 'bytes') {
    const names = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
    const step = Math.min(names.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, max)) / 10)));
    return { factor: 1024 ** step, name: names[step] ?? 'bytes' };
  }
  if (unit === 'cores' && max < 1) return { factor: 1 / 1000, name: 'millicores' };
  return { factor: 1, name: unit === 'cores' ? 'cores' : '' };
}

/** `one`: a millisecond in the measure's unit. */
function timeScale(maxMs: number, one: number): Scale {
  if (maxMs < 2_000) return { factor: one, name: 'ms' };
  if (maxMs < 600_000) return { factor: 1000 * one, name: 's' };
  if (maxMs < 3 * 3_600_000) return { factor: 60_000 * one, name: 'min' };
  return { factor: 3_600_000 * one, name: 'h' };
}

/** 1, 2 or 5 times a power of ten: the smallest that needs at most `count` steps for `span`. */
export function niceStep(span: number, count: number): number {
  if (!(span > 0)) return 1;
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const times = [1, 2, 5, 10].find((each) => each * power >= rough * (1 - 1e-9)) ?? 10;
  return times * power;
}

export interface AxisOptions {
  readonly title: string;
  readonly unit: Unit;
  readonly values: readonly number[];
  /** At most so many steps between ticks. */
  readonly steps: number;
  /** The axis begins at zero: lengths of bars and heights are compared from there. */
  readonly fromZero: boolean;
  /** Ticks only at whole numbers: an index, a count. */
  readonly whole?: boolean;
}

/** Covers all values; the ends of a value axis are ticks, those of an index or time axis are the values' own. */
export function axisFor({ title, unit, values, steps, fromZero, whole = unit === 'count' }: AxisOptions): Axis {
  const low = values.reduce((least, value) => Math.min(least, value), fromZero ? 0 : Number.POSITIVE_INFINITY);
  const high = values.reduce((most, value) => Math.max(most, value), fromZero ? 0 : Number.NEGATIVE_INFINITY);
  const { factor, name } = displayScale(unit, Math.max(Math.abs(low), Math.abs(high)));
  const [from, to] = high > low ? [low / factor, high / factor] : [low / factor - (fromZero ? 0 : 1), low / factor + 1];
  const step = whole ? Math.max(1, niceStep(to - from, steps)) : niceStep(to - from, steps);
  const first = Math.floor(from / step + 1e-9);
  const last = Math.ceil(to / step - 1e-9);
  const all = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
  return {
    title: name === '' ? title : `${title} (${name})`,
    min: first * step * factor,
    max: last * step * factor,
    ticks: all.map((tick) => ({ value: tick * factor, text: numberText(Number(tick.toPrecision(12))) })),
  };
}
