// Writes the tables of a store's file anew, so that nothing that was ever removed from them is left in it: a few milliseconds at a
// time, while the store goes on being read and written. (VACUUM does it in one go.) Free pages are overwritten first;
// then every row is copied to new tables, which triggers keep like the old ones; these change places; and the old ones are
// emptied, with what they had overwritten by zeros.
// A step that fails leaves tables behind, with which the next attempt begins.

import type { DatabaseSync } from 'node:sqlite';
import { OBJECTS_COLUMNS, scalar, VERSIONS_COLUMNS } from './schema.ts';
import { transaction } from './transaction.ts';

/** Of one step. */
const STEP_ROWS = 500;
const STEP_BYTES = 512 * 1024;
const STEP_PAGES = 128;
/** As many free pages as this are taken in one step, so that there is a moment with none. */
const LAST_PAGES = 768;
const PAGE_BYTES = 4096;

/** The name, and how a row of it is found among the copies. */
const TABLES = [
  { name: 'versions', columns: VERSIONS_COLUMNS, rest: '' },
  { name: 'objects', columns: OBJECTS_COLUMNS, rest: 'WITHOUT ROWID' },
] as const;

const TRIGGERS = `
  CREATE TRIGGER versions_gone AFTER DELETE ON versions BEGIN
    DELETE FROM versions_next WHERE revision = OLD.revision; END;
  CREATE TRIGGER objects_new AFTER INSERT ON objects BEGIN
    INSERT OR REPLACE INTO objects_next VALUES (NEW.resource, NEW.namespace, NEW.name, NEW.revision); END;
  CREATE TRIGGER objects_changed AFTER UPDATE ON objects BEGIN
    INSERT OR REPLACE INTO objects_next VALUES (NEW.resource, NEW.namespace, NEW.name, NEW.revision); END;
  CREATE TRIGGER objects_gone AFTER DELETE ON objects BEGIN
    DELETE FROM objects_next
    WHERE resource = OLD.resource AND namespace = OLD.namespace AND name = OLD.name; END;
`;
const TRIGGER_NAMES = ['versions_gone', 'objects_new', 'objects_changed', 'objects_gone'];
const DROP_TRIGGERS = TRIGGER_NAMES.map((name) => `DROP TRIGGER IF EXISTS ${name};`).join('');

/** Runs up to the next `yield` in a few milliseconds, a megabyte of one object aside. Throws what SQLite throws. */
export function* rewriteTables(db: DatabaseSync): Generator<void, void> {
  // What is freed from here on becomes zeros.
  db.exec('PRAGMA secure_delete = ON');
  try {
    yield* removeLeftovers(db);
    yield* overwriteFreePages(db);
    yield* renewReserve(db);
    const create = TABLES.map(({ name, columns, rest }) => `CREATE TABLE ${name}_next (${columns}) ${rest};`).join('');
    transaction(db, () => db.exec(create + TRIGGERS));
    yield* copyObjects(db);
    const copied = yield* copyVersions(db);
    transaction(db, () => {
      // Written since the last step.
      db.prepare('INSERT INTO versions_next SELECT * FROM versions WHERE revision > ?').run(copied);
      const swap = TABLES.map(
        ({ name }) => `ALTER TABLE ${name} RENAME TO ${name}_old; ALTER TABLE ${name}_next RENAME TO ${name};`,
      );
      db.exec(DROP_TRIGGERS + swap.join(''));
    });
    yield* removeLeftovers(db);
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } finally {
    if (db.isOpen) db.exec('PRAGMA secure_delete = OFF');
  }
}

/** What an attempt has left: of one that was broken off the new tables, else the old ones. */
export function* removeLeftovers(db: DatabaseSync): Generator<void, void> {
  db.exec(DROP_TRIGGERS);
  for (const table of ['versions_next', 'versions_old', 'objects_next', 'objects_old', 'filler']) {
    if (scalar(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?", table) === 0) continue;
    if (table.startsWith('objects')) yield* emptyNames(db, table);
    else yield* emptyRows(db, table, table === 'filler' ? 'bytes' : 'value');
    db.exec(`DROP TABLE ${table}`);
    yield;
  }
}

function* emptyNames(db: DatabaseSync, table: string): Generator<void, void> {
  const key = '(resource, namespace, name)';
  const remove = db.prepare(`DELETE FROM ${table} WHERE ${key} IN
    (SELECT resource, namespace, name FROM ${table} LIMIT ${STEP_ROWS})`);
  while (Number(remove.run().changes) > 0) yield;
}

function* emptyRows(db: DatabaseSync, table: string, column: string): Generator<void, void> {
  const remove = db.prepare(`DELETE FROM ${table} WHERE rowid <= ?`);
  for (;;) {
    const step: Step | undefined = nextStep(db, table, column, 0);
    if (step === undefined) return;
    remove.run(step.last);
    yield;
  }
}

interface Step {
  readonly last: number;
  /** There may be more. */
  readonly isFull: boolean;
}

/** The rows of a step that begins after `after`, by their number and their bytes; undefined when there are none. */
function nextStep(db: DatabaseSync, table: string, column: string, after: number): Step | undefined {
  const rows = db
    .prepare(
      `SELECT rowid AS at, octet_length(${column}) AS bytes FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${STEP_ROWS}`,
    )
    .iterate(after);
  let [last, count, bytes] = [after, 0, 0];
  for (const row of rows) {
    last = Number(row['at']);
    count++;
    bytes += Number(row['bytes'] ?? 0);
    if (bytes >= STEP_BYTES) break;
  }
  return count === 0 ? undefined : { last, isFull: bytes >= STEP_BYTES || count === STEP_ROWS };
}

/** Takes all free pages for zeros, and frees them again: what was in them is gone. */
function* overwriteFreePages(db: DatabaseSync): Generator<void, void> {
  db.exec('CREATE TABLE filler (bytes BLOB)');
  const take = db.prepare('INSERT INTO filler VALUES (zeroblob(?))');
  for (;;) {
    const free = scalar(db, 'PRAGMA freelist_count');
    const pages = free <= LAST_PAGES ? free : STEP_PAGES;
    if (pages > 0) take.run(pages * PAGE_BYTES);
    if (pages === free) break;
    yield;
  }
  yield* emptyRows(db, 'filler', 'bytes');
  db.exec('DROP TABLE filler');
}

/** The reserve for a full disk has pages of its own. */
function* renewReserve(db: DatabaseSync): Generator<void, void> {
  const rows = db.prepare('SELECT rowid AS at FROM room').all();
  for (const { at } of rows) {
    const bytes = scalar(db, 'SELECT octet_length(filler) FROM room WHERE rowid = ?', Number(at));
    if (bytes === 0) continue;
    transaction(db, () => {
      db.prepare('DELETE FROM room WHERE rowid = ?').run(Number(at));
      db.prepare('INSERT INTO room VALUES (zeroblob(?))').run(bytes);
    });
    yield;
  }
}

function* copyObjects(db: DatabaseSync): Generator<void, void> {
  const key = '(resource, namespace, name)';
  const copy = db.prepare(`INSERT OR IGNORE INTO objects_next
    SELECT * FROM objects WHERE ${key} > (?, ?, ?) ORDER BY resource, namespace, name LIMIT ${STEP_ROWS}`);
  const end = db.prepare(`SELECT resource, namespace, name FROM
    (SELECT * FROM objects WHERE ${key} > (?, ?, ?) ORDER BY resource, namespace, name LIMIT ${STEP_ROWS})
    ORDER BY resource DESC, namespace DESC, name DESC LIMIT 1`);
  let after: [string, string, string] | undefined = ['', '', ''];
  while (after !== undefined) {
    const last: Record<string, unknown> | undefined = end.get(...after);
    if (last !== undefined) copy.run(...after);
    after =
      last === undefined ? undefined : [String(last['resource']), String(last['namespace']), String(last['name'])];
    yield;
  }
}

/** Returns the last revision that was copied; those after it are few. */
function* copyVersions(db: DatabaseSync): Generator<void, number> {
  const copy = db.prepare('INSERT INTO versions_next SELECT * FROM versions WHERE revision > ? AND revision <= ?');
  let copied = 0;
  for (;;) {
    const step: Step | undefined = nextStep(db, 'versions', 'value', copied);
    if (step?.isFull !== true) return copied;
    copy.run(copied, step.last);
    copied = step.last;
    yield;
  }
}
