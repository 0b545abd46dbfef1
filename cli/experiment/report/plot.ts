// Which plot shows a measure: its series, axes and words. Pure; plot-svg.ts draws it.

import type { MeasureSpec } from '../model.ts';
import { type Axis, axisFor, niceStep } from './axis.ts';
import { linesOf, type NumberLine, numberText, type Point, spanText, valueText } from './values.ts';
import { parameterText, type Variation, variedParameters } from './variations.ts';

export interface PlotSeries {
  /** '' for the only one. */
  readonly label: string;
  readonly points: readonly Point[];
  /** Smallest and largest of several repeats, point by point, where a point is a mean. */
  readonly ranges?: readonly (readonly [low: number, high: number])[];
}

export interface Plot {
  readonly title: string;
  readonly kind: 'line' | 'steps' | 'bars';
  /** x is ms since the node was ready. */
  readonly timed: boolean;
  readonly x: Axis;
  readonly y: Axis;
  /** What stands below the groups of bars, by x; empty for an axis of numbers. */
  readonly groups: readonly string[];
  readonly series: readonly PlotSeries[];
  /** The same in words, for who does not see it. */
  readonly alt: string;
}

/** A source of runs: one result, or one of the two that are compared. */
export interface PlotSource {
  /** '' for the only one. */
  readonly name: string;
  readonly variations: readonly Variation[];
}

const STEPS = 8;
/** Of a table of numbers over time. */
const ROWS = 60;
/** In words, of each series. */
const ALT_VALUES = 8;

const join = (parts: readonly string[]): string => parts.filter((part) => part !== '').join(', ');

const numericMeasure = (measures: Readonly<Record<string, unknown>>, name: string): number[] => {
  const value = new Map(Object.entries(measures)).get(name);
  return typeof value === 'number' && Number.isFinite(value) ? [value] : [];
};

/** Undefined: nothing of the measure can be drawn, or it is not to be. */
export function plotOf(measure: MeasureSpec, sources: readonly PlotSource[]): Plot | undefined {
  if (measure.plot === 'none') return undefined;
  return listPlot(measure, sources) ?? scalarPlot(measure, sources);
}

export const measureTitle = ({ name, title }: MeasureSpec): string => title ?? name;

function listPlot(measure: MeasureSpec, sources: readonly PlotSource[]): Plot | undefined {
  const all = sources.flatMap(({ name, variations }) =>
    variations.flatMap(({ label, runs }) =>
      runs.flatMap((run): NumberLine[] => {
        const lines = linesOf(new Map(Object.entries(run.measures)).get(measure.name));
        const repeat = runs.length > 1 ? `repeat ${run.repeat}` : '';
        return lines.map((line) => ({ ...line, label: join([name, label, repeat, line.label]) }));
      }),
    ),
  );
  const [first] = all;
  if (first === undefined) return undefined;
  const series = all.filter(({ by }) => by === first.by);
  const timed = first.by === 'time';
  const kind = measure.plot ?? (timed ? 'line' : 'bars');
  if (kind === 'bars' && timed) return listPlotOf(measure, 'steps', series);
  return kind === 'none' ? undefined : listPlotOf(measure, kind, series);
}

function listPlotOf(measure: MeasureSpec, kind: Plot['kind'], series: readonly NumberLine[]): Plot {
  const xs = series.flatMap(({ points }) => points.map(([x]) => x));
  const timed = series[0]?.by === 'time';
  const x = timed
    ? axisFor({ title: 'time since the node was ready', unit: 'ms', values: xs, steps: STEPS, fromZero: false })
    : axisFor({ title: 'number', unit: 'count', values: xs, steps: STEPS, fromZero: false });
  const most = xs.reduce((a, b) => Math.max(a, b), 0);
  const groups = kind === 'bars' ? Array.from({ length: most }, (_, index) => String(index + 1)) : [];
  return finish(measure, {
    kind,
    timed,
    x,
    groups,
    series: series.map(({ label, points }) => ({ label, points })),
  });
}

/** One value a run: means over the repeats, by variation or against the one parameter that is a number. */
function scalarPlot(measure: MeasureSpec, sources: readonly PlotSource[]): Plot | undefined {
  const rows = sources.map(({ name, variations }) => ({
    name,
    values: variations.flatMap((variation) => {
      const values = variation.runs.flatMap((run) => numericMeasure(run.measures, measure.name));
      return values.length === 0 ? [] : [{ variation, values }];
    }),
  }));
  const variations = rows.flatMap(({ values }) => values.map(({ variation }) => variation));
  const keys = [...new Set(variations.map(({ key }) => key))];
  if (keys.length === 0) return undefined;
  if (measure.plot === undefined && keys.length === 1 && sources.length === 1) return undefined;
  const varied = variedParameters(variations.flatMap(({ runs }) => runs));
  const [parameter] = varied;
  const numbers = keys.map((key) => {
    const found = variations.find((variation) => variation.key === key);
    const value = new Map(Object.entries(found?.parameters ?? {})).get(parameter ?? '');
    return typeof value === 'number' ? value : Number.NaN;
  });
  const against =
    measure.plot !== undefined &&
    measure.plot !== 'bars' &&
    varied.length === 1 &&
    keys.length > 1 &&
    !numbers.some(Number.isNaN);
  const xOf = (key: string): number => (against ? (numbers[keys.indexOf(key)] ?? 0) : keys.indexOf(key) + 1);
  const series = rows.map(({ name, values }) => {
    const sorted = values.toSorted((a, b) => xOf(a.variation.key) - xOf(b.variation.key));
    return {
      label: name,
      points: sorted.map(({ variation, values: of }): Point => [xOf(variation.key), mean(of)]),
      ranges: sorted.map(({ values: of }): readonly [number, number] => [Math.min(...of), Math.max(...of)]),
    };
  });
  const xs = keys.map(xOf);
  const x = axisFor({
    title: against ? (parameter ?? '') : varied.join(', '),
    unit: undefined,
    values: xs,
    steps: STEPS,
    fromZero: false,
    whole: numbers.every(Number.isInteger),
  });
  const labels = keys.map((key) => {
    const found = variations.find((variation) => variation.key === key);
    return found === undefined ? '' : parameterText(found.parameters, varied);
  });
  const kind = against ? (measure.plot === 'steps' ? 'steps' : 'line') : 'bars';
  return finish(measure, { kind, timed: false, x, groups: against ? [] : labels, series });
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

type Unfinished = Pick<Plot, 'kind' | 'timed' | 'x' | 'groups' | 'series'>;

function finish(measure: MeasureSpec, unfinished: Unfinished): Plot {
  const { series } = unfinished;
  const title = measureTitle(measure);
  const values = series.flatMap(({ points, ranges }) => [...points.map(([, y]) => y), ...(ranges?.flat() ?? [])]);
  const y = axisFor({ title, unit: measure.unit, values, steps: 5, fromZero: true });
  return { ...unfinished, title, y, alt: altText(measure, unfinished) };
}

function altText(measure: MeasureSpec, { kind, x, groups, series }: Unfinished): string {
  const what = { line: 'Line', steps: 'Step', bars: 'Bar' }[kind];
  const parts = series.map(({ label, points }) => {
    const shown = points.slice(0, ALT_VALUES).map(([at, y]) => {
      const group = groups[at - 1];
      const where = group !== undefined && group !== '' && Number.isNaN(Number(group)) ? `${group}: ` : '';
      return `${where}${valueText(y, measure.unit)}`;
    });
    const words = points.length > ALT_VALUES ? spanText(points, measure.unit) : shown.join(', ');
    return `${label === '' ? '' : `${label}: `}${words}`;
  });
  const over = x.title === '' ? '' : ` by ${x.title}`;
  return `${what} plot of ${measureTitle(measure)}${over}. ${parts.join('. ')}.`;
}

export interface PlotTable {
  readonly caption: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/**
 * What the plot shows as a table: x, then one column a series. Times of samples are never the same in two runs, and can be
 * thousands: then a row is a slice of time, with the last value in it.
 */
export function plotTable(plot: Plot, unit: MeasureSpec['unit']): PlotTable {
  const first = plot.timed ? 'time since the node was ready' : plot.x.title || 'value';
  const columns = [first, ...plot.series.map(({ label }) => (label === '' ? plot.title : label))];
  const slice = plot.timed ? sliceOf(plot.series) : undefined;
  const place = (x: number): number => (slice === undefined ? x : Math.floor(x / slice) * slice);
  const xs = [...new Set(plot.series.flatMap(({ points }) => points.map(([x]) => place(x))))].sort((a, b) => a - b);
  const byX = plot.series.map(({ points }) => new Map(points.map(([x, y]) => [place(x), y])));
  const rows = xs.map((x) => [
    plot.groups[x - 1] ?? (plot.timed ? valueText(x, 'ms') : numberText(x)),
    ...byX.map((points) => {
      const y = points.get(x);
      return y === undefined ? '' : valueText(y, unit);
    }),
  ]);
  const caption = slice === undefined ? plot.title : `${plot.title}: the last value in each ${valueText(slice, 'ms')}`;
  return { caption, columns, rows };
}

/** ms; undefined where each point can have its own row. */
function sliceOf(series: readonly PlotSeries[]): number | undefined {
  const xs = new Set(series.flatMap(({ points }) => points.map(([x]) => x)));
  const most = series.reduce((longest, { points }) => Math.max(longest, points.length), 0);
  if (xs.size <= Math.min(ROWS, most)) return undefined;
  const [low, high] = [...xs].reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [Infinity, -Infinity]);
  return high > low ? niceStep(high - low, Math.min(ROWS, most)) : undefined;
}
