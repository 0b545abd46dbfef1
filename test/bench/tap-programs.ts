// The programs that a measurement of `nodelet tap` starts, each a process of its own.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const TREE = fileURLToPath(new URL('../..', import.meta.url));

export interface Program {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly lines: AsyncIterator<string>;
}

/** The command, which gives each of its programs the flags of V8 that suit it. */
export const NODELET = join(TREE, 'bin/nodelet');

/** Resolves at its first line on the stream, where one is awaited. */
export async function start(
  args: readonly string[],
  stream: 'stdout' | 'stderr',
  greets: boolean,
  command: string = process.execPath,
): Promise<Program> {
  const child = spawn(command, args, { cwd: TREE, stdio: ['pipe', 'pipe', 'pipe'] });
  const input = child[stream];
  if (child.pid === undefined || input === null) throw new Error(`${args.join(' ')} cannot be started`);
  const lines = createInterface({ input })[Symbol.asyncIterator]();
  if (greets && (await lines.next()).done === true) throw new Error(`${args.join(' ')} ended`);
  return { child, pid: child.pid, lines };
}

export async function end({ child }: Program): Promise<void> {
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await exited;
}

/** A field of /proc/PID/status that is in kB: VmRSS. */
export function statusKiB(pid: number, field: string): number {
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
}
