// Pieces that several commands print in the same way, and the words in front of a failure. Pure but for waiting.

import { errorMessage, UserError } from '../../lib/errors.ts';
import type { Info } from './format.ts';

/** "Labels:" and its sorted entries; nothing when there are none. */
export function keyLines(title: string, entries: Readonly<Record<string, string>>): string[] {
  const sorted = Object.entries(entries).sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.length === 0 ? [] : [`${title}:`, ...sorted.map(([key, value]) => `\t${key} -> ${value}`)];
}

/** As Go prints a map. */
export function infoLine(info: Info): string {
  const sorted = Object.entries(info).sort(([a], [b]) => (a < b ? -1 : 1));
  return `Info: map[${sorted.map(([key, value]) => `${key}:${value}`).join(' ')}]`;
}

/** `promise`, whose UserError says first what was being done. */
export async function failed<T>(doing: string, promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    throw new UserError(`${doing}: ${error.message}`, { cause: error });
  }
}

export { failed as prefixed };

/** Runs all, and fails with every failure's message when some fail. */
export async function allOf(tasks: readonly (() => Promise<void>)[]): Promise<void> {
  const results = await Promise.allSettled(tasks.map((task) => task()));
  const errors: unknown[] = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  const unexpected = errors.find((error) => !(error instanceof UserError));
  if (unexpected !== undefined) throw unexpected;
  if (errors.length > 0) throw new UserError(errors.map(errorMessage).join('\n'));
}

export function unsupportedOutput(format: string): UserError {
  return new UserError(`unsupported output format "${format}"`);
}
