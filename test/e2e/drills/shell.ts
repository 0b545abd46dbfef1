// One bash that runs blocks of commands as a terminal would: what a block sets, the next one has; stdout and stderr come in
// the order in which they are written. What still runs when it is closed ends with it.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { errorMessage, isErrno } from '../../../lib/errors.ts';

/**
 * Reads blocks that end with NUL, and writes NUL, the exit status and NUL after what each one prints. Without pipefail, as a reader's shell: in
 * `kubectl get events | grep -q …` kubectl may end by SIGPIPE.
 */
const LOOP = `
exec 9<&0 </dev/null 2>&1
set -u
while IFS= read -r -d '' -u 9 block; do eval "$block"; printf '\\0%s\\0' "$?"; done`;

/** Characters, of what a block that does not end has printed. */
const MOST_SHOWN = 4_000;

export interface BlockResult {
  readonly output: string;
  /** Of the last command; null when the shell ended, as \`set -e\` has it end. */
  readonly status: number | null;
}

export class DrillShell {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<unknown>;
  #output = '';
  #ended = false;

  constructor(options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv }) {
    // A group of its own, with everything that it starts.
    this.#child = spawn('bash', ['-c', LOOP], { ...options, detached: true, stdio: 'pipe' });
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
      this.#child.emit('printed');
    });
    // The loop ends without reading what comes after a block that ended it.
    this.#child.stdin.on('error', (error) => {
      if (!isErrno(error, 'EPIPE')) this.#output += errorMessage(error);
    });
    this.#closed = once(this.#child, 'exit').then(() => {
      this.#ended = true;
      this.#child.emit('printed');
    });
  }

  /** It runs no more blocks. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Runs a block to its end. Rejects after `timeoutMs`, with what was printed so far. */
  async run(script: string, timeoutMs: number): Promise<BlockResult> {
    this.#child.stdin.write(`${script}\n\0`);
    const signal = AbortSignal.timeout(timeoutMs);
    for (;;) {
      const match = /^([^\0]*)\0(\d+)\0/.exec(this.#output);
      if (match !== null) {
        this.#output = this.#output.slice(match[0].length);
        return { output: match[1] ?? '', status: Number(match[2]) };
      }
      if (this.#ended) return { output: this.#output, status: null };
      try {
        await once(this.#child, 'printed', { signal });
      } catch (error) {
        throw new Error(`the block did not end in ${timeoutMs} ms; so far:\n${this.#output.slice(-MOST_SHOWN)}`, {
          cause: error,
        });
      }
    }
  }

  async close(): Promise<void> {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error('bash could not be started');
    try {
      process.kill(-pid, 'SIGKILL');
    } catch (error) {
      if (!isErrno(error, 'ESRCH')) throw error;
    }
    await this.#closed;
  }
}
