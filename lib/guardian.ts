// Runs a command when this process is gone before it has cleaned up itself: killed by a signal, by what started it, or by an
// exception. A shell of its own session that reads from a pipe which only this process has open.

import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** The first word of a guardian's command line after its shell's: who ends everything of a run leaves it alive. */
export const GUARDIAN = 'nodelet-guardian';
/** A line is the process's word that it needs no guardian any more; without one its end of the pipe is closed by its death. */
const SCRIPT = 'IFS= read -r line || "$@"';

export interface Guardian {
  /** Resolves when it has ended, without having done anything. */
  dismiss(): Promise<void>;
}

/** Runs `command` when this process ends without having dismissed the guardian. */
export async function guard(command: readonly string[]): Promise<Guardian> {
  const child = spawn('sh', ['-c', SCRIPT, GUARDIAN, ...command], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  await once(child, 'spawn');
  child.unref();
  return {
    dismiss: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.ref();
      child.stdin.end('done\n');
      await ended;
    },
  };
}
