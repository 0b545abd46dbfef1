// Opens a store's file, or refuses it with one clear message: in use, damaged, truncated, empty, not nodelet's, of a newer
// nodelet. A refused file is left unchanged byte for byte, its write-ahead log too. Creates a new file where there never
// was one. Knows no objects; migrate.ts brings the file to this version's tables.

import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import { migrateFromVersion1 } from './migrate.ts';
import { fillNewReserve, settleWalRoom, WAL_BYTES } from './room.ts';
import { APPLICATION_ID, brokenPages, createSchema, getMeta, SCHEMA_VERSION, scalar, schemaVersion } from './schema.ts';
import { newestSnapshot, snapshotDirectory, snapshotFiles } from './snapshots.ts';
import { isBusy, isSqliteError } from './sqlite-errors.ts';

/** Pages in the WAL after which it is moved into the file. The room kept in the WAL holds them and the largest write. */
const CHECKPOINT_PAGES = 1200;

// WAL with synchronous=NORMAL: a commit is an append without fsync, so a write costs tens of microseconds. A crash of
// the process loses nothing; a power cut can lose the last moments, never consistency, and this server's clients are
// level-triggered. EXCLUSIVE keeps a second server off the same file, and needs no shared memory file.
const PRAGMAS = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA busy_timeout = 0;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
  PRAGMA journal_size_limit = ${WAL_BYTES};
  PRAGMA temp_store = MEMORY;
`;

export interface OpenedFile {
  readonly db: DatabaseSync;
  /** Something a person should know, as that an older file was moved to this version. */
  readonly notes: readonly string[];
}

const walOf = (path: string): string => `${path}-wal`;
/** Where the file is while SQLite must not find it. */
const asideOf = (path: string): string => `${path}-aside`;

/** Opens or makes the file. Throws UserError when it is in use, is something else, or must not be written to. */
export function openStoreFile(path: string): OpenedFile {
  if (path === ':memory:') {
    const db = new DatabaseSync(path);
    createSchema(db);
    return { db, notes: [] };
  }
  const notes: string[] = [];
  makeDirectory(path);
  if (!existsSync(path) && existsSync(asideOf(path))) renameSync(asideOf(path), path);
  settleWalRoom(path);
  if (!existsSync(path)) makeFile(path);
  narrowModes(path);
  if (fileVersion(path) === 1) notes.push(migrateFromVersion1(path, temporaryOf(path)));
  return { db: openChecked(path), notes };
}

/** Throws UserError where nothing can be written: closing a database that was refused needs to rename it. */
function makeDirectory(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    const why = isErrno(error, 'EROFS') ? 'the file system is read-only' : errorMessage(error);
    throw new UserError(`cannot open the API server's store ${path}: ${why}`);
  }
}

/** The store, its log, and snapshots may hold Secrets in plain text. */
function narrowModes(path: string): void {
  for (const file of [path, walOf(path), `${path}-shm`, ...snapshotFiles(path)]) {
    try {
      if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
    } catch (error) {
      if (!isErrno(error, 'ENOENT')) throw error;
    }
  }
}

const temporaryOf = (path: string): string => `${path}-new`;

/** A new store, complete before it has its name: an existing empty file was truncated. */
function makeFile(path: string): void {
  const left = existsSync(walOf(path)) && walHasContent(walOf(path));
  const snapshot = newestSnapshot(path);
  if (left || snapshot !== undefined) {
    const what = left ? `its write-ahead log ${walOf(path)} is` : `snapshots of it are in ${snapshotDirectory(path)}`;
    const begin = left ? walOf(path) : snapshotDirectory(path);
    throw new UserError(
      `the API server's store ${path} is missing, but ${what} there: put it back${restoreHint(path)}, ` +
        `or begin anew by moving ${begin} away`,
    );
  }
  const temporary = temporaryOf(path);
  try {
    rmSync(temporary, { force: true });
    closeSync(openSync(temporary, 'wx', 0o600));
    const db = new DatabaseSync(temporary);
    try {
      // It is thrown away whole when anything fails, and on the disk before it is anything.
      db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF');
      createSchema(db);
      fillNewReserve(db);
      // Kept in the header; SQLite makes the log itself with the file's mode.
      db.exec('PRAGMA journal_mode = WAL');
    } finally {
      db.close();
    }
    syncFile(temporary);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw new UserError(`cannot make the API server's store ${path}: ${errorMessage(error)}`);
  }
}

/** Waits until the file is on the disk. */
export function syncFile(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function walHasContent(wal: string): boolean {
  const header = readStart(wal, 4);
  // 0x377f0682 or …83; anything else SQLite takes for an empty log.
  return header.length === 4 && (header.readUInt32BE(0) & 0xff_ff_ff_fe) >>> 0 === 0x37_7f_06_82;
}

function readStart(path: string, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  const file = openSync(path, 'r');
  try {
    return buffer.subarray(0, readSync(file, buffer, 0, bytes, 0));
  } finally {
    closeSync(file);
  }
}

function restoreHint(path: string): string {
  const snapshot = newestSnapshot(path);
  return snapshot === undefined ? '' : `, or restore the newest snapshot with --restore ${snapshot}`;
}

function refused(path: string, why: string): UserError {
  return new UserError(`the API server's store ${path} ${why}; it was left as it is${restoreHint(path)}`);
}

const MAGIC = 'SQLite format 3\0';

/** Which version's tables the file has, from its header alone: nothing is opened that might be written to. */
export function fileVersion(path: string): number {
  const header = readStart(path, 100);
  if (header.length === 0) throw refused(path, 'is empty: it was cut off');
  if (header.toString('latin1', 0, 16) !== MAGIC) throw refused(path, 'is not a database: it is another kind of file');
  if (header.length < 100) throw refused(path, `is cut off: ${header.length} bytes are left of it`);
  const application = header.readUInt32BE(68);
  const userVersion = header.readUInt32BE(60);
  const version = schemaVersion(userVersion);
  if (application === APPLICATION_ID) {
    if (version > SCHEMA_VERSION) {
      const why = `was written by a newer nodelet (version ${version} of its tables, this one supports up to ${SCHEMA_VERSION})`;
      throw refused(path, `${why}: start that one`);
    }
    if (version === SCHEMA_VERSION) return version;
  } else if (application === 0 && userVersion === 0 && looksLikeVersion1(path)) return 1;
  throw refused(path, 'is the SQLite file of another program');
}

/** The file alone, without its log and without a lock: for reading without any change. */
export function readImmutable<T>(path: string, read: (db: DatabaseSync) => T): T {
  const url = pathToFileURL(path);
  url.searchParams.set('immutable', '1');
  const db = new DatabaseSync(url, { readOnly: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

function looksLikeVersion1(path: string): boolean {
  const tables = tryRead(path, (db) => db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all());
  const names = new Set(tables?.map((row) => row['name']));
  // One that was killed in its first moments has its tables in the log still.
  if (names.size === 0) return existsSync(walOf(path)) && walHasContent(walOf(path));
  return ['objects', 'log', 'meta'].every((name) => names.has(name)) && names.size === 3;
}

/** Undefined where the file alone cannot be read: it may be in the middle of taking in its log. */
function tryRead<T>(path: string, read: (db: DatabaseSync) => T): T | undefined {
  try {
    return readImmutable(path, read);
  } catch (error) {
    if (isSqliteError(error)) return undefined;
    throw error;
  }
}

/** Throws UserError when another process has the store open. Damage is none of its business. */
export function assertNotInUse(path: string): void {
  const db = new DatabaseSync(path);
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA busy_timeout = 0');
    scalar(db, 'SELECT count(*) FROM sqlite_schema');
    closeUntouched(db, path);
  } catch (error) {
    if (isBusy(error)) {
      db.close();
      throw new UserError('another API server is using it');
    }
    closeUntouched(db, path);
    if (!isSqliteError(error)) throw error;
  }
}

/** The newest revision in the file alone; 0 where that cannot be read. */
export function presentRevision(path: string): number {
  const read = (db: DatabaseSync): number =>
    Math.max(getMeta(db, 'compacted'), scalar(db, 'SELECT max(revision) FROM versions'));
  return tryRead(path, read) ?? 0;
}

/** A file of this version, with its log, once it is known to be whole. */
function openChecked(path: string): DatabaseSync {
  const userVersion = readStart(path, 64).readUInt32BE(60);
  const db = openDatabase(path, PRAGMAS);
  try {
    const why = damage(db, userVersion);
    if (why === undefined) return db;
    throw refused(path, `is damaged: ${why}`);
  } catch (error) {
    closeUntouched(db, path);
    if (isSqliteError(error)) throw refused(path, `is damaged: ${error.message}`);
    throw error;
  }
}

/** Throws UserError. `pragmas` end in one that takes the lock. */
export function openDatabase(path: string, pragmas: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path);
    db.exec(pragmas);
    scalar(db, 'SELECT count(*) FROM sqlite_schema');
    return db;
  } catch (error) {
    if (isBusy(error)) {
      // It has not been read, so there is nothing that closing could move.
      db?.close();
      throw new UserError(`cannot open the API server's store ${path}: another API server is using it`);
    }
    if (db !== undefined) closeUntouched(db, path);
    if (!isSqliteError(error)) throw error;
    const primary = error.errcode & 0xff;
    if (primary === 11 || primary === 26) throw refused(path, `is damaged: ${error.message}`);
    throw new UserError(`cannot open the API server's store ${path}: ${error.message}`);
  }
}

/** What is wrong with the file, or undefined. `userVersion` is the file's own, without its log. Reads all of it. */
function damage(db: DatabaseSync, userVersion: number): string | undefined {
  const broken = brokenPages(db);
  if (broken !== undefined) return broken;
  // A log of another store fits when it holds every page that matters; then it brought that store's mark along.
  if (scalar(db, 'PRAGMA user_version') !== userVersion) return 'its write-ahead log is another store’s';
  return lostObject(db);
}

/** An object whose value is not there or cannot be read, in words, or undefined. */
export function lostObject(db: DatabaseSync): string | undefined {
  const lost = db
    .prepare(
      `SELECT o.resource || '/' || o.namespace || '/' || o.name AS what FROM objects o
       LEFT JOIN versions v ON v.revision = o.revision AND v.name = o.name AND v.namespace = o.namespace AND
         v.resource = o.resource AND
         (json_valid(v.value) OR substr(v.value, 1, 8) = CAST('k8s:enc:' AS BLOB))
       WHERE v.revision IS NULL LIMIT 1`,
    )
    .get();
  return lost === undefined ? undefined : `${String(lost['what'])} has no value that can be read`;
}

/**
 * Closes without moving the log into the file and without removing the log. SQLite leaves both alone when the file no
 * longer has the name it was opened by (`databaseIsUnmoved` in its pager).
 */
function closeUntouched(db: DatabaseSync, path: string): void {
  renameSync(path, asideOf(path));
  try {
    db.close();
  } finally {
    renameSync(asideOf(path), path);
  }
}
