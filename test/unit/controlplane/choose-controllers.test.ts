import { expect, test } from 'vitest';
import { CONTROLLERS, chooseControllers } from '../../../controlplane/controllers.ts';

const ALL = CONTROLLERS.map(({ name }) => name);

test.each<[string, readonly string[], readonly string[]]>([
  ['all', ['*'], ALL],
  ['one', ['deployment-controller'], ['deployment-controller']],
  ['all but one', ['*', '-deployment-controller'], ALL.filter((name) => name !== 'deployment-controller')],
  ['a name wins', ['*', 'deployment-controller', '-deployment-controller'], ALL],
  ['nothing without a star', ['-deployment-controller'], []],
])('--controllers: %s', (_, selection, expected) => {
  expect(chooseControllers(selection).map(({ name }) => name)).toEqual(expected);
});

test('a name that no controller has is refused', () => {
  expect(() => chooseControllers(['*', '-deploymnet-controller'])).toThrow(
    '"-deploymnet-controller" is not in the list',
  );
});

test('every name is there once', () => {
  expect(new Set(ALL).size).toBe(ALL.length);
});
