// This process's file descriptors: how many it may have, how many are open, and whether there are enough left. Reads
// /proc; changes nothing.

import { readdirSync, readFileSync } from 'node:fs';
import { isErrno } from './errors.ts';

/** RLIMIT_NOFILE (soft) from the text of /proc/<pid>/limits; Infinity for "unlimited". Throws when it is not there. */
export function parseOpenFilesLimit(limits: string): number {
  const match = /^Max open files\s+(\d+|unlimited)\s/m.exec(limits);
  if (match?.[1] === undefined) throw new Error('/proc/self/limits does not say how many files may be open');
  return match[1] === 'unlimited' ? Number.POSITIVE_INFINITY : Number(match[1]);
}

/** How many descriptors this process may have. Node raises the soft limit to the hard one when it starts. */
export function openFilesLimit(): number {
  return parseOpenFilesLimit(readFileSync('/proc/self/limits', 'utf8'));
}

export interface DescriptorUse {
  /** Descriptors that this process has open. */
  readonly open: number;
  /** RLIMIT_NOFILE. */
  readonly limit: number;
  /** Files that the whole machine can still open (fs.file-max). */
  readonly systemFree: number;
}

/** "1184\t0\t9223372036854775807\n", as in /proc/sys/fs/file-nr: how many more files the machine can open. */
export function parseSystemFree(fileNr: string): number {
  const [allocated = 0, , most = 0] = fileNr.trim().split(/\s+/).map(Number);
  return Math.max(0, most - allocated);
}

/** Counts what is open now; 'exhausted' when no descriptor is left to read /proc with. Its own descriptor is not counted. */
export function readDescriptorUse(): DescriptorUse | 'exhausted' {
  try {
    return {
      open: readdirSync('/proc/self/fd').length - 1,
      limit: openFilesLimit(),
      systemFree: parseSystemFree(readFileSync('/proc/sys/fs/file-nr', 'utf8')),
    };
  } catch (error) {
    if (isErrno(error, 'EMFILE', 'ENFILE')) return 'exhausted';
    throw error;
  }
}
