// The tables that say in text what the chart shows: the critical path, what differs between two timelines, the steps. Put into the
// page as it is, without its types.

import type { Difference } from '../compare.ts';
import { durationText, type Segment, type Timeline } from '../model.ts';
import { SIGNS } from './chart.ts';
import { choose, chooseBar } from './choice.ts';
import { button, element, table } from './elements.ts';
import { data, filter, rows } from './state.ts';

/** Rows of the table of steps that are shown at a time. */
const TABLE_ROWS = 200;

function swatch(owner: Segment['owner']): HTMLElement {
  const made = element('span', owner);
  made.className = 'owner';
  made.style.borderLeftColor = data.ownerColours[owner];
  return made;
}

const suffix = (pane: number): string => (data.timelines.length > 1 ? ` of ${pane === 0 ? 'A' : 'B'}` : '');

export function pathTable({ critical }: Timeline, pane: number): HTMLElement[] {
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

export function differenceTable(): HTMLElement[] {
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

export function stepTable(timeline: Timeline, pane: number): HTMLElement[] {
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
