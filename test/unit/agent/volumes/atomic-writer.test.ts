import { once } from 'node:events';
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Payload, pathProblem, Staging, writePayload } from '../../../../agent/volumes/atomic-writer.ts';
import { epochMs } from '../../../../lib/clock.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'nodelet-volumes-atomic-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const payload = (files: Record<string, string>, mode = 0o644): Payload =>
  new Map(Object.entries(files).map(([path, text]) => [path, { data: Buffer.from(text), mode }]));
const write = (files: Record<string, string>, mode?: number) =>
  writePayload(dir, payload(files, mode), { now: epochMs(Date.now()) });
const stamped = async () => (await readdir(dir)).filter((name) => /^\.\.\d/.test(name));

describe('the atomic writer', () => {
  test('shows files through links over ..data, with their modes', async () => {
    expect(await write({ 'a.conf': 'A', 'sub/b.conf': 'B' }, 0o400)).toBe(true);
    expect((await readdir(dir)).filter((name) => !name.startsWith('..')).sort()).toEqual(['a.conf', 'sub']);
    expect(await readlink(join(dir, 'a.conf'))).toBe('..data/a.conf');
    expect(await readlink(join(dir, 'sub'))).toBe('..data/sub');
    expect(await readlink(join(dir, '..data'))).toMatch(/^\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+$/);
    expect(await readFile(join(dir, 'sub/b.conf'), 'utf8')).toBe('B');
    expect((await stat(join(dir, 'a.conf'))).mode & 0o7777).toBe(0o400);
    expect((await stat(join(dir, '..data'))).mode & 0o7777).toBe(0o755);
  });

  test('gives the exact mode whatever the umask', async () => {
    const before = process.umask(0o077);
    try {
      await write({ a: '1' }, 0o666);
    } finally {
      process.umask(before);
    }
    expect((await stat(join(dir, 'a'))).mode & 0o7777).toBe(0o666);
    expect((await stat(join(dir, '..data'))).mode & 0o7777).toBe(0o755);
  });

  test('changes nothing when the content is the same', async () => {
    await write({ a: '1' });
    const link = await readlink(join(dir, '..data'));
    expect(await write({ a: '1' })).toBe(false);
    expect(await readlink(join(dir, '..data'))).toBe(link);
  });

  test('replaces everything at once and leaves one timestamped directory', async () => {
    await write({ a: '1', gone: 'x', 'deep/er/file': 'y' });
    expect(await write({ a: '2', added: 'z' })).toBe(true);
    expect((await readdir(dir)).filter((name) => !name.startsWith('..')).sort()).toEqual(['a', 'added']);
    expect(await readFile(join(dir, 'a'), 'utf8')).toBe('2');
    expect(await stamped()).toHaveLength(1);
  });

  test('a reader never sees a mixture of two versions', async () => {
    const [STOP, VERSIONS] = [0, 1];
    const shared = new Int32Array(new SharedArrayBuffer(8));
    await write({ a: '0', b: '0' });
    // The reader has a thread of its own: a write is one piece of work for the thread that does it.
    const reader = new Worker(
      `const { readFileSync, readlinkSync } = require('node:fs');
       const { parentPort, workerData } = require('node:worker_threads');
       const shared = new Int32Array(workerData.shared);
       const seen = new Set();
       const read = (file) => { try { return readFileSync(file, 'utf8'); } catch { return undefined; } };
       parentPort.postMessage('reading');
       while (Atomics.load(shared, ${STOP}) === 0) {
         // One resolution of ..data, as a careful reader does it; both files come from the same version.
         const version = workerData.dir + '/' + readlinkSync(workerData.dir + '/..data');
         const [a, b] = [read(version + '/a'), read(version + '/b')];
         if (a !== undefined && b !== undefined) seen.add(a + ' ' + b);
         Atomics.store(shared, ${VERSIONS}, seen.size);
       }
       parentPort.postMessage([...seen]);`,
      { eval: true, workerData: { dir, shared: shared.buffer } },
    );
    await once(reader, 'message');
    // Until the reader, which may have to wait for a processor, has seen some of them.
    for (let i = 1; i < 300 || Atomics.load(shared, VERSIONS) < 2; i++) await write({ a: String(i), b: String(i) });
    const reported = once(reader, 'message');
    Atomics.store(shared, STOP, 1);
    const seen: string[] = (await reported)[0];
    await reader.terminate();
    expect(seen.filter((pair) => pair.split(' ')[0] !== pair.split(' ')[1])).toEqual([]);
    expect(seen.length).toBeGreaterThan(1);
  });

  test('an empty payload makes an empty volume', async () => {
    await write({ a: '1' });
    expect(await write({})).toBe(true);
    expect((await readdir(dir)).filter((name) => !name.startsWith('..'))).toEqual([]);
  });

  test('recovers from a crash: half-written directories, a left-over link, missing visible links', async () => {
    await write({ a: '1' });
    await mkdir(join(dir, '..2020_01_01_00_00_00.0000000001'));
    await symlink('..2020_01_01_00_00_00.0000000001', join(dir, '..data_tmp'));
    await rm(join(dir, 'a'));
    expect(await write({ a: '1' })).toBe(true);
    expect(await readFile(join(dir, 'a'), 'utf8')).toBe('1');
    expect(await stamped()).toHaveLength(1);
    expect(await write({ a: '2' })).toBe(true);
    expect((await readdir(dir)).sort()).not.toContain('..data_tmp');
  });

  test('notices a file that was tampered with', async () => {
    await write({ a: '1' });
    await chmod(join(dir, 'a'), 0o644);
    await writeFile(join(dir, 'a'), 'evil');
    expect(await write({ a: '1' })).toBe(true);
    expect(await readFile(join(dir, 'a'), 'utf8')).toBe('1');
  });

  test('leaves links alone that are not its own', async () => {
    await symlink('/etc/hostname', join(dir, 'foreign'));
    await write({ a: '1' });
    await write({ b: '1' });
    expect((await lstat(join(dir, 'foreign'))).isSymbolicLink()).toBe(true);
  });

  test('refuses a bad path before it writes anything', async () => {
    await expect(write({ ok: '1', '../evil': '2' })).rejects.toThrow("must not contain '..'");
    expect(await readdir(dir)).toEqual([]);
  });
});

describe('pathProblem', () => {
  test.each(['a', 'a/b', 'a..b', 'a/..b', '.hidden', 'ünïcode'])('allows %s', (path) => {
    expect(pathProblem(path)).toBeUndefined();
  });
  test.each([
    '',
    '/a',
    '..',
    '../a',
    'a/../b',
    'a/..',
    '..data',
    '..x/y',
    'a//b',
    './a',
    'a\0b',
    'x'.repeat(256),
    'a/'.repeat(2049),
  ])('refuses %j', (path) => {
    expect(pathProblem(path)).toMatch(/^invalid path/);
  });
});

describe('staged files', () => {
  const staged = async (files: Record<string, string>): Promise<[Staging, Payload]> => {
    const staging = await Staging.open(dir, { now: epochMs(Date.now()) });
    const put = ([path, text]: [string, string]) =>
      [path, { data: staging.put(path, Buffer.from(text)), mode: 0o640 }] as const;
    return [staging, new Map(Object.entries(files).map(put))];
  };
  const put = async (files: Record<string, string>) =>
    writePayload(dir, (await staged(files))[1], { now: epochMs(Date.now()), gid: 7 });

  test('become the volume’s, with their modes and group, and leave nothing behind', async () => {
    expect(await put({ a: 'A', 'sub/b': 'B' })).toBe(true);
    expect([await readFile(join(dir, 'a'), 'utf8'), await readFile(join(dir, 'sub/b'), 'utf8')]).toEqual(['A', 'B']);
    expect([(await stat(join(dir, 'a'))).mode & 0o7777, (await stat(join(dir, 'a'))).gid]).toEqual([0o640, 7]);
    expect(await stamped()).toHaveLength(1);
  });

  test('that are what the volume shows already change nothing', async () => {
    await put({ a: 'A', b: 'B' });
    const before = await stamped();
    expect(await put({ a: 'A', b: 'B' })).toBe(false);
    expect(await stamped()).toEqual(before);
  });

  test('of which one has changed take the others along', async () => {
    await put({ a: 'A', b: 'B' });
    expect(await put({ a: 'A', b: 'new' })).toBe(true);
    expect([await readFile(join(dir, 'a'), 'utf8'), await readFile(join(dir, 'b'), 'utf8')]).toEqual(['A', 'new']);
    expect(await put({ a: 'A' })).toBe(true);
    expect((await readdir(dir)).filter((name) => !name.startsWith('..'))).toEqual(['a']);
    expect(await stamped()).toHaveLength(1);
  });

  test('that come to nothing are removed, also by the next one after a crash', async () => {
    await put({ a: 'A' });
    const before = await stamped();
    const [staging] = await staged({ a: 'other' });
    expect(await stamped()).toHaveLength(2);
    staging.discard();
    expect(await stamped()).toEqual(before);
    await staged({ a: 'crashed' });
    await staged({});
    expect(await stamped()).toEqual(before);
    expect(await readFile(join(dir, 'a'), 'utf8')).toBe('A');
  });

  test('never leave the volume', async () => {
    const staging = await Staging.open(dir, { now: epochMs(Date.now()) });
    expect(() => staging.put('../x', Buffer.from('x'))).toThrow("must not contain '..'");
  });
});
