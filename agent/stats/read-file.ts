// Reads the kernel's small files. A page for 110 pods reads more than a thousand, and two thirds of what that costs is to open and
// close them: files of cgroups are kept open for as long as pages are read. Open, they keep no cgroup alive: one that is removed ends
// the next read. Files of /proc are never kept: those of a network namespace would keep that.

import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { type Clock, elapsedMs, type MonotonicMs, type Timer } from '../../lib/clock.ts';
import { isErrno } from '../../lib/errors.ts';

/** More than any file of a cgroup; a longer one (a network namespace with hundreds of interfaces) is read in parts. */
const buffer = Buffer.allocUnsafe(32 * 1024);
/** A file that was not read for so long is closed. ms. */
const UNUSED_MS = 60_000;
/** Of the files that the agent may have open, and in all. */
const SHARE = 8;
const MOST = 8192;

/** undefined when there is no such file, or what it is about has gone. */
function openFile(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENODEV', 'ESRCH')) return undefined;
    throw error;
  }
}

/** The whole file from its beginning, as Latin-1, which all of these are; undefined when what it is about has gone. */
function readOpen(file: number): string | undefined {
  try {
    let text = '';
    for (;;) {
      const length = readSync(file, buffer, 0, buffer.length, text.length);
      text += buffer.toString('latin1', 0, length);
      // The kernel ends a file of this kind with a read that is not full.
      if (length < buffer.length) return text;
    }
  } catch (error) {
    // The cgroup or the process ended. EOPNOTSUPP: the file exists, and nothing is behind it (PSI that is switched off).
    if (isErrno(error, 'ENODEV', 'ESRCH', 'EINVAL', 'EOPNOTSUPP')) return undefined;
    throw error;
  }
}

/** undefined when there is no such file, or it went while it was read. */
export function readKernelFile(path: string): string | undefined {
  const file = openFile(path);
  if (file === undefined) return undefined;
  try {
    return readOpen(file);
  } finally {
    closeSync(file);
  }
}

interface KeptFile {
  readonly file: number;
  usedAt: MonotonicMs;
}

/** Files that are read again and again. */
export class KeptFiles {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #files = new Map<string, KeptFile>();
  #timer: Timer | undefined;

  /** `openFiles`: how many files the process may have open. */
  constructor(clock: Clock, openFiles: number) {
    this.#clock = clock;
    this.#most = Math.min(MOST, Math.trunc(openFiles / SHARE));
  }

  /** How many are open. */
  get size(): number {
    return this.#files.size;
  }

  /** As readKernelFile. */
  readonly read = (path: string): string | undefined => {
    const known = this.#files.get(path);
    if (known === undefined) return this.#open(path);
    known.usedAt = this.#clock.monotonic();
    const text = readOpen(known.file);
    if (text !== undefined) return text;
    // Another cgroup may have this path by now.
    this.#close(path, known);
    return this.#open(path);
  };

  #open(path: string): string | undefined {
    if (this.#files.size >= this.#most) return readKernelFile(path);
    const file = openFile(path);
    if (file === undefined) return undefined;
    const text = readOpen(file);
    if (text === undefined) {
      closeSync(file);
      return undefined;
    }
    this.#files.set(path, { file, usedAt: this.#clock.monotonic() });
    this.#timer ??= this.#clock.after(UNUSED_MS, () => this.#closeUnused());
    return text;
  }

  #closeUnused(): void {
    const now = this.#clock.monotonic();
    for (const [path, kept] of this.#files) if (elapsedMs(kept.usedAt, now) >= UNUSED_MS) this.#close(path, kept);
    this.#timer = this.#files.size === 0 ? undefined : this.#clock.after(UNUSED_MS, () => this.#closeUnused());
  }

  #close(path: string, { file }: KeptFile): void {
    this.#files.delete(path);
    closeSync(file);
  }
}

/** Names of the directories directly below; empty when there is no such directory. */
export function readDirectories(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENODEV')) return [];
    throw error;
  }
}
