// How much history a store keeps: changes are bounded by number, by bytes and by age, and compacted oldest first, a few
// at a time. The current version of an object is never compacted.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { asNumber, getMeta, scalar, setMeta } from './schema.ts';
import { transaction } from './transaction.ts';

export interface HistoryLimits {
  /** Changes. */
  readonly count: number;
  /** Bytes of versions that are no longer any object's present one. */
  readonly bytes: number;
  /** Milliseconds. */
  readonly age: number;
}

export const HISTORY_LIMITS: HistoryLimits = {
  count: 4096,
  // 35 versions of the largest objects, or 4,096 of 8 KB.
  bytes: 32 * 1024 * 1024,
  // As kube-apiserver has etcd compacted: bookmarks, one a minute, keep a quiet watch's revision younger than that.
  age: 5 * 60 * 1000,
};

/** The bytes that one transaction compacts, so that none takes long. */
const STEP_BYTES = 4 * 1024 * 1024;
const STEP_CHANGES = 256;
/** The age of changes is known to this many milliseconds. */
const AGE_STEP = 60_000;

export class History {
  readonly #db: DatabaseSync;
  readonly #limits: HistoryLimits;
  readonly #steps: StatementSync;
  #compacted: number;
  #bytes: number;
  /** Which revision there was when, by the monotonic clock: jumps of the time of day age nothing. */
  readonly #marks: { readonly at: MonotonicMs; readonly revision: number }[] = [];

  constructor(db: DatabaseSync, limits: HistoryLimits) {
    this.#db = db;
    this.#limits = limits;
    this.#compacted = getMeta(db, 'compacted');
    this.#steps = db.prepare(
      `SELECT v.revision, octet_length(p.value) AS bytes FROM versions v LEFT JOIN versions p ON p.revision = v.previous
       WHERE v.revision > ? ORDER BY v.revision LIMIT ?`,
    );
    this.#bytes =
      scalar(db, 'SELECT sum(octet_length(value)) FROM versions') -
      scalar(db, 'SELECT sum(octet_length(v.value)) FROM objects o JOIN versions v ON v.revision = o.revision');
  }

  /** Changes up to and including this one are compacted. */
  get compacted(): number {
    return this.#compacted;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `revision` was written at `now` (monotonic ms) and took the place of a version of `bytes`. */
  add(revision: number, bytes: number, now: MonotonicMs): void {
    this.#bytes += bytes;
    const last = this.#marks.at(-1);
    if (last === undefined || elapsedMs(last.at, now) >= AGE_STEP) this.#marks.push({ at: now, revision });
  }

  /** Whether it has grown so far that trimming cannot wait for a quiet moment. */
  isOver(revision: number): boolean {
    const { count, bytes } = this.#limits;
    return revision - this.#compacted > 2 * count || this.#bytes > bytes + STEP_BYTES;
  }

  /** Compacts what is beyond the limits at `now` (monotonic ms). */
  trim(revision: number, now: MonotonicMs): void {
    const { count, bytes, age } = this.#limits;
    let old = 0;
    // What came between a mark and the next was written within a step of the mark's time.
    for (let mark = this.#marks[0]; mark !== undefined && now - mark.at > age + AGE_STEP; mark = this.#marks[0]) {
      this.#marks.shift();
      old = (this.#marks[0]?.revision ?? revision + 1) - 1;
    }
    this.compact(Math.min(revision, Math.max(revision - count, old)));
    this.shorten(revision, () => this.#bytes > bytes);
  }

  /** Compacts the oldest changes step by step while `more` returns true and there are any. */
  shorten(revision: number, more: () => boolean): void {
    while (this.#compacted < revision && more()) this.compact(this.#nextStep());
  }

  #nextStep(): number {
    let bytes = 0;
    let reached = this.#compacted;
    for (const row of this.#steps.iterate(this.#compacted, STEP_CHANGES)) {
      reached = asNumber(row['revision']);
      bytes += asNumber(row['bytes']);
      if (bytes >= STEP_BYTES) break;
    }
    return Math.max(reached, this.#compacted + 1);
  }

  /** Compacts changes up to and including `revision`, and the versions that they replaced. */
  compact(revision: number): void {
    const from = this.#compacted;
    if (revision <= from) return;
    const replaced = `SELECT previous FROM versions WHERE revision > ? AND revision <= ? AND previous IS NOT NULL`;
    const bytes = transaction(this.#db, () => {
      const sum = `SELECT sum(octet_length(value)) FROM versions WHERE revision IN (${replaced})`;
      const gone = scalar(this.#db, sum, from, revision);
      this.#db.prepare(`DELETE FROM versions WHERE revision IN (${replaced})`).run(from, revision);
      const deletions = "DELETE FROM versions WHERE revision > ? AND revision <= ? AND type = 'DELETED'";
      this.#db.prepare(deletions).run(from, revision);
      setMeta(this.#db, 'compacted', revision);
      return gone;
    });
    this.#compacted = revision;
    this.#bytes -= bytes;
  }
}
