import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ensureFile, readFileIfExists, writeFileAtomic } from '../../../lib/atomic.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodelet-atomic-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

test('the directory is made, the mode is exact, and nothing is left beside the file', async () => {
  const path = join(directory, 'deep', 'state.json');
  await writeFileAtomic(path, 'one', 0o600);
  await writeFileAtomic(path, 'two', 0o600);
  expect(readFileSync(path, 'utf8')).toBe('two');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(directory, 'deep'))).toEqual(['state.json']);
});

test('a write that cannot be put in place leaves the old content', async () => {
  const path = join(directory, 'taken');
  await writeFileAtomic(join(path, 'inside'), 'x');
  await expect(writeFileAtomic(path, 'y')).rejects.toMatchObject({ code: /EISDIR|ENOTEMPTY/ });
  expect(readFileSync(join(path, 'inside'), 'utf8')).toBe('x');
  expect(readdirSync(directory)).toEqual(['taken']);
});

test('a missing file reads as undefined, an unreadable one throws', async () => {
  expect(await readFileIfExists(join(directory, 'none'))).toBeUndefined();
  await expect(readFileIfExists(directory)).rejects.toMatchObject({ code: 'EISDIR' });
});

test('a file that is as it should be is not written again', async () => {
  const path = join(directory, 'program');
  await ensureFile(path, 'one', 0o755);
  const { ino } = statSync(path);
  await ensureFile(path, 'one', 0o755);
  expect(statSync(path).ino).toBe(ino);
  await ensureFile(path, 'one', 0o700);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  await ensureFile(path, 'two', 0o700);
  expect(readFileSync(path, 'utf8')).toBe('two');
});
