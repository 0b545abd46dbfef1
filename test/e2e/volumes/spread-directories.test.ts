// Pods' directories are spread over a disk without a journal, and over no other: seen with lsattr on real file systems.

import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLinuxMounter } from '../../../agent/volumes/linux-mounter.ts';
import { spreadDirectories } from '../../../agent/volumes/spread-directories.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { Tracer } from '../../../lib/trace.ts';

const tracer = new Tracer();
const tools = { mounter: createLinuxMounter({ tracer }), exec, tracer };

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-spread-'));
  await mkdir(join(root, 'mnt'));
});
afterEach(async () => {
  await exec('umount', [join(root, 'mnt')]);
  await rm(root, { recursive: true });
});

async function mountNew(mkfs: readonly string[]): Promise<void> {
  const image = join(root, 'disk.img');
  await writeFile(image, '');
  await truncate(image, 320 * 1024 * 1024);
  const [program = '', ...args] = mkfs;
  await execOk(program, [...args, image]);
  await execOk('mount', ['-o', 'loop', image, join(root, 'mnt')]);
}

/** Two directories of the mounted file system, and the second's attributes after spreading. */
async function spread(): Promise<{ changed: readonly string[]; top: boolean }> {
  const directories = [join(root, 'mnt'), join(root, 'mnt', 'pods')];
  await mkdir(directories[1] ?? '');
  const changed = await spreadDirectories(directories, tools);
  const listed = await exec('lsattr', ['-d', directories[1] ?? '']);
  return { changed, top: /^\S*T\S* /.test(listed.stdout) };
}

test('ext4 without a journal: directories lie apart, and saying so again is no error', async () => {
  await mountNew(['mkfs.ext4', '-q', '-O', '^has_journal']);
  expect(await spread()).toEqual({ changed: [join(root, 'mnt'), join(root, 'mnt', 'pods')], top: true });
  expect(await spreadDirectories([join(root, 'mnt', 'pods')], tools)).toHaveLength(1);
});

test.each([
  ['ext4 with a journal', ['mkfs.ext4', '-q']],
  ['xfs', ['mkfs.xfs', '-q']],
])('%s is left as it is', async (_, mkfs) => {
  await mountNew(mkfs);
  expect(await spread()).toEqual({ changed: [], top: false });
});

test('a file system without a device is left as it is', async () => {
  await execOk('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', join(root, 'mnt')]);
  expect(await spread()).toEqual({ changed: [], top: false });
});

test('what chattr says when it cannot is told', async () => {
  await mountNew(['mkfs.ext4', '-q', '-O', '^has_journal']);
  await execOk('mount', ['-o', 'remount,ro', join(root, 'mnt')]);
  await expect(spreadDirectories([join(root, 'mnt')], tools)).rejects.toThrow(/chattr \+T .*Read-only file system/);
});
