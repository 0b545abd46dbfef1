import { describe, expect, test } from 'vitest';
import { parseTricks, TRICKS } from '../../../lib/tricks.ts';

describe('NODELET_TRICKS', () => {
  test.each<[string | undefined, readonly string[]]>([
    [undefined, TRICKS],
    ['', TRICKS],
    ['none', []],
    ['-exec-helper', TRICKS.filter((name) => name !== 'exec-helper')],
    ['-exec-helper,-malloc', TRICKS.filter((name) => name !== 'exec-helper' && name !== 'malloc')],
    ['none,perl-shim', ['perl-shim']],
    ['none,perl-shim,-perl-shim', []],
  ])('%j leaves on what it names', (text, expected) => {
    expect([...parseTricks(text)]).toEqual([...expected]);
  });

  test.each(['-exec-helpers', 'none,toString', 'all'])('%j is refused with the names that there are', (text) => {
    expect(() => parseTricks(text)).toThrow(`there are ${TRICKS.join(', ')}`);
  });
});
