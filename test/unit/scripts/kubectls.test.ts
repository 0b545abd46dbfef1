import { expect, test } from 'vitest';
import { withLists } from '../../e2e/support/kubectls.ts';

const named = (version: string) => ({ command: `kubectl.${version}`, version });
const full = (...versions: string[]): readonly string[] =>
  withLists(versions.map(named)).map((each) => `${each.version}${each.full ? ' full' : ''}`);

test.each([
  [['1.27'], ['1.27 full']],
  [
    ['1.28', '1.27'],
    ['1.27 full', '1.28 full'],
  ],
  [
    ['1.33', '1.9', '1.30'],
    ['1.9 full', '1.30', '1.33 full'],
  ],
  [[], []],
])('of %j the oldest and the newest are run with everything', (versions, expected) =>
  expect(full(...versions)).toEqual(expected),
);
