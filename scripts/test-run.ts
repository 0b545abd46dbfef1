// Finds what a run of the tests has started, and takes it down when the run is stopped: labs first, by their supervisors,
// then everything else. A process belongs to a run by a variable in its environment, which all inherit.

import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type Clock, systemClock } from '../lib/clock.ts';
import { endProcess } from '../lib/end-process.ts';
import { isErrno } from '../lib/errors.ts';
import { GUARDIAN } from '../lib/guardian.ts';
import { listProcesses, type ProcessEntry, signalProcess } from '../lib/processes.ts';

export const RUN_VARIABLE = 'NODELET_TEST_RUN';

/** How long, in ms, labs may take to go; and everything else. */
const LABS_MS = 300_000;
const REST_MS = 5_000;

/** supervisor: takes its lab down on a signal; cleaner: is taking one down, or will; other: just ends. */
export type Role = 'supervisor' | 'cleaner' | 'other';

/** Pure. */
export function roleOf(entry: Pick<ProcessEntry, 'argv'>): Role {
  const main = entry.argv.findIndex((word) => word.endsWith('/cli/main.ts') || word.endsWith('/bin/nodelet'));
  const command = main < 0 ? undefined : entry.argv[main + 1];
  if (command === 'up' || command === 'demo') return 'supervisor';
  return command === 'down' || entry.argv.includes(GUARDIAN) ? 'cleaner' : 'other';
}

/** Marks this process and everything it starts. Returns the mark. */
export function markRun(): string {
  const id = randomUUID();
  process.env[RUN_VARIABLE] = id;
  return id;
}

async function marked(id: string): Promise<readonly ProcessEntry[]> {
  const mark = `${RUN_VARIABLE}=${id}`;
  const found: ProcessEntry[] = [];
  for (const entry of await listProcesses()) {
    if (entry.pid === process.pid || entry.state === 'Z') continue;
    try {
      if ((await readFile(`/proc/${entry.pid}/environ`, 'latin1')).split('\0').includes(mark)) found.push(entry);
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) throw error;
    }
  }
  return found;
}

/**
 * Takes down what a run has left whose test programs have ended: signals supervisors, waits for labs to go, ends the
 * rest. Resolves when no process of the run is left.
 */
export async function endRun(id: string, say: (line: string) => void, clock: Clock = systemClock): Promise<void> {
  const deadline = clock.monotonic() + LABS_MS;
  const signalled = new Set<number>();
  for (;;) {
    const busy = (await marked(id)).filter((entry) => roleOf(entry) !== 'other');
    if (busy.length === 0 || clock.monotonic() > deadline) break;
    for (const entry of busy) {
      if (roleOf(entry) !== 'supervisor' || signalled.has(entry.pid)) continue;
      signalled.add(entry.pid);
      say(`   stopping ${entry.argv.slice(-4).join(' ')} (process ${entry.pid})`);
      await signalProcess(entry, 'SIGTERM');
    }
    await clock.sleep(100);
  }
  for (let left = await marked(id); left.length > 0; left = await marked(id)) {
    await Promise.all(left.map((entry) => endProcess(entry, clock, REST_MS)));
  }
}
