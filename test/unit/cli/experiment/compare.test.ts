// Two results side by side: values within a tolerance, outcomes that changed, what only one has, and the exit code.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { compareResults, compareValues } from '../../../../cli/experiment/compare/compare.ts';
import { comparisonDocument, comparisonText } from '../../../../cli/experiment/compare/report.ts';
import { parseTolerance, runCompare } from '../../../../cli/experiment/compare/run.ts';
import { writeResultFolder } from '../../../../cli/experiment/report/folder.ts';
import { experimentOf, resultOf, runOf } from './results.ts';

test.each([
  [100, 100, 0, { equal: true, difference: 0, ratio: 1 }],
  [100, 110, 0, { equal: false, difference: 10, ratio: 1.1 }],
  [100, 110, 0.1, { equal: true, difference: 10 }],
  [110, 100, 0.1, { equal: true, difference: -10 }],
  [100, 112, 0.1, { equal: false }],
  [0, 0, 0, { equal: true, difference: 0 }],
  [0, 1, 0.5, { equal: false, difference: 1 }],
  [-5, 5, 0.5, { equal: false, difference: 10, ratio: -1 }],
  ['a', 'a', 0, { equal: true, note: '' }],
  ['a', 'b', 1, { equal: false, note: 'different values' }],
  [true, false, 1, { equal: false }],
  [null, null, 0, { equal: true }],
  [null, 5, 1, { equal: false, note: 'different values' }],
  [undefined, 5, 1, { equal: false }],
  [[10, 20], [10, 20], 0, { equal: true, note: '' }],
  [[10, 20, 40], [10, 22, 41], 0.05, { equal: false, difference: 2, note: 'value 2 of 3 differs most' }],
  [[10, 20], [10, 20, 40], 1, { equal: false, note: '2 values against 3' }],
  [[], [], 0, { equal: true }],
  // Moments of samples are never the same.
  [
    [
      [0, 10],
      [5, 30],
    ],
    [
      [1, 10],
      [4, 30],
      [9, 20],
    ],
    0,
    { equal: true, difference: 0, note: 'means over time' },
  ],
  [
    [
      [0, 10],
      [5, 30],
    ],
    [
      [0, 19],
      [5, 21],
    ],
    0.1,
    { equal: false, difference: 0 },
  ],
  [[[0, 10]], [10], 1, { equal: false, note: 'different values' }],
  // Series by their labels, whatever their order.
  [
    [
      [0, 10, 'pod=a'],
      [0, 90, 'pod=b'],
    ],
    [
      [3, 90, 'pod=b'],
      [3, 10, 'pod=a'],
    ],
    0,
    { equal: true },
  ],
  [
    [
      [0, 10, 'pod=a'],
      [0, 90, 'pod=b'],
    ],
    [
      [0, 10, 'pod=a'],
      [0, 60, 'pod=b'],
    ],
    0.1,
    { equal: false, difference: -30, note: 'means over time; pod=b differs most' },
  ],
  [[[0, 10, 'pod=a']], [[0, 10, 'pod=b']], 1, { equal: false, note: 'series of pod=a against pod=b' }],
] as const)('%j against %j with tolerance %d', (a, b, tolerance, expected) => {
  expect(compareValues(a, b, tolerance)).toMatchObject(expected);
});

test('zero has no ratio', () => {
  expect(compareValues(0, 5, 0)).not.toHaveProperty('ratio');
});

describe('two results', () => {
  test('the same one is equal to itself', () => {
    expect(compareResults(resultOf({}), resultOf({}), 0)).toMatchObject({
      equal: true,
      onlyA: [],
      onlyB: [],
      notes: [],
    });
  });

  test('circumstances are notes, and no differences', () => {
    const other = resultOf({ world: 'lab', agent: 'kubelet v1.34.2' });
    const { equal, notes } = compareResults(resultOf({}), other, 0);
    expect(equal).toBe(true);
    expect(notes).toEqual(['where: sim in A, lab in B', 'agent: nodelet 0.1.0 in A, kubelet v1.34.2 in B']);
  });

  test('means of repeats are compared, and lists value by value', () => {
    const repeats = (values: readonly number[]) =>
      values.map((value, index) => runOf({ repeat: index + 1, measures: { pause: [value, 5] } }));
    const found = compareResults(resultOf({ runs: repeats([1, 3]) }), resultOf({ runs: repeats([2, 2]) }), 0);
    expect(found.equal).toBe(true);
    expect(found.measures[0]?.a).toEqual([2, 5]);
  });

  test('one variation each is compared although its parameter differs; several by their parameters', () => {
    const of = (...codes: readonly number[]) =>
      resultOf({ runs: codes.map((code) => runOf({ parameters: { code } })) });
    expect(compareResults(of(1), of(2), 0)).toMatchObject({
      equal: true,
      notes: ['parameters: code=1 in A, code=2 in B'],
    });
    expect(compareResults(of(1, 2), of(2, 3), 0)).toMatchObject({
      equal: false,
      onlyA: ['variation code=1'],
      onlyB: ['variation code=3'],
    });
  });

  test('an outcome that changed, a run that failed, and what one of them alone has', () => {
    const other = resultOf({
      experiment: experimentOf({ measure: [{ name: 'other', value: 'x' }] }),
      runs: [
        runOf({
          repeat: 1,
          expectations: [
            { that: 'pause[0] < 2s', outcome: 'not met', detail: '' },
            { that: 'new', outcome: 'met', detail: '' },
          ],
          failure: 'step 1 failed',
        }),
        runOf({ repeat: 2 }),
      ],
    });
    const found = compareResults(resultOf({}), other, 1);
    expect(found.equal).toBe(false);
    expect(found.outcomes).toEqual([
      { variation: '', that: 'pause[0] < 2s', a: 'met', b: 'not met 1 of 2, met 1 of 2' },
      { variation: '', that: 'all steps are done', a: 'met', b: 'step 1 failed' },
    ]);
    expect(found.onlyA).toEqual(['measure pause']);
    expect(found.onlyB).toEqual(['measure other', 'expectation new']);
  });

  test('are written with both in one plot', () => {
    const [a, b] = [
      { name: 'one', result: resultOf({}) },
      { name: 'two', result: resultOf({ runs: [runOf({ measures: { pause: [3000, 4000] } })] }) },
    ];
    const comparison = compareResults(a.result, b.result, 0.1);
    const plot = comparisonDocument(a, b, comparison, 0.1).blocks.find((block) => block.kind === 'plot');
    expect(plot?.plot.series.map(({ label }) => label)).toEqual(['A', 'B']);
    const text = comparisonText(a, b, comparison, 0.1);
    expect(text[0]).toBe('Different (tolerance 10 %): 1 of 1 measures differ.');
    expect(text.at(-1)).toBe('! pause: 1 s | 3 s, 4 s (1 values against 2)');
  });
});

test.each([
  ['10%', 0.1],
  ['0.25', 0.25],
  ['0', 0],
])('tolerance %s', (text, value) => {
  expect(parseTolerance(text)).toBe(value);
});

test.each(['', 'x', '-1', '200%', '1e3', '5s'])('tolerance "%s" is refused', (text) => {
  expect(() => parseTolerance(text)).toThrow('is not a part');
});

describe('the command', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'experiment-compare-'));
    await writeResultFolder(join(folder, 'a'), resultOf({}), new Map());
    await writeResultFolder(join(folder, 'b'), resultOf({ runs: [runOf({ measures: { pause: [1050] } })] }), new Map());
  });
  afterEach(() => rm(folder, { recursive: true }));

  test.each([
    [undefined, 1],
    [0.1, 0],
  ])('with tolerance %s ends with %d', async (tolerance, code) => {
    const options = tolerance === undefined ? {} : { tolerance };
    expect(await runCompare(join(folder, 'a'), join(folder, 'b'), options, () => undefined)).toBe(code);
  });

  test('writes a page or Markdown, and refuses another ending', async () => {
    const write = async (name: string): Promise<string> => {
      const output = join(folder, name);
      await runCompare(join(folder, 'a'), join(folder, 'b'), { output }, () => undefined);
      return readFile(output, 'utf8');
    };
    expect(await write('c.html')).toContain('<svg class="plot"');
    expect(await write('c.md')).toContain('| 1 | 1 s | 1.05 s |');
    await expect(write('c.pdf')).rejects.toThrow('.html or .md');
  });
});
