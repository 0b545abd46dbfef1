// Runs programs through a tiny helper process instead of forking this one. A fork copies the parent's page tables and
// holds up its event loop until the child is executed: some 4 ms of CPU for each program at 120 MB, and far more
// wall time on a busy machine. The helper (exec-helper.pl, 5 MB) forks in a fraction of that, and the event loop goes
// on meanwhile. What is run, and what its outcome means, is the caller's business; programs that are talked to while
// they run are started directly.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { getSystemErrorName } from 'node:util';
import { errorMessage, isErrno } from './errors.ts';
import { type Exec, type ExecOptions, type ExecResult, exec as execDirectly } from './exec.ts';

export interface ExecHelper {
  /** As lib/exec's, with the same results and failures. Rejects too when the helper dies under the program. */
  readonly exec: Exec;
  /**
   * mount(2) without a program: 2 to 4 ms less. Resolves to false where it cannot be done so, or fails: mount(8) may
   * then do it, or say why not. Only for file systems that no server has a part in: a mount that hangs holds all up.
   */
  mount(request: DirectMount): Promise<boolean>;
  /** Ends the helper. What it runs at that moment runs on; its callers are told that nobody waits for it. */
  close(): void;
}

export interface DirectMount {
  readonly source: string;
  readonly target: string;
  readonly fsType: string;
  /** As after -o, of the file system's own options alone: "size=64m". */
  readonly data: string;
}

/** Number of mount(2), by Node's name of the architecture. */
const MOUNT_SYSCALL: Readonly<Partial<Record<string, number>>> = { x64: 165, arm64: 40 };

export interface ExecHelperOptions {
  /** Told once when there is no Perl, and programs are forked directly. */
  readonly onMissing?: (message: string) => void;
  /** The interpreter; for tests. */
  readonly perl?: string;
}

const SCRIPT = fileURLToPath(new URL('exec-helper.pl', import.meta.url));
const DEFAULT_OUTPUT_BYTES = 16 * 1024 * 1024;
const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name as NodeJS.Signals]));

interface Job {
  readonly file: string;
  readonly args: readonly string[];
  timedOut: boolean;
  timer: NodeJS.Timeout | undefined;
  readonly finish: (outcome: ExecResult | Error) => void;
}

/** Starts with the first program, and again after a death. */
export function createExecHelper(options: ExecHelperOptions = {}): ExecHelper {
  let helper: Helper | undefined;
  let missing = false;
  let closed = false;

  const current = async (): Promise<Helper | undefined> => {
    if (helper === undefined || helper.dead) helper = new Helper(options.perl ?? 'perl');
    const mine = helper;
    try {
      await mine.started;
      return mine;
    } catch (error) {
      if (!isErrno(error, 'ENOENT')) throw error;
      if (!missing) options.onMissing?.(`programs are run without a helper: ${errorMessage(error)}`);
      missing = true;
      return undefined;
    }
  };
  return {
    exec: async (file, args, execOptions = {}) => {
      if (closed) throw new Error(`${file} is not run: the helper that runs programs is closed`);
      const running = missing ? undefined : await current();
      return running === undefined ? execDirectly(file, args, execOptions) : running.run(file, args, execOptions);
    },
    async mount(request) {
      const number = MOUNT_SYSCALL[process.arch];
      if (closed || missing || number === undefined) return false;
      return (await (await current())?.mount(number, request)) ?? false;
    },
    close() {
      closed = true;
      helper?.close();
    },
  };
}

class Helper {
  readonly started: Promise<void>;
  dead = false;
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #jobs = new Map<number, Job>();
  #lastId = 0;
  #received: Buffer[] = [];
  #receivedBytes = 0;
  /** Bytes that must be there before looking again is worth it. */
  #needed = 1;

  constructor(perl: string) {
    this.#process = spawn(perl, [SCRIPT], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.started = new Promise((resolve, reject) => {
      this.#process.once('spawn', resolve);
      this.#process.once('error', reject);
    });
    // Whoever runs a program is told.
    this.started.catch(() => undefined);
    this.#process.on('error', () => this.#end());
    this.#process.on('exit', () => this.#end());
    // A broken pipe is its death, which 'exit' tells.
    this.#process.stdin.on('error', () => undefined);
    this.#process.stdout.on('data', (chunk: Buffer) => this.#receive(chunk));
    this.#process.unref();
    if (this.#process.stdin instanceof Socket) this.#process.stdin.unref();
    this.#keepAlive();
  }

  /** Holds up the end of this process only while somebody waits for a program. */
  #keepAlive(): void {
    const { stdout } = this.#process;
    if (!(stdout instanceof Socket)) return;
    if (this.#jobs.size > 0) stdout.ref();
    else stdout.unref();
  }

  run(file: string, args: readonly string[], options: ExecOptions): Promise<ExecResult> {
    const { promise, resolve, reject } = Promise.withResolvers<ExecResult>();
    if (this.dead) {
      reject(new Error(`${file} is not run: the helper that runs programs has ended`));
      return promise;
    }
    const aborted = (): Error => new DOMException('The operation was aborted', 'AbortError');
    if (options.signal?.aborted) {
      reject(aborted());
      return promise;
    }
    const id = ++this.#lastId;
    const onAbort = (): void => {
      this.#tell(`kill ${id} ${constants.signals.SIGTERM}\n`);
      job.finish(aborted());
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
        options.signal?.removeEventListener('abort', onAbort);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      },
    };
    this.#jobs.set(id, job);
    this.#keepAlive();
    options.signal?.addEventListener('abort', onAbort, { once: true });
    if (options.timeoutMs !== undefined) {
      job.timer = setTimeout(() => {
        job.timedOut = true;
        this.#tell(`drop ${id}\n`);
      }, options.timeoutMs);
    }
    const variables = Object.entries(options.env ?? process.env).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${value}`],
    );
    const texts = [options.cwd ?? '', file, ...args, ...variables];
    const bad = texts.find((text) => text.includes('\0'));
    if (bad !== undefined) {
      job.finish(new TypeError(`${file} is not run: a NUL byte in ${JSON.stringify(bad)}`));
      return promise;
    }
    const fields = Buffer.from(`${texts.join('\0')}\0`);
    const stdin = typeof options.stdin === 'string' ? Buffer.from(options.stdin) : (options.stdin ?? Buffer.alloc(0));
    const limit = options.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES;
    const head = `run ${id} ${limit} ${args.length + 1} ${variables.length} ${fields.length} ${stdin.length}\n`;
    this.#tell(Buffer.concat([Buffer.from(head), fields, stdin]));
    return promise;
  }

  async mount(number: number, { source, target, fsType, data }: DirectMount): Promise<boolean> {
    const fields = Buffer.from(`${[source, target, fsType, data].join('\0')}\0`);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const id = ++this.#lastId;
    const finish = (outcome: ExecResult | Error): void => {
      this.#jobs.delete(id);
      this.#keepAlive();
      resolve(!(outcome instanceof Error));
    };
    if (this.dead || [source, target, fsType, data].some((text) => text.includes('\0'))) return false;
    this.#jobs.set(id, { file: 'mount', args: [], timedOut: false, timer: undefined, finish });
    this.#keepAlive();
    this.#tell(Buffer.concat([Buffer.from(`mount ${id} ${number} ${fields.length}\n`), fields]));
    return promise;
  }

  close(): void {
    this.#process.stdin.end();
    this.#end();
  }

  #tell(message: string | Buffer): void {
    if (!this.dead) this.#process.stdin.write(message);
  }

  #end(): void {
    this.dead = true;
    for (const job of [...this.#jobs.values()]) {
      job.finish(new Error(`what became of ${job.file} is unknown: the helper that runs programs has ended`));
    }
  }

  #receive(chunk: Buffer): void {
    this.#received.push(chunk);
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes < this.#needed) return;
    let bytes = this.#received.length === 1 ? chunk : Buffer.concat(this.#received);
    this.#needed = 1;
    for (;;) {
      const end = bytes.indexOf('\n');
      if (end < 0) break;
      const [what, id, ...numbers] = bytes.toString('latin1', 0, end).split(' ');
      const [first = 0, outBytes = 0, errBytes = 0] = numbers.map(Number);
      const length = end + 1 + outBytes + errBytes;
      if (bytes.length < length) {
        this.#needed = length;
        break;
      }
      const job = this.#jobs.get(Number(id));
      if (job !== undefined && what === 'fail') job.finish(startFailure(job, first));
      else if (job !== undefined) {
        const stdout = bytes.toString('utf8', end + 1, end + 1 + outBytes);
        const stderr = bytes.toString('utf8', end + 1 + outBytes, length);
        job.finish({ ...ending(first), timedOut: job.timedOut, stdout, stderr });
      }
      bytes = bytes.subarray(length);
    }
    this.#received = bytes.length === 0 ? [] : [bytes];
    this.#receivedBytes = bytes.length;
  }
}

/** What wait(2) says about an end. */
function ending(status: number): Pick<ExecResult, 'code' | 'signal'> {
  const signal = status & 0x7f;
  return signal === 0 ? { code: status >> 8, signal: null } : { code: null, signal: SIGNALS.get(signal) ?? null };
}

/** As node:child_process words it. */
function startFailure({ file, args }: Job, errno: number): Error {
  const code = getSystemErrorName(-errno);
  const error = new Error(`spawn ${file} ${code}`);
  return Object.assign(error, { code, errno: -errno, syscall: `spawn ${file}`, path: file, spawnargs: [...args] });
}
