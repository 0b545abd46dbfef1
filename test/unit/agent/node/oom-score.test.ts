import { expect, it } from 'vitest';
import { mayLowerOomScore } from '../../../../agent/node/oom-score.ts';

it.each([
  ['with every capability', 'Name:\tnode\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n', true],
  ['without CAP_SYS_RESOURCE', 'Name:\tnode\nCapEff:\t000001fffeffffff\n', false],
  ['with that one alone', 'CapEff:\t0000000001000000\n', true],
  ['where nothing is told', 'Name:\tnode\n', false],
])('a process %s may lower an OOM score: %#', (_, status, expected) => {
  expect(mayLowerOomScore(status)).toBe(expected);
});
