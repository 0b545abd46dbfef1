// Objects and their history in one SQLite file: names that point to versions, each version one row, one revision that
// counts every write. All of it synchronous, so a read, a decision and a write in one turn of the event loop are one
// atomic step. Knows nothing of kinds: a resource is a string, an object is its JSON. Opening the
// file is file.ts's, which objects there were names.ts's, how much history there is history.ts's, the reserve for a full disk
// room.ts's, and when the file is tidied up housekeeping.ts's.

import { dirname } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Clock, elapsedMs, type Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { KubeObject } from '../kinds/resource.ts';
import { Change, type ChangeRecord, type ChangeType, lastState, parseObject } from './change.ts';
import type { Encryption } from './encryption/load.ts';
import { openStoreFile } from './file.ts';
import { HISTORY_LIMITS, History, type HistoryLimits } from './history.ts';
import { Housekeeping } from './housekeeping.ts';
import { conditions, countAt, namesAt, type Present } from './names.ts';
import {
  type ChangePage,
  CompactedError,
  type Listener,
  MAX_OBJECT_BYTES,
  type Name,
  type ObjectKey,
  type ObjectStore,
  ObjectTooLargeError,
  type StoredObject,
  StoreFullError,
} from './object-store.ts';
import { RecentObjects } from './recent.ts';
import { Room, type WriteKind, writeKind } from './room.ts';
import { asNumber, asText, scalar } from './schema.ts';
import { Scrubber, versionBytes } from './scrub.ts';
import { isFull } from './sqlite-errors.ts';
import { transaction } from './transaction.ts';
import { type Value, Values } from './values.ts';

export interface StoreOptions {
  readonly clock: Clock;
  /** What is kept for watches and consistent lists; HISTORY_LIMITS where it is not set. */
  readonly history?: Partial<HistoryLimits>;
  /** Logs one line; nothing by default. */
  readonly log?: (line: string) => void;
  /** Called after each write with "create", "update" or "delete", the resource, and how long it took, s. */
  readonly onWrite?: (operation: string, resource: string, seconds: number) => void;
  /** What is stored encrypted; nothing by default. */
  readonly encryption?: Encryption;
}

/** Between two steps of writing the file anew. */
const SCRUB_PAUSE_MS = 10;

function changeType(text: unknown): ChangeType {
  return text === 'ADDED' || text === 'DELETED' ? text : 'MODIFIED';
}

/** An object as it is in the file. */
export interface StoredValue extends Name {
  readonly revision: number;
  readonly value: Value;
}

export class Store implements ObjectStore {
  readonly expiresEvents = false;
  readonly path: string;
  readonly #db: DatabaseSync;
  readonly #clock: Clock;
  readonly #log: (line: string) => void;
  readonly #onWrite: StoreOptions['onWrite'];
  readonly #history: History;
  /** Absent for a store in memory. */
  readonly #room: Room | undefined;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #recent = new RecentObjects();
  readonly #housekeeping: Housekeeping;
  readonly encryption: Encryption | undefined;
  readonly #values: Values;
  readonly #scrubber: Scrubber;
  #scrubTimer: Timer | undefined;
  /** Called after the file was freed of values in an older form. */
  onScrubbed: (() => void) | undefined;
  #revision: number;
  readonly #statements: Record<'get' | 'value' | 'upsert' | 'remove' | 'append', StatementSync>;

  /** Opens or makes the file. Throws UserError when it is in use, cannot be opened, is damaged or something else. */
  constructor(path: string, options: StoreOptions) {
    this.path = path;
    this.#clock = options.clock;
    this.#log = options.log ?? (() => undefined);
    this.#onWrite = options.onWrite;
    const { db, notes } = openStoreFile(path);
    this.#db = db;
    this.encryption = options.encryption;
    this.#values = new Values(options.encryption);
    this.#scrubber = new Scrubber(db, this.#values, options.encryption);
    for (const note of notes) this.#log(note);
    this.#statements = {
      get: db.prepare(
        `SELECT o.revision, v.value FROM objects o JOIN versions v ON v.revision = o.revision
         WHERE o.resource = ? AND o.namespace = ? AND o.name = ?`,
      ),
      value: db.prepare('SELECT value FROM versions WHERE revision = ?'),
      upsert: db.prepare(
        `INSERT INTO objects VALUES (?, ?, ?, ?)
         ON CONFLICT (resource, namespace, name) DO UPDATE SET revision = excluded.revision`,
      ),
      remove: db.prepare('DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?'),
      append: db.prepare('INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?)'),
    };
    this.#history = new History(db, { ...HISTORY_LIMITS, ...options.history });
    this.#revision = Math.max(scalar(db, 'SELECT max(revision) FROM versions'), this.#history.compacted, 1);
    this.#history.add(this.#revision, 0, this.#clock.monotonic());
    this.#room = path === ':memory:' ? undefined : new Room(db, path);
    this.#housekeeping = new Housekeeping({
      db,
      directory: dirname(path),
      room: this.#room,
      history: this.#history,
      clock: this.#clock,
      log: this.#log,
      revision: () => this.#revision,
      scrub: () => {
        if (this.#scrubTimer === undefined) this.#scrubOn();
      },
    });
    this.scrub();
    if (this.#room?.restore() === false) this.#noRoom();
  }

  /** The revision of the newest write. Never goes back, over restarts either. */
  get revision(): number {
    return this.#revision;
  }

  /** Changes up to and including this one are compacted. */
  get compacted(): number {
    return this.#history.compacted;
  }

  get(key: ObjectKey): StoredObject | undefined {
    const { namespace, name } = key;
    const row = this.#statements.get.get(key.resource, namespace, name);
    if (row === undefined) return undefined;
    return { namespace, name, revision: asNumber(row['revision']), ...this.#values.decode(key, row['value']) };
  }

  /**
   * Objects of a resource by namespace and name; of one namespace, and after `after`, when these are set. Each is
   * read lazily, all in one turn of the event loop and without a write between.
   */
  scan(resource: string, namespace?: string, after?: Name): Iterable<StoredObject> {
    return this.scanAt(this.#revision, resource, namespace, after);
  }

  /** The same as of `revision`. Throws CompactedError when history no longer reaches back that far. */
  *scanAt(revision: number, resource: string, namespace?: string, after?: Name): Iterable<StoredObject> {
    for (const name of namesAt(this.#present(), revision, { resource, namespace, after })) {
      const row = this.#statements.value.get(name.revision);
      // Only where history was trimmed between two steps of a reader's.
      if (row === undefined) throw new CompactedError(revision, this.compacted);
      yield { ...name, ...this.#values.decode({ resource, ...name }, row['value']) };
    }
  }

  /** The number of objects that `scanAt` returns. */
  countAt(revision: number, resource: string, namespace?: string, after?: Name): number {
    const isPresent = (one: Name): boolean => this.#statements.get.get(resource, one.namespace, one.name) !== undefined;
    return countAt(this.#present(), revision, { resource, namespace, after }, isPresent);
  }

  #present(): Present {
    return { db: this.#db, revision: this.#revision, compacted: this.compacted };
  }

  /** Every resource that has objects at `revision`, and perhaps some that have none. */
  resourcesAt(revision: number): readonly string[] {
    const sql = 'SELECT resource FROM objects UNION SELECT resource FROM versions WHERE revision > ?';
    return this.#db
      .prepare(sql)
      .all(revision)
      .map((row) => asText(row['resource']));
  }

  /** Bytes of the JSON of all objects. */
  presentBytes(): number {
    const sql = 'SELECT sum(octet_length(v.value)) FROM objects o JOIN versions v ON v.revision = o.revision';
    return scalar(this.#db, sql);
  }

  count(resource: string, namespace?: string): number {
    const where = conditions({ resource, namespace });
    return scalar(this.#db, `SELECT count(*) FROM objects WHERE ${where.sql}`, ...where.values);
  }

  /**
   * Changes after `revision`, oldest first, until their texts come to `maxBytes` or there are no more. Throws
   * CompactedError when some of them are gone.
   */
  since(revision: number, resource: string, namespace?: string, maxBytes = Number.POSITIVE_INFINITY): ChangePage {
    if (revision < this.compacted) throw new CompactedError(revision, this.compacted);
    const where = conditions({ resource, namespace }, 'v.');
    const sql = `SELECT v.*, p.value AS previous_value FROM versions v LEFT JOIN versions p ON p.revision = v.previous
      WHERE v.revision > ? AND ${where.sql} ORDER BY v.revision`;
    const changes: Change[] = [];
    let bytes = 0;
    for (const row of this.#db.prepare(sql).iterate(revision, ...where.values)) {
      const change = storedChange(resource, row, this.#values);
      changes.push(change);
      bytes += change.record.text.length + (change.record.previousText ?? '').length;
      if (bytes >= maxBytes) return { changes, reached: change.record.revision };
    }
    return { changes, reached: Math.max(revision, this.#revision) };
  }

  /**
   * Writes the object as the newest revision, which is put into its metadata, and notifies the watchers. From then on
   * `object` is shared and must not be changed. `previous` is the result of `get` in this same turn, absent for a new one.
   * Throws StoreFullError and ObjectTooLargeError.
   */
  put(key: ObjectKey, object: KubeObject, previous?: StoredObject): StoredObject {
    const revision = this.#revision + 1;
    object.metadata.resourceVersion = String(revision);
    const text = JSON.stringify(object);
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_OBJECT_BYTES) throw new ObjectTooLargeError(bytes);
    const before = previous === undefined ? undefined : Buffer.byteLength(previous.text);
    const kind = writeKind(bytes, before, object.metadata.deletionTimestamp !== undefined);
    const type = previous === undefined ? 'ADDED' : 'MODIFIED';
    const { resource, namespace, name } = key;
    const value = this.#values.encode(key, text);
    const operation = previous === undefined ? 'create' : 'update';
    this.#timed(operation, resource, kind, value.length > bytes ? value.length : bytes, () => {
      this.#statements.upsert.run(resource, namespace, name, revision);
      this.#statements.append.run(revision, resource, namespace, name, type, previous?.revision ?? null, value);
    });
    const cacheKey = `${resource}/${namespace}/${name}`;
    const old = this.#recent.get(cacheKey, previous?.text);
    this.#recent.set(cacheKey, text, object);
    this.#written(previous === undefined ? 0 : this.#bytesOf(key, previous));
    this.#notify({ type, revision, ...key, text, ...previousOf(previous) }, object, old);
    return { namespace, name, revision, text };
  }

  /**
   * Removes the object. Watchers get its last stored state with the revision of the deletion, as from the real API
   * server; `last`, the final state for the client that deletes it, is returned. Throws StoreFullError.
   */
  remove(key: ObjectKey, last: KubeObject, previous: StoredObject): StoredObject {
    const revision = this.#revision + 1;
    const { resource, namespace, name } = key;
    this.#timed('delete', resource, 'remove', 0, () => {
      this.#statements.remove.run(resource, namespace, name);
      this.#statements.append.run(revision, resource, namespace, name, 'DELETED', previous.revision, null);
    });
    const cacheKey = `${resource}/${namespace}/${name}`;
    const old = this.#recent.get(cacheKey, previous.text) ?? parseObject(previous.text);
    this.#recent.delete(cacheKey);
    this.#written(this.#bytesOf(key, previous));
    const gone = lastState(old, revision);
    this.#notify({ type: 'DELETED', revision, ...key, text: JSON.stringify(gone), ...previousOf(previous) }, gone, old);
    last.metadata.resourceVersion = String(revision);
    return { namespace, name, revision, text: JSON.stringify(last) };
  }

  /** What the version takes in the file. */
  #bytesOf({ resource }: ObjectKey, { revision, text }: StoredObject): number {
    return this.#values.transforms(resource) ? versionBytes(this.#db, revision) : Buffer.byteLength(text);
  }

  /** `scanAt` with the values as they are stored, in the form in which they would be written now: for a copy of the store. */
  *valuesAt(revision: number, resource: string, after?: Name): Iterable<StoredValue> {
    for (const name of namesAt(this.#present(), revision, { resource, namespace: undefined, after })) {
      const row = this.#statements.value.get(name.revision);
      if (row === undefined) throw new CompactedError(revision, this.compacted);
      yield { ...name, value: this.#values.renew({ resource, ...name }, row['value']) };
    }
  }

  /**
   * Frees the file of values in an older form, where there are any and every object is written anew, in one turn of the event
   * loop: while nothing is served. Never throws.
   */
  scrub(): void {
    this.#scrubTimer?.cancel();
    this.#scrubTimer = undefined;
    while (this.#scrubStep());
  }

  /** The configuration of what is encrypted has changed. */
  encryptionChanged(): void {
    this.#scrubber.begin();
    if (this.#scrubTimer === undefined) this.#scrubOn();
  }

  /** The same in steps, with pauses for requests, however many these are. */
  #scrubOn(): void {
    this.#scrubTimer = this.#scrubStep() ? this.#clock.after(SCRUB_PAUSE_MS, () => this.#scrubOn()) : undefined;
  }

  /** Whether there is more to do. */
  #scrubStep(): boolean {
    try {
      const state = this.#scrubber.step();
      // What is free was free for certain, and may be taken now.
      if (state !== 'none') this.#room?.freePages();
      if (state !== 'done') return state === 'more';
      this.#log(`the API server's store ${this.path} was written anew: it holds nothing in the form from before`);
      this.onScrubbed?.();
    } catch (error) {
      this.#log(`the API server's store ${this.path} could not be written anew: ${errorMessage(error)}`);
    }
    return false;
  }

  #timed(operation: string, resource: string, kind: WriteKind, bytes: number, work: () => void): void {
    const began = this.#clock.monotonic();
    this.#write(kind, bytes, work);
    this.#onWrite?.(operation, resource, elapsedMs(began, this.#clock.monotonic()) / 1000);
  }

  /** One transaction, where there is room for it. */
  #write(kind: WriteKind, bytes: number, work: () => void): void {
    if (this.#room !== undefined && !this.#admits(this.#room, kind, bytes)) throw this.#noRoom();
    try {
      transaction(this.#db, work);
    } catch (error) {
      if (!isFull(error)) throw error;
      // The log may be full of what belongs into the file.
      this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)');
      try {
        transaction(this.#db, work);
      } catch (again) {
        throw isFull(again) ? this.#noRoom() : again;
      }
    }
  }

  /** History goes first, then the reserve, before a write is refused. */
  #admits(room: Room, kind: WriteKind, bytes: number): boolean {
    if (room.admits(kind, bytes, false)) return true;
    let fits = false;
    this.#history.shorten(this.#revision, () => {
      fits = room.admits(kind, bytes, false);
      return !fits;
    });
    return fits || room.admits(kind, bytes, true);
  }

  #noRoom(): StoreFullError {
    const where = dirname(this.path);
    const left = this.#room === undefined ? '' : ` (${Math.floor(this.#room.bytesLeft() / 1024)} KiB left)`;
    const message =
      `the API server's store is full: no space left on the disk of ${where}${left}; free some there, or delete objects: ` +
      'reads, watches and deletions go on';
    this.#housekeeping.refused(message);
    return new StoreFullError(message);
  }

  /** After each write: the next revision, and housekeeping where it is due. */
  #written(replacedBytes: number): void {
    this.#revision++;
    const now = this.#clock.monotonic();
    this.#history.add(this.#revision, replacedBytes, now);
    this.#housekeeping.written(now);
  }

  #notify(record: ChangeRecord, object: KubeObject, previous: KubeObject | undefined): void {
    const listeners = this.#listeners.get(record.resource);
    if (listeners === undefined || listeners.size === 0) return;
    const change = new Change(record, object, previous);
    for (const listener of listeners) listener(change);
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

  /** Every write is stored at once, and no other server has the file: nothing is ever decided twice. */
  async commit<T>(decide: () => T | Promise<T>): Promise<T> {
    return decide();
  }

  /** Nothing changes during a decision. */
  dependsOn(): void {}

  async catchUp(): Promise<void> {}

  async check(): Promise<void> {
    this.#statements.value.get(0);
  }

  /** Trims history, moves the WAL into the file, shrinks the file, restores the reserve. Never throws. */
  maintain(): void {
    this.scrub();
    this.#housekeeping.maintain();
  }

  /** Compacts changes up to and including `revision`. */
  compact(revision: number): void {
    this.#history.compact(Math.min(revision, this.#revision));
  }

  close(): void {
    this.#housekeeping.stop();
    this.#scrubTimer?.cancel();
    this.#listeners.clear();
    if (!this.#db.isOpen) return;
    this.scrub();
    if (this.#room === undefined) this.#db.close();
    else this.#room.close();
  }
}

function previousOf(previous: StoredObject | undefined): { previousText?: string } {
  return previous === undefined ? {} : { previousText: previous.text };
}

function storedChange(resource: string, row: Record<string, unknown>, values: Values): Change {
  const [namespace, name] = [asText(row['namespace']), asText(row['name'])];
  const read = (value: unknown): string => values.decode({ resource, namespace, name }, value).text;
  const type = changeType(row['type']);
  const revision = asNumber(row['revision']);
  const previous = row['previous_value'];
  const previousText = previous === null || previous === undefined ? undefined : read(previous);
  const before = type === 'DELETED' && previousText !== undefined ? parseObject(previousText) : undefined;
  const gone = before === undefined ? undefined : lastState(before, revision);
  const record: ChangeRecord = {
    type,
    revision,
    resource,
    namespace,
    name,
    text: gone === undefined ? read(row['value'] ?? '') : JSON.stringify(gone),
    ...(previousText === undefined ? {} : { previousText }),
  };
  return new Change(record, gone, before);
}
