// Runs programs through a small helper process instead of forking this one. A fork copies the parent's page tables and
// blocks its event loop until the child is executed; exec-helper.pl (6 MB) forks in a fraction of that, and the event
// loop goes on meanwhile. Any number of programs are in flight, each with its own time limit, which is kept here. Where
// there is no helper (no Perl, or it died less than RESTART_AFTER_MS ago) programs are started by lib/exec.ts. What is run, and what its
// outcome means, is the caller's business. docs/performance.md says what it saves.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { getSystemErrorName } from 'node:util';
import { type MonotonicMs, plusMs, systemClock } from './clock.ts';
import { errorMessage } from './errors.ts';
import {
  ABANDON_AFTER_MS,
  DEFAULT_OUTPUT_BYTES,
  type Exec,
  type ExecOptions,
  type ExecResult,
  exec as execDirectly,
} from './exec.ts';

export interface ExecHelper {
  /** As lib/exec's, with the same results and failures. Rejects too when the helper dies under the program. */
  readonly exec: Exec;
  /** Ends the helper. Programs that run continue to run; their callers are rejected. */
  close(): void;
}

export interface ExecHelperOptions {
  /** Called when the helper is missing or has died, and programs are started without it for a while. */
  readonly onMissing?: (message: string) => void;
  /** The interpreter; for tests. */
  readonly perl?: string;
  /** Monotonic ms; for tests. */
  readonly now?: () => MonotonicMs;
}

/** How long programs are started without a helper after one died or could not be started, ms. */
export const RESTART_AFTER_MS = 60_000;

const SCRIPT = fileURLToPath(new URL('exec-helper.pl', import.meta.url));
const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name as NodeJS.Signals]));

/** Starts a helper with the first program. */
export function createExecHelper(options: ExecHelperOptions = {}): ExecHelper {
  const { onMissing, perl = 'perl', now = systemClock.monotonic } = options;
  let helper: Helper | undefined;
  let notBefore = now();
  let closed = false;

  const current = async (): Promise<Helper | undefined> => {
    if (helper === undefined) {
      if (now() < notBefore) return undefined;
      const started = new Helper(perl, (reason) => {
        if (helper !== started) return;
        helper = undefined;
        notBefore = plusMs(now(), RESTART_AFTER_MS);
        if (!closed) onMissing?.(`programs are started without the exec helper: ${reason}`);
      });
      helper = started;
    }
    const mine = helper;
    return (await mine.started) ? mine : undefined;
  };
  return {
    exec: async (file, args, execOptions = {}) => {
      if (closed) throw new Error(`${file} is not run: the exec helper is closed`);
      const running = await current();
      return running === undefined ? execDirectly(file, args, execOptions) : running.run(file, args, execOptions);
    },
    close() {
      closed = true;
      helper?.close();
    },
  };
}

interface Job {
  readonly file: string;
  readonly args: readonly string[];
  timedOut: boolean;
  timer: NodeJS.Timeout | undefined;
  readonly finish: (outcome: ExecResult | Error) => void;
}

class Helper {
  /** Whether the process could be started. */
  readonly started: Promise<boolean>;
  #dead = false;
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #onDeath: (reason: string) => void;
  readonly #jobs = new Map<number, Job>();
  #lastId = 0;
  readonly #answers = new AnswerReader();
  /** Read once: each read of a name in process.env is a call into the C library. */
  readonly #environment = variables(process.env);

  constructor(perl: string, onDeath: (reason: string) => void) {
    this.#onDeath = onDeath;
    this.#process = spawn(perl, [SCRIPT], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.started = new Promise((resolve) => {
      this.#process.once('spawn', () => resolve(true));
      this.#process.once('error', () => resolve(false));
    });
    this.#process.on('error', (error) => this.#end(errorMessage(error)));
    this.#process.on('exit', (code, signal) => this.#end(`it ended with ${signal ?? `exit status ${code}`}`));
    // A broken pipe is the helper's death, which 'exit' reports.
    this.#process.stdin.on('error', () => undefined);
    this.#process.stdout.on('data', (chunk: Buffer) => {
      for (const answer of this.#answers.read(chunk)) this.#answered(answer);
    });
    this.#process.unref();
    if (this.#process.stdin instanceof Socket) this.#process.stdin.unref();
    this.#keepAlive();
  }

  /** Keeps this process from exiting only while a caller waits for a program. */
  #keepAlive(): void {
    const { stdout } = this.#process;
    if (!(stdout instanceof Socket)) return;
    if (this.#jobs.size > 0) stdout.ref();
    else stdout.unref();
  }

  run(file: string, args: readonly string[], options: ExecOptions): Promise<ExecResult> {
    const { promise, resolve, reject } = Promise.withResolvers<ExecResult>();
    const { signal, timeoutMs } = options;
    const id = ++this.#lastId;
    const onAbort = (): void => {
      this.#send(`kill ${id} ${constants.signals.SIGTERM}\n`);
      job.finish(new DOMException('The operation was aborted', 'AbortError'));
    };
    const job: Job = {
      file,
      args,
      timedOut: false,
      timer: undefined,
      finish: (outcome) => {
        this.#jobs.delete(id);
        this.#keepAlive();
        clearTimeout(job.timer);
        signal?.removeEventListener('abort', onAbort);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      },
    };
    const { cwd, env } = options;
    const fields = [cwd ?? '', file, ...args, ...(env === undefined ? this.#environment : variables(env))];
    const refused = this.#refusal(job, fields, signal);
    if (refused !== undefined) {
      reject(refused);
      return promise;
    }
    this.#jobs.set(id, job);
    this.#keepAlive();
    signal?.addEventListener('abort', onAbort, { once: true });
    if (timeoutMs !== undefined) job.timer = setTimeout(() => this.#timeOut(id, job), timeoutMs);
    this.#send(runRequest(id, args.length + 1, fields, options));
    return promise;
  }

  /** Why the program is not run at all. */
  #refusal({ file }: Job, fields: readonly string[], signal: AbortSignal | undefined): Error | undefined {
    if (signal?.aborted) return new DOMException('The operation was aborted', 'AbortError');
    if (this.#dead) return new Error(`${file} is not run: the exec helper has ended`);
    const bad = fields.find((text) => text.includes('\0'));
    return bad === undefined ? undefined : new TypeError(`${file} is not run: a NUL byte in ${JSON.stringify(bad)}`);
  }

  /** A program blocked in the kernel by a dead file system does not die of SIGKILL: its caller is rejected all the same. */
  #timeOut(id: number, job: Job): void {
    job.timedOut = true;
    this.#send(`kill ${id} ${constants.signals.SIGKILL}\n`);
    job.timer = setTimeout(() => {
      job.finish({ code: null, signal: 'SIGKILL', timedOut: true, stdout: '', stderr: '' });
    }, ABANDON_AFTER_MS);
  }

  close(): void {
    this.#process.stdin.end();
    this.#end('it is closed');
  }

  #send(message: string | Buffer): void {
    if (!this.#dead) this.#process.stdin.write(message);
  }

  #end(reason: string): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#onDeath(reason);
    for (const job of [...this.#jobs.values()]) {
      job.finish(new Error(`the outcome of ${job.file} is unknown: the exec helper has ended`));
    }
  }

  #answered(answer: Answer): void {
    const job = this.#jobs.get(answer.id);
    if (job === undefined) return;
    if (answer.kind === 'fail') job.finish(startFailure(job, answer.errno));
    else {
      const { stdout, stderr } = answer;
      job.finish({ ...waitStatus(answer.status), timedOut: job.timedOut, stdout, stderr });
    }
  }
}

/** As execve(2) takes them: NAME=value. */
function variables(env: NodeJS.ProcessEnv): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]));
}

/** As exec-helper.pl reads it. `fields`: directory, program, arguments and environment; `words`: program and arguments. */
function runRequest(id: number, words: number, fields: readonly string[], options: ExecOptions): Buffer {
  const text = Buffer.from(`${fields.join('\0')}\0`);
  const stdin = Buffer.from(options.stdin ?? '');
  const limit = options.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES;
  const head = `run ${id} ${limit} ${words} ${text.length} ${stdin.length}\n`;
  return Buffer.concat([Buffer.from(head), text, stdin]);
}

type Answer =
  | {
      readonly kind: 'exit';
      readonly id: number;
      readonly status: number;
      readonly stdout: string;
      readonly stderr: string;
    }
  | { readonly kind: 'fail'; readonly id: number; readonly errno: number };

/** Cuts what the helper writes into answers. */
class AnswerReader {
  #received: Buffer[] = [];
  #bytes = 0;
  /** Bytes that must have arrived before parsing is tried again. */
  #needed = 1;

  read(chunk: Buffer): readonly Answer[] {
    this.#received.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < this.#needed) return [];
    let bytes = Buffer.concat(this.#received);
    const answers: Answer[] = [];
    this.#needed = 1;
    for (let end = bytes.indexOf('\n'); end >= 0; end = bytes.indexOf('\n')) {
      const [kind, ...numbers] = bytes.toString('latin1', 0, end).split(' ');
      const [id = 0, status = 0, outBytes = 0, errBytes = 0] = numbers.map(Number);
      const out = end + 1 + outBytes;
      const length = out + errBytes;
      if (bytes.length < length) {
        this.#needed = length;
        break;
      }
      const stdout = bytes.toString('utf8', end + 1, out);
      const stderr = bytes.toString('utf8', out, length);
      answers.push(kind === 'fail' ? { kind, id, errno: status } : { kind: 'exit', id, status, stdout, stderr });
      bytes = bytes.subarray(length);
    }
    this.#received = bytes.length === 0 ? [] : [bytes];
    this.#bytes = bytes.length;
    return answers;
  }
}

/** wait(2)'s status as an exit code or a signal. */
function waitStatus(status: number): Pick<ExecResult, 'code' | 'signal'> {
  const signal = status & 0x7f;
  return signal === 0 ? { code: status >> 8, signal: null } : { code: null, signal: SIGNALS.get(signal) ?? null };
}

/** As node:child_process words it. */
function startFailure({ file, args }: Job, errno: number): Error {
  const code = getSystemErrorName(-errno);
  const error = new Error(`spawn ${file} ${code}`);
  return Object.assign(error, { code, errno: -errno, syscall: `spawn ${file}`, path: file, spawnargs: [...args] });
}
