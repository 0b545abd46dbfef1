// Set-up of every test file: `vi.waitFor` gives up after a second by default, which two busy cores can take over what
// a quiet machine does at once. Waiting costs nothing when what is waited for is there. A broken invariant fails the test.

import { flushCompileCache } from 'node:module';
import { afterAll, vi } from 'vitest';
import { throwOnViolation } from '../../lib/invariant.ts';

const PATIENCE_MS = 120_000;
/** A worker runs this for each of its files, and has one `vi`. */
const PATIENT = Symbol.for('nodelet.patient');

const waitFor = vi.waitFor;
if (!(PATIENT in waitFor)) {
  const patient: typeof waitFor = (condition, options = {}) =>
    waitFor(condition, typeof options === 'number' ? options : { timeout: PATIENCE_MS, ...options });
  vi.waitFor = Object.assign(patient, { [PATIENT]: true });
}

throwOnViolation();

// vitest ends its workers by a signal, and Node writes compiled code only when a process exits by itself.
afterAll(() => flushCompileCache());
