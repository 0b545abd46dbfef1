// Snapshots: every object as of one revision, in a store's file of its own beside the store; without history, so no
// larger than what is in use. Taken at the start, every hour in which something was written, and at the stop; the newest
// few are kept. A snapshot that fails is logged and never ends the server.

import { closeSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { syncFile } from './file.ts';
import { createSchema, setMeta } from './schema.ts';
import { hasStaleVersions } from './scrub.ts';
import {
  newestSnapshot,
  snapshotDirectory,
  snapshotFile,
  snapshotFiles,
  snapshotRevision,
  snapshots,
} from './snapshots.ts';
import { isSqliteError } from './sqlite-errors.ts';
import type { Store, StoredValue } from './store.ts';
import { transaction } from './transaction.ts';

const KEPT = 5;
const INTERVAL_MS = 60 * 60 * 1000;
/** The time limit of the snapshot at the stop, so that stopping does not wait for ever. ms. */
const LAST_MS = 2000;
/** What is copied in one turn of the event loop. */
const PART_BYTES = 512 * 1024;
/** A snapshot leaves this much of the disk, and twice its own size. */
const LEAVE_BYTES = 16 * 1024 * 1024;

/**
 * Returns the file, or undefined when the newest snapshot is of this revision already. Rejects when there is no room,
 * or when `signal` aborts; nothing of it is left then.
 */
export async function takeSnapshot(store: Store, signal?: AbortSignal): Promise<string | undefined> {
  const { path, revision } = store;
  const newest = newestSnapshot(path);
  if (newest !== undefined && snapshotRevision(newest) === revision && !isStale(store, newest)) return undefined;
  const { bavail, bsize } = await statfs(dirname(path));
  if (bavail * bsize < 2 * store.presentBytes() + LEAVE_BYTES) {
    throw new Error(`there is not enough room on the disk of ${dirname(path)}`);
  }
  mkdirSync(snapshotDirectory(path), { recursive: true, mode: 0o700 });
  const partial = join(snapshotDirectory(path), '.partial');
  await copyStore(store, partial, { revision, signal });
  const file = snapshotFile(path, revision);
  renameSync(partial, file);
  for (const old of snapshots(path).slice(0, -KEPT)) rmSync(old, { force: true });
  return file;
}

export interface CopyOptions {
  /** Default: the present one. */
  readonly revision?: number;
  readonly signal?: AbortSignal | undefined;
}

/** The objects of one revision as a store's file `to`, on the disk when it resolves; nothing is left of one that fails. */
export async function copyStore(store: Store, to: string, options: CopyOptions = {}): Promise<void> {
  const { revision = store.revision, signal } = options;
  rmSync(to, { force: true });
  try {
    closeSync(openSync(to, 'wx', 0o600));
    const db = new DatabaseSync(to);
    try {
      db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF');
      createSchema(db);
      await copyObjects(store, revision, db, signal);
      setMeta(db, 'compacted', revision);
      db.exec('PRAGMA journal_mode = WAL');
    } finally {
      db.close();
    }
    syncFile(to);
  } catch (error) {
    rmSync(to, { force: true });
    throw error;
  }
}

/** Whether the file has values in a form that the store no longer writes, as in plain text. */
function isStale({ encryption }: Store, file: string): boolean {
  if (encryption === undefined) return false;
  const url = pathToFileURL(file);
  url.searchParams.set('immutable', '1');
  const db = new DatabaseSync(url, { readOnly: true });
  try {
    return hasStaleVersions(db, encryption);
  } catch (error) {
    if (isSqliteError(error)) return false;
    throw error;
  } finally {
    db.close();
  }
}

async function copyObjects(store: Store, revision: number, db: DatabaseSync, signal?: AbortSignal): Promise<void> {
  const version = db.prepare("INSERT INTO versions VALUES (?, ?, ?, ?, 'ADDED', NULL, ?)");
  const name = db.prepare('INSERT INTO objects VALUES (?, ?, ?, ?)');
  for (const resource of store.resourcesAt(revision)) {
    let after: StoredValue | undefined;
    do {
      let bytes = 0;
      let last: StoredValue | undefined;
      const from = after;
      transaction(db, () => {
        for (const one of store.valuesAt(revision, resource, from)) {
          version.run(one.revision, resource, one.namespace, one.name, one.value);
          name.run(resource, one.namespace, one.name, one.revision);
          bytes += one.value.length;
          if (bytes < PART_BYTES) continue;
          last = one;
          break;
        }
      });
      after = last;
      await setImmediate();
      signal?.throwIfAborted();
    } while (after !== undefined);
  }
}

/** Takes snapshots of a running store. */
export class SnapshotKeeper {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: (line: string) => void;
  #timer: Timer | undefined;
  #running: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();

  constructor(store: Store, clock: Clock, log: (line: string) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  /** Takes the first one now, the others on schedule, and one after the store was freed of values in an older form. */
  start(): void {
    this.#store.onScrubbed = () => {
      this.#running = this.#running.then(() => this.#takeAfterScrub());
    };
    this.#schedule();
  }

  /** A snapshot of now: the newest, where nothing was written since. Rejects where none can be taken. */
  async file(): Promise<string> {
    let file: string | undefined;
    const taken = this.#running.then(async () => {
      file = (await takeSnapshot(this.#store, this.#stopping.signal)) ?? newestSnapshot(this.#store.path);
    });
    this.#running = taken.catch(() => undefined);
    await taken;
    if (file === undefined) throw new Error('there is no snapshot of the store');
    return file;
  }

  #schedule(): void {
    this.#running = this.#running.then(() => this.#take(this.#stopping.signal));
    this.#timer = this.#clock.after(INTERVAL_MS, () => {
      void this.#running.then(() => {
        if (!this.#stopping.signal.aborted) this.#schedule();
      });
    });
  }

  /** Takes the last one. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#stopping.abort(new Error('the server stops'));
    await this.#running;
    this.#store.onScrubbed = undefined;
    this.#store.scrub();
    const late = new AbortController();
    const timer = this.#clock.after(LAST_MS, () => late.abort(new Error(`it took longer than ${LAST_MS} ms`)));
    await this.#take(late.signal);
    this.#removeStale();
    timer.cancel();
  }

  async #takeAfterScrub(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    await this.#take(this.#stopping.signal);
    this.#removeStale();
  }

  /** Snapshots of values in an older form, once there is a newer one; files that a person kept are only named. */
  #removeStale(): void {
    const newest = newestSnapshot(this.#store.path);
    if (newest === undefined || isStale(this.#store, newest)) return;
    const own = new Set(snapshots(this.#store.path));
    for (const file of snapshotFiles(this.#store.path).filter((one) => one.endsWith('.db'))) {
      if (!isStale(this.#store, file)) continue;
      if (own.has(file)) rmSync(file, { force: true });
      else
        this.#log(
          `${file} holds values in the form from before, perhaps in plain text: remove it when it is not needed`,
        );
    }
  }

  async #take(signal: AbortSignal): Promise<void> {
    try {
      await takeSnapshot(this.#store, signal);
    } catch (error) {
      if (this.#stopping.signal === signal && signal.aborted) return;
      this.#log(`no snapshot of the API server's store was taken: ${errorMessage(error)}`);
    }
  }
}
