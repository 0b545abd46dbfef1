// The process table, read from /proc. A process is identified by its pid and its start time, so that a pid that
// was reused is never taken for the earlier process. Reads and signals; never starts anything.
// /proc is read synchronously: no disk is asked, and a file takes 15 µs of processor time, an eighth of what a round through
// the thread pool costs. A whole table keeps the event loop busy for some milliseconds, and the command line of a process that
// is stuck with its memory locked blocks the reader: for commands and tests. No server may import it (test/unit/floors.test.ts).

import { readdirSync, readFileSync } from 'node:fs';

import { errnoOf, isErrno } from './errors.ts';

export interface ProcessEntry {
  readonly pid: number;
  readonly ppid: number;
  /** Ticks since boot (field 22 of /proc/PID/stat). */
  readonly startTime: number;
  /** The kernel's name of it, at most 15 characters. */
  readonly comm: string;
  /** State letter: R, S, D, Z … */
  readonly state: string;
  /** Empty for kernel threads and zombies. */
  readonly argv: readonly string[];
}

/** What is needed to find a process again and be sure that it is the same one. */
export interface ProcessId {
  readonly pid: number;
  readonly startTime: number;
}

/** The fields of /proc/PID/stat that are used here; undefined when the text is none. Pure. */
export function parseStat(
  text: string,
): { readonly comm: string; readonly state: string; readonly ppid: number; readonly startTime: number } | undefined {
  // comm may hold spaces and parentheses: it ends at the last one.
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 0 || close < open) return undefined;
  const rest = text.slice(close + 2).split(' ');
  const [state, ppid, startTime] = [rest[0], Number(rest[1]), Number(rest[19])];
  if (state === undefined || !Number.isInteger(ppid) || !Number.isInteger(startTime)) return undefined;
  return { comm: text.slice(open + 1, close), state, ppid, startTime };
}

/**
 * A file under /proc/PID. Undefined when the process has ended, also while it was read: ENOENT before open, ESRCH after.
 */
export function readOfProcess(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return undefined;
    throw error;
  }
}

export async function readProcess(pid: number): Promise<ProcessEntry | undefined> {
  return processOf(pid);
}

function processOf(pid: number): ProcessEntry | undefined {
  const stat = readOfProcess(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  const fields = parseStat(stat);
  if (fields === undefined) return undefined;
  const argv = (readOfProcess(`/proc/${pid}/cmdline`) ?? '').split('\0');
  if (argv.at(-1) === '') argv.pop();
  return { pid, ...fields, argv };
}

/** Every process of this machine's pid namespace, zombies and kernel threads too. */
export async function listProcesses(): Promise<readonly ProcessEntry[]> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map((pid) => processOf(Number(pid))).filter((entry) => entry !== undefined);
}

/** Whether this very process still runs; a zombie does not. */
export async function isAlive(id: ProcessId): Promise<boolean> {
  const entry = await readProcess(id.pid);
  return entry !== undefined && entry.startTime === id.startTime && entry.state !== 'Z' && entry.state !== 'X';
}

/** Sends a signal to exactly this process. False when it is gone. */
export async function signalProcess(id: ProcessId, signal: NodeJS.Signals): Promise<boolean> {
  if (!(await isAlive(id))) return false;
  try {
    process.kill(id.pid, signal);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return false;
    throw error;
  }
}

/** The pids of `roots` and of everything below them. Pure. */
export function descendants(entries: readonly ProcessEntry[], roots: Iterable<number>): ReadonlySet<number> {
  const children = new Map<number, number[]>();
  for (const entry of entries) {
    const siblings = children.get(entry.ppid);
    if (siblings === undefined) children.set(entry.ppid, [entry.pid]);
    else siblings.push(entry.pid);
  }
  const found = new Set<number>();
  const waiting = [...roots];
  for (let pid = waiting.pop(); pid !== undefined; pid = waiting.pop()) {
    if (found.has(pid)) continue;
    found.add(pid);
    waiting.push(...(children.get(pid) ?? []));
  }
  return found;
}
