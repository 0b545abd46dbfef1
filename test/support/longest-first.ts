// The order of the test files: the longest first, so that no long one is left when the others are through. Files of
// several projects that run side by side are put in one order.

import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { DURATIONS_FILE, expectedMs, readDurations } from '../../scripts/test-durations.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const known = await readDurations(join(ROOT, DURATIONS_FILE));
    const expected = (spec: TestSpecification): number => expectedMs(relative(ROOT, spec.moduleId), known);
    const group = (spec: TestSpecification): number => spec.project.config.sequence.groupOrder;
    return files.toSorted((a, b) => group(a) - group(b) || expected(b) - expected(a));
  }
}
