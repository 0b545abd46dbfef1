// Durations in files and expressions, and that the published schema allows the same texts as the parser.

import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { DURATION_PATTERN, durationMs, milliseconds } from '../../../../cli/experiment/duration.ts';

test.each([
  ['500ms', 500],
  ['10s', 10_000],
  ['1.5s', 1500],
  ['1m30s', 90_000],
  ['1h30m', 5_400_000],
  ['1d', 86_400_000],
  ['0s', 0],
])('%s', (text, ms) => {
  expect(durationMs(text)).toBe(ms);
  expect(milliseconds(text)).toBe(ms);
});

test.each(['', '0', '5', 's', '-5s', '1 m', '1us', '.5s', '10s '])('"%s" is refused', (text) => {
  expect(durationMs(text)).toBeUndefined();
  expect(() => milliseconds(text)).toThrow(`"${text}" is no duration as 250ms`);
});

test('the schema has the same pattern, and one that may be below zero for the clock', async () => {
  const file = new URL('../../../../cli/experiment/schema.json', import.meta.url);
  const found: string[] = [];
  JSON.parse(await readFile(file, 'utf8'), (key, value: unknown) => {
    if (key === 'pattern' && typeof value === 'string' && value.includes('ms|s')) found.push(value);
    return value;
  });
  const { source } = DURATION_PATTERN;
  expect(found.length).toBeGreaterThan(4);
  expect([...new Set(found)].sort()).toEqual([source, source.replace('^', '^-?')].sort());
});
