// The report of a result: the verdict first, then what was expected and measured, plots, how to read them, and the runs. Pure.

import { stringify } from 'yaml';
import type { ExpectationResult, ExperimentResult, RunResult } from '../model.ts';
import type { Block, Cell, ReportDocument } from './document.ts';
import { measureTitle, plotOf } from './plot.ts';
import { valueText } from './values.ts';
import { type Variation, variationsOf } from './variations.ts';

/** Each plot of the result, by the name of its file. */
export function plotBlocks(result: ExperimentResult): readonly Extract<Block, { readonly kind: 'plot' }>[] {
  const variations = variationsOf(result);
  return result.experiment.measure.flatMap((measure) => {
    const plot = plotOf(measure, [{ name: '', variations }]);
    return plot === undefined
      ? []
      : [{ kind: 'plot' as const, plot, unit: measure.unit, name: fileName(measure.name) }];
  });
}

/** A measure's name as a file's and an element's: letters, digits and hyphens. */
export const fileName = (name: string): string => encodeURIComponent(name).replace(/[^A-Za-z0-9-]/g, '_');

const count = (number: number, word: string): string => `${number} ${word}${number === 1 ? '' : 's'}`;

/** The verdict in one sentence. */
export function verdictText({ verdict, runs }: ExperimentResult): string {
  const all = runs.flatMap(({ expectations }) => expectations);
  const of = (outcome: ExpectationResult['outcome']): number => all.filter((each) => each.outcome === outcome).length;
  const failed = runs.filter(({ failure }) => failure !== undefined).length;
  const [met, missed, wrong, skipped] = [of('met'), of('not met'), of('error'), of('not checked here')];
  const checked = met + missed + wrong;
  const head = { passed: 'Passed', failed: 'Failed', interrupted: 'Interrupted' }[verdict];
  const parts = [
    `${met} of ${count(checked, 'expectation')} met in ${count(runs.length, 'run')}`,
    ...(wrong === 0 ? [] : [`${wrong} could not be evaluated`]),
    ...(failed === 0 ? [] : [`${count(failed, 'run')} ended before the last step`]),
    ...(skipped === 0 ? [] : [`${skipped} not checked in this world`]),
  ];
  return `${head}: ${parts.join(', ')}.`;
}

const WORLDS = {
  sim: 'the simulator (virtual time)',
  lab: 'a lab on a real node',
  vm: 'a virtual machine',
} as const;

function intro(result: ExperimentResult): Block[] {
  const { experiment, world, agent, startedAt } = result;
  return [
    { kind: 'verdict', tone: result.verdict === 'passed' ? 'good' : 'bad', text: verdictText(result) },
    {
      kind: 'table',
      caption: 'What was run',
      columns: ['what', 'value'],
      rows: [
        ['question', experiment.question.trim()],
        ['prediction', experiment.prediction.trim()],
        ['where', WORLDS[world]],
        ['agent', agent],
        ['started', startedAt],
      ],
    },
  ];
}

const runLabel = (variation: Variation, run: RunResult): string => {
  const repeat = variation.runs.length > 1 ? `repeat ${run.repeat}` : '';
  return [variation.label, repeat].filter((part) => part !== '').join(', ');
};

const OUTCOMES: Readonly<Record<ExpectationResult['outcome'], Cell>> = {
  met: { text: '✓ met', tone: 'good' },
  'not met': { text: '✗ not met', tone: 'bad' },
  error: { text: '✗ error', tone: 'bad' },
  'not checked here': { text: 'not checked here', tone: 'muted' },
};

function expectations(variations: readonly Variation[], many: boolean): Block[] {
  const rows = variations.flatMap((variation) =>
    variation.runs.flatMap((run) =>
      run.expectations.map(({ that, outcome, detail, because = '' }) => [
        { text: that, code: true as const },
        ...(many ? [runLabel(variation, run)] : []),
        OUTCOMES[outcome],
        detail,
        because,
      ]),
    ),
  );
  if (rows.length === 0) return [];
  const columns = ['expected', ...(many ? ['run'] : []), 'outcome', 'measured', 'because'];
  return [
    { kind: 'heading', text: 'Expectations' },
    { kind: 'table', caption: 'Expectations with what was measured', columns, rows },
  ];
}

/** Measures down, runs across. */
function measures({ experiment }: ExperimentResult, variations: readonly Variation[]): Block[] {
  if (experiment.measure.length === 0) return [];
  const runs = variations.flatMap((variation) =>
    variation.runs.map((run) => ({
      label: runLabel(variation, run) || 'value',
      measured: new Map(Object.entries(run.measures)),
    })),
  );
  return [
    { kind: 'heading', text: 'Measured' },
    {
      kind: 'table',
      caption: 'Measured values of each run',
      columns: ['measure', ...runs.map(({ label }) => label)],
      rows: experiment.measure.map((measure) => [
        measureTitle(measure),
        ...runs.map(({ measured }) => valueText(measured.get(measure.name), measure.unit)),
      ]),
    },
  ];
}

function runsTable(variations: readonly Variation[], many: boolean): Block[] {
  const rows = variations.flatMap((variation) =>
    variation.runs.flatMap((run) => {
      const about = [
        ...(many ? [runLabel(variation, run)] : []),
        run.seed === undefined ? '' : String(run.seed),
        valueText(run.worldMs, 'ms'),
        valueText(run.wallMs, 'ms'),
        run.failure === undefined ? 'all steps done' : { text: run.failure, tone: 'bad' as const },
      ];
      const [first = '', ...others] = run.recordings;
      const file = (name: string): Cell =>
        name === '' ? { text: '' } : { text: name, link: encodeURIComponent(name) };
      return [[...about, file(first)], ...others.map((name) => [...about.map(() => ''), file(name)])];
    }),
  );
  return [
    { kind: 'heading', text: 'Runs' },
    {
      kind: 'table',
      caption: 'Runs, with their recordings',
      columns: [...(many ? ['run'] : []), 'seed', 'time in its world', 'time on the clock', 'steps', 'recordings'],
      rows,
    },
  ];
}

export function reportOf(result: ExperimentResult): ReportDocument {
  const { experiment } = result;
  const variations = variationsOf(result);
  const many = result.runs.length > 1;
  const plots = plotBlocks(result);
  return {
    title: experiment.metadata.title,
    blocks: [
      ...intro(result),
      ...expectations(variations, many),
      ...measures(result, variations),
      ...plots,
      { kind: 'heading', text: 'How to read it' },
      { kind: 'text', text: experiment.reading },
      ...runsTable(variations, many),
      { kind: 'heading', text: 'The experiment' },
      { kind: 'code', summary: `The file ${experiment.metadata.name}`, text: stringify(experiment) },
    ],
  };
}
