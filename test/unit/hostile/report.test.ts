// The hostile run's table and its place in docs/security.md.

import { expect, test } from 'vitest';
import { seededRandom } from '../../hostile/random.ts';
import { figuresTable, withTable } from '../../hostile/report.ts';

const table = figuresTable([
  {
    campaign: { name: 'trees', what: 'a | b' },
    rounds: 2,
    figures: { tried: 4, refused: 3, crashed: 0, lost: 1 },
    seconds: 1.4,
  },
]);

test('a row has every figure, and a bar in a text does not make a column', () => {
  expect(table.split('\n').at(-1)).toBe('| trees | a \\| b | 2 | 4 | 3 | 0 | 1 | 1 s |');
});

test('the table replaces what stood between the marks', () => {
  const page = 'before\n<!-- figures: npm run test:hostile -- --write -->\nold\n<!-- end of figures -->\nafter\n';
  const written = withTable(page, table);
  expect(written).toContain(table);
  expect(written).not.toContain('old');
  expect(withTable(written, table)).toBe(written);
  expect(() => withTable('a page', table)).toThrow('no place for the figures');
});

test('the same seed gives the same numbers', () => {
  const [one, two] = [seededRandom(7), seededRandom(7)];
  const numbers = Array.from({ length: 50 }, () => one.below(10));
  expect(Array.from({ length: 50 }, () => two.below(10))).toEqual(numbers);
  expect(new Set(numbers).size).toBeGreaterThan(5);
});
