// Keeps one process running: starts it, starts it again with growing delays when it ends by itself, tells each such end
// in one line, and stops it when asked. Knows nothing about what the process does.

import { readFile } from 'node:fs/promises';
import { type BackoffEntry, type BackoffPolicy, nextBackoff } from '../../lib/backoff.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { type Child, endProcess, removePidFile } from './child.ts';

const RESTART: BackoffPolicy = { initialMs: 250, maxMs: 10_000, factor: 2, resetMs: 60_000 };

export interface SupervisorOptions {
  readonly name: string;
  readonly clock: Clock;
  /** One line per thing worth knowing. */
  readonly say: (line: string) => void;
  readonly start: () => Promise<Child>;
  readonly pidFile: string;
  readonly logFile: string;
  /** Pauses before it is started again. Default: 250 ms, doubling, at most 10 s. */
  readonly restart?: BackoffPolicy;
  /** Told of every end that was not asked for: how many there were, and the log's last words. */
  readonly onEnd?: (ends: number, words: string) => void;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  #child: Child | undefined;
  #stopping = false;
  #ends = 0;
  #backoff: BackoffEntry | undefined;
  #timer: Timer | undefined;
  /** The restart that is under way; `stop` waits for it, or its child would be nobody's. */
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
  async start(): Promise<Child> {
    const child = await this.#options.start();
    this.#adopt(child);
    return child;
  }

  #adopt(child: Child): void {
    this.#child = child;
    void child.exited.then(async (exit) => {
      if (this.#child === child) this.#child = undefined;
      if (this.#stopping) return;
      this.#backoff = this.#nextPause();
      const how = exit.signal === null ? `exit code ${exit.code}` : exit.signal;
      const words = await lastLine(this.#options.logFile);
      this.#options.say(
        `${this.#options.name} ended (${how})${words === '' ? '' : `, last words: ${words}`}; ` +
          `starting it again in ${this.#backoff.delayMs / 1000} s`,
      );
      this.#options.onEnd?.(++this.#ends, words);
      if (this.#stopping) return;
      this.#timer = this.#options.clock.after(this.#backoff.delayMs, () => {
        this.#starting = this.#restart();
      });
    });
  }

  #nextPause(): BackoffEntry {
    const { restart = RESTART, clock } = this.#options;
    return nextBackoff(restart, this.#backoff, clock.now());
  }

  async #restart(): Promise<void> {
    if (this.#stopping) return;
    try {
      this.#adopt(await this.#options.start());
    } catch (error) {
      this.#options.say(`${this.#options.name} cannot be started: ${errorMessage(error)}`);
      this.#backoff = this.#nextPause();
      this.#timer = this.#options.clock.after(this.#backoff.delayMs, () => {
        this.#starting = this.#restart();
      });
    }
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

/** What a log ends with: pino's message when it is JSON, the line otherwise; never more than fits a terminal's line. */
export async function lastLine(logFile: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(logFile, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return '';
    throw error;
  }
  // A crash of Node's ends with its stack and its version; the error's own line is what tells.
  const lines = text
    .split('\n')
    .slice(-60)
    .filter((each) => !/^(\s*|\s+at .*|Node\.js v.*|\s*[{}^~]+)$/.test(each));
  const line = lines.findLast((each) => /^\w*Error\b/.test(each)) ?? lines.at(-1) ?? '';
  const message = /"msg":"((?:[^"\\]|\\.)*)"/.exec(line)?.[1];
  return (message ?? line).slice(0, 200);
}
