import { describe, expect, test } from 'vitest';
import type { ContainerSnapshot } from '../../../../../agent/ports/runtime.ts';
import {
  containerVerdict,
  isFinal,
  sandboxVerdict,
  type Verdict,
} from '../../../../../agent/runtime/cache/precedence.ts';
import { epochMs } from '../../../../../lib/clock.ts';
import { container, EXITED } from './records.ts';

type State = ContainerSnapshot['state'];

describe('what a statement about a container’s state is worth', () => {
  /** Known, stated, if requested before the known state was learned, if after. */
  const rows: readonly [State, State, Verdict, Verdict][] = [
    ['created', 'created', 'agree', 'agree'],
    ['created', 'running', 'take', 'take'],
    ['created', 'exited', 'take', 'take'],
    ['created', 'unknown', 'ignore', 'take'],
    ['running', 'created', 'ignore', 'ignore'],
    ['running', 'running', 'agree', 'agree'],
    ['running', 'exited', 'take', 'take'],
    ['running', 'unknown', 'ignore', 'take'],
    ['exited', 'created', 'ignore', 'ignore'],
    ['exited', 'running', 'ignore', 'ignore'],
    ['exited', 'exited', 'agree', 'agree'],
    ['exited', 'unknown', 'ignore', 'ignore'],
    ['unknown', 'created', 'ignore', 'take'],
    ['unknown', 'running', 'ignore', 'take'],
    ['unknown', 'exited', 'take', 'take'],
    ['unknown', 'unknown', 'agree', 'agree'],
  ];
  test.each(rows)('%s, then %s', (known, stated, older, newer) => {
    expect([containerVerdict(known, stated, false), containerVerdict(known, stated, true)]).toEqual([older, newer]);
  });
});

test.each([
  ['ready', 'ready', 'agree', 'agree'],
  ['ready', 'notReady', 'ignore', 'take'],
  ['notReady', 'ready', 'ignore', 'take'],
  ['notReady', 'notReady', 'agree', 'agree'],
] as const)('a sandbox that is %s, then %s', (known, stated, older, newer) => {
  expect([sandboxVerdict(known, stated, false), sandboxVerdict(known, stated, true)]).toEqual([older, newer]);
});

test.each<[string, Partial<ContainerSnapshot>, number, boolean]>([
  ['an exit', {}, 4000, true],
  ['a fresh SIGKILL may yet be an OOM kill', { exitCode: 137 }, 5000, false],
  ['an old SIGKILL', { exitCode: 137 }, 7000, true],
  ['an OOM kill', { exitCode: 137, reason: 'OOMKilled' }, 4000, true],
  ['running', { state: 'running' }, 9000, false],
  ['unknown', { state: 'unknown' }, 9000, false],
])('nothing changes any more: %s', (_what, overrides, now, expected) => {
  expect(isFinal(container({ ...EXITED, ...overrides }), epochMs(now))).toBe(expected);
});
