// The directory of one run on a lab, below one that all runs share: who made it is written in it, so that the next run takes
// away what a killed one has left.

import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readFileIfExists, writeFileAtomic } from '../../../lib/atomic.ts';
import type { Clock } from '../../../lib/clock.ts';
import { isErrno, UserError } from '../../../lib/errors.ts';
import { isAlive, type ProcessId, readProcess } from '../../../lib/processes.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { parsePidFile } from '../../lab/child.ts';
import { runDown } from '../../lab/down.ts';

/** Root's alone: what is in it is started as root. */
export const RUNS_DIRECTORY = '/tmp/nodelet-experiment';
const OWNER_FILE = 'owner.json';

export const labRootOf = (directory: string): string => join(directory, 'lab');

/** Makes the directory that all runs share. Rejects with UserError where it is another user's. */
async function sharedDirectory(parent: string): Promise<void> {
  try {
    await mkdir(parent, { mode: 0o700 });
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  }
  const stat = await lstat(parent);
  if (!stat.isDirectory() || stat.uid !== process.getuid?.() || (stat.mode & 0o022) !== 0)
    throw new UserError(`${parent} is not a directory of root's alone: move it away`);
}

async function ownerOf(directory: string): Promise<ProcessId | undefined> {
  return parsePidFile((await readFileIfExists(join(directory, OWNER_FILE))) ?? '');
}

/** Takes away the labs and directories of runs whose process is gone. */
export async function clearLeftRuns(parent: string, clock: Clock, say: (line: string) => void): Promise<void> {
  await sharedDirectory(parent);
  for (const name of await readdir(parent)) {
    const directory = join(parent, name);
    const owner = await ownerOf(directory);
    // Without an owner it may be a run that is just being made: its lab, where there is one, has its own lock.
    if (owner === undefined || (await isAlive(owner))) continue;
    say(`an experiment that was killed has left ${directory}: it is removed`);
    await runDown({ root: labRootOf(directory), say, clock });
    await removeTree(directory);
  }
}

export async function makeRunDirectory(parent: string): Promise<string> {
  await sharedDirectory(parent);
  const directory = join(parent, randomBytes(4).toString('hex'));
  await mkdir(directory, { mode: 0o700 });
  const own = await readProcess(process.pid);
  await writeFileAtomic(
    join(directory, OWNER_FILE),
    `${JSON.stringify({ pid: process.pid, startTime: own?.startTime ?? -1 })}\n`,
  );
  return directory;
}
