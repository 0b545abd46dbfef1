// Removes what is left of values from before they were encrypted, or from before their key was replaced: once every object
// that is to be encrypted is stored with the present key, its history is encrypted too, and the file and its log are
// written anew, so that free pages and old log frames keep nothing. Done once for each change of the keys that write.

import { createHash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Encryption } from './encryption/load.ts';
import { asNumber, asText, getMeta, scalar, setMeta } from './schema.ts';
import { transaction } from './transaction.ts';
import type { Values } from './values.ts';

/** Versions that are encrypted in one transaction. */
const STEP = 200;

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

  constructor(db: DatabaseSync, values: Values, encryption: Encryption | undefined) {
    this.#db = db;
    this.#values = values;
    this.#encryption = encryption;
    this.#due = getMeta(db, 'scrubbed') !== mark(encryption);
  }

  /**
   * Returns whether the file was written anew. It is not while an object is stored in the old form: objects are only ever
   * rewritten by their clients. Takes as long as copying the file.
   */
  run(): boolean {
    const encryption = this.#encryption;
    if (!this.#due) return false;
    if (encryption === undefined) {
      this.#finish();
      return false;
    }
    const resources = encryptedResources(this.#db, encryption);
    const present = `SELECT count(*) FROM objects o JOIN versions v ON v.revision = o.revision WHERE ${STALE}`;
    for (const { resource, prefix } of resources) {
      if (asNumber(this.#db.prepare(present).get(resource, prefix.length, prefix)?.['count(*)']) > 0) return false;
    }
    for (const { resource, prefix } of resources) this.#encryptHistory(resource, prefix);
    this.#db.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)');
    this.#finish();
    return true;
  }

  #finish(): void {
    setMeta(this.#db, 'scrubbed', mark(this.#encryption));
    this.#due = false;
  }

  #encryptHistory(resource: string, prefix: Buffer): void {
    const sql = `SELECT v.revision, v.namespace, v.name, v.value FROM versions v WHERE v.revision > ? AND ${STALE}
      ORDER BY v.revision LIMIT ${STEP}`;
    const read = this.#db.prepare(sql);
    const write = this.#db.prepare('UPDATE versions SET value = ? WHERE revision = ?');
    let after = 0;
    for (let count = STEP; count === STEP; ) {
      const rows = read.all(after, resource, prefix.length, prefix);
      count = rows.length;
      transaction(this.#db, () => {
        for (const row of rows) {
          const key = { resource, namespace: asText(row['namespace']), name: asText(row['name']) };
          after = asNumber(row['revision']);
          write.run(this.#values.renew(key, row['value']), after);
        }
      });
    }
  }
}

/** Bytes of a version as it is stored. */
export function versionBytes(db: DatabaseSync, revision: number): number {
  return scalar(db, 'SELECT octet_length(value) FROM versions WHERE revision = ?', revision);
}
