import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { KeptFiles, readDirectories, readKernelFile } from '../../../../agent/stats/read-file.ts';
import { ManualClock } from '../volumes/support.ts';

const directory = mkdtempSync(join(tmpdir(), 'nodelet-read-file-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const path = join(directory, 'figure');
const write = (text: string): void => writeFileSync(path, text);
test('what is not there has no text and no directories', () => {
  expect(readKernelFile(join(directory, 'none'))).toBeUndefined();
  expect(readDirectories(join(directory, 'none'))).toEqual([]);
});

test('a file longer than the buffer is read whole', () => {
  const text = 'x'.repeat(100_000);
  write(text);
  expect(readKernelFile(path)).toBe(text);
  const files = new KeptFiles(new ManualClock(), 1000);
  expect(files.read(path)).toBe(text);
  expect(files.read(path)).toBe(text);
});

test('a kept file shows its present content, and is closed when it was not read for a minute', () => {
  const clock = new ManualClock();
  const files = new KeptFiles(clock, 1000);
  write('1');
  expect(files.read(path)).toBe('1');
  write('2');
  clock.advance(40_000);
  expect(files.read(path)).toBe('2');
  clock.advance(20_000);
  expect(files.size).toBe(1);
  clock.advance(60_000);
  expect([files.size, clock.pending]).toEqual([0, 0]);
  expect(files.read(path)).toBe('2');
});

test('no more are kept than an eighth of the files that the process may open', () => {
  const files = new KeptFiles(new ManualClock(), 8);
  write('1');
  const other = join(directory, 'other');
  writeFileSync(other, '2');
  expect([files.read(path), files.read(other), files.size]).toEqual(['1', '2', 1]);
});
