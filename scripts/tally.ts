// Counting tests: from vitest's JSON report to the last line of a run. Pure.

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
  const files = field(report, 'testResults');
  // A file that could not be run has failed without any of its tests having done so.
  const brokenFiles = (Array.isArray(files) ? files : []).filter((file) => {
    const results = field(file, 'assertionResults');
    const anyFailed = Array.isArray(results) && results.some((result) => field(result, 'status') === 'failed');
    return field(file, 'status') === 'failed' && !anyFailed;
  }).length;
  const failed = count(report, 'numFailedTests') + brokenFiles;
  const nothingRan = passed + failed === 0;
  return { passed, failed: failed === 0 && (!ok || nothingRan) ? 1 : failed, skipped };
}
