import fs from 'node:fs';
import { mkdtemp, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../lib/clock.ts';
import { type DirectoryWatch, POLL_MS, watchDirectory } from '../../../lib/watch-directory.ts';
import { exhaustInotify, type InotifyError, inotifyError } from '../../support/no-inotify.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

let directory: string;
let watch: DirectoryWatch | undefined;
let names: (string | null)[];
let problems: string[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-watch-'));
  names = [];
  problems = [];
});
afterEach(async () => {
  watch?.close();
  vi.restoreAllMocks();
  await rm(directory, { recursive: true, force: true });
});

function begin(clock = new VirtualClock(), path = directory): VirtualClock {
  watch = watchDirectory(path, {
    changed: (name) => names.push(name),
    failed: (error) => problems.push(`failed ${error.message}`),
    polling: (error) => problems.push(`polling ${error.message}`),
    clock,
  });
  return clock;
}

describe('with inotify', () => {
  test('a change is reported by its name', async () => {
    watch = watchDirectory(directory, {
      changed: (name) => names.push(name),
      failed: (error) => problems.push(error.message),
      clock: systemClock,
    });
    await writeFile(join(directory, 'a'), '');
    await vi.waitFor(() => expect(names).toContain('a'));
    expect(problems).toEqual([]);
  });

  test('a directory that is not there is an error at once', async () => {
    await rmdir(directory);
    expect(() => begin()).toThrow('ENOENT');
  });
});

describe.each<InotifyError>(['ENOSPC', 'EMFILE', 'ENFILE'])('without inotify (%s)', (code) => {
  test('the caller is woken every second, until there is a watch again', async () => {
    const inotify = exhaustInotify(code);
    const clock = begin();
    expect(problems).toEqual([`polling ${code}: no inotify left, watch`]);
    await clock.advance(3 * POLL_MS);
    expect(names).toEqual([null, null, null]);
    expect(inotify.tried()).toBe(4);
    inotify.free();
    await clock.advance(POLL_MS);
    expect(names).toEqual([null, null, null, null]);
    expect(clock.timers).toBe(0);
    await writeFile(join(directory, 'a'), '');
    await vi.waitFor(() => expect(names).toContain('a'));
    expect(problems).toHaveLength(1);
  });

  test('polling begins also when a watch fails later', async () => {
    let watcher: fs.FSWatcher | undefined;
    const original = fs.watch;
    const spy = vi.spyOn(fs, 'watch').mockImplementation((...args: readonly unknown[]) => {
      watcher = Reflect.apply(original, fs, args);
      if (watcher === undefined) throw new Error('no watcher');
      return watcher;
    });
    const clock = begin();
    spy.mockRestore();
    watcher?.emit('error', inotifyError(code));
    expect(problems).toEqual([`polling ${code}: no inotify left, watch`]);
    await clock.advance(POLL_MS);
    expect(names).toEqual([null]);
  });

  test('a directory that goes meanwhile is reported, and nothing is polled any more', async () => {
    const inotify = exhaustInotify(code);
    const clock = begin();
    inotify.free();
    await rmdir(directory);
    await clock.advance(POLL_MS);
    expect(problems[1]).toContain('failed ENOENT');
    expect(clock.timers).toBe(0);
  });

  test('nothing is polled after close', async () => {
    exhaustInotify(code);
    const clock = begin();
    watch?.close();
    await clock.advance(10 * POLL_MS);
    expect(names).toEqual([]);
  });
});
