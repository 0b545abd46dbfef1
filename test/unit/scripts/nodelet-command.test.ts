// bin/nodelet in a tree of its own, with a node that prints what it was started with.

import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { execOk } from '../../../lib/exec.ts';

const TREE = fileURLToPath(new URL('../../..', import.meta.url));
let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-command-'));
  for (const directory of ['bin', 'scripts', 'node_modules/.bin'])
    await mkdir(join(root, directory), { recursive: true });
  for (const file of ['bin/nodelet', 'scripts/containerd-path', 'scripts/ignored-hangup']) {
    await copyFile(join(TREE, file), join(root, file));
  }
  const node = join(root, 'node_modules/.bin/node');
  await writeFile(node, '#!/bin/sh\necho "$*"\nenv | grep ^MALLOC_ || :\n');
  await chmod(node, 0o755);
});
afterEach(() => rm(root, { recursive: true, force: true }));

const started = (command: string, tricks?: string): Promise<string> =>
  execOk('/bin/sh', [join(root, 'bin/nodelet'), command], {
    env: { PATH: process.env['PATH'], ...(tricks === undefined ? {} : { NODELET_TRICKS: tricks }) },
  });

describe('the tricks of the agent’s process', () => {
  test.each<[string | undefined, boolean, boolean, boolean, boolean]>([
    [undefined, true, true, true, true],
    ['none', false, false, false, false],
    ['-v8-size', false, true, true, true],
    ['-v8-idle', true, true, false, true],
    ['-exec-helper,-malloc', true, true, true, false],
    ['none,malloc', false, false, false, true],
    ['none,v8-jit', false, true, false, false],
  ])('with NODELET_TRICKS %j', async (tricks, size, jit, idle, malloc) => {
    const output = await started('agent', tricks);
    expect(output.includes('--optimize-for-size')).toBe(size);
    expect(output.includes('--invocation-count-for-maglev=')).toBe(jit);
    expect(output.includes('--no-memory-reducer')).toBe(idle);
    expect(output.includes('MALLOC_ARENA_MAX=1')).toBe(malloc);
  });

  test('are the agent’s alone', async () => {
    const output = await started('apiserver');
    expect(output).not.toContain('--optimize-for-size');
    expect(output).not.toContain('MALLOC_');
  });

  test('the API server has a smaller young generation', async () => {
    expect(await started('apiserver')).toContain('--max-semi-space-size=8 ');
    expect(await started('apiserver', '-v8-young')).not.toContain('--max-semi-space-size');
    expect(await started('scheduler')).not.toContain('--max-semi-space-size');
  });

  test('the tap collects its garbage early', async () => {
    expect(await started('tap')).toContain('--max-semi-space-size=2 --heap-growing-percent=30 ');
  });

  test('cap no heap: V8 knows the machine', async () => {
    expect(await started('agent')).not.toContain('max-old-space');
  });
});

test('depends on no file but the tree’s own and its cache: who could write another would choose root’s flags', async () => {
  const text = await readFile(join(TREE, 'bin/nodelet'), 'utf8');
  const commands = text.split('\n').filter((line) => !/^\s*#(?!!)/.test(line));
  const paths = commands.join('\n').match(/(?<![\w$}"/.])\/[a-z][\w./-]*/g);
  expect(new Set(paths)).toEqual(new Set(['/bin/sh', '/dev/null', '/var/cache/nodelet']));
});
