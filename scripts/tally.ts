// Counting tests: from vitest's JSON report to the last line of a run. Pure.

import { stripVTControlCharacters } from 'node:util';

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const EMPTY: Tally = { passed: 0, failed: 0, skipped: 0 };

export function addTallies(a: Tally, b: Tally): Tally {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

export function tallyLine(tally: Tally): string {
  return `tests: ${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped`;
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined;
}

function count(report: unknown, name: string): number {
  const value = field(report, name);
  return typeof value === 'number' ? value : 0;
}

/**
 * The figures of one vitest run. `ok` is whether vitest exited with 0: a run that failed without a failing test (a file
 * that does not load, an error outside of tests, no test at all) counts as one failure more.
 */
export function tallyOf(report: unknown, ok: boolean): Tally {
  const passed = count(report, 'numPassedTests');
  const skipped = count(report, 'numPendingTests') + count(report, 'numTodoTests');
  // A file that could not be run has failed without any of its tests having done so.
  const brokenFiles = list(report, 'testResults').filter((file) => {
    const anyFailed = list(file, 'assertionResults').some((result) => field(result, 'status') === 'failed');
    return field(file, 'status') === 'failed' && !anyFailed;
  }).length;
  const failed = count(report, 'numFailedTests') + brokenFiles;
  const nothingRan = passed + failed === 0;
  return { passed, failed: failed === 0 && (!ok || nothingRan) ? 1 : failed, skipped };
}

/** How much of a failure's message stands in its line; the whole of it is further up in the output. */
const MESSAGE_CHARACTERS = 300;

/** A line for each failing test of vitest's report, with the beginning of its message. `root`: the repository. */
export function failureLines(report: unknown, root: string): readonly string[] {
  return list(report, 'testResults').flatMap((file) => {
    const path = words(field(file, 'name')).replace(`${root.replace(/\/$/, '')}/`, '');
    const failed = list(file, 'assertionResults').filter((result) => field(result, 'status') === 'failed');
    const lines = failed.map((result) => {
      const message = list(result, 'failureMessages').map(words).join('; ');
      return `${path} > ${words(field(result, 'fullName'))}: ${brief(message)}`;
    });
    // One that does not load has a message of its own.
    const broken = failed.length === 0 && field(file, 'status') === 'failed';
    return broken ? [`${path}: ${brief(words(field(file, 'message')))}`] : lines;
  });
}

function list(value: unknown, name: string): readonly unknown[] {
  const items = field(value, name);
  return Array.isArray(items) ? items : [];
}

function words(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** In one line, without the stack and without colours. */
function brief(message: string): string {
  const plain = stripVTControlCharacters(message);
  const end = plain.search(/\n\s+at /);
  const oneLine = (end === -1 ? plain : plain.slice(0, end)).replace(/\s+/g, ' ').trim();
  return oneLine.length > MESSAGE_CHARACTERS ? `${oneLine.slice(0, MESSAGE_CHARACTERS)}…` : oneLine;
}
