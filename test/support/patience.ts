// Set-up of every test file: `vi.waitFor` gives up after a second by default, which two busy cores can take over what
// a quiet machine does at once. Waiting costs nothing when what is waited for is there. A broken invariant fails the test.

import { vi } from 'vitest';
import { throwOnViolation } from '../../lib/invariant.ts';

const PATIENCE_MS = 30_000;

const waitFor = vi.waitFor;
vi.waitFor = (condition, options = {}) =>
  waitFor(condition, typeof options === 'number' ? options : { timeout: PATIENCE_MS, ...options });

throwOnViolation();
