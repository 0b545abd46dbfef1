// What `nodelet lab check` prints: one paragraph a finding, then whether the exercise is solved. Pure.

import type { Exercise, Finding } from '../../labs/exercises/model.ts';
import { isSolved } from '../../labs/exercises/model.ts';

export function renderFindings(exercise: Pick<Exercise, 'lesson'>, findings: readonly Finding[]): string {
  const lines = findings.flatMap(({ subject, found, missing }) => [
    `  ${missing === undefined ? 'ok  ' : 'no  '} ${subject}`,
    `       found:   ${found}`,
    ...(missing === undefined ? [] : [`       missing: ${missing}`]),
  ]);
  const open = findings.filter(({ missing }) => missing !== undefined).length;
  const verdict = isSolved(findings)
    ? `Solved. ${exercise.lesson}`
    : `Not yet: ${open} of ${findings.length} ${open === 1 ? 'is' : 'are'} missing.`;
  return [...lines, '', verdict].join('\n');
}
