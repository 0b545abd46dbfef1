import { expect, test } from 'vitest';

let copies = 0;

/** The module as in a process of its own: it has no violations yet, and throws none. */
const fresh = (): Promise<typeof import('../../../lib/invariant.ts')> =>
  import(new URL(`../../../lib/invariant.ts?copy=${++copies}`, import.meta.url).href);

test('what holds costs nothing: its fields are not even made', async () => {
  const { invariant, invariantViolations } = await fresh();
  invariant(true, 'it holds', () => {
    throw new Error('made');
  });
  expect([...invariantViolations()]).toEqual([]);
});

test('in production a violation is counted and reported, and the program goes on', async () => {
  const { invariant, invariantViolations, reportViolations } = await fresh();
  const reported: unknown[] = [];
  reportViolations((name, fields) => reported.push([name, fields]));
  invariant(false, 'an exit has a time', () => ({ id: 'c1' }));
  invariant(false, 'an exit has a time', () => ({ id: 'c2' }));
  invariant(false, 'a record names its pod', () => ({}));
  expect([...invariantViolations()]).toEqual([
    ['an exit has a time', 2],
    ['a record names its pod', 1],
  ]);
  expect(reported).toEqual([
    ['an exit has a time', { id: 'c1' }],
    ['an exit has a time', { id: 'c2' }],
    ['a record names its pod', {}],
  ]);
});

test('in tests and the simulator it throws, and says where', async () => {
  const { invariant, invariantViolations, throwOnViolation } = await fresh();
  throwOnViolation();
  expect(() => invariant(false, 'an exit has a time', () => ({ id: 'c1' }))).toThrow(
    'invariant violated: an exit has a time {"id":"c1"}',
  );
  expect(invariantViolations().get('an exit has a time')).toBe(1);
});
