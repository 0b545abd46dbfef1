import { expect, test } from 'vitest';
import { cutBytes, cutText, cutWithMark } from '../../../lib/cut.ts';

test.for([
  ['', 10, ''],
  ['short', 10, 'short'],
  ['exactly 10', 10, 'exactly 10'],
  ['eleven long', 10, 'eleven lon'],
  ['äöüäö', 10, 'äöüäö'],
  ['äöüäöü', 10, 'äöüäö'],
  ['xäöüäö', 10, 'xäöüä'],
  ['€€€€', 10, '€€€'],
  ['😀😀😀', 10, '😀😀'],
  ['anything', 0, ''],
] as const)('%j within %i bytes is %j', ([text, limit, cut]) => {
  expect(cutText(text, limit)).toBe(cut);
  expect(cutBytes(Buffer.from(text), limit).toString('utf8')).toBe(cut);
});

test('a mark says how much is missing, and counts against the limit', () => {
  expect(cutWithMark('whole', 5)).toBe('whole');
  const cut = cutWithMark('x'.repeat(6_000_000), 1000);
  expect(cut).toBe(`${'x'.repeat(960)}… (5999040 characters more)`);
  expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(1000);
});
