// Which exercise of a lab is under way, in <root>/exercises/current.json. It is written before the exercise makes anything, so
// that whatever an interrupted command left can be taken away.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { UserError } from '../../lib/errors.ts';
import type { LabPaths } from '../lab/paths.ts';
import { exists } from '../lab/root.ts';

export interface Current {
  readonly name: string;
  /** The number of the step that was shown last; 1 is the first. */
  readonly step: number;
  /** How many hints were shown. */
  readonly hints: number;
  /** `nodelet lab start` has started the lab, and `nodelet lab stop` stops it. */
  readonly startedLab: boolean;
}

function file(paths: LabPaths): string {
  return join(paths.exercisesDir, 'current.json');
}

/** Undefined when none is under way. Rejects with UserError when the file is damaged. */
export async function readCurrent(paths: LabPaths): Promise<Current | undefined> {
  const text = await readFileIfExists(file(paths));
  if (text === undefined) return undefined;
  try {
    const current: Current = JSON.parse(text);
    if (typeof current.name === 'string' && typeof current.step === 'number') return current;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new UserError(`${file(paths)} is damaged: remove it, and start the exercise again`);
}

/** Rejects with UserError where the lab is of a nodelet without exercises. */
export async function writeCurrent(paths: LabPaths, current: Current): Promise<void> {
  if (!(await exists(paths.exercisesDir)))
    throw new UserError(`the lab under ${paths.root} has no place for exercises: start it again with this nodelet`);
  await writeFileAtomic(file(paths), `${JSON.stringify(current)}\n`);
}

export async function removeCurrent(paths: LabPaths): Promise<void> {
  await rm(file(paths), { force: true });
}
