// Keeps one process running: starts it, restarts it with growing delays when it exits, logs each such exit in one line,
// and stops it on request. Knows nothing about what the process does.

import { type FileHandle, open, stat } from 'node:fs/promises';
import { type BackoffEntry, type BackoffPolicy, nextBackoff } from '../../lib/backoff.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import { endProcess } from '../../lib/end-process.ts';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { signalProcess } from '../../lib/processes.ts';
import { type Child, removePidFile } from './child.ts';

const ignore = (): void => undefined;
const RESTART: BackoffPolicy = { initialMs: 250, maxMs: 10_000, factor: 2, resetMs: 60_000 };

export interface SupervisorOptions {
  readonly name: string;
  readonly clock: Clock;
  /** Prints one line. */
  readonly say: (line: string) => void;
  readonly start: () => Promise<Child>;
  readonly pidFile: string;
  readonly logFile: string;
  /** Pauses before it is started again. Default: 250 ms, doubling, at most 10 s. */
  readonly restart?: BackoffPolicy;
  /** Called for every unrequested exit: how many there were, and the last line of the log. */
  readonly onEnd?: (ends: number, words: string) => void;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  /** Where this run's output begins in the log, which is appended to over all runs. */
  #logStart = 0;
  #child: Child | undefined;
  #stopping = false;
  /** Killed on request: it is started again on request alone. */
  #halted = false;
  #ends = 0;
  #backoff: BackoffEntry | undefined;
  #timer: Timer | undefined;
  /** The start that is under way, also the first one; `stop` waits for it, or its child would be orphaned. */
  #starting: Promise<void> = Promise.resolve();

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  /** The process that runs now; undefined between an end and the next start. */
  get child(): Child | undefined {
    return this.#child;
  }

  /** The first start. Rejects when the program cannot be started at all. */
  start(): Promise<Child> {
    const started = this.#run().then((child) => {
      this.#adopt(child);
      return child;
    });
    // Who asked for it gets the error; here only its end matters.
    this.#starting = started.then(ignore, ignore);
    return started;
  }

  async #run(): Promise<Child> {
    this.#logStart = await sizeOf(this.#options.logFile);
    return this.#options.start();
  }

  #adopt(child: Child): void {
    this.#child = child;
    void child.exited.then(async (exit) => {
      if (this.#child === child) this.#child = undefined;
      if (this.#stopping || this.#halted) return;
      this.#backoff = this.#nextPause();
      const how = exit.signal === null ? `exit code ${exit.code}` : exit.signal;
      const words = await lastLine(this.#options.logFile, this.#logStart);
      this.#options.say(
        `${this.#options.name} ended (${how})${words === '' ? '' : `, last words: ${words}`}; ` +
          `starting it again in ${this.#backoff.delayMs / 1000} s`,
      );
      this.#options.onEnd?.(++this.#ends, words);
      if (this.#stopping || this.#halted) return;
      this.#timer = this.#options.clock.after(this.#backoff.delayMs, () => {
        this.#starting = this.#restart();
      });
    });
  }

  #nextPause(): BackoffEntry {
    const { restart = RESTART, clock } = this.#options;
    return nextBackoff(restart, this.#backoff, clock.monotonic());
  }

  async #restart(): Promise<void> {
    if (this.#stopping || this.#halted) return;
    try {
      this.#adopt(await this.#run());
    } catch (error) {
      this.#options.say(`${this.#options.name} cannot be started: ${errorMessage(error)}`);
      this.#backoff = this.#nextPause();
      this.#timer = this.#options.clock.after(this.#backoff.delayMs, () => {
        this.#starting = this.#restart();
      });
    }
  }

  /** Kills the process (SIGKILL), which stays dead until `resume`. Resolves when it is gone. */
  async halt(): Promise<void> {
    this.#halted = true;
    this.#timer?.cancel();
    await this.#starting;
    const child = this.#child;
    if (child === undefined) return;
    await signalProcess(child.id, 'SIGKILL');
    await child.exited;
  }

  /** Starts a process that was halted. Rejects when the program cannot be started; does nothing while it runs. */
  async resume(): Promise<void> {
    this.#halted = false;
    if (this.#stopping || this.#child !== undefined) return;
    await this.start();
  }

  /** From now on its end is expected: it is not started again. Resolves when no start is under way. */
  async release(): Promise<void> {
    this.#stopping = true;
    this.#timer?.cancel();
    await this.#starting;
  }

  /** TERM, then KILL after `graceMs`. Resolves when it is gone. */
  async stop(graceMs: number): Promise<void> {
    await this.release();
    const child = this.#child;
    if (child !== undefined) await endProcess(child.id, this.#options.clock, graceMs, child.exited);
    await removePidFile(this.#options.pidFile);
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return 0;
    throw error;
  }
}

/** Of the log's end, as much as is read to find the last line. */
const TAIL_BYTES = 64 * 1024;
/** An error names its file and what to do about it. */
const LINE_CHARACTERS = 500;

/**
 * What a log ends with, of what was written from `start` (bytes) on: pino's message when the line is JSON, the line
 * otherwise; of a crash, the error's own line. '' when nothing was written.
 */
export async function lastLine(logFile: string, start: number): Promise<string> {
  return finalLine(await readTail(logFile, start));
}

async function readTail(logFile: string, start: number): Promise<string> {
  let file: FileHandle;
  try {
    file = await open(logFile, 'r');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return '';
    throw error;
  }
  try {
    const { size } = await file.stat();
    // A log that is shorter than before has been truncated: all of it is new.
    const from = Math.max(size < start ? 0 : start, size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

/** The line of a program's output with the reason of its end. Pure. */
export function finalLine(text: string): string {
  const all = text.split('\n');
  // A crash of Node's ends with its stack, the error's properties and Node's version.
  const crashed = all.findLast((each) => each.trim() !== '')?.startsWith('Node.js v') === true;
  const lines = all.filter((each) => !/^(\s*|\s+at .*|Node\.js v.*|\s*[{}^~]+)$/.test(each));
  const error = crashed ? lines.findLast((each) => /^(Uncaught:? )?\w*Error\b/.test(each)) : undefined;
  const line = error ?? lines.at(-1) ?? '';
  const message = /"msg":"((?:[^"\\]|\\.)*)"/.exec(line)?.[1];
  return (message === undefined ? line : unquoted(message)).slice(0, LINE_CHARACTERS);
}

function unquoted(json: string): string {
  try {
    const text: unknown = JSON.parse(`"${json}"`);
    return String(text);
  } catch (error) {
    // Another program's line, that only looks like JSON.
    if (error instanceof SyntaxError) return json;
    throw error;
  }
}
