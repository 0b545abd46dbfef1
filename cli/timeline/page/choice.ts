// What is chosen: by pointer, keyboard or link; brought into view, read out, and described beside the chart with its causes and
// effects. Put into the page as it is, without its types.

import { type Bar, durationText } from '../model.ts';
import { AXIS, schedule, scroller } from './chart.ts';
import { button, byId, element } from './elements.ts';
import { all, bars, chosen, chosenPane, data, rows, setChosen, setView, view } from './state.ts';
import { type Item, itemOf, placeOf, revealing } from './view.ts';

const detail = byId('detail');
const live = byId('live');

function paneOf(item: Item): number {
  const place = placeOf(rows, item);
  return place === undefined ? 0 : (rows[place.row]?.pane ?? 0);
}

export function describe({ bar, segment, start, end }: Item): string {
  const took = end > start ? `took ${durationText(end - start)}` : 'one moment';
  if (segment !== undefined) return `${segment.text}, ${segment.owner}, at ${durationText(start)}, ${took}`;
  const lane = data.timelines.flatMap(({ lanes }) => lanes).find(({ id }) => id === bar?.lane)?.title ?? '';
  const failed = bar?.outcome === 'error' ? `, failed: ${bar.error ?? ''}` : bar?.outcome === 'open' ? ', goes on' : '';
  return `${bar?.name ?? ''}, ${lane}, at ${durationText(start)}, ${took}${failed}`;
}

export function choose(item: Item | undefined, reveal = true): void {
  setChosen(item, item === undefined ? 0 : paneOf(item));
  if (item !== undefined && reveal) {
    setView(revealing(view, item, all));
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

export function chooseBar(pane: number, id: string): void {
  const item = itemOf(rows, pane, id);
  if (item !== undefined) choose(item);
}

export function showDetail(): void {
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
