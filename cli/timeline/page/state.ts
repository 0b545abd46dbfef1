// What the page shows, as all its parts see it: the data with what is looked up in it, what part of the time is visible, what is
// chosen, and what is searched for. The parts read the variables; only the functions here change them. Put into the page as it is,
// without its types.

import type { Difference } from '../compare.ts';
import type { Bar, Timeline } from '../model.ts';
import type { PageData } from './data.ts';
import { byId } from './elements.ts';
import { type Item, itemOf, layoutRows, type Row, type View } from './view.ts';

interface Prepared {
  readonly data: PageData;
  readonly rows: readonly Row[];
  readonly height: number;
  readonly all: View;
  readonly verdicts: ReadonlyMap<string, Difference['verdict']>;
  readonly onPath: readonly ReadonlySet<string>[];
  readonly bars: readonly ReadonlyMap<string, Bar>[];
  readonly places: readonly ReadonlyMap<string, Row>[];
}

/** What is drawn, and what is looked up while drawing. */
function prepared(given: PageData): Prepared {
  const { timelines, comparison } = given;
  const laid = layoutRows(timelines);
  const marked = new Map<string, Difference['verdict']>();
  for (const { a, b, verdict } of comparison?.differences ?? []) {
    // A bar is marked by what it is beside its counterpart.
    if (a !== undefined)
      marked.set(`0 ${a}`, verdict === 'slower' ? 'faster' : verdict === 'faster' ? 'slower' : verdict);
    if (b !== undefined) marked.set(`1 ${b}`, verdict);
  }
  const found = timelines.map(() => new Map<string, Row>());
  for (const row of laid.rows)
    for (const { bar } of row.items) if (bar !== undefined) found[row.pane]?.set(bar.id, row);
  return {
    data: given,
    rows: laid.rows,
    height: laid.height,
    all: {
      start: Math.min(0, ...timelines.map(firstStart)),
      end: Math.max(1, ...timelines.map(({ end }) => end)),
    },
    verdicts: marked,
    onPath: timelines.map(({ critical }) => new Set(critical?.segments.flatMap(({ bar }) => bar ?? []))),
    bars: timelines.map((timeline) => new Map(timeline.bars.map((bar) => [bar.id, bar]))),
    places: found,
  };
}

export let { data, rows, height, all, verdicts, onPath, bars, places } = prepared(
  JSON.parse(byId('data').textContent ?? ''),
);
export let view: View = startView();
export let chosen: Item | undefined;
/** The timeline of what is chosen. */
export let chosenPane = 0;
/** In lower case; '' shows everything. */
export let filter = '';

function firstStart({ bars: [bar] }: Timeline): number {
  return bar?.start ?? 0;
}

/** From create to Ready with a little after it. */
export function startView(): View {
  const ends = data.timelines.flatMap(({ critical }) => (critical === undefined ? [] : [critical.end]));
  if (ends.length === 0) return all;
  const end = Math.max(...ends);
  return { start: 0, end: Math.min(all.end, end + Math.max(end * 0.04, 1)) };
}

export function setView(next: View): void {
  view = next;
}

export function setChosen(item: Item | undefined, pane: number): void {
  chosen = item;
  chosenPane = pane;
}

export function setFilter(text: string): void {
  filter = text.trim().toLowerCase();
}

const same = (a: View, b: View): boolean => a.start === b.start && a.end === b.end;

/** Newer data: what is chosen stays so, and the view, unless it was the one that shows everything or create to Ready. */
export function setData(next: PageData): void {
  const [atStart, atAll] = [same(view, startView()), same(view, all)];
  const id = chosen?.bar?.id;
  ({ data, rows, height, all, verdicts, onPath, bars, places } = prepared(next));
  view = atStart ? startView() : atAll ? all : view;
  chosen = id === undefined ? undefined : itemOf(rows, chosenPane, id);
}
