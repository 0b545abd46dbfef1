// Snapshots: every object as of one revision, in a store's file of its own beside the store; without history, so no
// larger than what is in use. Taken at the start, every hour in which something was written, and at the stop; the newest
// few are kept. A snapshot that fails is logged and never ends the server.

import { closeSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { syncFile } from './file.ts';
import type { StoredObject } from './object-store.ts';
import { createSchema, setMeta } from './schema.ts';
import { newestSnapshot, snapshotDirectory, snapshotFile, snapshotRevision, snapshots } from './snapshots.ts';
import type { Store } from './store.ts';
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
  if (newest !== undefined && snapshotRevision(newest) === revision) return undefined;
  const { bavail, bsize } = await statfs(dirname(path));
  if (bavail * bsize < 2 * store.presentBytes() + LEAVE_BYTES) {
    throw new Error(`there is not enough room on the disk of ${dirname(path)}`);
  }
  mkdirSync(snapshotDirectory(path), { recursive: true, mode: 0o700 });
  const partial = join(snapshotDirectory(path), '.partial');
  rmSync(partial, { force: true });
  try {
    closeSync(openSync(partial, 'wx', 0o600));
    const db = new DatabaseSync(partial);
    try {
      db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF');
      createSchema(db);
      await copyObjects(store, revision, db, signal);
      setMeta(db, 'compacted', revision);
      db.exec('PRAGMA journal_mode = WAL');
    } finally {
      db.close();
    }
    syncFile(partial);
    const file = snapshotFile(path, revision);
    renameSync(partial, file);
    for (const old of snapshots(path).slice(0, -KEPT)) rmSync(old, { force: true });
    return file;
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

async function copyObjects(store: Store, revision: number, db: DatabaseSync, signal?: AbortSignal): Promise<void> {
  const version = db.prepare("INSERT INTO versions VALUES (?, ?, ?, ?, 'ADDED', NULL, ?)");
  const name = db.prepare('INSERT INTO objects VALUES (?, ?, ?, ?)');
  for (const resource of store.resourcesAt(revision)) {
    let after: StoredObject | undefined;
    do {
      let bytes = 0;
      let last: StoredObject | undefined;
      const from = after;
      transaction(db, () => {
        for (const one of store.scanAt(revision, resource, undefined, from)) {
          version.run(one.revision, resource, one.namespace, one.name, one.text);
          name.run(resource, one.namespace, one.name, one.revision);
          bytes += one.text.length;
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

  /** Takes the first one now, the others on schedule. */
  start(): void {
    this.#running = this.#take(this.#stopping.signal);
    this.#timer = this.#clock.after(INTERVAL_MS, () => {
      void this.#running.then(() => {
        if (!this.#stopping.signal.aborted) this.start();
      });
    });
  }

  /** Takes the last one. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#stopping.abort(new Error('the server stops'));
    await this.#running;
    const late = new AbortController();
    const timer = this.#clock.after(LAST_MS, () => late.abort(new Error(`it took longer than ${LAST_MS} ms`)));
    await this.#take(late.signal);
    timer.cancel();
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
