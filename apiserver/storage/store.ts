// Objects and their history in one SQLite file: a table of what is, a bounded log of what changed, one revision that
// counts every write. All of it synchronous, so a read, a decision and a write in one turn of the event loop are one
// step that nobody can come between. Knows nothing of kinds: a resource is a string, an object is its JSON.

import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import type { KubeObject } from '../kinds/resource.ts';
import { Change, type ChangeRecord, type ChangeType } from './change.ts';

export interface ObjectKey {
  /** "<group>/<plural>", as "/pods" */
  readonly resource: string;
  /** '' for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
}

export interface StoredObject {
  readonly namespace: string;
  readonly name: string;
  readonly revision: number;
  /** JSON, with metadata.resourceVersion inside. */
  readonly text: string;
}

/** The history that was asked for is gone from the log, wholly or in part. */
export class CompactedError extends Error {
  override name = 'CompactedError';
  readonly oldest: number;
  constructor(revision: number, oldest: number) {
    super(`too old resource version: ${revision} (${oldest})`);
    this.oldest = oldest;
  }
}

export interface StoreOptions {
  readonly clock: Clock;
  /** Changes kept for watches and consistent lists. */
  readonly logLimit?: number;
}

const DEFAULT_LOG_LIMIT = 4096;
/** Objects written last that are kept as they are, not only as text: most are written again soon. */
const WRITTEN_LIMIT = 256;
/** Housekeeping waits for a pause of this long in the writes. */
const QUIET_MS = 2000;

// WAL with synchronous=NORMAL: a commit is an append without fsync, so a write costs tens of microseconds. A crash of
// the process loses nothing; a power cut can lose the last moments, never consistency, and this server's clients are
// level-triggered. EXCLUSIVE keeps a second server off the same file. Checkpoints, which do fsync, are taken in quiet
// moments by `maintain`; the automatic one is only the bound on the WAL's size.
const PRAGMAS = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 8000;
  PRAGMA temp_store = MEMORY;
  PRAGMA busy_timeout = 0;
`;
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    revision INTEGER NOT NULL, value TEXT NOT NULL,
    UNIQUE (resource, namespace, name)
  );
  CREATE TABLE IF NOT EXISTS log (
    revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    type TEXT NOT NULL, value TEXT NOT NULL, previous TEXT
  );
  CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
`;

type Listener = (change: Change) => void;

const asText = (value: unknown): string => (typeof value === 'string' ? value : '');
const asNumber = (value: unknown): number => (typeof value === 'number' ? value : 0);

function storedObject(row: Record<string, unknown>): StoredObject {
  return {
    namespace: asText(row['namespace']),
    name: asText(row['name']),
    revision: asNumber(row['revision']),
    text: asText(row['value']),
  };
}

function changeType(text: unknown): ChangeType {
  return text === 'ADDED' || text === 'DELETED' ? text : 'MODIFIED';
}

export class Store {
  readonly #db: DatabaseSync;
  readonly #clock: Clock;
  readonly #logLimit: number;
  readonly #listeners = new Map<string, Set<Listener>>();
  #revision: number;
  #compacted: number;
  #timer: Timer | undefined;
  #lastWrite = 0;
  /** By key; never changed, since watchers share them. */
  readonly #written = new Map<string, { readonly text: string; readonly object: KubeObject }>();
  readonly #statements: Record<'get' | 'upsert' | 'remove' | 'append', StatementSync>;

  /** Opens or makes the file. Throws UserError when it is in use, cannot be opened or is something else. */
  constructor(path: string, options: StoreOptions) {
    this.#clock = options.clock;
    this.#logLimit = options.logLimit ?? DEFAULT_LOG_LIMIT;
    try {
      if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      this.#db = new DatabaseSync(path);
      this.#db.exec(PRAGMAS);
      this.#db.exec(SCHEMA);
    } catch (error) {
      const message = errorMessage(error);
      const why = message.includes('locked') ? 'another API server is using it' : message;
      throw new UserError(`cannot open the API server's store ${path}: ${why}`);
    }
    this.#statements = {
      get: this.#db.prepare('SELECT * FROM objects WHERE resource = ? AND namespace = ? AND name = ?'),
      upsert: this.#db.prepare(
        `INSERT INTO objects (resource, namespace, name, revision, value) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (resource, namespace, name) DO UPDATE SET revision = excluded.revision, value = excluded.value`,
      ),
      remove: this.#db.prepare('DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?'),
      append: this.#db.prepare('INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)'),
    };
    this.#revision = Math.max(this.#scalar('SELECT max(revision) FROM log'), this.#meta('compacted'), 1);
    this.#compacted = this.#meta('compacted');
  }

  /** The revision of the newest write. Never goes back, over restarts either. */
  get revision(): number {
    return this.#revision;
  }

  /** Changes up to and including this one are gone from the log. */
  get compacted(): number {
    return this.#compacted;
  }

  get(key: ObjectKey): StoredObject | undefined {
    const row = this.#statements.get.get(key.resource, key.namespace, key.name);
    return row === undefined ? undefined : storedObject(row);
  }

  /** Objects of a resource by namespace and name; of one namespace when it is given, after `after` when that is. */
  scan(
    resource: string,
    namespace?: string,
    after?: Pick<ObjectKey, 'namespace' | 'name'>,
    limit = -1,
  ): StoredObject[] {
    const where = ['resource = ?'];
    const values: (string | number)[] = [resource];
    if (namespace !== undefined) {
      where.push('namespace = ?');
      values.push(namespace);
    }
    if (after !== undefined) {
      where.push('(namespace, name) > (?, ?)');
      values.push(after.namespace, after.name);
    }
    const sql = `SELECT * FROM objects WHERE ${where.join(' AND ')} ORDER BY namespace, name LIMIT ?`;
    return this.#db
      .prepare(sql)
      .all(...values, limit)
      .map(storedObject);
  }

  /** Those of one namespace by name, each read when it is asked for. The store is not written to meanwhile. */
  *each(resource: string, namespace: string): Iterable<StoredObject> {
    const sql = 'SELECT * FROM objects WHERE resource = ? AND namespace = ? ORDER BY name';
    for (const row of this.#db.prepare(sql).iterate(resource, namespace)) yield storedObject(row);
  }

  /**
   * The objects as they were at `revision`: what is now, with every later change undone. Throws CompactedError when
   * the log no longer reaches back that far.
   */
  scanAt(revision: number, resource: string, namespace?: string): StoredObject[] {
    if (revision < this.#compacted) throw new CompactedError(revision, this.#compacted);
    const objects = new Map(this.scan(resource, namespace).map((o) => [`${o.namespace}/${o.name}`, o]));
    const undone = new Set<string>();
    for (const { record } of this.since(revision, resource, namespace)) {
      const key = `${record.namespace}/${record.name}`;
      if (undone.has(key)) continue;
      undone.add(key);
      if (record.previousText === undefined) objects.delete(key);
      else {
        const { namespace: ns, name, previousText: text } = record;
        const previous: { metadata: { resourceVersion?: string } } = JSON.parse(text);
        objects.set(key, { namespace: ns, name, text, revision: Number(previous.metadata.resourceVersion) });
      }
    }
    // By code unit, as SQLite's BINARY collation does for what names may hold.
    const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
    return [...objects.values()].sort((a, b) => order(a.namespace, b.namespace) || order(a.name, b.name));
  }

  count(resource: string, namespace?: string): number {
    const where = namespace === undefined ? '' : ' AND namespace = ?';
    const values = namespace === undefined ? [resource] : [resource, namespace];
    const row = this.#db.prepare(`SELECT count(*) AS n FROM objects WHERE resource = ?${where}`).get(...values);
    return asNumber(row?.['n']);
  }

  /** Changes after `revision`, oldest first. Throws CompactedError when some of them are gone. */
  since(revision: number, resource: string, namespace?: string): Change[] {
    if (revision < this.#compacted) throw new CompactedError(revision, this.#compacted);
    const where = namespace === undefined ? '' : ' AND namespace = ?';
    const values = namespace === undefined ? [revision, resource] : [revision, resource, namespace];
    const rows = this.#db
      .prepare(`SELECT * FROM log WHERE revision > ? AND resource = ?${where} ORDER BY revision`)
      .all(...values);
    return rows.map((row) => {
      const previous = row['previous'];
      const record: ChangeRecord = {
        type: changeType(row['type']),
        revision: asNumber(row['revision']),
        resource,
        namespace: asText(row['namespace']),
        name: asText(row['name']),
        text: asText(row['value']),
        ...(typeof previous === 'string' ? { previousText: previous } : {}),
      };
      return new Change(record);
    });
  }

  /**
   * Writes the object as the newest revision, which is put into its metadata, and tells whoever watches. From then on
   * `object` is shared and must not be changed. `previous` is what `get` gave in this same turn, absent for a new one.
   */
  put(key: ObjectKey, object: KubeObject, previous?: StoredObject): StoredObject {
    const revision = this.#revision + 1;
    object.metadata.resourceVersion = String(revision);
    const text = JSON.stringify(object);
    this.#commit(
      { type: previous === undefined ? 'ADDED' : 'MODIFIED', revision, ...key, text, ...before(previous) },
      object,
    );
    return { namespace: key.namespace, name: key.name, revision, text };
  }

  /** Removes the object; `last` is its final state, which watchers get with the revision of the deletion. */
  remove(key: ObjectKey, last: KubeObject, previous: StoredObject): StoredObject {
    const revision = this.#revision + 1;
    last.metadata.resourceVersion = String(revision);
    const text = JSON.stringify(last);
    this.#commit({ type: 'DELETED', revision, ...key, text, ...before(previous) }, last);
    return { namespace: key.namespace, name: key.name, revision, text };
  }

  #commit(record: ChangeRecord, object: KubeObject): void {
    const { resource, namespace, name, revision, text, type } = record;
    const { upsert, remove, append } = this.#statements;
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      if (type === 'DELETED') remove.run(resource, namespace, name);
      else upsert.run(resource, namespace, name, revision, text);
      append.run(revision, resource, namespace, name, type, text, record.previousText ?? null);
      this.#db.exec('COMMIT');
    } catch (error) {
      this.#db.exec('ROLLBACK');
      throw error;
    }
    this.#revision = revision;
    this.#lastWrite = this.#clock.monotonic();
    if (revision - this.#compacted > 2 * this.#logLimit) this.#trim();
    this.#timer ??= this.#clock.after(QUIET_MS, () => this.#quiet());
    const previous = this.#rewrite(record, object);
    const listeners = this.#listeners.get(resource);
    if (listeners === undefined || listeners.size === 0) return;
    const change = new Change(record, object, previous);
    for (const listener of listeners) listener(change);
  }

  /** Keeps the object, and gives the one that was there before, where that is still kept. */
  #rewrite({ resource, namespace, name, type, text, previousText }: ChangeRecord, object: KubeObject) {
    const key = `${resource}/${namespace}/${name}`;
    const before = this.#written.get(key);
    this.#written.delete(key);
    if (type !== 'DELETED') this.#written.set(key, { text, object });
    if (this.#written.size > WRITTEN_LIMIT) {
      const [oldest = key] = this.#written.keys();
      this.#written.delete(oldest);
    }
    return before?.text === previousText ? before?.object : undefined;
  }

  /** Calls `listener` for every later change of the resource, in order and in the writer's turn. It must not throw. */
  subscribe(resource: string, listener: Listener): () => void {
    let listeners = this.#listeners.get(resource);
    if (listeners === undefined) {
      listeners = new Set();
      this.#listeners.set(resource, listeners);
    }
    const all = listeners;
    all.add(listener);
    return () => {
      all.delete(listener);
    };
  }

  #quiet(): void {
    this.#timer = undefined;
    const pause = this.#clock.monotonic() - this.#lastWrite;
    if (pause < QUIET_MS) this.#timer = this.#clock.after(QUIET_MS - pause, () => this.#quiet());
    else this.maintain();
  }

  /** Trims the log and moves the WAL into the file. */
  maintain(): void {
    this.#trim();
    this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)');
  }

  #trim(): void {
    const limit = this.#revision - this.#logLimit;
    if (limit > this.#compacted) this.compact(limit);
  }

  /** Forgets changes up to and including `revision`. */
  compact(revision: number): void {
    const upTo = Math.min(revision, this.#revision);
    this.#db.exec('BEGIN IMMEDIATE');
    this.#db.prepare('DELETE FROM log WHERE revision <= ?').run(upTo);
    this.#db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)').run('compacted', upTo);
    this.#db.exec('COMMIT');
    this.#compacted = upTo;
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#listeners.clear();
    if (this.#db.isOpen) this.#db.close();
  }

  #scalar(sql: string): number {
    return asNumber(Object.values(this.#db.prepare(sql).get() ?? {})[0]);
  }

  #meta(key: string): number {
    return asNumber(this.#db.prepare('SELECT value FROM meta WHERE key = ?').get(key)?.['value']);
  }
}

function before(previous: StoredObject | undefined): { previousText?: string } {
  return previous === undefined ? {} : { previousText: previous.text };
}
