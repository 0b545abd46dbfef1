// The tables of a store's file and what marks the file as one. Every version of an object is one row, written once; what
// is now is a table of names that points to versions. Only statements, no logic.

import { randomInt } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';

/** The low byte of PRAGMA user_version. 1 was a file without one, with two copies of each object in a log. */
export const SCHEMA_VERSION = 2;
/** PRAGMA application_id: "ndlt". */
export const APPLICATION_ID = 0x6e_64_6c_74;

/**
 * `previous` is the revision of the version that a row replaces; NULL for a new object. A deletion has no value: the
 * object's last state is the version before it. `value` is the last column, so that reading the others never loads it.
 */
export const VERSIONS_COLUMNS = `
    revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    type TEXT NOT NULL, previous INTEGER, value TEXT`;
export const OBJECTS_COLUMNS = `
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (resource, namespace, name)`;
const SCHEMA = `
  CREATE TABLE versions (${VERSIONS_COLUMNS});
  CREATE TABLE objects (${OBJECTS_COLUMNS}) WITHOUT ROWID;
  CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE room (filler BLOB);
`;

/**
 * Makes the tables in an empty database. The rest of its user_version is random: it is on the first page,
 * which nearly every write-ahead log contains, so that the log of another store is recognised.
 */
export function createSchema(db: DatabaseSync): void {
  const userVersion = randomInt(1, 2 ** 23) * 256 + SCHEMA_VERSION;
  // Has to come before the first table.
  db.exec('PRAGMA auto_vacuum = INCREMENTAL');
  // One transaction: each by itself would wait for the disk.
  db.exec(`BEGIN; ${SCHEMA}
    PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${userVersion}; COMMIT`);
}

/** Which tables a file with this user_version has. Pure. */
export function schemaVersion(userVersion: number): number {
  return userVersion % 256;
}

/** What SQLite finds wrong with its pages, or undefined. Reads all of them. */
export function brokenPages(db: DatabaseSync, name: 'main' | 'old' = 'main'): string | undefined {
  const check = db.prepare(`PRAGMA ${name}.quick_check(1)`).get();
  const result = String(check?.['quick_check']);
  return result === 'ok' ? undefined : (result.split('\n').find((line) => !line.startsWith('***')) ?? result);
}

/** `scrubbed`: for which encryption configuration the file is free of older forms (scrub.ts). */
export type MetaKey = 'compacted' | 'scrubbed';

export function setMeta(db: DatabaseSync, key: MetaKey, value: number): void {
  db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)').run(key, value);
}

export function getMeta(db: DatabaseSync, key: MetaKey): number {
  return scalar(db, 'SELECT value FROM meta WHERE key = ?', key);
}

/** The first column of the first row as a number; 0 where there is none. */
export function scalar(db: DatabaseSync, sql: string, ...values: (string | number)[]): number {
  return asNumber(Object.values(db.prepare(sql).get(...values) ?? {})[0]);
}

export const asText = (value: unknown): string => (typeof value === 'string' ? value : '');
export const asNumber = (value: unknown): number => (typeof value === 'number' ? value : 0);
