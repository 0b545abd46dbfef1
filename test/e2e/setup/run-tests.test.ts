// The runner of all checks where the end-to-end tests cannot run, and when it is stopped while they do.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { labPaths } from '../../../cli/lab/paths.ts';
import { labProcesses } from '../../../cli/lab/processes.ts';
import { exists } from '../../../cli/lab/root.ts';
import { isErrno } from '../../../lib/errors.ts';
import { exec } from '../../../lib/exec.ts';
import { listProcesses } from '../../../lib/processes.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

it('without root the end-to-end tests are a failure with a message, and the last line counts it', async () => {
  const { code, stdout } = await exec(
    'setpriv',
    ['--reuid=65534', '--regid=65534', '--clear-groups', 'sh', 'scripts/node24', 'scripts/run-tests.ts', 'e2e'],
    { cwd: ROOT, timeoutMs: 120_000 },
  );
  expect(code).toBe(1);
  expect(stdout).toMatch(/^FAILED: the end-to-end tests run real containers and need root on Linux/);
  expect(stdout.trimEnd().split('\n').at(-1)).toBe('tests: 0 passed, 1 failed, 0 skipped');
});

it.each(['SIGTERM', 'SIGKILL'] as const)(
  'a run that %s ends leaves no lab: its own is taken down, whatever state it was in',
  async (signal) => {
    const temporary = await mkdtemp(join(tmpdir(), 'nodelet-run-'));
    const child = spawn('sh', ['scripts/node24', 'scripts/run-tests.ts', 'e2e', 'test/e2e/resize/resize.test.ts'], {
      cwd: ROOT,
      env: { ...process.env, TMPDIR: temporary },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    const ended = once(child, 'close');
    try {
      let root = '';
      const started = async (): Promise<boolean> => {
        if (child.exitCode !== null) throw new Error(`the run has ended:\n${output}`);
        root = join(temporary, (await readdir(temporary)).find((name) => name.startsWith('nodelet-e2e-')) ?? '-');
        return (await labProcesses(root)).some((entry) => entry.comm === 'containerd');
      };
      await expect.poll(started, { timeout: 200_000, interval: 200 }).toBe(true);
      child.kill(signal);
      await ended;
      // After SIGKILL the runner waits for nothing: then it is the test's process that ends without it.
      if (signal === 'SIGKILL') {
        for (const pid of await ofVitest(temporary)) {
          try {
            process.kill(pid, 'SIGKILL');
          } catch (error) {
            // A worker ends when the process that has started it does.
            if (!isErrno(error, 'ESRCH')) throw error;
          }
        }
        // Its guardian takes it down, and the run directory last of all.
        const { runDir } = labPaths(root);
        const isThere = async (): Promise<boolean> => (await exists(root)) || (await exists(runDir));
        await expect.poll(isThere, { timeout: 200_000, interval: 200 }).toBe(false);
      } else expect(child.exitCode).toBe(143);
      expect(await labProcesses(root)).toEqual([]);
      expect(await exists(root)).toBe(false);
      expect(await exists(labPaths(root).runDir)).toBe(false);
      expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(temporary);
    } finally {
      child.kill('SIGKILL');
      await rm(temporary, { recursive: true, force: true });
    }
  },
);

/** The processes of the run whose temporary directory this is, but for guardians and what they do. */
async function ofVitest(temporary: string): Promise<readonly number[]> {
  const found: number[] = [];
  for (const { pid, argv } of await listProcesses()) {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
    const isVitest = argv.some((word) => word.includes('/vitest/') || word.startsWith('node (vitest'));
    if (isVitest && environment.split('\0').includes(`TMPDIR=${temporary}`)) found.push(pid);
  }
  return found;
}
