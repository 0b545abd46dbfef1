// Moves a store of the first version (objects, and a log with two copies of each change) to this version's tables: the
// objects go into a new file, which then takes the old one's place. History is dropped: clients list again. The old file
// stays among the snapshots.

import { chmodSync, closeSync, existsSync, linkSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { brokenPages, createSchema, scalar, setMeta } from './schema.ts';
import { keptFile, snapshotDirectory } from './snapshots.ts';

/**
 * Returns a sentence for the log. `temporary` is a name beside the store's. Throws UserError; the old file is then as
 * it was, but for its log, which may be in it.
 */
export function migrateFromVersion1(path: string, temporary: string): string {
  const failed = (why: string): UserError =>
    new UserError(
      `cannot move the API server's store ${path} to this version of its tables: ${why}; it was left as it is`,
    );
  rmSync(temporary, { force: true });
  closeSync(openSync(temporary, 'wx', 0o600));
  let revision: number;
  try {
    const db = new DatabaseSync(temporary);
    try {
      db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA busy_timeout = 0');
      createSchema(db);
      db.prepare('ATTACH DATABASE ? AS old').run(path);
      revision = copyVersion1(db);
      db.exec('DETACH DATABASE old; PRAGMA journal_mode = WAL');
    } finally {
      db.close();
    }
    if (existsSync(`${path}-wal`)) throw new Error('its write-ahead log could not be taken in');
    mkdirSync(snapshotDirectory(path), { recursive: true, mode: 0o700 });
    const kept = keptFile(path, 'version-1', revision);
    linkSync(path, kept);
    chmodSync(kept, 0o600);
    renameSync(temporary, path);
    return `the store ${path} was moved to this version's tables; the old file is kept as ${kept}`;
  } catch (error) {
    rmSync(temporary, { force: true });
    const message = errorMessage(error);
    throw failed(message.includes('locked') ? 'another API server is using it' : message);
  }
}

/** Returns the revision that the old store was at. */
function copyVersion1(db: DatabaseSync): number {
  const broken = brokenPages(db, 'old');
  if (broken !== undefined) throw new Error(`it is damaged: ${broken}`);
  db.exec('BEGIN IMMEDIATE');
  db.exec(`INSERT INTO versions SELECT revision, resource, namespace, name, 'ADDED', NULL, value FROM old.objects`);
  db.exec('INSERT INTO objects SELECT resource, namespace, name, revision FROM old.objects');
  const revision = Math.max(
    scalar(db, 'SELECT max(revision) FROM old.log'),
    scalar(db, 'SELECT max(revision) FROM old.objects'),
    scalar(db, "SELECT value FROM old.meta WHERE key = 'compacted'"),
    1,
  );
  setMeta(db, 'compacted', revision);
  db.exec('COMMIT');
  return revision;
}
