import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exec } from '../../../lib/exec.ts';

const TREE = fileURLToPath(new URL('../../..', import.meta.url));
const PRINT_PATH = ['-e', 'console.log(process.env.PATH)'];
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-containerd-path-'));
  await mkdir(join(directory, 'whole'));
  await mkdir(join(directory, 'part'));
  for (const program of ['containerd', 'containerd-shim-runc-v2', 'ctr']) {
    await symlink('/bin/true', join(directory, 'whole', program));
  }
  await symlink('/bin/true', join(directory, 'part', 'containerd'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

function run(script: string, args: readonly string[], bin: string) {
  return exec('/bin/sh', [join(TREE, script), ...args], { env: { ...process.env, NODELET_CONTAINERD_BIN: bin } });
}

test('NODELET_CONTAINERD_BIN comes first in PATH, once, however it is written', async () => {
  const whole = join(directory, 'whole');
  const { stdout } = await run('scripts/node24', PRINT_PATH, `${whole}/../whole/`);
  const path = stdout.trim().split(':');
  expect(path[0]).toBe(whole);
  const again = await exec('/bin/sh', [join(TREE, 'scripts/node24'), ...PRINT_PATH], {
    env: { ...process.env, NODELET_CONTAINERD_BIN: whole, PATH: path.join(':') },
  });
  expect(again.stdout).toBe(stdout);
});

test.each(['scripts/node24', 'bin/nodelet'])('%s refuses a directory without all of the programs', async (script) => {
  const part = join(directory, 'part');
  const { code, stderr } = await run(script, ['--help'], part);
  expect(code).toBe(1);
  expect(stderr).toBe(`nodelet: NODELET_CONTAINERD_BIN=${part} holds no program containerd-shim-runc-v2\n`);
});
