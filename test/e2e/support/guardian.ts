// Takes a lab of a test's or of the benchmark's down when the process that started it is gone before it has done so itself:
// killed by a signal, by its runner, or by an exception. A shell of its own session that reads from a pipe which only that
// process has open.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { GUARDIAN } from '../../../scripts/test-run.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
/** A line is the process's word that it needs no guardian any more; without one its end of the pipe is closed by its death. */
const SCRIPT = 'IFS= read -r line || "$@"';
const TAKE_DOWN = '"$1" down --root "$2"; rmdir "$2"';

export interface Guardian {
  /** Resolves when it has ended, without having done anything. */
  dismiss(): Promise<void>;
}

/** Guards the lab under `root`, a directory of its own. */
export function guardLab(root: string): Promise<Guardian> {
  return guard(['sh', '-c', TAKE_DOWN, GUARDIAN, NODELET, root]);
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
