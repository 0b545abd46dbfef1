// Draws a plot as SVG: axes, grid, lines, steps or bars, and a legend. Colours follow the viewer's light or dark; series differ
// by dash and marker, too. Pure; every text is escaped.

import { escapeMarkup } from '../../../lib/html.ts';
import type { Axis } from './axis.ts';
import type { Plot, PlotSeries } from './plot.ts';
import type { Point } from './values.ts';

const WIDTH = 720;
const PLOT_HEIGHT = 260;
const LEFT = 76;
const RIGHT = 18;
const TOP = 34;
/** Tick texts and the axis title. */
const BELOW = 44;
const LEGEND_ROW = 18;
/** Before the text of a series, and after it. */
const LEGEND_SIGN = 34;
/** Of a character of 12 px, roughly. */
const CHARACTER = 6.6;
/** On a line: enough to know it by, and never so many that they hide it. */
const MARKERS = 60;
const MARKERS_OF_A_LONG_LINE = 12;

/** Each with a contrast of at least 3 to 1 on white and on #0d1117. */
const COLOURS = ['#2f7ed8', '#c2571a', '#2f8f4e', '#b8478f', '#7a6ff0', '#9a6a1f', '#0f8a8a', '#6b7683'] as const;
const DASHES = ['', '7 3', '2 3', '9 3 2 3'] as const;

/** Of every plot; the page has it once. */
export const PLOT_STYLE = `
.plot .bg{fill:#fff}.plot text{fill:#1c2128;font:12px system-ui,sans-serif}.plot .h{font-size:14px;font-weight:600}
.plot .m{fill:#57606a}.plot .grid{stroke:#d8dee4}.plot .axis{stroke:#57606a}.plot .range{stroke:#1c2128;stroke-width:1.5}
@media (prefers-color-scheme:dark){.plot .bg{fill:#0d1117}.plot text{fill:#e6edf3}.plot .m{fill:#9da7b3}
.plot .grid{stroke:#30363d}.plot .axis{stroke:#9da7b3}.plot .range{stroke:#e6edf3}}`.trim();

interface Frame {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly bottom: number;
}

const px = (value: number): string => String(Math.round(value * 10) / 10);

const colourOf = (index: number): string => COLOURS[index % COLOURS.length] ?? COLOURS[0];
const dashOf = (index: number): string => DASHES[Math.floor(index / COLOURS.length) % DASHES.length] ?? '';

function scale({ min, max }: Axis, from: number, to: number): (value: number) => number {
  const span = max - min || 1;
  return (value) => from + ((value - min) / span) * (to - from);
}

function yAxis(axis: Axis, { y }: Frame): string[] {
  return [
    ...axis.ticks.flatMap(({ value, text }) => [
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${px(y(value))}" y2="${px(y(value))}"/>`,
      `<text class="m" x="${LEFT - 8}" y="${px(y(value) + 4)}" text-anchor="end">${escapeMarkup(text)}</text>`,
    ]),
    `<text class="m" x="10" y="${TOP - 14}">${escapeMarkup(axis.title)}</text>`,
  ];
}

function xAxis(axis: Axis, { x, bottom }: Frame): string[] {
  return [
    `<line class="axis" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${bottom}" y2="${bottom}"/>`,
    ...axis.ticks.flatMap(({ value, text }) => [
      `<line class="axis" x1="${px(x(value))}" x2="${px(x(value))}" y1="${bottom}" y2="${bottom + 5}"/>`,
      `<text class="m" x="${px(x(value))}" y="${bottom + 18}" text-anchor="middle">${escapeMarkup(text)}</text>`,
    ]),
    xTitle(axis, bottom),
  ];
}

const xTitle = (axis: Axis, bottom: number): string =>
  `<text class="m" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${bottom + 36}" text-anchor="middle">${escapeMarkup(axis.title)}</text>`;

/** One marker for each series, so that it is known without its colour. */
function marker(index: number, x: number, y: number, colour: string): string {
  const at = `${px(x)} ${px(y)}`;
  switch (index % 4) {
    case 0:
      return `<circle cx="${px(x)}" cy="${px(y)}" r="3.5" fill="${colour}"/>`;
    case 1:
      return `<rect x="${px(x - 3.5)}" y="${px(y - 3.5)}" width="7" height="7" fill="${colour}"/>`;
    case 2:
      return `<path d="M${at}m0 -4.5l4.5 8h-9z" fill="${colour}"/>`;
    default:
      return `<path d="M${at}m0 -5l5 5l-5 5l-5 -5z" fill="${colour}"/>`;
  }
}

function range(series: PlotSeries, point: number, x: number, { y }: Frame): string[] {
  const [low, high] = series.ranges?.[point] ?? [0, 0];
  if (high <= low) return [];
  const [top, bottom] = [px(y(high)), px(y(low))];
  return [`<path class="range" fill="none" d="M${px(x - 4)} ${top}h8m-4 0V${bottom}m-4 0h8"/>`];
}

/** Of points in the same column of pixels, the first, the lowest, the highest and the last: the picture is the same. */
function drawnPoints(points: readonly Point[], { x }: Frame): readonly Point[] {
  if (points.length <= 4 * WIDTH) return points;
  const columns = new Map<number, Point[]>();
  for (const point of points) {
    const column = Math.round(x(point[0]));
    const same = columns.get(column);
    if (same === undefined) columns.set(column, [point]);
    else same.push(point);
  }
  return [...columns.values()].flatMap((same) => {
    const byValue = same.toSorted(([, a], [, b]) => a - b);
    const kept = new Set([same[0], byValue[0], byValue.at(-1), same.at(-1)]);
    return same.filter((point) => kept.has(point));
  });
}

/** All points of a short line; of a long one some, and not those of the line before, so that no marker hides another. */
function markedPoints(points: readonly Point[], line: number): readonly Point[] {
  if (points.length <= MARKERS) return points;
  const every = Math.ceil(points.length / MARKERS_OF_A_LONG_LINE);
  const first = Math.floor((line % 4) * (every / 4));
  return points.filter((_, index) => index % every === first);
}

function lines({ kind, series }: Plot, frame: Frame): string[] {
  return series.flatMap((each, index) => {
    const colour = colourOf(index);
    const dash = dashOf(index) === '' ? '' : ` stroke-dasharray="${dashOf(index)}"`;
    const points = drawnPoints(each.points, frame);
    const path = points
      .map(([x, y], point) => {
        if (point === 0) return `M${px(frame.x(x))} ${px(frame.y(y))}`;
        if (kind === 'steps') return `H${px(frame.x(x))}V${px(frame.y(y))}`;
        return `L${px(frame.x(x))} ${px(frame.y(y))}`;
      })
      .join('');
    const marked = markedPoints(each.points, index);
    return [
      `<path d="${path}" fill="none" stroke="${colour}" stroke-width="2"${dash}/>`,
      ...each.points.flatMap(([x], point) => range(each, point, frame.x(x), frame)),
      ...marked.map(([x, y]) => marker(index, frame.x(x), frame.y(y), colour)),
    ];
  });
}

/** Groups side by side, in each the series side by side. Texts that do not fit below each other are turned. */
function bars(plot: Plot, frame: Frame): string[] {
  const { groups, series } = plot;
  const slot = (WIDTH - LEFT - RIGHT) / Math.max(1, groups.length);
  const wide = Math.min(48, (slot * 0.8) / Math.max(1, series.length));
  const every = Math.ceil(groups.length / Math.floor((WIDTH - LEFT - RIGHT) / 24));
  const zero = frame.y(0);
  return [
    ...series.flatMap((each, index) =>
      each.points.flatMap(([x, y], point) => {
        const left = LEFT + (x - 0.5) * slot + (index - series.length / 2) * wide;
        const top = Math.min(zero, frame.y(y));
        const height = Math.max(Math.abs(zero - frame.y(y)), y === 0 ? 0 : 1);
        return [
          `<rect x="${px(left)}" y="${px(top)}" width="${px(Math.max(1, wide - 1))}" height="${px(height)}" fill="${colourOf(index)}"/>`,
          ...range(each, point, left + wide / 2, frame),
        ];
      }),
    ),
    `<line class="axis" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${px(zero)}" y2="${px(zero)}"/>`,
    ...groups.flatMap((text, index) => {
      if (index % every !== 0) return [];
      const x = px(LEFT + (index + 0.5) * slot);
      return [
        `<text class="m" x="${x}" y="${frame.bottom + 18}" text-anchor="middle">${escapeMarkup(shortened(text, slot * every))}</text>`,
      ];
    }),
    xTitle(plot.x, frame.bottom),
  ];
}

function shortened(text: string, room: number): string {
  const characters = Math.max(2, Math.floor(room / CHARACTER));
  return text.length <= characters ? text : `${text.slice(0, characters - 1)}…`;
}

interface LegendItem {
  readonly x: number;
  readonly row: number;
  readonly index: number;
  readonly label: string;
}

function legendOf(series: readonly PlotSeries[]): readonly LegendItem[] {
  if (series.length === 1 && series[0]?.label === '') return [];
  let [x, row] = [LEFT, 0];
  return series.map(({ label: whole }, index) => {
    const label = shortened(whole, WIDTH - RIGHT - LEFT - LEGEND_SIGN);
    const wide = LEGEND_SIGN + label.length * CHARACTER;
    if (x > LEFT && x + wide > WIDTH - RIGHT) [x, row] = [LEFT, row + 1];
    const item = { x, row, index, label };
    x += wide;
    return item;
  });
}

function legend(items: readonly LegendItem[], kind: Plot['kind'], top: number): string[] {
  return items.flatMap(({ x, row, index, label }) => {
    const y = top + row * LEGEND_ROW;
    const colour = colourOf(index);
    const sign =
      kind === 'bars'
        ? [`<rect x="${px(x)}" y="${px(y - 9)}" width="12" height="10" fill="${colour}"/>`]
        : [
            `<line x1="${px(x)}" x2="${px(x + 16)}" y1="${px(y - 4)}" y2="${px(y - 4)}" stroke="${colour}" stroke-width="2"${dashOf(index) === '' ? '' : ` stroke-dasharray="${dashOf(index)}"`}/>`,
            marker(index, x + 8, y - 4, colour),
          ];
    return [...sign, `<text x="${px(x + 21)}" y="${px(y)}">${escapeMarkup(label)}</text>`];
  });
}

/**
 * `id`: unique in the page, for what names the picture. `standalone`: a file of its own, with namespace and style; within a
 * page the page has the style.
 */
export function renderPlot(plot: Plot, id: string, standalone: boolean): string {
  const bottom = TOP + PLOT_HEIGHT;
  const items = legendOf(plot.series);
  const rows = items.reduce((most, { row }) => Math.max(most, row + 1), 0);
  const height = bottom + BELOW + rows * LEGEND_ROW;
  const frame: Frame = {
    x: scale(plot.x, LEFT, WIDTH - RIGHT),
    y: scale(plot.y, bottom, TOP),
    bottom,
  };
  const name = escapeMarkup(id);
  return [
    `<svg${standalone ? ' xmlns="http://www.w3.org/2000/svg"' : ''} class="plot" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="${name}-title ${name}-alt">`,
    `<title id="${name}-title">${escapeMarkup(plot.title)}</title>`,
    `<desc id="${name}-alt">${escapeMarkup(plot.alt)}</desc>`,
    ...(standalone ? [`<style>${PLOT_STYLE}</style>`] : []),
    '<rect class="bg" width="100%" height="100%"/>',
    ...yAxis(plot.y, frame),
    ...(plot.kind === 'bars' ? bars(plot, frame) : [...xAxis(plot.x, frame), ...lines(plot, frame)]),
    ...legend(items, plot.kind, bottom + BELOW + 10),
    '</svg>',
    '',
  ].join('\n');
}
