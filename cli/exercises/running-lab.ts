// The lab that exercises work in: the one that runs under the root, or one that is started in the background. Makes nothing
// else.

import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import type { ProcessId } from '../../lib/processes.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { poll } from '../../lib/retry.ts';
import { rootHolder } from '../lab/lock.ts';
import { rootIdentity } from '../lab/marker.ts';
import type { LabPaths } from '../lab/paths.ts';
import { type LabState, readLabState } from '../lab/state.ts';

const NODELET = fileURLToPath(new URL('../../bin/nodelet', import.meta.url));
const LOOK_MS = 100;
/** The last line that `nodelet up` prints before it waits. */
const UP = 'Ctrl-C stops the lab';

export async function labHolder(paths: LabPaths): Promise<ProcessId | undefined> {
  return rootHolder(paths, await rootIdentity(paths.root));
}

/** Undefined where none runs under the root. */
export async function runningLab(paths: LabPaths): Promise<LabState | undefined> {
  if ((await labHolder(paths)) === undefined) return undefined;
  return readLabState(paths);
}

/**
 * Starts `nodelet up` in the background and resolves when its node is Ready. Its output is a file without a name: nothing of
 * it stays on the machine. Rejects with UserError, and what it printed, when it ends before that.
 */
export async function startLabInBackground(paths: LabPaths, say: (line: string) => void): Promise<LabState> {
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-lab-'));
  const file = join(directory, 'up.log');
  const output = openSync(file, 'a+', 0o600);
  try {
    const child = spawn(NODELET, ['up', '--root', paths.root], {
      detached: true,
      stdio: ['ignore', output, output],
    });
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('exit', (code, signal) => resolve(`exit ${code ?? signal}`));
    });
    let why: string | undefined;
    void ended.then((text) => {
      why = text;
    });
    let shown = 0;
    const up = async (): Promise<boolean> => {
      const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
      // What follows is for people who have it in a terminal.
      const end = lines.indexOf('');
      const steps = end < 0 ? lines : lines.slice(0, end);
      for (const line of steps.slice(shown)) say(`  ${line}`);
      shown = steps.length;
      if (why !== undefined) throw new UserError(`no lab could be started under ${paths.root} (${why})`);
      return lines.some((line) => line.startsWith(UP));
    };
    await poll(up, { clock: systemClock, everyMs: LOOK_MS });
    child.unref();
  } finally {
    closeSync(output);
    await removeTree(directory);
  }
  const state = await readLabState(paths);
  if (state === undefined) throw new UserError(`the lab under ${paths.root} is gone again`);
  return state;
}
