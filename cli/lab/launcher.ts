// The supervised processes of one place, a lab or one of its nodes: starts them, each with its log and its pid file, and stops them.

import type { BackoffPolicy } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { type Child, startChild } from './child.ts';
import type { LabPaths, LabProcess } from './paths.ts';
import type { Program } from './programs.ts';
import { Supervisor } from './supervisor.ts';

/** A process that ends this often before the lab is ready will not get well by being started again. */
const HOPELESS_ENDS = 4;

export interface LauncherOptions {
  readonly paths: LabPaths;
  /** Of every process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly say: (line: string) => void;
  readonly restart?: BackoffPolicy | undefined;
  /** Follows the name of a process in messages: " of node-2". */
  readonly of?: string;
  /** Called when a process has ended so often that it cannot live. */
  readonly onHopeless: (error: UserError) => void;
}

export class Launcher {
  readonly #options: LauncherOptions;
  readonly #supervisors = new Map<LabProcess, Supervisor>();
  #released = false;

  constructor(options: LauncherOptions) {
    this.#options = options;
  }

  pid(name: LabProcess): number | undefined {
    return this.#supervisors.get(name)?.child?.id.pid;
  }

  /** Rejects with UserError where there is no process of that name. */
  async halt(name: LabProcess): Promise<void> {
    await this.#supervisor(name).halt();
  }

  async resume(name: LabProcess): Promise<void> {
    await this.#supervisor(name).resume();
  }

  #supervisor(name: LabProcess): Supervisor {
    const supervisor = this.#supervisors.get(name);
    if (supervisor === undefined) throw new UserError(`the lab has no process ${name}`);
    return supervisor;
  }

  /** Rejects when the program cannot be started, and once everything is to stop: a start has several branches, which end later. */
  async launch(name: LabProcess, start: () => Promise<Child>): Promise<Child> {
    const { paths, clock, say, restart, of = '', onHopeless } = this.#options;
    if (this.#released) throw new Error(`${name}${of} is not started: everything stops`);
    const supervisor = new Supervisor({
      name: `${name}${of}`,
      clock,
      say,
      start,
      pidFile: paths.pidFile(name),
      logFile: paths.logFile(name),
      ...(restart === undefined ? {} : { restart }),
      onEnd: (ends, words) => {
        if (ends < HOPELESS_ENDS) return;
        onHopeless(new UserError(`${name}${of} ended ${ends} times while the lab started: ${words}`));
      },
    });
    this.#supervisors.set(name, supervisor);
    return supervisor.start();
  }

  /** `lifeline`: it is one of nodelet's own programs. */
  launchProgram(name: LabProcess, program: Program, lifeline = true): Promise<Child> {
    const { paths, env } = this.#options;
    const files = { logFile: paths.logFile(name), pidFile: paths.pidFile(name) };
    return this.launch(name, () => startChild({ ...program, env, lifeline, ...files }));
  }

  /** Ends what is still being prepared: from now on no process is started, nor started again. */
  async release(): Promise<void> {
    this.#released = true;
    await Promise.all([...this.#supervisors.values()].map((supervisor) => supervisor.release()));
  }

  /** TERM, then KILL after 5 s, one after the other; those that were never started are passed over. */
  async stop(...names: readonly LabProcess[]): Promise<void> {
    for (const name of names) await this.#supervisors.get(name)?.stop(5_000);
  }

  /** SIGKILL for all at once; they stay dead. */
  async kill(): Promise<void> {
    await Promise.all([...this.#supervisors.values()].map((supervisor) => supervisor.halt()));
  }
}
