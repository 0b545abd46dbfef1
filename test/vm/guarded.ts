// What a run in a virtual machine makes on this one, and how it goes, also when the run is killed: programs (the
// emulator, debootstrap and all that it starts), mounts of a Debian that is being installed, disks in the making. They
// carry the run's directory in their environment, as a lab's processes carry its root.

import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LAB_ROOT_VARIABLE, labProcesses } from '../../cli/lab/processes.ts';
import { systemClock } from '../../lib/clock.ts';
import { unmountBelow } from '../../lib/mounts.ts';
import { signalProcess } from '../../lib/processes.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { poll } from '../../lib/retry.ts';
import { guard } from '../e2e/support/guardian.ts';

const CLEAR = fileURLToPath(new URL('clear-run.ts', import.meta.url));
/** How long killed programs may take to be gone, ms. */
const END_MS = 30_000;

export interface GuardedRun {
  /** Its own, empty, with a short path: a unix socket's may have 107 bytes. */
  readonly directory: string;
  /** Takes everything down and dismisses the guardian. */
  end(): Promise<void>;
}

/** Every program that this process starts from now on is the run's. `work`: directories that exist only while it lasts. */
export async function guardRun(work: readonly string[]): Promise<GuardedRun> {
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-vm-'));
  // Before the mark is set: the guardian is not one of those it ends.
  const guardian = await guard([process.execPath, CLEAR, directory, ...work]);
  process.env[LAB_ROOT_VARIABLE] = directory;
  return {
    directory,
    end: async () => {
      await clearRun(directory, work);
      await guardian.dismiss();
    },
  };
}

/** Ends the run's programs, unmounts what they mounted, removes its directories. Idempotent. */
export async function clearRun(directory: string, work: readonly string[]): Promise<void> {
  const areGone = async (): Promise<boolean> => {
    const left = await labProcesses(directory);
    // All of them, again and again: one may just have started another.
    await Promise.all(left.map((each) => signalProcess(each, 'SIGKILL')));
    return left.length === 0;
  };
  if (!(await poll(areGone, { clock: systemClock, firstMs: 5, everyMs: 500, limitMs: END_MS }))) {
    throw new Error(`programs of the run of ${directory} do not end`);
  }
  const directories = [...work, directory];
  await unmountBelow(directories);
  for (const each of directories) await removeTree(each);
}
