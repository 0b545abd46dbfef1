import { describe, expect, test } from 'vitest';
import { TRICKS } from '../../../lib/tricks.ts';
import { randomHalves } from '../../bench/effects.ts';
import { type Amount, goals, type Machine, pooled, type Row, renderReport } from '../../bench/report.ts';
import { type MeasuredPair, renderTricks } from '../../bench/tricks.ts';

const machine: Machine = {
  cpu: 'Test CPU',
  cores: 2,
  memoryGiB: 4,
  kernel: '6.1',
  containerd: '1.6.20',
  node: 'v24',
  disk: 'ext4 with a journal',
  load: [0.25, 3],
};
const same = (value: number): readonly number[] => Array.from({ length: 20 }, () => value);
const row = (samples: readonly number[], more: Partial<Row> = {}): Row => ({ name: 'row', samples, ...more });
const amount = (samples: readonly number[], more: Partial<Amount> = {}): Amount => ({
  name: 'amount',
  unit: 'MiB',
  samples,
  ...more,
});
const reached = (rows: readonly Row[], amounts: readonly Amount[] = []) =>
  goals({ rows, amounts }).map(({ name, reached: is }) => [name, is]);

describe('a goal', () => {
  test('is reached at its limit and missed above it', () => {
    expect(reached([row(same(20), { limitMs: 20 })])).toEqual([['row, p50', true]]);
    expect(reached([row(same(20.1), { limitMs: 20 })])).toEqual([['row, p50', false]]);
  });

  test('is missed when only a part of the interval reaches it', () => {
    const samples = [...Array.from({ length: 11 }, () => 19), ...Array.from({ length: 9 }, () => 30)];
    const [goal] = goals({ rows: [row(samples, { limitMs: 20 })], amounts: [] });
    expect(goal).toMatchObject({ value: 19, range: { high: 30 }, reached: false });
  });

  test('of a ratio is computed from the pairs', () => {
    const floor = same(200);
    expect(reached([row(same(230), { floor, ratioLimit: 1.15 })])).toEqual([['row, of the floor', true]]);
    expect(reached([row(same(231), { floor, ratioLimit: 1.15 })])).toEqual([['row, of the floor', false]]);
  });

  test('of the longest time counts a single one', () => {
    expect(reached([row([...same(5), 101], { maxLimitMs: 100 })])).toEqual([['row, max', false]]);
  });

  test('of an amount is its median’s, and of a peak every sample’s', () => {
    expect(reached([], [amount([3, 4, 5], { limit: 5 })])).toEqual([['amount', true]]);
    expect(reached([], [amount([119, 121], { limit: 120, peak: true })])).toEqual([['amount', false]]);
    expect(goals({ rows: [], amounts: [amount([119, 120], { limit: 120, peak: true })] })[0]).toMatchObject({
      value: 120,
      range: { low: 119, high: 120 },
      reached: true,
    });
  });

  test('is there only for what has a limit', () => {
    expect(reached([row(same(1), { floor: same(1) })], [amount([1])])).toEqual([]);
  });
});

describe('the report', () => {
  const text = renderReport({
    machine,
    rows: [row(same(230), { floor: same(200), ratioLimit: 1.1 }), row(same(7))],
    amounts: [amount([100, 110], { peak: true, limit: 120 })],
    notes: ['one: not measured'],
  });
  test.each([
    '- one: not measured',
    '| row | 20 | 230.0 | 230.0 | 230.0 | 1.15 × | 1.15 to 1.15 × |',
    '| row | 20 | 7.0 | 7.0 | 7.0 |  | 7.0 to 7.0 ms |',
    '| amount | 110.0 MiB | 100.0 to 110.0 |',
    '- NOT reached: row, of the floor 1.15 ×, 1.15 to 1.15 (to reach with all of it: ≤ 1.1 ×)',
    '- reached: amount 110.00 MiB, 100.00 to 110.00 (to reach with all of it: ≤ 120 MiB)',
    'Node v24; ext4 with a journal; load average before and after: 0.3 and 3.0',
  ])('has %j', (line) => expect(text).toContain(line));
});

test('runs that are pooled count as one: pairs stay pairs, and a row or amount of one run alone is kept', () => {
  const first = { machine, rows: [row([1, 2], { floor: [3, 4] })], amounts: [amount([5])] };
  const loaded: Machine = { ...machine, load: [1, 2] };
  const second = {
    machine: loaded,
    rows: [row([6], { floor: [7], ratioLimit: 2 }), row([8], { name: 'b' })],
    amounts: [],
  };
  expect(pooled([first, second])).toEqual({
    machine: { ...machine, load: [0.25, 2] },
    rows: [row([1, 2, 6], { floor: [3, 4, 7], ratioLimit: 2 }), row([8], { name: 'b' })],
    amounts: [amount([5])],
  });
});

test('the table of tricks says what each saves of every measure, in percent', () => {
  const values = (ms: number) => ({
    'start, ms': ms,
    'burst, ms': 1000,
    'agent’s CPU in the burst, ms': 100,
    'agent’s peak RSS, MiB': 100,
  });
  const pairs: readonly MeasuredPair[] = randomHalves(TRICKS.length, 24, 1).map((on) => ({
    on,
    first: values(on[0] === true ? 90 : 110),
    second: values(on[0] === true ? 110 : 90),
  }));
  const lines = renderTricks(pairs).split('\n');
  expect(lines).toHaveLength(2 + TRICKS.length);
  expect(lines[0]).toContain('| 24 pairs | % of start, ms (100) |');
  expect(lines[2]).toBe(
    `| \`${TRICKS[0]}\` | 20.0 (20.0 to 20.0) | 0.0 (0.0 to 0.0) | 0.0 (0.0 to 0.0) | 0.0 (0.0 to 0.0) |`,
  );
});
