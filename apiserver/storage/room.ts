// Reserves disk space in the store's own files, so that deletions are possible when the disk is full. Other programs
// cannot take it, because it is never freed:
//
// - The file has pages full of zeros, in a table of their own. They are freed for deletions, and for updates that take no
//   more room than what they replace; other writes make the file larger, and are refused when that fails or while some
//   of these pages are missing. A page is only ever used when the file has its bytes on disk already, so moving the
//   write-ahead log into the file never needs new ones.
// - The write-ahead log is as long as it ever gets, from the start, and stays where it is over a stop.
//
// The bytes are written, not only reserved: true on file systems that overwrite in place (ext4, XFS), not on those that
// copy on write. What is compacted is decided in store.ts.

import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { isErrno } from '../../lib/errors.ts';
import { asNumber, scalar } from './schema.ts';
import { isFull } from './sqlite-errors.ts';
import { transaction } from './transaction.ts';

const PAGE_BYTES = 4096;
const MEGABYTE = 1024 * 1024;
/** Length of the write-ahead log: 1200 pages, after which it is moved into the file, and the largest write on top. */
export const WAL_BYTES = 10 * MEGABYTE;
/** Rows of zeros that are kept, and what each takes: 4 MiB in all, one update of the largest object and some hundred deletions. */
const RESERVE_ROWS = 16;
const ROW_PAGES = 64;
const ROW_BYTES = ROW_PAGES * (PAGE_BYTES - 64);
/** Pages by which the file grows at a time. */
const GROWTH_PAGES = 256;
/** What a write may need besides its value's pages: table pages that split, the free list's own. */
const SLACK_PAGES = 16;

/**
 * What a write does to the room: `grow` adds an object or makes one larger, `keep` replaces one by one of about its
 * size, `finish` changes one that is being deleted, `remove` deletes it.
 */
export type WriteKind = 'grow' | 'keep' | 'finish' | 'remove';

/** Rows of the reserve that a write must leave. */
const FLOOR: Readonly<Record<WriteKind, number>> = { grow: RESERVE_ROWS, keep: 2, finish: 1, remove: 0 };

/** Growth up to here counts as `keep`: a condition's time, a counter's digits. */
const KEEP_SLACK_BYTES = 1024;

/** Which kind a write of `bytes` in place of `before` bytes (undefined: a new object) is. Pure. */
export function writeKind(bytes: number, before: number | undefined, beingDeleted: boolean): WriteKind {
  if (before === undefined) return 'grow';
  if (bytes > before + (beingDeleted ? 16 * KEEP_SLACK_BYTES : KEEP_SLACK_BYTES)) return 'grow';
  return beingDeleted ? 'finish' : 'keep';
}

/** Pages that a value of so many bytes takes, at most. Pure. */
export function pagesFor(bytes: number): number {
  return Math.ceil(bytes / (PAGE_BYTES - 64)) + SLACK_PAGES;
}

/** Puts the reserve into a new file, which nothing reads or writes yet. */
export function fillNewReserve(db: DatabaseSync): void {
  transaction(db, () => {
    const insert = db.prepare(ADD_ROW);
    for (let row = 0; row < RESERVE_ROWS; row++) insert.run(ROW_BYTES);
  });
}

const ADD_ROW = 'INSERT INTO room VALUES (zeroblob(?))';

export class Room {
  readonly #db: DatabaseSync;
  readonly #path: string;
  /**
   * For making the file longer. Opened after SQLite has its lock and closed after SQLite has closed: POSIX locks of a
   * process go with the first of its descriptors that is closed.
   */
  readonly #file: number;
  readonly #freePages: StatementSync;
  readonly #pageCount: StatementSync;
  #rows: number;
  /** Free pages for certain: what was counted last, less what writes may have taken since. */
  #known = 0;

  /** `db` has the file open and locked. */
  constructor(db: DatabaseSync, path: string) {
    this.#db = db;
    this.#path = path;
    this.#file = openSync(path, 'r+');
    this.#freePages = db.prepare('PRAGMA freelist_count');
    this.#pageCount = db.prepare('PRAGMA page_count');
    this.#rows = scalar(db, 'SELECT count(*) FROM room');
  }

  freePages(): number {
    this.#known = asNumber(this.#freePages.get()?.['freelist_count']);
    return this.#known;
  }

  /**
   * Whether a write of `bytes` may be done now; makes the file longer where that is needed. `reserve`: the reserve may
   * be used as far as the kind of write allows.
   */
  admits(kind: WriteKind, bytes: number, reserve: boolean): boolean {
    const pages = pagesFor(bytes);
    if (kind === 'grow' && this.#rows < RESERVE_ROWS && !this.#fillReserve()) return false;
    let fits = this.#known >= pages || this.freePages() >= pages || this.#grow(pages);
    while (!fits && reserve && this.#rows > FLOOR[kind]) {
      this.#release();
      fits = this.freePages() >= pages;
    }
    if (fits) this.#known -= pages;
    // A deletion may use the whole reserve: SQLite reports an error if it does not suffice.
    return fits || (reserve && kind === 'remove');
  }

  /** Makes the room whole again. Returns whether it is. */
  restore(): boolean {
    return this.#growWal() && this.#fillReserve();
  }

  #fillReserve(): boolean {
    while (this.#rows < RESERVE_ROWS) {
      if (this.freePages() < ROW_PAGES + SLACK_PAGES && !this.#grow(ROW_PAGES + SLACK_PAGES)) return false;
      try {
        transaction(this.#db, () => this.#db.prepare(ADD_ROW).run(ROW_BYTES));
      } catch (error) {
        if (isFull(error)) return false;
        throw error;
      }
      this.#rows++;
    }
    return true;
  }

  #release(): void {
    const one = 'DELETE FROM room WHERE rowid = (SELECT max(rowid) FROM room)';
    transaction(this.#db, () => this.#db.exec(one));
    this.#rows--;
  }

  /** Free bytes on the disk. */
  bytesLeft(): number {
    const { bavail, bsize } = statfsSync(this.#path);
    return bavail * bsize;
  }

  /** Closes the database, and keeps its log's room for the next start. */
  close(): void {
    const wal = walOf(this.#path);
    const kept = keptOf(this.#path);
    rmSync(kept, { force: true });
    if (existsSync(wal)) linkSync(wal, kept);
    this.#db.close();
    closeSync(this.#file);
    settleWalRoom(this.#path);
  }

  /** Makes `wanted` pages free, and some more. First the bytes, then the pages. */
  #grow(wanted: number): boolean {
    const free = this.freePages();
    const added = wanted - free + GROWTH_PAGES;
    const count = asNumber(this.#pageCount.get()?.['page_count']) + added + SLACK_PAGES;
    if (!this.#lengthen(count * PAGE_BYTES)) return false;
    try {
      transaction(this.#db, () => {
        // Takes the pages that are free already, and as many new ones; all are free afterwards.
        const row = this.#db.prepare(ADD_ROW).run((free + added) * (PAGE_BYTES - 64));
        this.#db.prepare('DELETE FROM room WHERE rowid = ?').run(row.lastInsertRowid);
      });
      return this.freePages() >= wanted;
    } catch (error) {
      if (isFull(error)) return false;
      throw error;
    }
  }

  #lengthen(length: number): boolean {
    const { size } = fstatSync(this.#file);
    if (size >= length) return true;
    if (this.bytesLeft() < length - size) return false;
    try {
      writeZeros(this.#file, size, length);
      return true;
    } catch (error) {
      if (!isErrno(error, 'ENOSPC', 'EDQUOT')) throw error;
      ftruncateSync(this.#file, size);
      return false;
    }
  }

  /** Zeros after the log's end are no part of it. */
  #growWal(): boolean {
    const wal = openSync(walOf(this.#path), 'r+');
    try {
      writeZeros(wal, fstatSync(wal).size, WAL_BYTES);
      return true;
    } catch (error) {
      if (isErrno(error, 'ENOSPC', 'EDQUOT')) return false;
      throw error;
    } finally {
      closeSync(wal);
    }
  }
}

const walOf = (path: string): string => `${path}-wal`;
/** A second name of the log's file, over the moment in which SQLite removes the first. */
const keptOf = (path: string): string => `${path}-room`;

/**
 * Gives the log's file its name back after SQLite has removed it, which it does when everything in it is in the store's
 * file; its start is wiped, so that nothing of it is read again. Does nothing where the log is still there.
 */
export function settleWalRoom(path: string): void {
  const kept = keptOf(path);
  if (!existsSync(kept)) return;
  if (existsSync(walOf(path))) {
    rmSync(kept, { force: true });
    return;
  }
  const file = openSync(kept, 'r+');
  try {
    writeSync(file, Buffer.alloc(PAGE_BYTES), 0, PAGE_BYTES, 0);
  } finally {
    closeSync(file);
  }
  renameSync(kept, walOf(path));
}

const ZEROS = Buffer.alloc(MEGABYTE);

function writeZeros(file: number, from: number, to: number): void {
  for (let at = from; at < to; ) at += writeSync(file, ZEROS, 0, Math.min(ZEROS.length, to - at), at);
}
