// The chart: lanes, bars, arrows and the axis on a canvas, drawn once a frame at most; only what is visible. Put into the page as it
// is, without its types.

import type { Difference } from '../compare.ts';
import { durationText } from '../model.ts';
import { byId } from './elements.ts';
import { bars, chosen, chosenPane, data, filter, height, onPath, places, rows, verdicts, view } from './state.ts';
import { type Item, type Row, ticks, visibleItems, visibleRows } from './view.ts';

/** Width of the lanes' names, and height of the axis. Pixels. */
export const LABELS = 132;
export const AXIS = 24;
const BAR_HEIGHT = 15;
const MIN_WIDTH = 2;
const CHARACTER = 6.8;

export const scroller = byId('scroll');
export const canvas = byId('chart');
if (!(canvas instanceof HTMLCanvasElement)) throw new Error('the chart is no canvas');
const context = canvas.getContext('2d');
if (context === null) throw new Error('the browser cannot draw on a canvas');

let drawing = false;

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

/** After the colours of the page have changed. */
export function recolour(): void {
  ink = colours();
  schedule();
}

/** Pixels; read once a frame, since every reading may cost a layout. */
let width = scroller.clientWidth;
export const chartWidth = (): number => Math.max(1, width - LABELS - 8);
const xOf = (time: number): number => LABELS + ((time - view.start) / (view.end - view.start)) * chartWidth();
export const timeOf = (x: number): number => view.start + ((x - LABELS) / chartWidth()) * (view.end - view.start);

export function schedule(): void {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}

export function draw(): void {
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
  for (const tick of ticks(view, chartWidth() / 110)) {
    const text = durationText(tick);
    const { width: wide } = pen.measureText(text);
    // The last one ends with the chart.
    pen.fillText(text, Math.min(xOf(tick) - wide / 2, width - wide - 2), AXIS / 2);
  }
}

function colourOf({ bar, segment }: Item): string {
  if (segment !== undefined) return data.ownerColours[segment.owner];
  return bar === undefined ? ink.muted : data.laneColours[bar.lane];
}

/** Of a step beside its counterpart in the other timeline. */
export const SIGNS: ReadonlyMap<string, string> = new Map([
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
