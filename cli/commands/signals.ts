// How commands that run until they are stopped are stopped: by signals, and by the end of the process that supervises them.

import { watchLifeline } from '../lab/lifeline.ts';

/** A program without a supervisor that hangs while it stops is killed after this time, ms. */
const ORPHAN_MS = 15_000;

/**
 * Aborts on the first SIGINT or SIGTERM, and when the supervisor that started this program has ended. A second signal ends
 * the process at once, as users expect of Ctrl-C: its supervisor cleans up what remains.
 */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(signal === 'SIGINT' ? 130 : 143);
    controller.abort(signal);
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  watchLifeline(() => {
    controller.abort('the supervisor has ended');
    setTimeout(() => process.exit(1), ORPHAN_MS).unref();
  });
  return controller.signal;
}
