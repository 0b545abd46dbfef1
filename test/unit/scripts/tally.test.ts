import { describe, expect, it } from 'vitest';
import { addTallies, failureLines, tallyLine, tallyOf } from '../../../scripts/tally.ts';

const report = (passed: number, failed: number, pending = 0, files: readonly unknown[] = []) => ({
  numPassedTests: passed,
  numFailedTests: failed,
  numPendingTests: pending,
  numTodoTests: 0,
  testResults: files,
});
const brokenFile = { status: 'failed', assertionResults: [] };
const failedFile = { status: 'failed', assertionResults: [{ status: 'failed' }] };

describe('the figures of a test run', () => {
  it.each([
    ['a good run', report(5, 0), true, { passed: 5, failed: 0, skipped: 0 }],
    ['a failing test', report(4, 1, 0, [failedFile]), false, { passed: 4, failed: 1, skipped: 0 }],
    ['a skipped test', report(4, 0, 2), true, { passed: 4, failed: 0, skipped: 2 }],
    ['a file that does not load', report(4, 0, 0, [brokenFile]), false, { passed: 4, failed: 1, skipped: 0 }],
    ['an error outside of tests', report(4, 0), false, { passed: 4, failed: 1, skipped: 0 }],
    ['no test at all', report(0, 0), true, { passed: 0, failed: 1, skipped: 0 }],
    ['no report', undefined, false, { passed: 0, failed: 1, skipped: 0 }],
  ])('of %s', (_, json, ok, expected) => {
    expect(tallyOf(json, ok)).toEqual(expected);
  });

  it('add up and end in one line', () => {
    const sum = addTallies({ passed: 1, failed: 2, skipped: 3 }, { passed: 10, failed: 20, skipped: 30 });
    expect(tallyLine(sum)).toBe('tests: 11 passed, 22 failed, 33 skipped');
  });

  it('name each failing test, and each file that does not load, with the beginning of its message', () => {
    const assertionResults = [
      { status: 'passed', fullName: 'a good one', failureMessages: [] },
      {
        status: 'failed',
        fullName: 'pods are Running',
        failureMessages: [
          '\u001b[31mError: timed out\nwaiting for a pod\u001b[39m\n    at eventually (/repo/x.ts:1:2)\n',
        ],
      },
      { status: 'failed', fullName: 'says much', failureMessages: ['x'.repeat(400)] },
    ];
    const files = [
      { name: '/repo/test/a.test.ts', status: 'failed', assertionResults },
      { name: '/repo/test/b.test.ts', status: 'failed', message: 'Cannot find module', assertionResults: [] },
      { name: '/repo/test/c.test.ts', status: 'passed', assertionResults: [] },
    ];
    expect(failureLines({ testResults: files }, '/repo/')).toEqual([
      'test/a.test.ts > pods are Running: Error: timed out waiting for a pod',
      `test/a.test.ts > says much: ${'x'.repeat(300)}…`,
      'test/b.test.ts: Cannot find module',
    ]);
    expect(failureLines(undefined, '/repo')).toEqual([]);
  });
});
