import { expect, test } from 'vitest';
import { inOrder } from '../../support/longest-first.ts';

interface File {
  readonly name: string;
  readonly project: string;
  readonly group: number;
  readonly expectedMs: number;
}
const file = (name: string, project: string, expectedMs: number, group = 0): File => ({
  name,
  project,
  group,
  expectedMs,
});
const names = (files: readonly File[]): string =>
  inOrder(files, (each) => each)
    .map(({ name }) => name)
    .join(' ');

test('the longest file comes first', () => {
  expect(names([file('a', 'e2e', 1), file('b', 'e2e', 9), file('c', 'e2e', 5)])).toBe('b c a');
});

test('a project is not interrupted by another, and the smaller one comes first', () => {
  const files = [
    file('long', 'e2e', 90),
    file('middle', 'services', 80),
    file('short', 'e2e', 20),
    file('shorter', 'services', 10),
  ];
  expect(names(files)).toBe('middle shorter long short');
  expect(names(files.toReversed())).toBe('middle shorter long short');
});

test('projects of the same size are not mixed either', () => {
  expect(names([file('a', 'y', 5), file('b', 'x', 5), file('c', 'y', 3), file('d', 'x', 3)])).toBe('b d a c');
});

test('what vitest runs later comes later, however long it takes', () => {
  expect(names([file('later', 'e2e', 90, 1), file('now', 'unit', 1, 0)])).toBe('now later');
});
