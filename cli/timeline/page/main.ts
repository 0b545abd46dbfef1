// The page's script: moves through the timeline by pointer and keyboard, searches, and shows everything at first and again with
// newer data from `nodelet ui`. Put into the page as it is, without its types, after model.ts and the other files of this folder. It
// loads nothing but that data.

import { summaryText } from '../model.ts';
import { AXIS, canvas, chartWidth, draw, LABELS, recolour, schedule, scroller, timeOf } from './chart.ts';
import { choose, chooseBar, describe, showDetail } from './choice.ts';
import type { PageData } from './data.ts';
import { byId, element, followData, muted } from './elements.ts';
import { all, chosen, chosenPane, data, height, rows, setData, setFilter, setView, startView, view } from './state.ts';
import { differenceTable, pathTable, stepTable } from './tables.ts';
import { filledBy, type Item, itemAt, neighbour, panned, type View, zoomed } from './view.ts';

/** Pixels around a short bar that still choose it. */
const SLACK = 4;

function show(next: View): void {
  setView(next);
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
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour);

const search = byId('search');
search.addEventListener('input', () => {
  if (search instanceof HTMLInputElement) setFilter(search.value);
  showTables();
  schedule();
});
byId('fit').addEventListener('click', () => show(startView()));
byId('everything').addEventListener('click', () => show(all));
byId('in').addEventListener('click', () => show(zoomed(view, 0.5, centre(), all)));
byId('out').addEventListener('click', () => show(zoomed(view, 2, centre(), all)));

function showTables(): void {
  byId('steps').replaceChildren(...data.timelines.flatMap(stepTable));
}

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

function update(next: PageData): void {
  setData(next);
  showAll();
  schedule();
}

showAll();
draw();
if (data.live !== undefined) followData(data.live.data, data.live.events, update);
