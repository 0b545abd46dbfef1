// A comparison of two timelines as text. Pure.

import { byWeight, type Comparison, type Difference } from './compare.ts';
import { durationText, type Timeline } from './model.ts';
import { printable } from './text.ts';

const cell = (ms: number | undefined): string => (ms === undefined ? '-' : durationText(ms)).padStart(9);

const signed = (ms: number): string => `${ms > 0 ? '+' : ''}${durationText(ms)}`.padStart(10);

function line({ lane, name, msA, msB, verdict }: Difference): string {
  return `${cell(msA)} ${cell(msB)} ${signed((msB ?? 0) - (msA ?? 0))}  ${(verdict.startsWith('only') ? verdict : `B ${verdict}`).padEnd(8)} ${lane.padEnd(9)} ${name}`;
}

export function renderComparison(
  a: Timeline,
  b: Timeline,
  { differences, owners, totalA, totalB }: Comparison,
): string {
  const head = (letter: string, { title, source, critical }: Timeline): string =>
    `${letter}: ${title}, ${source}${critical === undefined ? '' : `, ${critical.from} to ${critical.to}`}`;
  const different = byWeight(differences);
  const total =
    totalA === undefined || totalB === undefined
      ? []
      : [`${cell(totalA)} ${cell(totalB)} ${signed(totalB - totalA)}  critical path`];
  return [
    head('A', a),
    head('B', b),
    '',
    `${'A'.padStart(9)} ${'B'.padStart(9)} ${'B - A'.padStart(10)}`,
    ...total,
    ...owners.map(({ owner, msA, msB }) => `${cell(msA)} ${cell(msB)} ${signed(msB - msA)}    ${owner}`),
    '',
    `steps that differ: ${different.length} of ${differences.length}`,
    ...different.map(line),
    '',
  ]
    .map(printable)
    .join('\n');
}
