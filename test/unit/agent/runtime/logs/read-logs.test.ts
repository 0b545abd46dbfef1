import { appendFile, mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LogOptions } from '../../../../../agent/ports/logs.ts';
import { createLogReader, tailOffset } from '../../../../../agent/runtime/logs/read-logs.ts';
import { systemClock } from '../../../../../lib/clock.ts';
import { exhaustInotify } from '../../../../support/no-inotify.ts';

const reader = createLogReader(systemClock);
const T = '2024-01-02T03:04:05.000000006Z';
const line = (text: string): string => `${T} stdout F ${text}\n`;
const ONCE: LogOptions = { follow: false, timestamps: false };

let directory: string;
let path: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-logs-'));
  path = join(directory, '0.log');
});
afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

async function readAll(options: LogOptions, isRunning = (): boolean => false): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of reader.readLogs(path, options, isRunning, new AbortController().signal)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Follows in the background; `until` resolves when the text so far contains what is waited for. */
function follow(isRunning: () => boolean, options: Partial<LogOptions> = {}) {
  const abort = new AbortController();
  let text = '';
  let waiting: { wanted: string; resolve: () => void } | undefined;
  const done = (async () => {
    for await (const chunk of reader.readLogs(path, { ...ONCE, follow: true, ...options }, isRunning, abort.signal)) {
      text += Buffer.from(chunk).toString();
      if (waiting !== undefined && text.includes(waiting.wanted)) waiting.resolve();
    }
    return text;
  })();
  const until = (wanted: string): Promise<void> =>
    text.includes(wanted)
      ? Promise.resolve()
      : new Promise((resolve) => {
          waiting = { wanted, resolve };
        });
  return { done, until, abort: () => abort.abort() };
}

describe('reading a log', () => {
  test('gives everything that is there', async () => {
    await writeFile(path, line('one') + line('two'));
    expect(await readAll(ONCE)).toBe('one\ntwo\n');
  });

  test.each([
    [0, ''],
    [1, 'three\n'],
    [2, 'two\nthree\n'],
    [3, 'one\ntwo\nthree\n'],
    [99, 'one\ntwo\nthree\n'],
  ])('the last %i lines', async (tailLines, expected) => {
    await writeFile(path, line('one') + line('two') + line('three'));
    expect(await readAll({ ...ONCE, tailLines })).toBe(expected);
  });

  test('finds the tail of a log of many blocks, at every distance from a block’s edge', async () => {
    const lines = Array.from({ length: 3000 }, (_, index) => line(`line ${index}`));
    const text = lines.join('');
    await writeFile(path, text);
    const handle = await open(path);
    try {
      for (const count of [1, 2, 1100, 1101, 1102, 2999, 3000, 3001]) {
        const expected = Buffer.byteLength(lines.slice(0, Math.max(0, 3000 - count)).join(''));
        expect(await tailOffset(handle, Buffer.byteLength(text), count)).toBe(expected);
      }
    } finally {
      await handle.close();
    }
  });

  test.each([
    ['all of it', {}, 3000],
    ['its tail', { tailLines: 2900 }, 2900],
  ])('%s is as it was when it was asked for, whatever is written meanwhile', async (_what, options, count) => {
    await writeFile(path, Array.from({ length: 3000 }, (_, index) => line(`line ${index}`)).join(''));
    const chunks: Uint8Array[] = [];
    const log = reader.readLogs(path, { ...ONCE, ...options }, () => true, new AbortController().signal);
    for await (const chunk of log) {
      if (chunks.push(chunk) === 1) await appendFile(path, line('later'));
    }
    const lines = Buffer.concat(chunks).toString().trimEnd().split('\n');
    expect([lines.length, lines.at(-1)]).toEqual([count, 'line 2999']);
    expect(await readAll({ ...ONCE, tailLines: 1 })).toBe('later\n');
  });

  test('a log that does not exist is ENOENT', async () => {
    await expect(readAll(ONCE)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('following a log', () => {
  test('gives what is written as it is written, and ends once the container is dead and all is read', async () => {
    await writeFile(path, line('one'));
    let running = true;
    const following = follow(() => running);
    await following.until('one\n');
    await appendFile(path, `${T} stdout F tw`);
    await appendFile(path, 'o\n');
    await following.until('two\n');
    await appendFile(path, line('last'));
    running = false;
    expect(await following.done).toBe('one\ntwo\nlast\n');
  });

  test('works where the machine has no inotify watch left', async () => {
    const inotify = exhaustInotify();
    await writeFile(path, line('one'));
    let running = true;
    const following = follow(() => running);
    await following.until('one\n');
    expect(inotify.tried()).toBe(1);
    await appendFile(path, line('two'));
    await following.until('two\n');
    running = false;
    expect(await following.done).toBe('one\ntwo\n');
    inotify.free();
  });

  test('goes on in the new file after a rotation, and loses nothing of the old one', async () => {
    await writeFile(path, line('one'));
    let running = true;
    const following = follow(() => running);
    await following.until('one\n');
    const old = `${path}.20240102-030405`;
    await rename(path, old);
    await appendFile(old, line('written to the renamed file'));
    await writeFile(path, line('new'));
    await following.until('new\n');
    running = false;
    expect(await following.done).toBe('one\nwritten to the renamed file\nnew\n');
  });

  test('with tailLines begins at the tail and goes on from there', async () => {
    await writeFile(path, line('older') + line('old'));
    const following = follow(() => true, { tailLines: 1 });
    await following.until('old\n');
    await appendFile(path, line('new'));
    await following.until('new\n');
    following.abort();
    expect(await following.done).toBe('old\nnew\n');
  });

  test('ends at once when its reader goes away', async () => {
    await writeFile(path, line('one'));
    const following = follow(() => true);
    await following.until('one\n');
    following.abort();
    expect(await following.done).toBe('one\n');
  });

  test('ends when limitBytes is reached', async () => {
    await writeFile(path, line('one') + line('two'));
    expect(await follow(() => true, { limitBytes: 5 }).done).toBe('one\nt');
  });
});
