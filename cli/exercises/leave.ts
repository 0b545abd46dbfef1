// The end of exercises on the machine: what their commands made outside the lab goes, whether the lab runs or not. Also used
// when a lab is taken down in the middle of one.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findExercise } from '../../labs/exercises/index.ts';
import type { Exercise } from '../../labs/exercises/model.ts';
import { systemClock } from '../../lib/clock.ts';
import { endProcess } from '../../lib/end-process.ts';
import { isErrno } from '../../lib/errors.ts';
import { unmountBelow } from '../../lib/mounts.ts';
import { listProcesses, type ProcessEntry } from '../../lib/processes.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { removeCgroups } from '../lab/clean-cgroups.ts';
import { detachLoopsBelow } from '../lab/loops.ts';
import type { LabPaths } from '../lab/paths.ts';
import type { LabState } from '../lab/state.ts';
import { groundOf } from './session.ts';

const GRACE_MS = 3_000;

/**
 * Whether a process is one of this program's (a tap, a CSI driver) that works in the directory: one of its arguments is
 * below it. Pure.
 */
export function worksIn(entry: Pick<ProcessEntry, 'argv'>, directory: string): boolean {
  if (!entry.argv.some((word) => word.endsWith('/cli/main.ts'))) return false;
  return entry.argv.some((word) => word.includes(`${directory}/`));
}

async function endPrograms(directory: string): Promise<void> {
  const own = (await listProcesses()).filter((entry) => entry.pid !== process.pid && worksIn(entry, directory));
  await Promise.all(own.map((entry) => endProcess(entry, systemClock, GRACE_MS)));
}

/** Takes one exercise off the machine. Idempotent. */
export async function removeFromMachine(
  exercise: Exercise,
  paths: LabPaths,
  state: Pick<LabState, 'cgroupDriver' | 'runtime'> = {},
): Promise<void> {
  const ground = groundOf(paths, exercise.name, state);
  await endPrograms(ground.directory);
  try {
    await exercise.remove?.(ground);
  } finally {
    // What it could not take away is no reason to leave mounts and loop devices behind.
    await unmountBelow([ground.directory]);
    await detachLoopsBelow(ground.directory);
  }
  for (const cgroup of exercise.cgroups ?? []) await removeCgroups(join(paths.cgroupRoot, cgroup), systemClock);
  await removeTree(ground.directory);
}

/** Takes all exercises off the machine: those that have a directory. For the end of a lab, whose pods are gone. */
export async function leaveExercises(paths: LabPaths): Promise<void> {
  let names: string[];
  try {
    names = await readdir(paths.exercisesDir);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    throw error;
  }
  for (const name of names) {
    const exercise = findExercise(name);
    if (exercise !== undefined) await removeFromMachine(exercise, paths);
  }
}
