// Runs exec probes through the runtime, which also ends a command that takes too long.

import { MAX_OUTPUT_BYTES } from '../../lib/cut.ts';
import { errorMessage } from '../../lib/errors.ts';
import { goQuote, goRpcError } from '../../lib/go-words.ts';
import { type ContainerRuntime, RuntimeError } from '../ports/runtime.ts';
import type { ProbeRunner } from './runners.ts';
import type { ExecTarget } from './target.ts';

/** What was printed, standard output first, cut to its limit. */
function cut(stdout: Buffer, stderr: Buffer): string {
  const first = stdout.subarray(0, MAX_OUTPUT_BYTES);
  const second = stderr.subarray(0, MAX_OUTPUT_BYTES - first.length);
  return Buffer.concat([first, second]).toString('utf8');
}

export function createExecRunner(runtime: Pick<ContainerRuntime, 'execSync'>): ProbeRunner<ExecTarget> {
  return async ({ containerId, command }, timeoutMs) => {
    try {
      const { stdout, stderr, exitCode, timedOut } = await runtime.execSync(containerId, command, timeoutMs);
      if (timedOut) return { kind: 'failure', output: `command ${goQuote(command.join(' '))} timed out` };
      return { kind: exitCode === 0 ? 'success' : 'failure', output: cut(stdout, stderr) };
    } catch (error) {
      const message = error instanceof RuntimeError ? goRpcError(error.code, error.message) : errorMessage(error);
      return { kind: 'error', state: 'unknown', message };
    }
  };
}
