import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openRootDirectory } from '../../../../agent/node/root-directory.ts';
import { UserError } from '../../../../lib/errors.ts';

let base: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'nodelet-agent-root-')));
});
afterEach(() => rmSync(base, { recursive: true }));

test('a root is made, and resolved through every link', async () => {
  mkdirSync(join(base, 'real'));
  symlinkSync('real', join(base, 'link'));
  expect(await openRootDirectory(join(base, 'link', 'kubelet'))).toBe(join(base, 'real', 'kubelet'));
  expect(existsSync(join(base, 'real', 'kubelet'))).toBe(true);
  symlinkSync(join(base, 'link', 'kubelet'), join(base, 'second'));
  expect(await openRootDirectory(join(base, 'second'))).toBe(join(base, 'real', 'kubelet'));
});

test.for(['pods', 'plugins', 'plugins_registry'])('%s that is a link is refused by its path', async (name) => {
  mkdirSync(join(base, 'elsewhere'));
  symlinkSync('elsewhere', join(base, name));
  await expect(openRootDirectory(base)).rejects.toThrow(UserError);
  await expect(openRootDirectory(base)).rejects.toThrow(`${join(base, name)} is a symbolic link`);
});
