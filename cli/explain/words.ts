// Figures and codes in words, for people: durations, bytes, exit codes, signals, lists. Pure.

import { constants } from 'node:os';
import { type EpochMs, elapsedMs } from '../../lib/clock.ts';

/** "4 s", "2 min 5 s", "3 h 10 min", "2 days 4 h". */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const parts = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
    small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return parts(minutes, 'min', seconds % 60, 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return parts(hours, 'h', minutes % 60, 'min');
  return parts(Math.floor(hours / 24), 'days', hours % 24, 'h');
}

export function ago(at: EpochMs, now: EpochMs): string {
  return `${duration(elapsedMs(at, now))} ago`;
}

/** "16 MiB", "1.5 GiB". */
export function bytes(amount: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = amount;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Number(value.toFixed(value < 10 ? 1 : 0))} ${units[unit]}`;
}

/** "a, b and c". */
export function list(words: readonly string[], last = 'and'): string {
  if (words.length < 2) return words.join('');
  return `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`;
}

export function plural(count: number, word: string): string {
  return count === 1 ? `1 ${word}` : `${count} ${word}s`;
}

const SIGNAL_MEANINGS: ReadonlyMap<string, string> = new Map([
  ['SIGKILL', 'killed at once, without a chance to end by itself'],
  ['SIGTERM', 'requested to end'],
  ['SIGINT', 'interrupted'],
  ['SIGHUP', 'its terminal went away'],
  ['SIGQUIT', 'requested to end, with a core dump'],
  ['SIGSEGV', 'it used memory that is not its own'],
  ['SIGABRT', 'it gave up by itself (abort)'],
  ['SIGBUS', 'it used memory that cannot be used so'],
  ['SIGFPE', 'a calculation that cannot be done'],
  ['SIGILL', 'an instruction that this processor does not have'],
  ['SIGPIPE', 'it wrote to a pipe that has no reader'],
  ['SIGSYS', 'a system call that is not allowed, by its seccomp profile'],
]);

/** "SIGSEGV" for 11. */
export function signalName(number: number): string {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`;
}

/** An exit code in words: "exit code 3", "exit code 139: SIGSEGV, it used memory that is not its own". */
export function exitCode(code: number, signal = 0): string {
  const number = signal > 0 ? signal : code > 128 && code < 193 ? code - 128 : 0;
  if (number > 0) {
    const name = signalName(number);
    const meaning = SIGNAL_MEANINGS.get(name);
    return `exit code ${code}: ${name}${meaning === undefined ? '' : `, ${meaning}`}`;
  }
  if (code === 127) return 'exit code 127: from a shell, a command that was not found';
  if (code === 126) return 'exit code 126: from a shell, a file that cannot be executed';
  return `exit code ${code}`;
}

/** The edits that lead from one word to another. */
export function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** "there is one called settings": what may have been meant where there is no `wanted`. */
export function similarName(wanted: string, known: readonly string[]): string | undefined {
  const near = nearest(wanted, known);
  return near === undefined ? undefined : `there is one called ${near}`;
}

/** The word among `known` that `wanted` may have been meant to be: at most a third of its letters differ. */
export function nearest(wanted: string, known: readonly string[]): string | undefined {
  const ranked = known
    .filter((name) => name !== wanted)
    .map((name) => ({ name, edits: distance(wanted, name) }))
    .sort((a, b) => a.edits - b.edits);
  const best = ranked[0];
  return best !== undefined && best.edits <= Math.max(1, Math.floor(wanted.length / 3)) ? best.name : undefined;
}
