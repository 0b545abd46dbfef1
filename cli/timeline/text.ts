// A timeline as text for the terminal: a waterfall, the critical path, and whose time it was. Pure.

import { type Bar, type CriticalPath, durationText, LANES, type LaneId, type Timeline } from './model.ts';
import { timeByOwner } from './owners.ts';
import { clip, type TimeWindow } from './window.ts';

const TITLES: ReadonlyMap<LaneId, string> = new Map(
  LANES.map(([id]) => [id, id === 'containers' ? 'contain.' : id === 'scheduler' ? 'sched.' : id]),
);

export interface TextOptions {
  /** Columns of the terminal. */
  readonly width: number;
  readonly window: TimeWindow;
}

const NAME_COLUMNS = 44;
const MIN_CHART = 16;

/** Names and errors come from runtimes, plugins and images: their control characters are not for the terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
export const printable = (text: string): string => text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd');

const cut = (text: string, columns: number): string =>
  text.length <= columns ? text.padEnd(columns) : `${text.slice(0, columns - 1)}…`;

/** `columns` characters: the bar, in blocks; what happened in one moment is a point. */
function chart(bar: Bar, { start, end }: TimeWindow, columns: number, critical: boolean): string {
  const scale = columns / Math.max(end - start, 1e-9);
  const from = Math.min(columns - 1, Math.max(0, Math.floor((bar.start - start) * scale)));
  const to = Math.min(columns, Math.max(from + 1, Math.round((bar.end - start) * scale)));
  const mark = bar.start === bar.end ? '·' : critical ? '█' : '▒';
  return `${' '.repeat(from)}${mark.repeat(to - from)}`.padEnd(columns);
}

function depthOf(bar: Bar, byId: ReadonlyMap<string, Bar>): number {
  let depth = 0;
  for (let each = byId.get(bar.parent ?? ''); each !== undefined && depth < 5; each = byId.get(each.parent ?? ''))
    depth++;
  return depth;
}

function pathLines(path: CriticalPath): string[] {
  const total = path.end - path.start;
  const width = (text: string): string => text.padStart(9);
  return [
    `critical path, ${path.from} to ${path.to}: ${durationText(total)}`,
    ...path.segments.map(
      ({ start, end, text }) => `  ${width(durationText(start))}  ${width(durationText(end - start))}  ${text}`,
    ),
    `whose time: ${timeByOwner(path)
      .map(([owner, ms]) => `${owner} ${durationText(ms)}`)
      .join(', ')}`,
  ];
}

export function renderText(timeline: Timeline, options: TextOptions): string {
  const { bars, critical, marks, title, source, problems } = timeline;
  const shown = clip(bars, options.window);
  const byId = new Map(bars.map((bar) => [bar.id, bar]));
  const onPath = new Set(critical?.segments.flatMap(({ bar }) => bar ?? []));
  const columns = Math.max(MIN_CHART, options.width - NAME_COLUMNS - 34);
  const lines = shown.map((bar) => {
    const name = `${'  '.repeat(depthOf(bar, byId))}${bar.name}`;
    const took = bar.start === bar.end ? '' : durationText(bar.end - bar.start);
    const failed = bar.outcome === 'error' ? `  FAILED: ${bar.error ?? ''}` : '';
    const lane = (TITLES.get(bar.lane) ?? bar.lane).padEnd(8);
    const drawn = chart(bar, options.window, columns, onPath.has(bar.id));
    return `${durationText(bar.start).padStart(9)} ${took.padStart(9)}  ${lane} ${cut(name, NAME_COLUMNS)} ${drawn}${failed}`.trimEnd();
  });
  // Times in objects are whole seconds.
  const exact = marks.map(({ name, offset, uncertainMs }) =>
    uncertainMs === 0
      ? `${name} at ${durationText(offset)}`
      : `${name} between ${durationText(offset)} and ${durationText(offset + uncertainMs)}`,
  );
  const text = [
    `${title}, ${source}`,
    ...(exact.length === 0 ? [] : [exact.join(', ')]),
    '',
    ...lines,
    ...(critical === undefined ? [] : ['', ...pathLines(critical)]),
    ...problems.map((problem) => `note: ${problem}`),
    '',
  ];
  return text.map(printable).join('\n');
}
