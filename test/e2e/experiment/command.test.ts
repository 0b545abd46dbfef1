// `nodelet experiment` as a process: Ctrl-C, what is missing for a virtual machine, and what `compare` prints. Needs neither root
// nor a lab.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url));

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-experiment-command-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** `onLine`: of its notes, which are on stderr. */
async function experiment(
  args: readonly string[],
  { env = process.env, onLine }: { env?: NodeJS.ProcessEnv; onLine?: (line: string, child: ChildProcess) => void } = {},
): Promise<{ readonly code: number | null; readonly stdout: string; readonly notes: readonly string[] }> {
  const child = spawn(process.execPath, [MAIN, 'experiment', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const notes: string[] = [];
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString('utf8');
  });
  createInterface({ input: child.stderr }).on('line', (line) => {
    notes.push(line);
    onLine?.(line, child);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, stdout, notes };
}

test('Ctrl-C ends a run, whose report says that it was interrupted; compare reads it, and prints a line for each measure', async () => {
  const folder = join(directory, 'interrupted');
  const { code, stdout } = await experiment(['run', 'crash-loop-day', '--repeat', '100', '-o', folder], {
    onLine: (line, child) => {
      if (line.includes('sleep 24h')) child.kill('SIGINT');
    },
  });
  expect(code).toBe(1);
  expect(stdout).toContain('crash-loop-day on sim: interrupted');
  expect(await readFile(join(folder, 'report.md'), 'utf8')).toContain('Interrupted');
  const compared = await experiment(['compare', folder, folder]);
  expect(compared.code).toBe(0);
  const lines = compared.stdout.trimEnd().split('\n');
  expect(lines[0]).toBe('Equal.');
  expect(lines).not.toContain('');
  expect(lines.filter((line) => line.startsWith('= '))).toHaveLength(2);
});

test('a virtual machine without qemu and debootstrap is one line that names the packages', async () => {
  const args = ['run', 'cpu-quota', '--on', 'vm', '-o', join(directory, 'vm')];
  const { code, stdout, notes } = await experiment(args, { env: { ...process.env, PATH: '/nonexistent' } });
  expect([code, stdout]).toEqual([1, '']);
  expect(notes).toEqual([
    expect.stringMatching(/^nodelet: .*qemu-system-x86, debootstrap and e2fsprogs: run "sh scripts\/setup --with-vm"/),
  ]);
  expect(await readdir(directory)).not.toContain('vm');
});

test.each<readonly [readonly string[], string]>([
  [['run', 'grace-period', '--on', 'moon'], '--on moon: there are sim, lab and vm'],
  [['run', 'cpu-quota', '--on', 'vm', '--agent', 'kubelet=/no/such'], 'no program that can be executed'],
  [['run', 'grace-period', '--agent', 'kubelet=/bin/sh'], 'the simulated world runs nodelet alone'],
])('%j is refused', async (args, words) => {
  const { code, notes } = await experiment(args);
  expect(code).toBe(1);
  expect(notes.join('\n')).toContain(words);
});
