import { describe, expect, test } from 'vitest';
import { healthz, metrics } from '../../../../agent/server/health.ts';

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

test('/metrics', () => {
  const head = [
    '# HELP nodelet_invariant_violations_total Statements about the program that did not hold since it started, by statement.',
    '# TYPE nodelet_invariant_violations_total counter',
  ];
  expect(metrics(NONE).split('\n')).toEqual([...head, '']);
  expect(metrics(SOME).split('\n')).toEqual([
    ...head,
    'nodelet_invariant_violations_total{invariant="a"} 2',
    'nodelet_invariant_violations_total{invariant="b\\\\\\"\\n"} 1',
    '',
  ]);
});
