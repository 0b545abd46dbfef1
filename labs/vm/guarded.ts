// What a run in a virtual machine makes on this one, and how it goes, also when the run is killed: programs (the emulator,
// debootstrap and all that it starts), mounts of a Debian that is being installed, disks in the making. Programs carry the
// run's directory in their environment, as a lab's processes carry its root.

import { mkdtemp, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../lib/clock.ts';
import { guard } from '../../lib/guardian.ts';
import { markedProcesses } from '../../lib/marked-processes.ts';
import { unmountBelow } from '../../lib/mounts.ts';
import { isAlive, readProcess, signalProcess } from '../../lib/processes.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { poll } from '../../lib/retry.ts';

const CLEAR = fileURLToPath(new URL('clear-run.ts', import.meta.url));
const RUN_VARIABLE = 'NODELET_VM_RUN';
/** How long killed programs may take to be gone, ms. */
const END_MS = 30_000;

/** Where the disks are made: each exists only meanwhile. */
export interface WorkDirectories {
  readonly root: string;
  readonly tree: string;
}

/** Named by this process: two runs never make a disk in the same place. */
export async function workDirectories(cache: string): Promise<WorkDirectories> {
  const own = await readProcess(process.pid);
  const name = (what: string): string => join(cache, `work-${process.pid}-${own?.startTime ?? 0}-${what}`);
  return { root: name('root'), tree: name('tree') };
}

/** Removes the work of runs that are gone: of a machine that was switched off, say. */
export async function clearLeftWork(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    const [, pid, startTime] = /^work-(\d+)-(\d+)-/.exec(name) ?? [];
    if (pid === undefined || (await isAlive({ pid: Number(pid), startTime: Number(startTime) }))) continue;
    await unmountBelow([join(cache, name)]);
    await removeTree(join(cache, name));
  }
}

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
  process.env[RUN_VARIABLE] = directory;
  return {
    directory,
    end: async () => {
      await clearRun(directory, work);
      delete process.env[RUN_VARIABLE];
      await guardian.dismiss();
    },
  };
}

/** Ends the run's programs, unmounts what they mounted, removes its directories. Idempotent. */
export async function clearRun(directory: string, work: readonly string[]): Promise<void> {
  const areGone = async (): Promise<boolean> => {
    const left = await markedProcesses(RUN_VARIABLE, directory);
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
