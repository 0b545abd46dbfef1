// Ends one process and waits until it is gone. Never signals a process that only has the pid of the one that is meant.

import { type Clock, elapsedMs, plusMs } from './clock.ts';
import { isAlive, type ProcessId, signalProcess } from './processes.ts';

/** For giving up only: a busy machine may take a while to bury a process. */
const KILLED_MS = 60_000;

/**
 * Ends a process: TERM, then KILL after `graceMs`. Resolves when it is gone; works for processes that are nobody's
 * children. Returns whether it was there.
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

/** `gone` settles it at once for a child of ours; the end of any other process can only be looked for. */
async function waitGone(id: ProcessId, clock: Clock, ms: number, gone?: Promise<unknown>): Promise<boolean> {
  const deadline = plusMs(clock.monotonic(), ms);
  let ended = false;
  void gone?.then(() => {
    ended = true;
  });
  for (;;) {
    if (ended || !(await isAlive(id))) return true;
    const left = elapsedMs(clock.monotonic(), deadline);
    if (left <= 0) return false;
    await Promise.race([clock.sleep(Math.min(left, 20)), gone ?? new Promise(() => undefined)]);
  }
}
