// Ends one process and waits until it is gone. Never signals another process that has got the same pid since.

import type { Clock } from './clock.ts';
import { isAlive, type ProcessId, signalProcess } from './processes.ts';
import { poll } from './retry.ts';

/** The limit of the wait after SIGKILL: a busy machine may need long to reap a process. */
const KILLED_MS = 60_000;
const LOOK_MS = 20;

/**
 * Ends a process: TERM, then KILL after `graceMs`. Resolves when it is gone; the process need not be a child of this one.
 * Returns whether it existed.
 */
export async function endProcess(
  id: ProcessId,
  clock: Clock,
  graceMs: number,
  gone?: Promise<unknown>,
): Promise<boolean> {
  if (!(await signalProcess(id, 'SIGTERM'))) return false;
  if (await waitGone(id, clock, graceMs, gone)) return true;
  await signalProcess(id, 'SIGKILL');
  if (!(await waitGone(id, clock, KILLED_MS, gone))) throw new Error(`process ${id.pid} does not end after SIGKILL`);
  return true;
}

/** `gone` settles it at once for a child of ours; the end of any other process can only be polled for. */
async function waitGone(id: ProcessId, clock: Clock, ms: number, gone?: Promise<unknown>): Promise<boolean> {
  let ended = false;
  const settled = gone?.then(() => {
    ended = true;
  });
  const look = async (): Promise<boolean> => ended || !(await isAlive(id));
  return await poll(look, { clock, everyMs: LOOK_MS, limitMs: ms, wake: settled });
}
