// What a process costs, read from /proc.

import { readFileSync } from 'node:fs';
import { isErrno } from '../../lib/errors.ts';

function statusMiB(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  if (match?.[1] === undefined) throw new Error(`/proc/${pid}/status has no ${field}`);
  return Number(match[1]) / 1024;
}

/** Resident memory now, MiB. */
export const residentMiB = (pid: number): number => statusMiB(pid, 'VmRSS');
/** Largest resident memory so far, MiB. */
export const peakResidentMiB = (pid: number): number => statusMiB(pid, 'VmHWM');

/** CPU time used so far, user and system, in ms (the kernel counts in ticks of 10 ms). */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The command name is in parentheses and may hold anything, so count from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** CPU time of the agent and of the helper that starts its programs, without the programs themselves, ms. */
export function agentCpuMs(agent: number): number {
  const children = readFileSync(`/proc/${agent}/task/${agent}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  const helpers = children.filter((pid) => commandOf(pid).includes('exec-helper.pl'));
  return [agent, ...helpers].reduce((sum, pid) => sum + cpuMs(pid), 0);
}

/** Empty for a process that is gone. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return '';
    throw error;
  }
}
