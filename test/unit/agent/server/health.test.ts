import { describe, expect, test } from 'vitest';
import { healthz } from '../../../../agent/server/health.ts';

const NONE = new Map<string, number>();
const SOME = new Map([
  ['a', 2],
  ['b\\"\n', 1],
]);

describe('/healthz', () => {
  test.each([
    ['well', true, false, NONE, 200, 'ok'],
    ['violations fail nothing', true, false, SOME, 200, 'ok'],
    [
      'well, verbose',
      true,
      true,
      NONE,
      200,
      '[+]ping ok\n[+]log ok\n[+]syncloop ok\n[i]invariants: none violated\nhealthz check passed\n',
    ],
    [
      'stuck',
      false,
      false,
      SOME,
      500,
      '[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n',
    ],
    [
      'stuck, verbose',
      false,
      true,
      new Map([
        ['a', 2],
        ['b', 1],
      ]),
      500,
      '[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\n' +
        '[i]invariants: violated 3 times since the agent started: "a" 2, "b" 1\nhealthz check failed\n',
    ],
  ])('%s', (_title, moves, verbose, violations, status, body) => {
    expect(healthz(moves, verbose, violations)).toEqual({ status, body });
  });
});
