import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { acquireLock, identityLockFile, lockHolder, selfId } from '../../../../cli/lab/lock.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-lock-'));
});
afterEach(() => rm(directory, { recursive: true }));

describe('a lock', () => {
  it('is had by one: another start in the same process is refused, too', async () => {
    const file = join(directory, 'locks', 'a.json');
    await acquireLock(file, 'the root /a');
    expect(await lockHolder(file)).toEqual(await selfId());
    await expect(acquireLock(file, 'the root /a')).rejects.toThrow(`the root /a is in use by process ${process.pid}`);
    await acquireLock(file, 'the root /a', true);
    expect(await readdir(join(directory, 'locks'))).toEqual(['a.json']);
  });

  it('of a process that is gone is stale', async () => {
    const file = join(directory, 'a.json');
    await writeFile(file, JSON.stringify({ pid: process.pid, startTime: 1 }));
    await acquireLock(file, 'the root /a');
    expect(await lockHolder(file)).toEqual(await selfId());
  });

  it.each([false, true])(
    'is taken once, however many want it at the same moment (a dead one’s stands there: %s)',
    async (stale) => {
      await mkdir(join(directory, 'locks'));
      const file = join(directory, 'locks', 'a.json');
      if (stale) await writeFile(file, JSON.stringify({ pid: process.pid, startTime: 1 }));
      const results = await Promise.allSettled(Array.from({ length: 20 }, () => acquireLock(file, 'it')));
      expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
      expect(await readdir(join(directory, 'locks'))).toEqual(['a.json']);
    },
  );
});

test('the lock that aliases share is named by device and inode', () => {
  expect(identityLockFile({ device: '64', inode: '9' }, '/run/x')).toBe('/run/x/64-9.json');
});
