import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { exec } from '../../../../lib/exec.ts';

const NODELET = fileURLToPath(new URL('../../../../bin/nodelet', import.meta.url));
let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'nodelet-start-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** Pids of the Node processes that ran, one a start, and the command's output. */
async function start(): Promise<{ starts: readonly string[]; messages: string; code: number | null }> {
  const log = join(dir, 'starts');
  const hook = `import { appendFileSync } from 'node:fs'; appendFileSync(${JSON.stringify(log)}, process.pid + '\\n');`;
  const env = {
    ...process.env,
    NODE_COMPILE_CACHE: join(dir, 'cache'),
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(hook)}`,
  };
  const { code, stderr } = await exec(
    NODELET,
    ['agent', '--kubeconfig', join(dir, 'missing'), '--root-dir', join(dir, 'kubelet')],
    {
      env,
      // For giving up only: a busy machine takes long over code that is not compiled yet.
      timeoutMs: 120_000,
    },
  );
  const starts = (await readFile(log, 'utf8')).trim().split('\n');
  await rm(log);
  return { starts, messages: stderr, code };
}

test('an agent that had to compile itself starts over once, as the same process; the next one need not', async () => {
  const cold = await start();
  expect(cold.starts).toHaveLength(2);
  expect(new Set(cold.starts).size).toBe(1);
  expect(cold).toMatchObject({ code: 1, messages: `nodelet: kubeconfig ${join(dir, 'missing')}: no such file\n` });
  const warm = await start();
  expect(warm.starts).toHaveLength(1);
  expect(warm).toMatchObject({ code: 1, messages: cold.messages });
}, 300_000);
