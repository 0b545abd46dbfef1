// Removes what a killed demo left, before the next one begins.

import { UserError } from '../../lib/errors.ts';
import { cleanLab, provenByItself } from './clean.ts';
import { lockRoot } from './lock.ts';
import type { LabPurpose } from './marker.ts';
import { classifyRoot } from './ownership.ts';
import type { LabPaths } from './paths.ts';
import { rootFacts } from './root.ts';
import { assertNotProtected } from './take-root.ts';

/** One line for each leftover of a killed lab that is about to be removed. */
export async function leftoverLines(paths: LabPaths): Promise<readonly string[]> {
  const leftovers = await provenByItself(paths);
  return leftovers.map((leftover) => `an earlier lab under ${paths.root} did not end in order: removing ${leftover}`);
}

/**
 * Nothing of a demo is ever kept, so everything under its root is a dead demo's: it is removed before a lab or a demo
 * begins there. Rejects with UserError when the root is protected or in use, and before a demo when the root is a lab's
 * that is not a demo: the demo would remove it at its end.
 */
export async function clearEarlierDemo(paths: LabPaths, say: (line: string) => void, next: LabPurpose): Promise<void> {
  await assertNotProtected(paths.root);
  const facts = await rootFacts(paths);
  const ownership = classifyRoot(facts, paths.stateFile);
  // The start refuses any other content.
  if (ownership.kind !== 'proven') return;
  const { purpose } = ownership.marker;
  if (next === 'lab' && purpose === 'lab') return;
  const lock = await lockRoot(paths, facts.identity);
  try {
    if (purpose !== 'demo') {
      throw new UserError(
        `${paths.root} has a lab that is no demo's: take it down with nodelet down, or give the demo another --root`,
      );
    }
    const lines = await leftoverLines(paths);
    for (const line of lines) say(line);
    if (lines.length === 0) say(`an earlier demo under ${paths.root} did not end in order: removing what it left`);
    const problems = await cleanLab({ paths });
    if (problems.length > 0) throw new UserError(`leftovers of an earlier demo are in the way: ${problems.join('; ')}`);
  } finally {
    await lock.release();
  }
}
