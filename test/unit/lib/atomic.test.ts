import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  ensureFile,
  makeAtomic,
  readFileIfExists,
  temporaryOf,
  writeFileAtomic,
  writeFileAtomicSync,
} from '../../../lib/atomic.ts';

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

test('the synchronous write makes the directory, replaces what a killed one left, and leaves nothing beside the file', () => {
  const path = join(directory, 'deep', 'note.json');
  const modes = { file: 0o600, directory: 0o750 };
  writeFileAtomicSync(path, 'one', modes);
  writeFileSync(temporaryOf(path), 'half of a longer te', { mode: 0o600 });
  writeFileAtomicSync(path, 'two', modes);
  expect(readFileSync(path, 'utf8')).toBe('two');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(join(directory, 'deep')).mode & 0o777).toBe(0o750);
  expect(readdirSync(join(directory, 'deep'))).toEqual(['note.json']);
});

test('a synchronous write that cannot be put in place leaves nothing, and names the file', () => {
  const path = join(directory, 'taken');
  mkdirSync(join(path, 'inside'), { recursive: true });
  expect(() => writeFileAtomicSync(path, 'y', { file: 0o600, directory: 0o750 })).toThrow(path);
  expect(readdirSync(directory)).toEqual(['taken']);
});

test('what is made is put in place whole, or not at all', async () => {
  const path = join(directory, 'link');
  await makeAtomic(path, `${path}.new`, async (temporary) => symlinkSync('/one', temporary));
  await makeAtomic(path, `${path}.new`, async (temporary) => symlinkSync('/two', temporary));
  const broken = makeAtomic(path, `${path}.new`, async (temporary) => {
    writeFileSync(temporary, 'half');
    throw new Error('no more');
  });
  await expect(broken).rejects.toThrow('no more');
  expect(readlinkSync(path)).toBe('/two');
  expect(readdirSync(directory)).toEqual(['link']);
});
