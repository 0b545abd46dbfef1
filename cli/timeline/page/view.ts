// The page's arithmetic: rows, zoom, what is visible, what lies under the pointer, where the keyboard goes. It knows nothing of the
// DOM, and is put into the page as it is, without its types; so it may import types, and values from model.ts alone.

import type { Bar, LaneId, Segment, Timeline } from '../model.ts';

export interface View {
  /** ms since the origin. */
  readonly start: number;
  readonly end: number;
}

/** What can be drawn and chosen: a bar, or a piece of the critical path. */
export interface Item {
  readonly start: number;
  readonly end: number;
  readonly bar?: Bar;
  readonly segment?: Segment;
}

export interface Row {
  /** Which timeline: 0 or 1. */
  readonly pane: number;
  readonly kind: 'title' | 'path' | 'lane';
  readonly lane?: LaneId;
  /** In the first row of a lane. */
  readonly title: string;
  /** By start; no two overlap, so they are by end as well. */
  readonly items: readonly Item[];
  /** Pixels from the top. */
  readonly y: number;
  readonly height: number;
}

const ROW_HEIGHT = 20;
const TITLE_HEIGHT = 26;
const LANE_GAP = 6;
/** ms; a view is never narrower. */
const MIN_SPAN = 0.05;

export function layoutRows(timelines: readonly Timeline[]): { readonly rows: readonly Row[]; readonly height: number } {
  const rows: Row[] = [];
  let y = 0;
  const add = (row: Omit<Row, 'y' | 'height'>, height: number): void => {
    rows.push({ ...row, y, height });
    y += height;
  };
  for (const [pane, { title, source, critical, lanes, bars }] of timelines.entries()) {
    if (timelines.length > 1) {
      const letter = pane === 0 ? 'A' : 'B';
      add({ pane, kind: 'title', title: `${letter}: ${title}, ${source}`, items: [] }, TITLE_HEIGHT);
    }
    if (critical !== undefined) {
      const items = critical.segments.map((segment) => ({ start: segment.start, end: segment.end, segment }));
      add({ pane, kind: 'path', title: 'Critical path', items }, ROW_HEIGHT);
      y += LANE_GAP;
    }
    for (const lane of lanes) {
      const byRow: Item[][] = Array.from({ length: lane.rows }, () => []);
      for (const bar of bars) if (bar.lane === lane.id) byRow[bar.row]?.push({ start: bar.start, end: bar.end, bar });
      for (const [index, items] of byRow.entries())
        add({ pane, kind: 'lane', lane: lane.id, title: index === 0 ? lane.title : '', items }, ROW_HEIGHT);
      y += LANE_GAP;
    }
  }
  return { rows, height: y };
}

/** The first index from which `test` holds; it holds for all after it. */
function firstIndex(length: number, test: (index: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The items of a row that have a part in the view: from the first index to before the second. */
export function visibleItems(items: readonly Item[], { start, end }: View): readonly [number, number] {
  const from = firstIndex(items.length, (index) => (items[index]?.end ?? 0) >= start);
  const to = firstIndex(items.length, (index) => (items[index]?.start ?? 0) > end);
  return [from, Math.max(from, to)];
}

export function visibleRows(rows: readonly Row[], top: number, bottom: number): readonly Row[] {
  const from = firstIndex(rows.length, (index) => {
    const row = rows[index];
    return row !== undefined && row.y + row.height > top;
  });
  const to = firstIndex(rows.length, (index) => (rows[index]?.y ?? 0) > bottom);
  return rows.slice(from, to);
}

/** What lies at a place: `slack` ms to both sides count, since short bars are drawn wider than they are. */
export function itemAt(rows: readonly Row[], y: number, time: number, slack: number): Item | undefined {
  const row = visibleRows(rows, y, y)[0];
  if (row === undefined || y < row.y) return undefined;
  const [from, to] = visibleItems(row.items, { start: time - slack, end: time + slack });
  const near = row.items.slice(from, to);
  const distance = ({ start, end }: Item): number => (time < start ? start - time : time > end ? time - end : 0);
  return near.reduce<Item | undefined>(
    (best, item) => (best === undefined || distance(item) < distance(best) ? item : best),
    undefined,
  );
}

/** Within `bounds`, and not narrower than can be drawn. */
function within({ start, end }: View, bounds: View): View {
  const span = Math.min(Math.max(end - start, MIN_SPAN), bounds.end - bounds.start);
  const from = Math.min(Math.max(start, bounds.start), bounds.end - span);
  return { start: from, end: from + span };
}

/** `factor` below 1 shows less; `centre` (ms) stays where it is. */
export function zoomed({ start, end }: View, factor: number, centre: number, bounds: View): View {
  return within({ start: centre - (centre - start) * factor, end: centre + (end - centre) * factor }, bounds);
}

/** `part`: of the view's width. */
export function panned({ start, end }: View, part: number, bounds: View): View {
  const by = (end - start) * part;
  return within({ start: start + by, end: end + by }, bounds);
}

/** The view with `item` in it: as it is where the item is in it already, else moved. */
export function revealing(view: View, item: Item, bounds: View): View {
  if (item.start >= view.start && item.end <= view.end) return view;
  const span = Math.max(view.end - view.start, (item.end - item.start) * 1.2);
  const middle = (item.start + item.end) / 2;
  return within({ start: middle - span / 2, end: middle + span / 2 }, bounds);
}

/** The view that an item fills, but for a margin. */
export function filledBy({ start, end }: Item, bounds: View): View {
  const margin = Math.max((end - start) * 0.1, 0.5);
  return within({ start: start - margin, end: end + margin }, bounds);
}

/** About `count` round numbers in the view. */
export function ticks({ start, end }: View, count: number): number[] {
  const raw = (end - start) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw) ?? raw;
  const found: number[] = [];
  for (let tick = Math.ceil(start / step) * step; tick <= end; tick += step) found.push(tick);
  return found;
}

export interface Place {
  readonly row: number;
  readonly index: number;
}

export function placeOf(rows: readonly Row[], item: Item): Place | undefined {
  for (const [row, { items }] of rows.entries()) {
    const index = items.indexOf(item);
    if (index >= 0) return { row, index };
  }
  return undefined;
}

export function itemOf(rows: readonly Row[], pane: number, barId: string): Item | undefined {
  for (const row of rows) {
    if (row.pane !== pane) continue;
    const found = row.items.find(({ bar }) => bar?.id === barId);
    if (found !== undefined) return found;
  }
  return undefined;
}

const isSameLane = (a: Row, b: Row): boolean => a.pane === b.pane && a.kind === b.kind && a.lane === b.lane;

/** Where an arrow key leads from `item`: in time within its lane, or to the nearest item of the next row that has any. */
export function neighbour(rows: readonly Row[], item: Item | undefined, key: string): Item | undefined {
  const place = item === undefined ? undefined : placeOf(rows, item);
  const own = place === undefined ? undefined : rows[place.row];
  if (item === undefined || place === undefined || own === undefined)
    return rows.find(({ items }) => items.length > 0)?.items[0];
  if (key === 'ArrowLeft' || key === 'ArrowRight') {
    const lane = rows.filter((row) => isSameLane(row, own)).flatMap(({ items }) => items);
    lane.sort((a, b) => a.start - b.start || a.end - b.end);
    return lane[lane.indexOf(item) + (key === 'ArrowRight' ? 1 : -1)] ?? item;
  }
  const step = key === 'ArrowDown' ? 1 : -1;
  for (let row = place.row + step; rows[row] !== undefined; row += step) {
    const items = rows[row]?.items ?? [];
    const distance = ({ start }: Item): number => Math.abs(start - item.start);
    const nearest = items.reduce<Item | undefined>(
      (best, each) => (best === undefined || distance(each) < distance(best) ? each : best),
      undefined,
    );
    if (nearest !== undefined) return nearest;
  }
  return item;
}
