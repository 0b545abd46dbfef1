// The page's arithmetic, which needs no browser.

import { expect, test } from 'vitest';
import { buildTimeline } from '../../../../cli/timeline/build.ts';
import {
  filledBy,
  type Item,
  itemAt,
  itemOf,
  layoutRows,
  neighbour,
  panned,
  revealing,
  ticks,
  visibleItems,
  visibleRows,
  zoomed,
} from '../../../../cli/timeline/page/view.ts';
import { evidence, podStart, span } from './support.ts';

const BOUNDS = { start: 0, end: 1000 };
const items = (...extents: readonly (readonly [number, number])[]): Item[] =>
  extents.map(([start, end]) => ({ start, end }));
const { rows } = layoutRows([buildTimeline(evidence(podStart()))]);

function item(name: string): Item {
  const found = rows.flatMap((row) => row.items).find(({ bar }) => bar?.name === name);
  if (found === undefined) throw new Error(`no item "${name}"`);
  return found;
}

test('rows: the critical path, then each lane with a title in its first row, without overlap', () => {
  expect(rows.map(({ title }) => title).filter((title) => title !== '')).toEqual([
    'Critical path',
    'API server',
    'Pod worker',
    'CRI',
    'CNI',
    'Kernel (netlink)',
    'Containers',
  ]);
  for (const { items: own } of rows)
    for (const [index, { end }] of own.slice(0, -1).entries())
      expect(own[index + 1]?.start).toBeGreaterThanOrEqual(end);
});

test('two timelines are below each other, each with its title', () => {
  const one = buildTimeline(evidence(podStart()));
  const both = layoutRows([one, one]);
  expect(both.rows.filter(({ kind }) => kind === 'title').map(({ title }) => title)).toEqual([
    'A: All pods, test',
    'B: All pods, test',
  ]);
  expect(itemOf(both.rows, 1, '4')).not.toBe(itemOf(both.rows, 0, '4'));
});

test.each([
  ['all', { start: 0, end: 100 }, [0, 3]],
  ['what begins before and ends within', { start: 15, end: 18 }, [0, 1]],
  ['a gap', { start: 21, end: 29 }, [1, 1]],
  ['nothing after the last', { start: 61, end: 90 }, [3, 3]],
  ['a border counts', { start: 40, end: 50 }, [1, 3]],
])('visible: %s', (_, view, expected) => {
  expect(visibleItems(items([10, 20], [30, 40], [50, 60]), view)).toEqual(expected);
});

test('of many rows those in sight are found', () => {
  const shown = visibleRows(rows, rows[3]?.y ?? 0, (rows[5]?.y ?? 0) + 1);
  expect(shown).toEqual(rows.slice(3, 6));
});

test.each([
  ['zooming in keeps the centre', zoomed({ start: 0, end: 100 }, 0.5, 20, BOUNDS), { start: 10, end: 60 }],
  ['zooming out ends at the bounds', zoomed({ start: 100, end: 900 }, 4, 500, BOUNDS), BOUNDS],
  ['moving ends at the bounds', panned({ start: 800, end: 900 }, 5, BOUNDS), { start: 900, end: 1000 }],
  [
    'what is in sight moves nothing',
    revealing({ start: 0, end: 100 }, { start: 5, end: 10 }, BOUNDS),
    { start: 0, end: 100 },
  ],
  [
    'what is not comes to the middle',
    revealing({ start: 0, end: 100 }, { start: 500, end: 510 }, BOUNDS),
    { start: 455, end: 555 },
  ],
  ['a bar fills the view', filledBy({ start: 100, end: 200 }, BOUNDS), { start: 90, end: 210 }],
])('%s', (_, view, expected) => {
  expect(view).toEqual(expected);
});

test('a moment cannot be zoomed to nothing', () => {
  let view = { start: 0, end: 1000 };
  for (let step = 0; step < 100; step++) view = zoomed(view, 0.5, 10, BOUNDS);
  expect(view.end - view.start).toBeGreaterThan(0.01);
});

test.each([
  [{ start: 0, end: 100 }, 5, [0, 20, 40, 60, 80, 100]],
  [{ start: 3, end: 11 }, 4, [4, 6, 8, 10]],
])('ticks are round', (view, count, expected) => {
  expect(ticks(view, count)).toEqual(expected);
});

test('what lies under the pointer: the nearest within reach, in the row of that height', () => {
  const bar = item('RunPodSandbox');
  const row = rows.find((each) => each.items.includes(bar));
  const y = (row?.y ?? 0) + 5;
  expect(itemAt(rows, y, 50, 1)).toBe(bar);
  expect(itemAt(rows, y, bar.end + 0.5, 1)).toBe(bar);
  expect(itemAt(rows, y, bar.end + 20_000, 1)).toBeUndefined();
  expect(itemAt(rows, 100_000, 50, 1)).toBeUndefined();
});

test('arrow keys: in time within the lane, up and down to the nearest of the next row', () => {
  const create = item('CreateContainer web');
  expect(neighbour(rows, create, 'ArrowRight')).toBe(item('StartContainer web'));
  expect(neighbour(rows, create, 'ArrowLeft')).toBe(item('RunPodSandbox'));
  expect(neighbour(rows, item('RunPodSandbox'), 'ArrowDown')).toBe(item('ADD network lab'));
  expect(neighbour(rows, item('ADD network lab'), 'ArrowUp')).toBe(item('RunPodSandbox'));
  expect(neighbour(rows, undefined, 'ArrowDown')).toBe(rows[0]?.items[0]);
  const last = rows.at(-1)?.items.at(-1);
  expect(neighbour(rows, last, 'ArrowDown')).toBe(last);
});

test('ten thousand spans: a frame asks for few of them', () => {
  const many = Array.from({ length: 10_000 }, (_, id) => span(id + 1, 'cri', 'ExecSync', id, id + 0.9));
  const { rows: long } = layoutRows([buildTimeline(evidence(many))]);
  const calls = long.find(({ lane }) => lane === 'cri');
  const [from, to] = visibleItems(calls?.items ?? [], { start: 5000, end: 5020 });
  expect(to - from).toBeLessThan(30);
});
