// Starts a program that outlives the call: in a session of its own (so that a terminal's Ctrl-C reaches only the one
// who supervises it), its output appended to a log file, its identity in a pid file. Never restarts it.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { dirname } from 'node:path';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { type ProcessId, readProcess } from '../../lib/processes.ts';
import { LIFELINE_VARIABLE } from './lifeline.ts';

export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly logFile: string;
  readonly pidFile: string;
  /** The program is one of nodelet's own and ends when this process does (lifeline.ts). */
  readonly lifeline?: boolean;
}

export interface ExitStatus {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Child {
  readonly id: ProcessId;
  /** Resolves once, when the process has ended. */
  readonly exited: Promise<ExitStatus>;
}

/** Resolves when the program runs; rejects when it cannot be started. */
export async function startChild(options: ChildOptions): Promise<Child> {
  await mkdir(dirname(options.logFile), { recursive: true });
  const log = openSync(options.logFile, 'a', 0o640);
  const lifeline = options.lifeline === true;
  let child: ChildProcess;
  try {
    child = spawn(options.command, [...options.args], {
      detached: true,
      // Standard input, because it alone outlives an execve(2): the agent starts over once its code is compiled.
      stdio: [lifeline ? 'pipe' : 'ignore', log, log],
      env: { ...(options.env ?? process.env), ...(lifeline ? { [LIFELINE_VARIABLE]: '0' } : {}) },
    });
  } finally {
    closeSync(log);
  }
  const exited = new Promise<ExitStatus>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  // The open pipe keeps the child running. The child writes nothing to it, and `exit` reports its end.
  const line = child.stdin;
  line?.on('error', () => undefined);
  if (line instanceof Socket) line.unref();
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${options.command} runs without a pid`);
  // A child that has ended already is a zombie until this process reaps it, so its entry is still there.
  const id = { pid, startTime: (await readProcess(pid))?.startTime ?? -1 };
  await writeFileAtomic(options.pidFile, `${JSON.stringify(id)}\n`);
  return { id, exited };
}

/** Who is written in a pid file's text; undefined when it is not a pid file's. Pure. */
export function parsePidFile(text: string): ProcessId | undefined {
  const match = /^\{"pid":(\d+),"startTime":(-?\d+)\}$/.exec(text.trim());
  return match === null ? undefined : { pid: Number(match[1]), startTime: Number(match[2]) };
}

/** Who is written in a pid file; undefined when there is none or it is not a pid file. */
export async function readPidFile(path: string): Promise<ProcessId | undefined> {
  const text = await readFileIfExists(path);
  return text === undefined ? undefined : parsePidFile(text);
}

export async function removePidFile(path: string): Promise<void> {
  await rm(path, { force: true });
}
