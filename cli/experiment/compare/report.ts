// A comparison as text for a terminal, and as a document for Markdown and HTML with both results in one plot. Pure.

import type { ExperimentResult } from '../model.ts';
import type { Block, Cell, ReportDocument } from '../report/document.ts';
import { measureTitle, plotOf } from '../report/plot.ts';
import { fileName } from '../report/report.ts';
import { numberText, valueText } from '../report/values.ts';
import { variationsOf } from '../report/variations.ts';
import type { MeasureDifference, ResultComparison } from './compare.ts';

const percent = (tolerance: number): string => `${numberText(tolerance * 100)} %`;

export function verdictLine(comparison: ResultComparison, tolerance: number): string {
  const within = tolerance === 0 ? '' : ` (tolerance ${percent(tolerance)})`;
  if (comparison.equal) return `Equal${within}.`;
  const changed = comparison.measures.filter(({ equal }) => !equal).length;
  const only = comparison.onlyA.length + comparison.onlyB.length;
  const parts = [
    ...(changed === 0 ? [] : [`${changed} of ${comparison.measures.length} measures differ`]),
    ...(comparison.outcomes.length === 0 ? [] : [`${comparison.outcomes.length} outcomes changed`]),
    ...(only === 0 ? [] : [`${only} in one result alone`]),
  ];
  return `Different${within}: ${parts.join(', ')}.`;
}

function differenceText({ difference, measure }: MeasureDifference): string {
  if (difference === undefined) return '';
  return `${difference > 0 ? '+' : ''}${valueText(difference, measure.unit)}`;
}

const ratioText = ({ ratio }: MeasureDifference): string => (ratio === undefined ? '' : `${numberText(ratio)} x`);

/** Whether any row has a variation: without, the column would be empty. */
const hasVariations = (rows: readonly { readonly variation: string }[]): boolean =>
  rows.some(({ variation }) => variation !== '');

function measureRow(row: MeasureDifference, many: boolean): (string | Cell)[] {
  return [
    measureTitle(row.measure),
    ...(many ? [row.variation] : []),
    valueText(row.a, row.measure.unit),
    valueText(row.b, row.measure.unit),
    differenceText(row),
    ratioText(row),
    row.equal ? { text: '= equal', tone: 'muted' } : { text: '≠ different', tone: 'bad' },
    row.note,
  ];
}

interface Named {
  readonly name: string;
  readonly result: ExperimentResult;
}

function plots(a: Named, b: Named): Block[] {
  const sources = [
    { name: 'A', variations: variationsOf(a.result) },
    { name: 'B', variations: variationsOf(b.result) },
  ];
  return a.result.experiment.measure.flatMap((measure): Block[] => {
    if (!b.result.experiment.measure.some(({ name }) => name === measure.name)) return [];
    const plot = plotOf(measure, sources);
    return plot === undefined ? [] : [{ kind: 'plot', plot, unit: measure.unit, name: fileName(measure.name) }];
  });
}

export function comparisonDocument(
  a: Named,
  b: Named,
  comparison: ResultComparison,
  tolerance: number,
): ReportDocument {
  const { measures, outcomes, onlyA, onlyB, notes } = comparison;
  const many = hasVariations(measures);
  const alone = [...onlyA.map((text) => `only in A: ${text}`), ...onlyB.map((text) => `only in B: ${text}`)];
  const only: Block[] =
    alone.length === 0
      ? []
      : [
          { kind: 'heading', text: 'In one result alone' },
          { kind: 'list', items: alone },
        ];
  const changed: Block[] =
    outcomes.length === 0
      ? []
      : [
          { kind: 'heading', text: 'Outcomes that changed' },
          {
            kind: 'table',
            caption: 'Expectations with another outcome',
            columns: ['expected', 'variation', 'A', 'B'],
            rows: outcomes.map((each) => [{ text: each.that, code: true }, each.variation, each.a, each.b]),
          },
        ];
  return {
    title: `${a.result.experiment.metadata.title}: A and B`,
    blocks: [
      { kind: 'verdict', tone: comparison.equal ? 'good' : 'bad', text: verdictLine(comparison, tolerance) },
      { kind: 'list', items: [`A: ${describe(a)}`, `B: ${describe(b)}`, ...notes] },
      ...changed,
      ...only,
      { kind: 'heading', text: 'Measured' },
      {
        kind: 'table',
        caption: 'Measures of both results; of several repeats, the mean',
        columns: ['measure', ...(many ? ['variation'] : []), 'A', 'B', 'B - A', 'B / A', 'outcome', 'note'],
        rows: measures.map((row) => measureRow(row, many)),
      },
      ...plots(a, b),
    ],
  };
}

const describe = ({ name, result }: Named): string =>
  `${name} (${result.agent} on ${result.world}, ${result.startedAt})`;

/** Lines for a terminal. */
export function comparisonText(a: Named, b: Named, comparison: ResultComparison, tolerance: number): readonly string[] {
  const { measures, outcomes, onlyA, onlyB, notes } = comparison;
  const line = (row: MeasureDifference): string => {
    const of = row.variation === '' ? '' : ` [${row.variation}]`;
    const how = [differenceText(row), ratioText(row), row.note].filter((text) => text !== '').join(', ');
    const values = `${valueText(row.a, row.measure.unit)} | ${valueText(row.b, row.measure.unit)}`;
    return `${row.equal ? '=' : '!'} ${measureTitle(row.measure)}${of}: ${values}${how === '' ? '' : ` (${how})`}`;
  };
  return [
    verdictLine(comparison, tolerance),
    `A: ${describe(a)}`,
    `B: ${describe(b)}`,
    ...notes.map((note) => `note: ${note}`),
    ...outcomes.map((each) => {
      const of = each.variation === '' ? '' : ` [${each.variation}]`;
      return `! ${each.that}${of}: ${each.a} | ${each.b}`;
    }),
    ...onlyA.map((text) => `! only in A: ${text}`),
    ...onlyB.map((text) => `! only in B: ${text}`),
    ...measures.map(line),
  ];
}
