// When a store's file is tidied up: after a pause in the writes, by age, and while a full disk has taken the reserve. It
// trims history, moves the WAL into the file, shrinks the file and restores the reserve; a step that fails is logged and tried
// again the next time. Writes no object.

import type { DatabaseSync } from 'node:sqlite';
import { type Clock, elapsedMs, type MonotonicMs, type Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { History } from './history.ts';
import type { Room } from './room.ts';

/** Housekeeping waits for a pause of this long in the writes. */
const QUIET_MS = 2000;
/** How often the disk is checked while the reserve is incomplete. ms. */
const ROOM_MS = 2000;
/** How often the age of history is checked, whether there are writes or not. ms. */
const AGE_MS = 60_000;
/** The file is made smaller this many pages at a time, with pauses for other work. */
const VACUUM_PAGES = 128;
const VACUUM_PAUSE_MS = 20;
/** The number of free pages below which the file is not vacuumed. */
const SPARE_PAGES = 512;

export interface HousekeepingOptions {
  readonly db: DatabaseSync;
  /** Where the file is, for log lines. */
  readonly directory: string;
  /** Undefined for a store in memory. */
  readonly room: Room | undefined;
  readonly history: History;
  readonly clock: Clock;
  readonly log: (line: string) => void;
  /** The store's newest. */
  readonly revision: () => number;
  /** Begins to free the file of values in an older form. */
  readonly scrub: () => void;
}

export class Housekeeping {
  readonly #options: HousekeepingOptions;
  #quietTimer: Timer | undefined;
  #laterTimer: Timer | undefined;
  #lastWrite: MonotonicMs;
  #lastTrim: MonotonicMs;
  /** A write was refused because the disk was full, and the reserve is not complete again. */
  #full = false;

  constructor(options: HousekeepingOptions) {
    this.#options = options;
    this.#lastWrite = options.clock.monotonic();
    this.#lastTrim = this.#lastWrite;
  }

  /** After each write. */
  written(now: MonotonicMs): void {
    this.#lastWrite = now;
    // A cluster's leases alone leave no pause.
    const isDue = elapsedMs(this.#lastTrim, now) >= AGE_MS || this.#options.history.isOver(this.#options.revision());
    if (isDue) this.#attempt('history', () => this.#trim());
    this.#quietTimer ??= this.#options.clock.after(QUIET_MS, () => this.#quiet());
  }

  /** A write was refused for want of room. `message` is logged once, until there is room again. */
  refused(message: string): void {
    if (this.#full) return;
    this.#full = true;
    this.#options.log(message);
    this.#later();
  }

  stop(): void {
    this.#quietTimer?.cancel();
    this.#quietTimer = undefined;
    this.#laterTimer?.cancel();
    this.#laterTimer = undefined;
  }

  #quiet(): void {
    this.#quietTimer = undefined;
    const pause = this.#options.clock.monotonic() - this.#lastWrite;
    if (pause < QUIET_MS) this.#quietTimer = this.#options.clock.after(QUIET_MS - pause, () => this.#quiet());
    else this.maintain();
  }

  /** Trims history, moves the WAL into the file, shrinks the file, restores the reserve. Never throws. */
  maintain(): void {
    this.#attempt('history', () => this.#trim());
    this.#options.scrub();
    let spare = 0;
    this.#attempt('its file', () => {
      spare = this.#vacuum();
      this.#options.db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    });
    this.#attempt('room for a full disk', () => this.#restoreRoom());
    this.#later(spare > 0);
  }

  /** The server goes on without it, and the next time it is tried again. */
  #attempt(what: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#options.log(`housekeeping of the API server's store (${what}) failed: ${errorMessage(error)}`);
    }
  }

  #trim(): void {
    this.#lastTrim = this.#options.clock.monotonic();
    this.#options.history.trim(this.#options.revision(), this.#lastTrim);
  }

  /** One step. Returns how many pages are left to give back. */
  #vacuum(): number {
    if (this.#options.room === undefined) return 0;
    const spare = this.#options.room.freePages() - SPARE_PAGES;
    if (spare <= 0) return 0;
    this.#options.db.exec(`PRAGMA incremental_vacuum(${Math.min(spare, VACUUM_PAGES)})`);
    return spare - VACUUM_PAGES;
  }

  #restoreRoom(): void {
    if (this.#options.room === undefined) return;
    const whole = this.#options.room.restore();
    if (whole && this.#full) this.#options.log(`there is room again on the disk of ${this.#options.directory}`);
    this.#full = !whole;
  }

  /** Schedules the next maintenance without a write; a write schedules its own. */
  #later(vacuum = false): void {
    this.#laterTimer?.cancel();
    this.#laterTimer = undefined;
    const pause = vacuum
      ? VACUUM_PAUSE_MS
      : this.#full
        ? ROOM_MS
        : this.#options.history.compacted < this.#options.revision()
          ? AGE_MS
          : undefined;
    if (pause !== undefined && this.#options.db.isOpen) {
      this.#laterTimer = this.#options.clock.after(pause, () => {
        this.#laterTimer = undefined;
        // What is written to right now has its quiet moment to come.
        if (this.#quietTimer === undefined || this.#full) this.maintain();
      });
    }
  }
}
