// The report of an experiment: values in words, axes, plots, both renderings, and the folder on disk.

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { MeasuredValue } from '../../../../cli/experiment/model.ts';
import { axisFor, displayScale, niceStep } from '../../../../cli/experiment/report/axis.ts';
import { type Block, renderHtml, renderMarkdown } from '../../../../cli/experiment/report/document.ts';
import { readResultFolder, writeResultFolder } from '../../../../cli/experiment/report/folder.ts';
import { plotOf, plotTable } from '../../../../cli/experiment/report/plot.ts';
import { renderPlot } from '../../../../cli/experiment/report/plot-svg.ts';
import { reportOf, verdictText } from '../../../../cli/experiment/report/report.ts';
import { linesOf, numberText, type Point, valueText } from '../../../../cli/experiment/report/values.ts';
import { variationsOf } from '../../../../cli/experiment/report/variations.ts';
import { experimentOf, resultOf, runOf } from './results.ts';

const pairs = (...all: readonly (readonly [number, number])[]): MeasuredValue => all;

function line(by: 'index' | 'time', label: string, ...points: readonly Point[]): ReturnType<typeof linesOf>[number] {
  return { by, label, points };
}

test.each([
  [0, '0'],
  [12, '12'],
  [123456, '123456'],
  [0.123456, '0.1235'],
  [12.3456, '12.35'],
  [1234.6, '1235'],
  [-0.5, '-0.5'],
  [Number.POSITIVE_INFINITY, 'Infinity'],
])('number %s is written %s', (value, text) => {
  expect(numberText(value)).toBe(text);
});

test.each([
  [250, 'ms', '250 ms'],
  [10_030, 'ms', '10.03 s'],
  [300_000, 'ms', '5m'],
  [-300_000, 'ms', '-5m'],
  [3_661_000, 'ms', '1h1m1s'],
  [0.5, 's', '500 ms'],
  [0, 'bytes', '0 B'],
  [1536, 'bytes', '1.5 KiB'],
  [-1048576, 'bytes', '-1 MiB'],
  [0.25, 'cores', '250 millicores'],
  [2, 'cores', '2 cores'],
  [7, 'count', '7'],
  [0.5, 'ratio', '0.5'],
  [true, undefined, 'yes'],
  [null, 'ms', 'none'],
  [undefined, 'ms', 'none'],
  ['Running', undefined, 'Running'],
  [[], 'ms', 'empty'],
  [[10_000, 20_000], 'ms', '10 s, 20 s'],
  [
    [
      [0, 1],
      [60_000, 2],
    ],
    'count',
    '1 at 0 ms, 2 at 60 s',
  ],
  [Array.from({ length: 20 }, (_, n) => [n, 20 - n]), 'count', '20 values from 1 to 20, at last 1'],
  [
    [
      [0, 1, 'pod=a'],
      [0, 2, 'pod=b'],
      [1000, 3, 'pod=a'],
    ],
    'count',
    'pod=a: 1 at 0 ms, 3 at 1 s; pod=b: 2 at 0 ms',
  ],
  [Array.from({ length: 14 }, (_, n) => n), 'count', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … (14 values)'],
] as const)('value %j in %s is written %s', (value, unit, text) => {
  expect(valueText(value, unit)).toBe(text);
});

test.each<[MeasuredValue | undefined, ReturnType<typeof linesOf>]>([
  [undefined, []],
  [5, []],
  [['a'], []],
  [[], []],
  [[3, 4], [line('index', '', [1, 3], [2, 4])]],
  // A restart that has not come is a gap, and the others keep their places.
  [[3, null, 4], [line('index', '', [1, 3], [3, 4])]],
  [pairs([5, 1], [9, 2]), [line('time', '', [5, 1], [9, 2])]],
  [
    [
      [5, 1, 'pod=a'],
      [5, 7, 'pod=b'],
      [9, 2, 'pod=a'],
    ],
    [line('time', 'pod=a', [5, 1], [9, 2]), line('time', 'pod=b', [5, 7])],
  ],
  // Neither pairs of numbers nor numbers.
  [[[5, 'a']], []],
  [[[5, 1, 2]], []],
  [[[5, 1], 9], [line('index', '', [2, 9])]],
])('what can be drawn of %j', (value, lines) => {
  expect(linesOf(value)).toEqual(lines);
});

describe('axes', () => {
  test.each([
    [10, 5, 2],
    [7, 5, 2],
    [300, 5, 100],
    [0.03, 5, 0.01],
    [1, 5, 0.2],
    [0, 5, 1],
  ])('a step for %d in at most %d is %d', (span, count, step) => {
    expect(niceStep(span, count)).toBeCloseTo(step, 12);
  });

  test.each([
    ['ms', 900, 1, 'ms'],
    ['ms', 300_000, 1000, 's'],
    ['ms', 3_600_000, 60_000, 'min'],
    ['ms', 86_400_000, 3_600_000, 'h'],
    ['s', 1, 0.001, 'ms'],
    ['bytes', 3_000_000, 1024 ** 2, 'MiB'],
    ['cores', 0.2, 0.001, 'millicores'],
    ['count', 5, 1, ''],
  ] as const)('%s up to %d', (unit, max, factor, name) => {
    expect(displayScale(unit, max)).toEqual({ factor, name });
  });

  test('covers its values, from zero, with ticks in the unit that is shown', () => {
    const axis = axisFor({ title: 'pause', unit: 'ms', values: [10_000, 300_000], steps: 5, fromZero: true });
    expect(axis).toMatchObject({ title: 'pause (s)', min: 0, max: 300_000 });
    expect(axis.ticks.map(({ text }) => text)).toEqual(['0', '100', '200', '300']);
  });

  test('below zero, equal values and fractions', () => {
    const both = axisFor({ title: '', unit: undefined, values: [-3, 4], steps: 5, fromZero: true });
    expect([both.min, both.max]).toEqual([-4, 4]);
    const one = axisFor({ title: '', unit: undefined, values: [7], steps: 5, fromZero: false });
    expect(one.min).toBeLessThan(7);
    expect(one.max).toBeGreaterThan(7);
    const small = axisFor({ title: '', unit: 'ratio', values: [0.3], steps: 5, fromZero: true });
    expect(small.ticks.map(({ text }) => text)).toEqual(['0', '0.1', '0.2', '0.3']);
    const whole = axisFor({ title: '', unit: 'count', values: [1, 2], steps: 8, fromZero: false });
    expect(whole.ticks.map(({ text }) => text)).toEqual(['1', '2']);
  });
});

test('runs are grouped by their parameters, in any order, and sorted by repeat', () => {
  const runs = [
    runOf({ parameters: { a: 1, b: 'x' }, repeat: 2 }),
    runOf({ parameters: { a: 2, b: 'x' }, repeat: 1 }),
    runOf({ parameters: { b: 'x', a: 1 }, repeat: 1 }),
  ];
  const variations = variationsOf({ runs });
  expect(variations.map(({ label, runs: of }) => [label, of.map(({ repeat }) => repeat)])).toEqual([
    ['a=1', [1, 2]],
    ['a=2', [1]],
  ]);
});

describe('plots', () => {
  const plotted = (measure: Parameters<typeof plotOf>[0], runs: readonly ReturnType<typeof runOf>[]) =>
    plotOf(measure, [{ name: '', variations: variationsOf({ runs }) }]);

  test('of a list: bars by number, one series a run', () => {
    const plot = plotted({ name: 'm', value: 'x', unit: 'ms', title: 'pause' }, [
      runOf({ parameters: { code: 0 }, measures: { m: [1000, 2000] } }),
      runOf({ parameters: { code: 1 }, measures: { m: [1000, 2000, 4000] } }),
    ]);
    expect(plot).toMatchObject({ kind: 'bars', groups: ['1', '2', '3'], title: 'pause' });
    expect(plot?.series.map(({ label }) => label)).toEqual(['code=0', 'code=1']);
    expect(plot?.alt).toBe('Bar plot of pause by number. code=0: 1 s, 2 s. code=1: 1 s, 2 s, 4 s.');
    expect(plot && plotTable(plot, 'ms').rows).toEqual([
      ['1', '1 s', '1 s'],
      ['2', '2 s', '2 s'],
      ['3', '', '4 s'],
    ]);
  });

  test('of a list over time: a line, or steps where steps or bars are asked for', () => {
    const run = runOf({
      measures: {
        m: [
          [0, 1],
          [60_000, 2],
        ],
      },
    });
    expect(plotted({ name: 'm', value: 'x' }, [run])).toMatchObject({ kind: 'line', groups: [] });
    expect(plotted({ name: 'm', value: 'x', plot: 'bars' }, [run])).toMatchObject({ kind: 'steps' });
    expect(plotted({ name: 'm', value: 'x', plot: 'none' }, [run])).toBeUndefined();
  });

  test('of samples: a line over time for each variation and each label, all in one plot with a legend', () => {
    const samples = (from: number) =>
      [0, 1, 2].flatMap((second) => [
        [second * 1000 + from, from, 'pod=a'],
        [second * 1000 + from, from * 2, 'pod=b'],
      ]);
    const plot = plotted({ name: 'm', value: 'x', unit: 'cores', title: 'use' }, [
      runOf({ parameters: { limit: '100m' }, measures: { m: samples(1) } }),
      runOf({ parameters: { limit: '200m' }, measures: { m: samples(7) } }),
    ]);
    expect(plot).toMatchObject({ kind: 'line', timed: true });
    const labels = ['limit=100m, pod=a', 'limit=100m, pod=b', 'limit=200m, pod=a', 'limit=200m, pod=b'];
    expect(plot?.series.map(({ label }) => label)).toEqual(labels);
    const svg = plot === undefined ? '' : renderPlot(plot, 'p', true);
    for (const label of labels) expect(svg).toContain(`>${label}</text>`);
    expect(svg.match(/<path d="M/g)?.length).toBeGreaterThanOrEqual(labels.length);
  });

  test('the table of samples has slices of time where their times differ, and rows of its own where they do not', () => {
    const at = (from: number) => [0, 1, 2].map((second) => [second * 1000 + from, second + from]);
    const one = plotted({ name: 'm', value: 'x', unit: 'count' }, [runOf({ measures: { m: at(3) } })]);
    expect(one && plotTable(one, 'count').rows.map(([time]) => time)).toEqual(['3 ms', '1.003 s', '2.003 s']);
    const two = plotted({ name: 'm', value: 'x', unit: 'count', title: 'use' }, [
      runOf({ parameters: { n: 1 }, measures: { m: at(3) } }),
      runOf({ parameters: { n: 2 }, measures: { m: at(400) } }),
    ]);
    expect(two && plotTable(two, 'count')).toEqual({
      caption: 'use: the last value in each 1 s',
      columns: ['time since the node was ready', 'n=1', 'n=2'],
      rows: [
        ['0 ms', '3', '400'],
        ['1 s', '4', '401'],
        ['2 s', '5', '402'],
      ],
    });
    const day = Array.from({ length: 86_400 }, (_, second) => [second * 1000, second]);
    const long = plotted({ name: 'm', value: 'x', unit: 'count' }, [runOf({ measures: { m: day } })]);
    expect(long && plotTable(long, 'count').rows.length).toBeLessThanOrEqual(61);
  });

  test('a day of samples is drawn with as many points as can be seen, its extremes among them', () => {
    const day = Array.from({ length: 86_400 }, (_, second) => [second * 1000, second === 40_000 ? 500 : second % 7]);
    const plot = plotted({ name: 'm', value: 'x', unit: 'count' }, [runOf({ measures: { m: day } })]);
    if (plot === undefined) throw new Error('there is no plot');
    const svg = renderPlot(plot, 'p', true);
    expect(svg.length).toBeLessThan(60_000);
    // The top of the axis, where its largest value is.
    expect(plot.y.max).toBe(500);
    expect(svg).toMatch(/L[\d.]+ 34L/);
    // A long line has markers, too: it is not known by its colour alone.
    expect(svg.match(/<circle/g)?.length).toBeGreaterThanOrEqual(10);
    expect(svg.match(/<circle/g)?.length).toBeLessThanOrEqual(13);
  });

  test('of one number: by variation, the mean of its repeats with their range', () => {
    const runs = [1, 2].flatMap((code) =>
      [1, 2].map((repeat) => runOf({ parameters: { code }, repeat, measures: { m: code * 10 + repeat } })),
    );
    const plot = plotted({ name: 'm', value: 'x', unit: 'count' }, runs);
    expect(plot).toMatchObject({ kind: 'bars', groups: ['code=1', 'code=2'] });
    expect(plot?.series).toEqual([
      {
        label: '',
        points: [
          [1, 11.5],
          [2, 21.5],
        ],
        ranges: [
          [11, 12],
          [21, 22],
        ],
      },
    ]);
  });

  test('of one number against the parameter that varies, where a line is asked for', () => {
    const runs = [50, 200, 100].map((pods) => runOf({ parameters: { pods }, measures: { m: pods * 2 } }));
    const plot = plotted({ name: 'm', value: 'x', plot: 'line' }, runs);
    expect(plot?.series[0]?.points).toEqual([
      [50, 100],
      [100, 200],
      [200, 400],
    ]);
    expect(plot?.x.title).toBe('pods');
    const named = ['a', 'b'].map((kind) => runOf({ parameters: { kind }, measures: { m: 1 } }));
    expect(plotted({ name: 'm', value: 'x', plot: 'line' }, named)).toMatchObject({ kind: 'bars' });
  });

  test('nothing to draw: one number of one variation, and what is no number', () => {
    expect(plotted({ name: 'm', value: 'x' }, [runOf({ measures: { m: 5 } })])).toBeUndefined();
    expect(plotted({ name: 'm', value: 'x', plot: 'bars' }, [runOf({ measures: { m: 'Running' } })])).toBeUndefined();
    expect(plotted({ name: 'm', value: 'x', plot: 'bars' }, [runOf({ measures: {} })])).toBeUndefined();
  });

  test('the drawing has axes, ticks, a legend, and words for who does not see it; texts are no markup', () => {
    const plot = plotted({ name: 'm', value: 'x', unit: 'ms', title: '<pause> & "more"' }, [
      runOf({
        parameters: { code: '<0>' },
        measures: {
          m: [
            [0, 10_000],
            [60_000, 20_000],
          ],
        },
      }),
      runOf({ parameters: { code: '1' }, measures: { m: [[0, 5_000]] } }),
    ]);
    const svg = plot === undefined ? '' : renderPlot(plot, 'p', true);
    expect(svg).toContain('xmlns="http://www.w3.org/2000/svg"');
    expect(svg).toContain('role="img" aria-labelledby="p-title p-alt"');
    expect(svg).toContain('<title id="p-title">&lt;pause&gt; &amp; &quot;more&quot;</title>');
    expect(svg).toContain('>code=&lt;0&gt;</text>');
    expect(svg).toContain('(s)</text>');
    expect(svg).toContain('time since the node was ready (s)');
    expect(svg).not.toContain('<0>');
    expect(svg).not.toContain('NaN');
  });

  test('bars below zero, and more groups than have room for their texts', () => {
    const run = runOf({ measures: { m: Array.from({ length: 110 }, (_, n) => (n % 2 === 0 ? -n : n)) } });
    const plot = plotted({ name: 'm', value: 'x' }, [run]);
    const svg = plot === undefined ? '' : renderPlot(plot, 'p', true);
    expect(svg.match(/<rect x=/g)).toHaveLength(110);
    expect(svg.match(/text-anchor="middle"/g)?.length).toBeLessThan(40);
    expect(svg).not.toMatch(/(height|width)="-/);
  });
});

describe('the report', () => {
  const failing = resultOf({
    verdict: 'failed',
    runs: [
      runOf({ repeat: 1, measures: { pause: [1000] }, recordings: ['run-1-spans.jsonl'] }),
      runOf({
        repeat: 2,
        measures: { pause: [3000] },
        expectations: [
          { that: 'pause[0] < 2s', outcome: 'not met', detail: 'pause[0] = 3 s', because: 'a | pipe' },
          { that: 'x', outcome: 'error', detail: 'x is not known' },
          { that: 'y', outcome: 'not checked here', detail: '' },
        ],
        failure: 'step 2: the wait ended after 5 s',
      }),
    ],
  });

  test('says the verdict first, in one sentence', () => {
    expect(verdictText(failing)).toBe(
      'Failed: 1 of 3 expectations met in 2 runs, 1 could not be evaluated, 1 run ended before the last step, 1 not checked in this world.',
    );
    expect(reportOf(failing).blocks[0]).toMatchObject({ kind: 'verdict', tone: 'bad' });
    expect(verdictText(resultOf({}))).toBe('Passed: 1 of 1 expectation met in 1 run.');
  });

  test('has each part in both renderings', () => {
    const document = reportOf(failing);
    const markdown = renderMarkdown(document);
    const html = renderHtml(document);
    for (const words of [
      'Failed: 1 of 3',
      'pause[0] &lt; 2s',
      '✗ not met',
      'repeat 2',
      'step 2: the wait ended after 5 s',
      'run-1-spans.jsonl',
      'How to read it',
      'Why is it so?',
    ]) {
      expect(html).toContain(words);
      if (words === 'pause[0] &lt; 2s') expect(markdown).toContain('`pause[0] < 2s`');
      else expect(markdown).toContain(words);
    }
    expect(markdown).toContain('a \\| pipe');
    expect(markdown).toContain('](plots/pause.svg)');
    expect(html).toContain('<svg class="plot"');
  });

  test('the page loads nothing, has no script, and its wide tables take the keyboard', () => {
    const html = renderHtml(reportOf(failing));
    expect(html).toContain("default-src 'none'");
    expect(html).not.toMatch(/<script|<link|<img|https?:\/\//);
    expect(html.match(/class="frame" role="region" tabindex="0" aria-label="[^"]+"/g)?.length).toBeGreaterThan(3);
    expect(html).toContain('prefers-color-scheme:dark');
    const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('what an experiment contains is never markup', () => {
    const evil = '<img src=x onerror=alert(1)> `` | *a* [b](c)\n# d';
    const blocks: Block[] = [
      { kind: 'text', text: evil },
      { kind: 'list', items: [evil] },
      { kind: 'code', summary: evil, text: `${evil}\n\`\`\`\n` },
      { kind: 'table', caption: evil, columns: [evil], rows: [[evil], [{ text: evil, code: true, link: evil }]] },
    ];
    const html = renderHtml({ title: evil, blocks });
    expect(html).not.toContain('<img');
    const markdown = renderMarkdown({ title: evil, blocks });
    expect(markdown).toContain('````yaml');
    const outside = markdown.replace(/````yaml[\s\S]*?````/g, '').replace(/`{3}[^`\n][^\n]*?`{3}/g, '');
    expect(outside).not.toMatch(/(^|[^\\])<img/);
    expect(outside).not.toMatch(/^# d/m);
  });
});

describe('the folder', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'experiment-report-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  test('has report, result, plots and recordings, and is read back', async () => {
    const result = resultOf({ runs: [runOf({ measures: { pause: [1, 2] }, recordings: ['spans.jsonl'] })] });
    const into = join(folder, 'new', 'result');
    const names = await writeResultFolder(into, result, new Map([['spans.jsonl', '{}\n']]));
    expect((await readdir(into)).sort()).toEqual(['plots', 'report.html', 'report.md', 'result.json', 'spans.jsonl']);
    expect(names).toContain('plots/pause.svg');
    expect(await readFile(join(into, 'plots', 'pause.svg'), 'utf8')).toContain('<svg xmlns=');
    expect(await readResultFolder(into)).toEqual(result);
  });

  test('measures whose names no file can have keep apart', async () => {
    const measure = ['a/b', 'a b', '../x', 'ü'].map((name) => ({ name, value: 'x' }));
    const measures = Object.fromEntries(measure.map(({ name }) => [name, [1, 2]]));
    const result = resultOf({ experiment: experimentOf({ measure }), runs: [runOf({ measures })] });
    await writeResultFolder(folder, result, new Map());
    expect(await readdir(join(folder, 'plots'))).toHaveLength(4);
  });

  test.each(['../outside', 'a/b', '.hidden'])('a recording cannot be called %s', async (name) => {
    await expect(writeResultFolder(folder, resultOf({}), new Map([[name, '']]))).rejects.toThrow('plain name');
  });

  test.each([
    ['nothing', undefined, 'there is no result.json'],
    ['no JSON', '{', 'is not JSON'],
    ['another version', '{"version": 2, "experiment": {}, "runs": []}', 'another version'],
    ['another file', '[]', 'is no result'],
  ])('a folder with %s is refused', async (_, text, message) => {
    if (text !== undefined) await writeFile(join(folder, 'result.json'), text);
    await expect(readResultFolder(folder)).rejects.toThrow(message);
  });

  test('a folder that cannot be written is reported in one line', async () => {
    await writeFile(join(folder, 'file'), '');
    await expect(writeResultFolder(join(folder, 'file'), resultOf({}), new Map())).rejects.toThrow(
      `the result cannot be written to ${join(folder, 'file')}`,
    );
  });
});
