// Removes what is left of values from before they were encrypted, or from before their key was replaced: once every object
// that is to be encrypted is stored with the present key, its history is encrypted too, and the file and its log are
// written anew (rewrite.ts), so that free pages and old log frames keep nothing. Done once for each change of the keys that
// write, in steps, while requests are served.

import { createHash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Encryption } from './encryption/load.ts';
import { removeLeftovers, rewriteTables } from './rewrite.ts';
import { asNumber, asText, getMeta, scalar, setMeta } from './schema.ts';
import { transaction } from './transaction.ts';
import type { Values } from './values.ts';

/** Objects that are checked for the old form in one step: values are read whole. */
const LOOK = 25;
/** Versions that are encrypted in one step, and bytes of them. */
const STEP = 200;
const STEP_BYTES = 512 * 1024;

/** A number that stands for the configuration in the file; 0 for none. */
function mark(encryption: Encryption | undefined): number {
  if (encryption === undefined) return 0;
  return createHash('sha256').update(encryption.fingerprint).digest().readUIntBE(0, 6);
}

/** Resources of the file that are written encrypted, with what their values begin with. */
function encryptedResources(db: DatabaseSync, encryption: Encryption): { resource: string; prefix: Buffer }[] {
  return db
    .prepare('SELECT DISTINCT resource FROM versions')
    .all()
    .map((row) => asText(row['resource']))
    .map((resource) => ({ resource, prefix: Buffer.from(encryption.writePrefix(resource)) }))
    .filter(({ prefix }) => prefix.length > 0);
}

const STALE = 'v.resource = ? AND v.value IS NOT NULL AND substr(CAST(v.value AS BLOB), 1, ?) <> ?';

/** Whether the file has a version of an object, present or past, that a new write would encrypt otherwise. */
export function hasStaleVersions(db: DatabaseSync, encryption: Encryption): boolean {
  const find = db.prepare(`SELECT 1 FROM versions v WHERE ${STALE} LIMIT 1`);
  return encryptedResources(db, encryption).some(
    ({ resource, prefix }) => find.get(resource, prefix.length, prefix) !== undefined,
  );
}

export class Scrubber {
  readonly #db: DatabaseSync;
  readonly #values: Values;
  readonly #encryption: Encryption | undefined;
  #due: boolean;
  #work: Generator<void, boolean> | undefined;

  constructor(db: DatabaseSync, values: Values, encryption: Encryption | undefined) {
    this.#db = db;
    this.#values = values;
    this.#encryption = encryption;
    this.#due = getMeta(db, 'scrubbed') !== mark(encryption);
  }

  /** The configuration has changed: what was under way was for the one from before. */
  begin(): void {
    this.#work?.return(false);
    this.#work = undefined;
    this.#due = getMeta(this.#db, 'scrubbed') !== mark(this.#encryption);
  }

  /**
   * Takes a step of some milliseconds: 'more' when there is more to do, 'done' with the last one, when the file was written anew.
   * 'none' when there is nothing to do; it is not while an object is stored in the old form: objects are only ever
   * rewritten by their clients. What a step throws, another attempt begins with anew.
   */
  step(): 'none' | 'more' | 'done' {
    if (!this.#due) return 'none';
    this.#work ??= this.#run();
    try {
      const { done, value } = this.#work.next();
      if (done !== true) return 'more';
      this.#work = undefined;
      return value ? 'done' : 'none';
    } catch (error) {
      this.#work = undefined;
      throw error;
    }
  }

  *#run(): Generator<void, boolean> {
    const encryption = this.#encryption;
    if (encryption === undefined) {
      yield* removeLeftovers(this.#db);
      this.#finish();
      return false;
    }
    const resources = encryptedResources(this.#db, encryption);
    for (const { resource, prefix } of resources) if (yield* this.#hasStaleObject(resource, prefix)) return false;
    for (const { resource, prefix } of resources) yield* this.#encryptHistory(resource, prefix);
    yield* rewriteTables(this.#db);
    this.#finish();
    return true;
  }

  #finish(): void {
    setMeta(this.#db, 'scrubbed', mark(this.#encryption));
    this.#due = false;
  }

  /** Whether an object is stored in the old form; what is written meanwhile is in the new one. */
  *#hasStaleObject(resource: string, prefix: Buffer): Generator<void, boolean> {
    const read = this.#db.prepare(`SELECT o.namespace, o.name, ${STALE} AS stale
      FROM objects o JOIN versions v ON v.revision = o.revision
      WHERE o.resource = ? AND (o.namespace, o.name) > (?, ?) ORDER BY o.namespace, o.name LIMIT ${LOOK}`);
    let [namespace, name] = ['', ''];
    for (let count = LOOK; count === LOOK; ) {
      const rows = read.all(resource, prefix.length, prefix, resource, namespace, name);
      if (rows.some((row) => asNumber(row['stale']) === 1)) return true;
      const last = rows.at(-1);
      [namespace, name] = [asText(last?.['namespace']), asText(last?.['name'])];
      count = rows.length;
      yield;
    }
    return false;
  }

  *#encryptHistory(resource: string, prefix: Buffer): Generator<void, void> {
    const sql = `SELECT v.revision, v.namespace, v.name, v.value FROM versions v WHERE v.revision > ? AND ${STALE}
      ORDER BY v.revision`;
    const read = this.#db.prepare(sql);
    const write = this.#db.prepare('UPDATE versions SET value = ? WHERE revision = ?');
    let after = 0;
    for (let more = true; more; ) {
      const rows: Record<string, unknown>[] = [];
      let bytes = 0;
      more = false;
      for (const row of read.iterate(after, resource, prefix.length, prefix)) {
        rows.push(row);
        bytes += String(row['value']).length;
        more = rows.length === STEP || bytes >= STEP_BYTES;
        if (more) break;
      }
      transaction(this.#db, () => {
        for (const row of rows) {
          const key = { resource, namespace: asText(row['namespace']), name: asText(row['name']) };
          after = asNumber(row['revision']);
          write.run(this.#values.renew(key, row['value']), after);
        }
      });
      yield;
    }
  }
}

/** Bytes of a version as it is stored. */
export function versionBytes(db: DatabaseSync, revision: number): number {
  return scalar(db, 'SELECT octet_length(value) FROM versions WHERE revision = ?', revision);
}
