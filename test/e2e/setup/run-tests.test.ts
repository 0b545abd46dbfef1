// The runner of all checks where the end-to-end tests cannot run: it fails and says so, it does not skip them.

import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { exec } from '../../../lib/exec.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

it('without root the end-to-end tests are a failure, told in a sentence, and the last line counts it', async () => {
  const { code, stdout } = await exec(
    'setpriv',
    ['--reuid=65534', '--regid=65534', '--clear-groups', 'sh', 'scripts/node24', 'scripts/run-tests.ts', 'e2e'],
    { cwd: ROOT, timeoutMs: 120_000 },
  );
  expect(code).toBe(1);
  expect(stdout).toMatch(/^FAILED: the end-to-end tests run real containers and need root on Linux/);
  expect(stdout.trimEnd().split('\n').at(-1)).toBe('tests: 0 passed, 1 failed, 0 skipped');
});
