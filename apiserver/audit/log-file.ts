// Where audit events go: a file that is rotated by size, or standard output. Lines are taken at once and written later,
// several together; the event loop never waits for the disk. What cannot be written is lost, counted and reported in one line.

import { mkdirSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import type { Writable } from 'node:stream';
import type { Clock, EpochMs } from '../../lib/clock.ts';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import { parseRfc3339, rfc3339Milli } from '../../lib/rfc3339.ts';

const MEGABYTE = 1024 * 1024;
const DAY_MS = 86_400_000;
/** kube-apiserver's, where --audit-log-maxsize is 0. */
const DEFAULT_MEGABYTES = 100;
/** Lines that wait for the disk; more are lost. */
const MAX_WAITING_BYTES = 64 * MEGABYTE;
/** Of one write. */
const BATCH_BYTES = MEGABYTE;

export interface LogFileOptions {
  readonly path: string;
  /** Of a file before it is rotated, in megabytes. 0: 100. */
  readonly maxSize: number;
  /** Rotated files that are kept. 0: all. */
  readonly maxBackup: number;
  /** How long rotated files are kept, in days. 0: for good. */
  readonly maxAge: number;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

/** Takes lines; all of them end with a line feed. */
export interface LineSink {
  write(line: string): void;
  /** Resolves once everything is written, or lost. */
  close(): Promise<void>;
}

/** "audit.log" at a time: "audit-2026-01-02T15-04-05.000.log". Pure. */
export function backupName(path: string, at: EpochMs): string {
  const extension = extname(path);
  const stamp = rfc3339Milli(at).replaceAll(':', '-').replace('Z', '');
  return join(dirname(path), `${basename(path, extension)}-${stamp}${extension}`);
}

/** The time in a rotated file's name; undefined for any other file. Pure. */
export function backupTime(path: string, name: string): EpochMs | undefined {
  const extension = extname(path);
  const prefix = `${basename(path, extension)}-`;
  if (!name.startsWith(prefix) || !name.endsWith(extension)) return undefined;
  const stamp = name.slice(prefix.length, name.length - extension.length);
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})$/.exec(stamp);
  return match === null ? undefined : parseRfc3339(`${match[1]}T${match[2]}:${match[3]}:${match[4]}Z`);
}

/** Which of the rotated files are too many or too old. Pure. */
export function superfluous(
  path: string,
  names: readonly string[],
  { maxBackup, maxAge, now }: { readonly maxBackup: number; readonly maxAge: number; readonly now: EpochMs },
): string[] {
  const backups = names
    .map((name) => ({ name, at: backupTime(path, name) }))
    .filter((one): one is { name: string; at: EpochMs } => one.at !== undefined)
    .sort((a, b) => b.at - a.at);
  return backups
    .filter(({ at }, index) => (maxBackup > 0 && index >= maxBackup) || (maxAge > 0 && now - at > maxAge * DAY_MS))
    .map(({ name }) => name);
}

/** Creates what is missing of the directory, and the file. Rejects with UserError. */
export async function openLogFile(options: LogFileOptions): Promise<LineSink> {
  const { path, log } = options;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const handle = await open(path, 'a', 0o600);
    const file = new RotatedFile(options, handle, (await handle.stat()).size);
    return new QueuedLines(`audit log ${path}`, file, log);
  } catch (error) {
    throw new UserError(`--audit-log-path: ensureLogFile: ${errorMessage(error)}`);
  }
}

/** The same on a stream that is not closed at the end: standard output. */
export function streamSink(stream: Writable, log: (line: string) => void): LineSink {
  const write = (bytes: Buffer): Promise<void> =>
    new Promise((resolve, reject) => {
      stream.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  return new QueuedLines('audit log on standard output', { write, close: () => Promise.resolve() }, log);
}

interface Target {
  /** Rejects when not all of it is written, and then none of it stays. */
  write(bytes: Buffer): Promise<void>;
  close(): Promise<void>;
}

/** One write at a time; what comes meanwhile goes with the next. */
export class QueuedLines implements LineSink {
  readonly #what: string;
  readonly #target: Target;
  readonly #log: (line: string) => void;
  #lines: string[] = [];
  /** Characters, which are bytes but for what is not ASCII. */
  #waiting = 0;
  #lost = 0;
  #isFailing = false;
  #writing: Promise<void> | undefined;

  constructor(what: string, target: Target, log: (line: string) => void) {
    this.#what = what;
    this.#target = target;
    this.#log = log;
  }

  write(line: string): void {
    if (this.#waiting + line.length > MAX_WAITING_BYTES) {
      this.#fails('the disk is too slow', 1);
      return;
    }
    this.#lines.push(line);
    this.#waiting += line.length;
    this.#writing ??= this.#writeAll();
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#target.close();
  }

  async #writeAll(): Promise<void> {
    // Lines of the same turn go together.
    await Promise.resolve();
    while (this.#lines.length > 0) {
      const batch = this.#nextBatch();
      try {
        await this.#target.write(Buffer.from(batch.join('')));
        if (this.#isFailing) this.#works();
      } catch (error) {
        this.#fails(errorMessage(error), batch.length);
      }
    }
    this.#writing = undefined;
  }

  #nextBatch(): string[] {
    let [count, size] = [0, 0];
    for (const line of this.#lines) {
      if (count > 0 && size + line.length > BATCH_BYTES) break;
      count += 1;
      size += line.length;
    }
    this.#waiting -= size;
    return this.#lines.splice(0, count);
  }

  #fails(why: string, lost: number): void {
    this.#lost += lost;
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#log(`${this.#what} cannot be written: ${why}; events are lost until it can be written again`);
  }

  #works(): void {
    this.#log(`${this.#what} can be written again; ${this.#lost} events were lost`);
    this.#isFailing = false;
    this.#lost = 0;
  }
}

class RotatedFile implements Target {
  readonly #options: LogFileOptions;
  #handle: FileHandle | undefined;
  #size: number;

  constructor(options: LogFileOptions, handle: FileHandle, size: number) {
    this.#options = options;
    this.#handle = handle;
    this.#size = size;
  }

  async write(bytes: Buffer): Promise<void> {
    const most = (this.#options.maxSize || DEFAULT_MEGABYTES) * MEGABYTE;
    if (this.#size > 0 && this.#size + bytes.length > most) await this.#rotate();
    const handle = await this.#open();
    try {
      await handle.writeFile(bytes);
      this.#size += bytes.length;
    } catch (error) {
      // Half a line would spoil the next one.
      await handle.truncate(this.#size);
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    this.#handle = undefined;
  }

  async #open(): Promise<FileHandle> {
    if (this.#handle === undefined) {
      this.#handle = await open(this.#options.path, 'a', 0o600);
      this.#size = (await this.#handle.stat()).size;
    }
    return this.#handle;
  }

  async #rotate(): Promise<void> {
    const { path, clock, maxBackup, maxAge } = this.#options;
    await this.close();
    const now = clock.now();
    try {
      await rename(path, backupName(path, now));
    } catch (error) {
      // Another program has moved it away.
      if (!isErrno(error, 'ENOENT')) throw error;
    }
    const names = await readdir(dirname(path));
    for (const name of superfluous(path, names, { maxBackup, maxAge, now })) {
      await rm(join(dirname(path), name), { force: true });
    }
  }
}
