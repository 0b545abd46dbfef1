// The rules about types hold for all of nodelet's code. That each finds what it is about is tested beside this file.

import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isProduction, unsafeLookups } from '../../../scripts/lint-lookups.ts';
import { LintProject } from '../../../scripts/lint-project.ts';
import { looseTimes } from '../../../scripts/lint-times.ts';

let project: LintProject | undefined;
beforeAll(() => {
  project = new LintProject(fileURLToPath(new URL('../../..', import.meta.url)));
  expect(project.files(isProduction).length).toBeGreaterThan(1000);
});
afterAll(() => project?.[Symbol.dispose]());

it.each([
  ['no outside name is looked up in a plain object', unsafeLookups],
  ['no moment is a plain number, and no moment of one clock meets one of the other', looseTimes],
])('%s', (_rule, found) => {
  expect(project && found(project, isProduction)).toEqual([]);
});
