// One transaction, whole or not at all.

import type { DatabaseSync } from 'node:sqlite';

/** Throws what `work` or SQLite throws; nothing of it is stored then. */
export function transaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    // SQLite has rolled back by itself where the disk was full or failed.
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
