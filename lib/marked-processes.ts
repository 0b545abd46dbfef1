// Processes that carry a mark, a variable in their environment, and everything below them. Children inherit it, so whatever a
// marked process has started is found, whatever its parent is now and whatever files are lost.

import { readFileSync } from 'node:fs';
import { isErrno } from './errors.ts';
import { descendants, listProcesses, type ProcessEntry } from './processes.ts';

/** Its variables, each with a NUL after it; '' where it is gone, or may not be read. */
function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch (error) {
    // Gone, or a process of the kernel's.
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return '';
    throw error;
  }
}

/** `mark`: "VARIABLE=value". False for a process that is gone, or whose environment may not be read. */
export function carriesMark(pid: number, mark: string): boolean {
  return environmentOf(pid).split('\0').includes(mark);
}

/** Never this process itself, nor what it was started by. */
export async function markedProcesses(variable: string, value: string): Promise<readonly ProcessEntry[]> {
  const entries = await listProcesses();
  const mark = `${variable}=${value}`;
  const marked: number[] = [];
  for (const entry of entries) {
    if (entry.argv.length === 0 || entry.state === 'Z') continue;
    if (carriesMark(entry.pid, mark)) marked.push(entry.pid);
  }
  const own = new Set<number>();
  for (let pid = process.pid; pid > 1 && !own.has(pid); ) {
    own.add(pid);
    pid = entries.find((entry) => entry.pid === pid)?.ppid ?? 0;
  }
  const found = descendants(
    entries,
    marked.filter((pid) => !own.has(pid)),
  );
  return entries.filter((entry) => found.has(entry.pid) && !own.has(entry.pid));
}
