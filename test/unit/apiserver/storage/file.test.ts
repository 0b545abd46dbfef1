// A store's file in every state it may be found in, with real files: what can be opened is opened, and what is refused
// is left byte for byte as it was.

import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { restoreStore } from '../../../../apiserver/storage/restore.ts';
import { newestSnapshot, snapshots } from '../../../../apiserver/storage/snapshots.ts';
import { Store } from '../../../../apiserver/storage/store.ts';
import { SnapshotKeeper, takeSnapshot } from '../../../../apiserver/storage/take-snapshot.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { UserError } from '../../../../lib/errors.ts';
import { exec } from '../../../../lib/exec.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

let directory: string;
let path: string;
const open: Store[] = [];
const processes: ChildProcess[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodelet-file-'));
  path = join(directory, 'store.db');
});
afterEach(async () => {
  for (const one of open.splice(0)) one.close();
  for (const one of processes.splice(0)) {
    one.kill('SIGKILL');
    if (one.exitCode === null && one.signalCode === null) await once(one, 'exit');
  }
  rmSync(directory, { recursive: true });
});

const log: string[] = [];
function store(at = path): Store {
  log.length = 0;
  const made = new Store(at, { clock: new VirtualClock(), log: (line) => log.push(line) });
  open.push(made);
  return made;
}
function put(to: Store, name: string, value = ''): void {
  const key = { resource: '/pods', namespace: 'ns', name };
  to.put(key, { apiVersion: 'v1', kind: 'Pod', metadata: { name }, value }, to.get(key));
}
const names = (of: Store): string[] => Array.from(of.scan('/pods'), ({ name }) => name);

const node = fileURLToPath(new URL('../../../../scripts/node24', import.meta.url));
const program = fileURLToPath(new URL('../../../support/store-process.ts', import.meta.url));
/** Leaves `count` pods in the write-ahead log of a store whose process was killed. */
async function killed(count: number, prefix?: string, at = path): Promise<void> {
  const result = await exec('sh', [
    node,
    program,
    at,
    'write',
    String(count),
    ...(prefix === undefined ? [] : [prefix]),
  ]);
  expect(result.stdout).toBe('open\n');
}

/** Every file's content, by name. */
function contents(): Record<string, string> {
  const files = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map(({ name }) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(directory, name)))
        .digest('hex'),
    ]),
  );
}

function expectRefused(why: RegExp): void {
  const before = contents();
  expect(() => store()).toThrow(UserError);
  expect(() => store()).toThrow(why);
  expect(contents()).toEqual(before);
}

/** A store that was stopped in order, with some hundred pods. */
function stopped(count = 300): void {
  const one = store();
  for (let i = 0; i < count; i++) put(one, `pod-${i}`, 'x'.repeat(1000));
  one.close();
}

function overwrite(file: string, at: number, bytes: Uint8Array): void {
  const fd = openSync(file, 'r+');
  writeSync(fd, bytes, 0, bytes.length, at);
  closeSync(fd);
}

describe('a store’s file', () => {
  it('is its owner’s alone, with its log, its snapshots and what was there before', async () => {
    const one = store();
    put(one, 'a');
    const snapshot = (await takeSnapshot(one)) ?? '';
    const modes = (): string[] =>
      [path, `${path}-wal`, snapshot].map((file) => (statSync(file).mode & 0o777).toString(8));
    expect(modes()).toEqual(['600', '600', '600']);
    expect((statSync(join(directory, 'snapshots')).mode & 0o777).toString(8)).toBe('700');
    one.close();
    for (const file of [path, `${path}-wal`, snapshot]) chmodSync(file, 0o644);
    store();
    expect(modes()).toEqual(['600', '600', '600']);
  });

  it('keeps what was written when the process is killed', async () => {
    await killed(50);
    expect(names(store())).toHaveLength(50);
  });

  it('that is damaged in its pages is refused, with its log', async () => {
    stopped();
    await killed(20, 'late');
    const pages = statSync(path).size / 4096;
    // Not the first, which every case below is about.
    for (let page = 2; page < Math.min(pages, 12); page++) overwrite(path, page * 4096, Buffer.alloc(4096, 0x5a));
    expectRefused(/store\.db is damaged: .*it was left as it is/s);
  });

  it('that is damaged inside an object is refused', () => {
    stopped(3);
    const at = readFileSync(path).indexOf('"metadata":{"name":"pod-1"');
    overwrite(path, at, Buffer.from('\u0001\u0001\u0001'));
    expectRefused(/store\.db is damaged: \/pods\/ns\/pod-1 has no value that can be read/);
  });

  for (const bytes of [0, 50, 4096, 200_000]) {
    it(`that was cut off after ${bytes} bytes is refused`, () => {
      stopped();
      truncateSync(path, bytes);
      expectRefused(/store\.db is (empty: it was cut off|cut off|damaged: )/);
    });
  }

  it('whose place another file has taken is refused: text, its own log, another program’s database', async () => {
    stopped();
    await killed(5, 'late');
    const [db, wal] = [readFileSync(path), readFileSync(`${path}-wal`)];
    writeFileSync(
      path,
      'this is not a database, and it is long enough to be read as the header of one: it is not, really',
    );
    expectRefused(/is not a database/);
    writeFileSync(path, wal);
    writeFileSync(`${path}-wal`, db);
    expectRefused(/is not a database/);
    rmSync(path);
    rmSync(`${path}-wal`);
    const other = new DatabaseSync(path);
    other.exec('CREATE TABLE objects (a); CREATE TABLE cookies (b)');
    other.close();
    expectRefused(/is the SQLite file of another program/);
  });

  it('beside which another store’s log stands is refused', async () => {
    await killed(40, 'ours');
    const elsewhere = join(directory, 'elsewhere.db');
    await killed(60, 'theirs', elsewhere);
    renameSync(`${path}-wal`, `${path}-mine`);
    copyFileSync(`${elsewhere}-wal`, `${path}-wal`);
    expectRefused(/store\.db is damaged: /);
    renameSync(`${path}-mine`, `${path}-wal`);
    expect(names(store())).toHaveLength(40);
  });

  it('that a newer nodelet wrote is refused by its version', () => {
    stopped(1);
    const newer = new DatabaseSync(path);
    newer.exec('PRAGMA user_version = 9');
    newer.close();
    expectRefused(/was written by a newer nodelet \(version 9 of its tables, this one supports up to 2\)/);
  });

  it('that is gone while its log or its snapshots are there is not begun anew', async () => {
    await killed(5);
    renameSync(path, join(directory, 'away'));
    expectRefused(/store\.db is missing, but its write-ahead log .* is there/);
    renameSync(join(directory, 'away'), path);
    const one = store();
    await takeSnapshot(one);
    one.close();
    rmSync(path);
    expectRefused(/store\.db is missing, but snapshots of it are in .*--restore \S+store-\d+\.db/);
  });

  it('that another process has open is refused, and that process goes on', async () => {
    const holder = spawn('sh', [node, program, path, 'hold', '3'], { stdio: ['pipe', 'pipe', 'inherit'] });
    processes.push(holder);
    await once(holder.stdout, 'data');
    expect(holder.exitCode).toBeNull();
    const refused = await exec('sh', [node, program, path, 'write', '1', 'second']);
    expect([refused.code, refused.stdout]).toEqual([
      1,
      `cannot open the API server's store ${path}: another API server is using it\n`,
    ]);
    expect(() => restoreStore(path, path, epochMs(1))).toThrow(/another API server is using it/);
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    expect(names(store())).toEqual(['pod-0', 'pod-1', 'pod-2']);
  });

  it('is found again after a crash in the moment in which it stood aside', () => {
    stopped(2);
    renameSync(path, `${path}-aside`);
    expect(names(store())).toHaveLength(2);
  });

  it('keeps the length of its log over a stop', () => {
    stopped(3);
    const { size } = statSync(`${path}-wal`);
    expect(size).toBeGreaterThanOrEqual(10 * 1024 * 1024);
    expect(existsSync(`${path}-room`)).toBe(false);
    const again = store();
    expect(names(again)).toHaveLength(3);
    put(again, 'more');
    again.close();
    expect(names(store())).toHaveLength(4);
  });
});

/** As the first version wrote it. */
function version1(count: number): void {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL;
    CREATE TABLE objects (resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
      value TEXT NOT NULL, UNIQUE (resource, namespace, name));
    CREATE TABLE log (revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
      type TEXT NOT NULL, value TEXT NOT NULL, previous TEXT);
    CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);`);
  for (let revision = 2; revision < count + 2; revision++) {
    const name = `pod-${revision}`;
    const value = JSON.stringify({ kind: 'Pod', metadata: { name, resourceVersion: String(revision) } });
    db.prepare('INSERT INTO objects VALUES (?, ?, ?, ?, ?)').run('/pods', 'ns', name, revision, value);
    db.prepare('INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, NULL)').run(revision, '/pods', 'ns', name, 'ADDED', value);
  }
  db.close();
}

describe('a store of the first version', () => {
  it('is moved to this version’s tables, and kept', () => {
    version1(4);
    const one = store();
    expect(names(one)).toEqual(['pod-2', 'pod-3', 'pod-4', 'pod-5']);
    expect([one.revision, one.compacted]).toEqual([5, 5]);
    put(one, 'new');
    expect(one.get({ resource: '/pods', namespace: 'ns', name: 'new' })?.revision).toBe(6);
    expect(log[0]).toMatch(/was moved to this version's tables; the old file is kept as .*version-1-0+5\.db/);
    expect(readdirSync(join(directory, 'snapshots'))).toEqual(['version-1-0000000000000005.db']);
    one.close();
    expect(names(store())).toHaveLength(5);
  });

  it('that is damaged is refused', () => {
    version1(2000);
    overwrite(path, 20 * 4096, Buffer.alloc(10 * 4096, 0x5a));
    expect(() => store()).toThrow(/cannot move .*store\.db to this version of its tables: .*left as it is/);
  });
});

describe('snapshots', () => {
  it('hold the objects of one revision while others write, and nothing of the history', async () => {
    const one = store();
    for (let i = 0; i < 40; i++) put(one, `pod-${String(i).padStart(2, '0')}`, 'x'.repeat(40_000));
    const { revision } = one;
    const taken = takeSnapshot(one);
    put(one, 'pod-39', 'changed');
    put(one, 'pod-99', 'new');
    const file = (await taken) ?? '';
    expect(await takeSnapshot(one)).not.toBe(file);
    const copy = store(file);
    expect([names(copy).length, copy.compacted]).toEqual([40, revision]);
    expect(copy.get({ resource: '/pods', namespace: 'ns', name: 'pod-39' })?.text).toHaveLength(
      one.get({ resource: '/pods', namespace: 'ns', name: 'pod-38' })?.text.length ?? 0,
    );
  });

  it('are the newest five, and none where nothing was written', async () => {
    const one = store();
    for (let i = 0; i < 7; i++) {
      put(one, `pod-${i}`);
      expect(await takeSnapshot(one)).toBe(newestSnapshot(path));
      expect(await takeSnapshot(one)).toBeUndefined();
    }
    expect(snapshots(path)).toHaveLength(5);
  });

  it('are taken at the start, each hour in which something was written, and at the stop', async () => {
    const clock = new VirtualClock();
    const one = store();
    const keeper = new SnapshotKeeper(one, clock, (line) => log.push(line));
    put(one, 'a');
    keeper.start();
    await expect.poll(() => snapshots(path)).toHaveLength(1);
    put(one, 'b');
    await clock.advance(60 * 60 * 1000);
    await expect.poll(() => snapshots(path)).toHaveLength(2);
    put(one, 'c');
    await keeper.stop();
    expect(snapshots(path)).toHaveLength(3);
    expect(log).toEqual([]);
  });

  it('take the place of a damaged store, which is kept; revisions go on beyond all that were given out', async () => {
    stopped(10);
    const one = store();
    const file = (await takeSnapshot(one)) ?? '';
    for (let i = 0; i < 5; i++) put(one, `later-${i}`);
    const { revision } = one;
    one.close();
    appendFileSync(path, 'junk');
    overwrite(path, 0, Buffer.from('not SQLite at all'));
    const damaged = readFileSync(path);
    expect(() => store()).toThrow(`--restore ${file}`);
    expect(restoreStore(path, file, epochMs(1234))).toContain(`restored from ${file}`);
    const kept = join(directory, 'snapshots', 'replaced-0000000000001234.db');
    expect(readFileSync(kept).equals(damaged)).toBe(true);
    const restored = store();
    expect(names(restored)).toHaveLength(10);
    expect(restored.revision).toBeGreaterThan(revision);
    expect(() => restored.since(revision, '/pods')).toThrow(/too old resource version/);
    restored.close();
    const before = restored.revision;
    restoreStore(path, file, epochMs(1235));
    expect(store().revision).toBeGreaterThan(before);
  });

  it('that are none are not restored, and the store stays as it is', () => {
    stopped(2);
    const other = join(directory, 'other');
    writeFileSync(other, 'x'.repeat(5000));
    const before = contents();
    expect(() => restoreStore(path, other, epochMs(1))).toThrow(/cannot restore .*is not a database/);
    expect(() => restoreStore(path, join(directory, 'none'), epochMs(1))).toThrow(/there is no such file/);
    expect(contents()).toEqual(before);
    expect(names(store())).toHaveLength(2);
  });
});
