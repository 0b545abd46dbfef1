// The order of the test files: the longest first, so that no long one is left when the others are through. Of projects that
// run side by side the smaller one comes first as a whole. A worker serves one project and is started anew for a file of
// another, with 300 modules to load: so each changes once, and the end of the smaller project has the other's files beside it.

import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { DURATIONS_FILE, expectedMs, readDurations } from '../../scripts/test-durations.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Timed {
  readonly project: string;
  /** vitest runs these groups one after the other. */
  readonly group: number;
  readonly expectedMs: number;
}

/** Pure. */
export function inOrder<T>(files: readonly T[], timed: (file: T) => Timed): T[] {
  const sizes = new Map<string, number>();
  const all = files.map((file) => ({ file, ...timed(file) }));
  for (const { project, expectedMs: ms } of all) sizes.set(project, (sizes.get(project) ?? 0) + ms);
  const size = (project: string): number => sizes.get(project) ?? 0;
  return all
    .toSorted(
      (a, b) =>
        a.group - b.group ||
        size(a.project) - size(b.project) ||
        a.project.localeCompare(b.project) ||
        b.expectedMs - a.expectedMs,
    )
    .map(({ file }) => file);
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const known = await readDurations(join(ROOT, DURATIONS_FILE));
    return inOrder(files, ({ project, moduleId }) => ({
      project: project.name,
      group: project.config.sequence.groupOrder,
      expectedMs: expectedMs(relative(ROOT, moduleId), known),
    }));
  }
}
