// The file of the audit log: rotation, and what happens while it cannot be written.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backupName, backupTime, openLogFile, QueuedLines, superfluous } from '../../../../apiserver/audit/log-file.ts';
import { epochMs, systemClock } from '../../../../lib/clock.ts';
import { UserError } from '../../../../lib/errors.ts';

const DAY_MS = 86_400_000;
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-audit-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

describe('which rotated files go', () => {
  const now = epochMs(Date.UTC(2026, 0, 10));
  const names = [1, 3, 8].map((age) => backupName('audit.log', epochMs(now - age * DAY_MS)));
  const all = ['audit.log', 'audit-notes.log', 'other.log', ...names];
  const cases: readonly [number, number, readonly string[]][] = [
    [0, 0, []],
    [2, 0, names.slice(2)],
    [0, 5, names.slice(2)],
    [1, 2, names.slice(1)],
    [9, 9, []],
  ];
  it.each(cases)('%i files, %i days', (maxBackup, maxAge, gone) => {
    expect(superfluous('/var/log/audit.log', all, { maxBackup, maxAge, now })).toEqual(gone);
  });
  it('a name has its time', () => {
    expect(names[0]).toBe('audit-2026-01-09T00-00-00.000.log');
    expect(backupTime('/var/log/audit.log', names[0] ?? '')).toBe(now - DAY_MS);
  });
});

it('a file that is full is put aside', async () => {
  const path = join(directory, 'new', 'audit.log');
  const options = { path, maxSize: 1, maxBackup: 0, maxAge: 0, clock: systemClock, log: () => undefined };
  const sink = await openLogFile(options);
  const line = (letter: string): string => `${letter.repeat(600 * 1024)}\n`;
  sink.write(line('a'));
  sink.write(line('b'));
  await sink.close();
  const names = (await readdir(join(directory, 'new'))).sort();
  expect(names).toEqual([expect.stringMatching(/^audit-.*\.log$/), 'audit.log']);
  expect(await readFile(path, 'utf8')).toBe(line('b'));
});

it('a place that no file can be in is refused', async () => {
  const path = join('/proc', 'audit.log');
  const options = { path, maxSize: 0, maxBackup: 0, maxAge: 0, clock: systemClock, log: () => undefined };
  await expect(openLogFile(options)).rejects.toThrow(UserError);
});

it('what cannot be written is one line in the log, and one more when it can again', async () => {
  const lines: string[] = [];
  const written: string[] = [];
  let isFull = true;
  const write = async (bytes: Buffer): Promise<void> => {
    if (isFull) throw new Error('ENOSPC: no space left on device, write');
    written.push(bytes.toString());
  };
  const sink = new QueuedLines('audit log a.log', { write, close: async () => undefined }, (line) => lines.push(line));
  sink.write('1\n');
  await sink.close();
  sink.write('2\n');
  sink.write('3\n');
  await sink.close();
  isFull = false;
  sink.write('4\n');
  await sink.close();
  expect(written).toEqual(['4\n']);
  expect(lines).toEqual([
    'audit log a.log cannot be written: ENOSPC: no space left on device, write; events are lost until it can be written again',
    'audit log a.log can be written again; 3 events were lost',
  ]);
});
