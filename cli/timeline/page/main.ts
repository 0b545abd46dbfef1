// The page's script: draws the timeline on a canvas, moves by pointer and keyboard, shows what is chosen, and fills the tables
// that say the same in text. Put into the page as it is, without its types, after model.ts, elements.ts and view.ts. It loads nothing,
// but for newer data from `nodelet ui`.
// Past 500 lines: a page without a bundler has no modules, and what can be computed without a browser is in view.ts.

import type { Difference } from '../compare.ts';
import { type Bar, durationText, type Segment, summaryText, type Timeline } from '../model.ts';
import type { PageData } from './data.ts';
import { button, byId, element, followData, muted, table } from './elements.ts';
import {
  filledBy,
  type Item,
  itemAt,
  itemOf,
  layoutRows,
  neighbour,
  panned,
  placeOf,
  type Row,
  revealing,
  ticks,
  type View,
  visibleItems,
  visibleRows,
  zoomed,
} from './view.ts';

const LABELS = 132;
const AXIS = 24;
const BAR_HEIGHT = 15;
const MIN_WIDTH = 2;
const CHARACTER = 6.8;
/** Rows of the table of steps that are shown at a time. */
const TABLE_ROWS = 200;
/** Pixels around a short bar that still choose it. */
const SLACK = 4;

const scroller = byId('scroll');
const canvas = byId('chart');
const detail = byId('detail');
const live = byId('live');
if (!(canvas instanceof HTMLCanvasElement)) throw new Error('the chart is no canvas');
const context = canvas.getContext('2d');
if (context === null) throw new Error('the browser cannot draw on a canvas');

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

let { data, rows, height, all, verdicts, onPath, bars, places } = prepared(JSON.parse(byId('data').textContent ?? ''));
let view: View = startView();
let chosen: Item | undefined;
/** The timeline of what is chosen. */
let chosenPane = 0;
let filter = '';
let drawing = false;

function firstStart({ bars: [bar] }: Timeline): number {
  return bar?.start ?? 0;
}

/** From create to Ready with a little after it. */
function startView(): View {
  const ends = data.timelines.flatMap(({ critical }) => (critical === undefined ? [] : [critical.end]));
  if (ends.length === 0) return all;
  const end = Math.max(...ends);
  return { start: 0, end: Math.min(all.end, end + Math.max(end * 0.04, 1)) };
}

// ---------------------------------------------------------------- drawing

interface Colours {
  readonly text: string;
  readonly muted: string;
  readonly grid: string;
  readonly lane: string;
  readonly strong: string;
  readonly error: string;
  readonly slower: string;
  readonly faster: string;
}

function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    text: value('text'),
    muted: value('muted'),
    grid: value('grid'),
    lane: value('lane'),
    strong: value('strong'),
    error: value('error'),
    slower: value('slower'),
    faster: value('faster'),
  };
}

let ink = colours();

/** Pixels; read once a frame, since every reading may cost a layout. */
let width = scroller.clientWidth;
const chartWidth = (): number => Math.max(1, width - LABELS - 8);
const xOf = (time: number): number => LABELS + ((time - view.start) / (view.end - view.start)) * chartWidth();
const timeOf = (x: number): number => view.start + ((x - LABELS) / chartWidth()) * (view.end - view.start);

function schedule(): void {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}

function draw(): void {
  if (context === null || !(canvas instanceof HTMLCanvasElement)) return;
  width = scroller.clientWidth;
  const [wide, high] = [width, scroller.clientHeight];
  const scale = devicePixelRatio;
  if (canvas.width !== Math.round(wide * scale) || canvas.height !== Math.round(high * scale)) {
    canvas.width = Math.round(wide * scale);
    canvas.height = Math.round(high * scale);
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
  }
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, wide, high);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  const top = scroller.scrollTop;
  context.save();
  context.beginPath();
  context.rect(0, AXIS, wide, high - AXIS);
  context.clip();
  context.translate(0, AXIS - top);
  const shown = visibleRows(rows, top, top + high);
  for (const row of shown) drawBackground(context, row, wide);
  drawGrid(context, top, top + high);
  context.save();
  context.beginPath();
  context.rect(LABELS - 1, 0, wide, height + AXIS);
  context.clip();
  for (const row of shown) drawItems(context, row);
  drawArrows(context);
  context.restore();
  for (const row of shown) drawTitle(context, row, wide);
  context.restore();
  drawAxis(context);
}

function drawBackground(pen: CanvasRenderingContext2D, row: Row, wide: number): void {
  if (row.kind === 'title') return;
  pen.fillStyle = ink.lane;
  pen.fillRect(0, row.y - 1, wide, row.height);
}

function drawTitle(pen: CanvasRenderingContext2D, row: Row, wide: number): void {
  if (row.title === '') return;
  pen.fillStyle = ink.text;
  if (row.kind === 'title') pen.font = '600 13px system-ui, sans-serif';
  pen.fillText(row.title, 8, row.y + row.height / 2, row.kind === 'title' ? wide : LABELS - 12);
  pen.font = '12px system-ui, sans-serif';
}

function drawGrid(pen: CanvasRenderingContext2D, top: number, bottom: number): void {
  pen.strokeStyle = ink.grid;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const tick of ticks(view, chartWidth() / 110)) {
    const x = Math.round(xOf(tick)) + 0.5;
    pen.moveTo(x, top);
    pen.lineTo(x, bottom);
  }
  pen.stroke();
  pen.setLineDash([4, 4]);
  pen.strokeStyle = ink.error;
  pen.beginPath();
  for (const { marks } of data.timelines)
    for (const { offset, uncertainMs } of marks) {
      if (uncertainMs > 0 || offset < view.start || offset > view.end) continue;
      pen.moveTo(xOf(offset), top);
      pen.lineTo(xOf(offset), bottom);
    }
  pen.stroke();
  pen.setLineDash([]);
}

function drawAxis(pen: CanvasRenderingContext2D): void {
  pen.fillStyle = ink.muted;
  pen.textAlign = 'center';
  for (const tick of ticks(view, chartWidth() / 110)) pen.fillText(durationText(tick), xOf(tick), AXIS / 2);
  pen.textAlign = 'left';
}

function colourOf({ bar, segment }: Item): string {
  if (segment !== undefined) return data.ownerColours[segment.owner];
  return bar === undefined ? ink.muted : data.laneColours[bar.lane];
}

const SIGNS: ReadonlyMap<string, string> = new Map([
  ['slower', '▲ '],
  ['faster', '▼ '],
  ['only A', '◆ '],
  ['only B', '◆ '],
]);

const isHidden = ({ bar, segment }: Item): boolean =>
  filter !== '' && !(bar?.name ?? segment?.text ?? '').toLowerCase().includes(filter);

function drawItems(pen: CanvasRenderingContext2D, row: Row): void {
  const [from, to] = visibleItems(row.items, view);
  let drawnTo = Number.NEGATIVE_INFINITY;
  for (let index = from; index < to; index++) {
    const item = row.items[index];
    if (item === undefined) continue;
    const x = Math.max(LABELS - 4, xOf(item.start));
    const wide = Math.max(MIN_WIDTH, Math.min(xOf(item.end), width) - x);
    // What falls on the same pixels as the bars before it, but for one, cannot be seen apart from them.
    if (x + wide <= drawnTo + 1 && item !== chosen) continue;
    drawnTo = x + wide;
    drawItem(pen, row, item, x, wide);
  }
}

function drawItem(pen: CanvasRenderingContext2D, row: Row, item: Item, x: number, wide: number): void {
  const y = row.y + 2;
  const verdict =
    item.bar === undefined || verdicts.size === 0 ? undefined : verdicts.get(`${row.pane} ${item.bar.id}`);
  pen.globalAlpha = isHidden(item) ? 0.15 : 1;
  pen.fillStyle = colourOf(item);
  pen.fillRect(x, y, wide, BAR_HEIGHT);
  const outline = outlineOf(row, item, verdict);
  if (outline !== undefined) {
    pen.strokeStyle = outline;
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, Math.max(0, wide - 2), BAR_HEIGHT - 2);
  }
  if (item === chosen) {
    pen.strokeStyle = ink.strong;
    pen.lineWidth = 2;
    pen.strokeRect(x - 1.5, y - 1.5, wide + 3, BAR_HEIGHT + 3);
  }
  const room = Math.floor((wide - 8) / CHARACTER);
  if (room > 3) {
    const name = `${SIGNS.get(verdict ?? '') ?? ''}${item.bar?.name ?? item.segment?.text ?? ''}`;
    pen.fillStyle = '#fff';
    pen.fillText(name.length <= room ? name : `${name.slice(0, room - 1)}…`, x + 4, y + BAR_HEIGHT / 2 + 1, wide - 6);
  }
  pen.globalAlpha = 1;
}

function outlineOf(row: Row, { bar }: Item, verdict: Difference['verdict'] | undefined): string | undefined {
  if (bar === undefined) return undefined;
  if (bar.outcome === 'error') return ink.error;
  if (verdict === 'slower') return ink.slower;
  if (verdict === 'faster') return ink.faster;
  if (verdict === 'only A' || verdict === 'only B') return ink.strong;
  return data.comparison === undefined && onPath[row.pane]?.has(bar.id) === true ? ink.strong : undefined;
}

/** Of what is chosen: to its effects and from its causes. Without a choice, along the critical path. */
function drawArrows(pen: CanvasRenderingContext2D): void {
  pen.lineWidth = 1.2;
  for (const [pane, { arrows }] of data.timelines.entries()) {
    const pathIds = onPath[pane];
    for (const { from, to, kind } of arrows) {
      const isShown =
        chosen?.bar === undefined
          ? pathIds?.has(from) === true && pathIds.has(to)
          : chosenPane === pane && (chosen.bar.id === from || chosen.bar.id === to);
      if (isShown) drawArrow(pen, pane, from, to, kind === 'inferred');
    }
  }
}

function drawArrow(pen: CanvasRenderingContext2D, pane: number, from: string, to: string, dashed: boolean): void {
  const [a, b] = [bars[pane]?.get(from), bars[pane]?.get(to)];
  const [rowA, rowB] = [places[pane]?.get(from), places[pane]?.get(to)];
  if (a === undefined || b === undefined || rowA === undefined || rowB === undefined) return;
  const begin = xOf(Math.min(a.end, b.start));
  const end = xOf(b.start);
  const middle = BAR_HEIGHT / 2 + 2;
  const [y1, y2] = [rowA.y + middle, rowB.y + (rowB.y > rowA.y ? 2 : rowB.y < rowA.y ? BAR_HEIGHT + 2 : middle)];
  pen.strokeStyle = ink.strong;
  pen.fillStyle = ink.strong;
  pen.globalAlpha = chosen === undefined ? 0.45 : 1;
  pen.setLineDash(dashed ? [3, 3] : []);
  pen.beginPath();
  pen.moveTo(begin, y1);
  pen.lineTo(end, y1);
  pen.lineTo(end, y2);
  pen.stroke();
  pen.setLineDash([]);
  const direction = rowB.y >= rowA.y ? -1 : 1;
  pen.beginPath();
  pen.moveTo(end, y2);
  pen.lineTo(end - 3, y2 + 5 * direction);
  pen.lineTo(end + 3, y2 + 5 * direction);
  pen.fill();
  pen.globalAlpha = 1;
}

// ---------------------------------------------------------------- choosing

function paneOf(item: Item): number {
  const place = placeOf(rows, item);
  return place === undefined ? 0 : (rows[place.row]?.pane ?? 0);
}

function describe({ bar, segment, start, end }: Item): string {
  const took = end > start ? `took ${durationText(end - start)}` : 'one moment';
  if (segment !== undefined) return `${segment.text}, ${segment.owner}, at ${durationText(start)}, ${took}`;
  const lane = data.timelines.flatMap(({ lanes }) => lanes).find(({ id }) => id === bar?.lane)?.title ?? '';
  const failed = bar?.outcome === 'error' ? `, failed: ${bar.error ?? ''}` : bar?.outcome === 'open' ? ', goes on' : '';
  return `${bar?.name ?? ''}, ${lane}, at ${durationText(start)}, ${took}${failed}`;
}

function choose(item: Item | undefined, reveal = true): void {
  chosen = item;
  chosenPane = item === undefined ? 0 : paneOf(item);
  if (item !== undefined && reveal) {
    view = revealing(view, item, all);
    const place = placeOf(rows, item);
    const row = place === undefined ? undefined : rows[place.row];
    if (row !== undefined) {
      if (row.y < scroller.scrollTop) scroller.scrollTop = row.y;
      const below = row.y + row.height + AXIS - scroller.clientHeight;
      if (below > scroller.scrollTop) scroller.scrollTop = below;
    }
  }
  live.textContent = item === undefined ? '' : describe(item);
  showDetail();
  schedule();
}

function chooseBar(pane: number, id: string): void {
  const item = itemOf(rows, pane, id);
  if (item !== undefined) choose(item);
}

function showDetail(): void {
  detail.replaceChildren();
  if (chosen === undefined) {
    detail.append(element('p', 'Choose a bar: by click, or with the arrow keys while the chart has the focus.'));
    return;
  }
  const { bar, segment } = chosen;
  const pane = chosenPane;
  detail.append(element('h2', bar?.name ?? segment?.text ?? ''));
  const list = document.createElement('dl');
  const fact = (name: string, value: string | undefined): void => {
    if (value !== undefined && value !== '') list.append(element('dt', name), element('dd', value));
  };
  fact('from', durationText(chosen.start));
  if (chosen.end > chosen.start) fact('took', durationText(chosen.end - chosen.start));
  fact('whose time', segment?.owner);
  fact('outcome', bar?.outcome === 'ok' ? undefined : bar?.outcome);
  fact('error', bar?.error);
  fact('cause', bar?.cause);
  fact('pod', bar?.pod);
  for (const [name, value] of bar?.facts ?? []) fact(name, value);
  const difference = data.comparison?.differences.find(
    ({ a, b }) => bar !== undefined && (pane === 0 ? a : b) === bar.id,
  );
  if (difference !== undefined) {
    const { msA, msB, verdict } = difference;
    const text = (ms: number | undefined): string => (ms === undefined ? 'not there' : durationText(ms));
    fact(
      'compared',
      `A ${text(msA)}, B ${text(msB)}: ${verdict.startsWith('only') || verdict === 'same' ? verdict : `B ${verdict}`}`,
    );
  }
  detail.append(list);
  if (segment?.bar !== undefined) {
    const { bar: id } = segment;
    detail.append(button('show the step', () => chooseBar(pane, id)));
  }
  if (bar !== undefined) showLinks(pane, bar);
}

function showLinks(pane: number, bar: Bar): void {
  const arrows = data.timelines[pane]?.arrows ?? [];
  const links = (title: string, ids: readonly (readonly [string, string])[]): void => {
    if (ids.length === 0) return;
    detail.append(element('h3', title));
    const list = document.createElement('ul');
    for (const [id, kind] of ids.slice(0, 30)) {
      const entry = document.createElement('li');
      entry.append(button(bars[pane]?.get(id)?.name ?? id, () => chooseBar(pane, id)));
      if (kind === 'inferred') entry.append(' (inferred)');
      list.append(entry);
    }
    detail.append(list);
  };
  links(
    'Caused by',
    arrows.filter(({ to }) => to === bar.id).map(({ from, kind }) => [from, kind]),
  );
  links(
    'Caused',
    arrows.filter(({ from }) => from === bar.id).map(({ to, kind }) => [to, kind]),
  );
}

// ---------------------------------------------------------------- tables

function swatch(owner: Segment['owner']): HTMLElement {
  const made = element('span', owner);
  made.className = 'owner';
  made.style.borderLeftColor = data.ownerColours[owner];
  return made;
}

const suffix = (pane: number): string => (data.timelines.length > 1 ? ` of ${pane === 0 ? 'A' : 'B'}` : '');

function pathTable({ critical }: Timeline, pane: number): HTMLElement[] {
  if (critical === undefined) return [];
  const pathRow = rows.find((row) => row.pane === pane && row.kind === 'path');
  const lines = critical.segments.map((segment, index) => [
    durationText(segment.start),
    durationText(segment.end - segment.start),
    swatch(segment.owner),
    button(segment.text, () => choose(pathRow?.items[index])),
  ]);
  const total = durationText(critical.end - critical.start);
  return [
    table(
      `Critical path${suffix(pane)}, ${critical.from} to ${critical.to}: ${total}`,
      ['at', 'took', 'whose time', 'what'],
      lines,
    ),
  ];
}

function differenceTable(): HTMLElement[] {
  const { comparison } = data;
  if (comparison === undefined) return [];
  const text = (ms: number | undefined): string => (ms === undefined ? '–' : durationText(ms));
  const owners = comparison.owners.map(({ owner, msA, msB }) => [
    swatch(owner),
    text(msA),
    text(msB),
    signed(msB - msA),
  ]);
  const weight = ({ msA = 0, msB = 0 }: Difference): number => Math.abs(msB - msA);
  const different = comparison.differences.filter(({ verdict }) => verdict !== 'same');
  const lines = different
    .sort((x, y) => weight(y) - weight(x))
    .slice(0, TABLE_ROWS)
    .map(({ name, a, b, msA, msB, verdict }) => [
      button(name, () => (a === undefined ? chooseBar(1, b ?? '') : chooseBar(0, a))),
      text(msA),
      text(msB),
      signed((msB ?? 0) - (msA ?? 0)),
      `${SIGNS.get(verdict) ?? ''}${verdict.startsWith('only') ? verdict : `B ${verdict}`}`,
    ]);
  return [
    table('Whose time, on the critical paths', ['owner', 'A', 'B', 'B − A'], owners),
    table(
      `Steps that differ: ${different.length} of ${comparison.differences.length}`,
      ['step', 'A', 'B', 'B − A', ''],
      lines,
    ),
  ];
}

const signed = (ms: number): string => `${ms > 0 ? '+' : ''}${durationText(ms)}`;

function stepTable(timeline: Timeline, pane: number): HTMLElement[] {
  const wanted = timeline.bars.filter((bar) => filter === '' || bar.name.toLowerCase().includes(filter));
  const lines = wanted
    .slice(0, TABLE_ROWS)
    .map((bar) => [
      durationText(bar.start),
      bar.end > bar.start ? durationText(bar.end - bar.start) : '',
      timeline.lanes.find(({ id }) => id === bar.lane)?.title ?? bar.lane,
      button(bar.name, () => chooseBar(pane, bar.id)),
      bar.outcome === 'error' ? `failed: ${bar.error ?? ''}` : '',
    ]);
  const shown = wanted.length > TABLE_ROWS ? `the first ${TABLE_ROWS} of ${wanted.length}` : String(wanted.length);
  return [table(`Steps${suffix(pane)}: ${shown}`, ['at', 'took', 'lane', 'what', ''], lines)];
}

function showTables(): void {
  byId('steps').replaceChildren(...data.timelines.flatMap(stepTable));
}

// ---------------------------------------------------------------- moving

function show(next: View): void {
  view = next;
  schedule();
}

const centre = (): number => (chosen === undefined ? (view.start + view.end) / 2 : (chosen.start + chosen.end) / 2);

/** The next or previous piece of the critical path. */
function alongPath(step: number): void {
  const row = rows.find(({ kind, pane }) => kind === 'path' && (chosen === undefined || pane === chosenPane));
  if (row === undefined) return;
  const current = chosen;
  const index =
    current === undefined
      ? -1
      : row.items.findIndex((item) => item === current || item.segment?.bar === current.bar?.id);
  choose(row.items[Math.min(row.items.length - 1, Math.max(0, index + step))]);
}

/** To a cause (`to` is this one) or an effect. */
function alongArrow(back: boolean): void {
  if (chosen?.bar === undefined) return;
  const { id } = chosen.bar;
  const pane = chosenPane;
  const arrow = data.timelines[pane]?.arrows.find(({ from, to }) => (back ? to : from) === id);
  if (arrow !== undefined) chooseBar(pane, back ? arrow.from : arrow.to);
}

const KEYS: ReadonlyMap<string, () => void> = new Map([
  ['+', () => show(zoomed(view, 0.5, centre(), all))],
  ['=', () => show(zoomed(view, 0.5, centre(), all))],
  ['-', () => show(zoomed(view, 2, centre(), all))],
  ['0', () => show(startView())],
  ['a', () => show(all)],
  ['Home', () => choose(rows.find(({ items }) => items.length > 0)?.items[0])],
  ['n', () => alongPath(1)],
  ['p', () => alongPath(-1)],
  ['c', () => alongArrow(true)],
  ['e', () => alongArrow(false)],
  ['Enter', () => (chosen === undefined ? undefined : show(filledBy(chosen, all)))],
  ['Escape', () => choose(undefined)],
]);

canvas.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const action = KEYS.get(event.key);
  if (event.key.startsWith('Arrow')) {
    if (event.shiftKey) show(panned(view, event.key === 'ArrowLeft' ? -0.2 : 0.2, all));
    else choose(neighbour(rows, chosen, event.key));
  } else if (action !== undefined) action();
  else return;
  event.preventDefault();
});

const pointed = (event: MouseEvent): Item | undefined => {
  const { left, top } = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - left, event.clientY - top - AXIS + scroller.scrollTop];
  if (x < LABELS || event.clientY - top < AXIS) return undefined;
  return itemAt(rows, y, timeOf(x), (SLACK / chartWidth()) * (view.end - view.start));
};

let drag: { readonly x: number; readonly view: View; moved: boolean } | undefined;
canvas.addEventListener('pointerdown', (event) => {
  drag = { x: event.clientX, view, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener('pointermove', (event) => {
  if (drag === undefined) {
    const item = pointed(event);
    canvas.title = item === undefined ? '' : describe(item);
    canvas.style.cursor = item === undefined ? 'default' : 'pointer';
    return;
  }
  const by = (drag.x - event.clientX) / chartWidth();
  if (Math.abs(drag.x - event.clientX) > 3) drag.moved = true;
  if (drag.moved) show(panned(drag.view, by, all));
});
canvas.addEventListener('pointerup', (event) => {
  if (drag?.moved === false) choose(pointed(event), false);
  drag = undefined;
});
canvas.addEventListener('dblclick', (event) => {
  const item = pointed(event);
  if (item !== undefined) show(filledBy(item, all));
});
canvas.addEventListener(
  'wheel',
  (event) => {
    if (event.ctrlKey || event.metaKey) {
      const { left } = canvas.getBoundingClientRect();
      show(zoomed(view, event.deltaY > 0 ? 1.25 : 0.8, timeOf(event.clientX - left), all));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      show(panned(view, ((event.deltaX || event.deltaY) / chartWidth()) * 1, all));
    } else return;
    event.preventDefault();
  },
  { passive: false },
);
scroller.addEventListener('scroll', schedule);
addEventListener('resize', schedule);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  ink = colours();
  schedule();
});

const search = byId('search');
search.addEventListener('input', () => {
  if (search instanceof HTMLInputElement) filter = search.value.trim().toLowerCase();
  showTables();
  schedule();
});
byId('fit').addEventListener('click', () => show(startView()));
byId('everything').addEventListener('click', () => show(all));
byId('in').addEventListener('click', () => show(zoomed(view, 0.5, centre(), all)));
byId('out').addEventListener('click', () => show(zoomed(view, 2, centre(), all)));

// ---------------------------------------------------------------- what is shown at first, and again with newer data

/** Of a table that has the focus: it is renewed when the focus leaves, since a reader is in it. */
const waiting = new Map<string, () => void>();

function renew(id: string, fill: () => void): void {
  if (!byId(id).contains(document.activeElement)) {
    fill();
    return;
  }
  if (!waiting.has(id))
    byId(id).addEventListener(
      'focusout',
      () => {
        const later = waiting.get(id);
        waiting.delete(id);
        later?.();
      },
      { once: true },
    );
  waiting.set(id, fill);
}

function showAll(): void {
  byId('space').style.height = `${height + AXIS}px`;
  scroller.style.height = `min(70vh, ${height + AXIS + 4}px)`;
  byId('summary').replaceChildren(
    ...data.timelines.flatMap((timeline) => [
      element('p', summaryText(timeline)),
      ...timeline.problems.map((problem) => muted(`note: ${problem}`)),
    ]),
  );
  renew('path', () => byId('path').replaceChildren(...differenceTable(), ...data.timelines.flatMap(pathTable)));
  renew('steps', showTables);
  showDetail();
}

const same = (a: View, b: View): boolean => a.start === b.start && a.end === b.end;

/** Newer data: what is chosen stays so, and the view, unless it was the one that shows everything or create to Ready. */
function update(next: PageData): void {
  const [atStart, atAll] = [same(view, startView()), same(view, all)];
  const choice = chosen?.bar === undefined ? undefined : { pane: chosenPane, id: chosen.bar.id };
  ({ data, rows, height, all, verdicts, onPath, bars, places } = prepared(next));
  view = atStart ? startView() : atAll ? all : view;
  chosen = choice === undefined ? undefined : itemOf(rows, choice.pane, choice.id);
  showAll();
  schedule();
}

showAll();
draw();
if (data.live !== undefined) followData(data.live.data, data.live.events, update);
