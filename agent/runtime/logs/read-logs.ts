// The LogReader port over CRI log files: reads, follows and survives rotation. Waits on inotify, not on a timer; a
// slow tick only checks whether the container still runs, and is enough where the machine has no inotify watch left.

import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Clock } from '../../../lib/clock.ts';
import { isErrno } from '../../../lib/errors.ts';
import { type DirectoryWatch, watchDirectory } from '../../../lib/watch-directory.ts';
import type { LogOptions, LogReader } from '../../ports/logs.ts';
import { LogFormatter } from './log-formatter.ts';

const CHUNK_BYTES = 64 * 1024;
/** How often a silent, followed log is checked for the end of its container. ms. */
const LIVENESS_MS = 500;
const NEWLINE = 0x0a;

/** The offset at which the last `lines` lines of the first `size` bytes begin. */
export async function tailOffset(handle: FileHandle, size: number, lines: number): Promise<number> {
  if (lines <= 0) return size;
  const buffer = Buffer.alloc(CHUNK_BYTES);
  let left = lines;
  // The line feed that ends the last line ends it; it does not begin another.
  let end = size - 1;
  while (end > 0) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const { bytesRead } = await handle.read(buffer, 0, end - start, start);
    const block = buffer.subarray(0, bytesRead);
    for (let at = block.lastIndexOf(NEWLINE); at >= 0; at = at === 0 ? -1 : block.lastIndexOf(NEWLINE, at - 1)) {
      left -= 1;
      if (left === 0) return start + at + 1;
    }
    end = start;
  }
  return 0;
}

/** Wakes a reader when something happens to one file of a directory, or when `signal` aborts. */
class FileWake {
  readonly #watcher: DirectoryWatch;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #dirty = false;
  #wake: (() => void) | undefined;
  readonly #poke = (): void => {
    this.#dirty = true;
    this.#wake?.();
  };

  constructor(path: string, clock: Clock, signal: AbortSignal) {
    const name = basename(path);
    this.#clock = clock;
    this.#signal = signal;
    this.#watcher = watchDirectory(dirname(path), {
      // A null name: something changed.
      changed: (changed) => {
        if (changed === null || changed === name) this.#poke();
      },
      // The directory was removed: the next read of the file fails.
      failed: this.#poke,
      clock,
    });
    signal.addEventListener('abort', this.#poke, { once: true });
  }

  /** Resolves on a change since the last wait, or after `ms`. */
  async wait(ms: number): Promise<void> {
    if (!this.#dirty) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.after(ms, resolve);
        this.#wake = () => {
          timer.cancel();
          resolve();
        };
      });
      this.#wake = undefined;
    }
    this.#dirty = false;
  }

  close(): void {
    this.#watcher.close();
    this.#signal.removeEventListener('abort', this.#poke);
  }
}

async function reopened(path: string, handle: FileHandle): Promise<FileHandle | undefined> {
  try {
    const [there, here] = await Promise.all([stat(path), handle.stat()]);
    return there.ino === here.ino && there.dev === here.dev ? undefined : await open(path, 'r');
  } catch (error) {
    // Renamed away, and not made anew yet.
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/**
 * The bytes of the log at `path`, line feeds and all, from the line where `tailLines` begins; with `follow` until `signal`
 * aborts or `isRunning` says no and everything has been read. Rotation is followed. Rejects with ENOENT when there is no
 * such file.
 */
export async function* readLogBytes(
  clock: Clock,
  path: string,
  options: Pick<LogOptions, 'follow' | 'tailLines'>,
  isRunning: () => boolean | Promise<boolean>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let handle = await open(path, 'r');
  // Watched from before the first read, so that no write falls between the two.
  let wake: FileWake | undefined;
  try {
    wake = options.follow ? new FileWake(path, clock, signal) : undefined;
    const { size } = await handle.stat();
    let position = options.tailLines === undefined ? 0 : await tailOffset(handle, size, options.tailLines);
    // Without follow the log is read up to its size at the request: two lines of tail are two, however much is written.
    const end = options.follow ? Number.POSITIVE_INFINITY : size;
    while (!signal.aborted) {
      // Checked before reading: the output of an exited container is complete.
      const running = await isRunning();
      const wanted = Math.min(CHUNK_BYTES, end - position);
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(wanted), 0, wanted, position);
      position += bytesRead;
      if (bytesRead > 0) {
        yield buffer.subarray(0, bytesRead);
        continue;
      }
      if (wake === undefined) break;
      const next = await reopened(path, handle);
      if (next !== undefined) {
        // The writer has moved on, so the old file is complete; read what was added since the last read.
        const { buffer: last, bytesRead: more } = await handle.read(
          Buffer.alloc(CHUNK_BYTES),
          0,
          CHUNK_BYTES,
          position,
        );
        if (more > 0) {
          await next.close();
          position += more;
          yield last.subarray(0, more);
          continue;
        }
        await handle.close();
        handle = next;
        position = 0;
        continue;
      }
      if ((await handle.stat()).size < position) {
        position = 0;
        continue;
      }
      if (!running) break;
      await wake.wait(LIVENESS_MS);
    }
  } finally {
    wake?.close();
    await handle.close();
  }
}

async function* read(
  clock: Clock,
  path: string,
  options: LogOptions,
  isRunning: () => boolean | Promise<boolean>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const formatter = new LogFormatter(options);
  for await (const chunk of readLogBytes(clock, path, options, isRunning, signal)) {
    const out = formatter.push(chunk);
    if (out.length > 0) yield out;
    if (formatter.full) return;
  }
  const rest = signal.aborted ? Buffer.alloc(0) : formatter.end();
  if (rest.length > 0) yield rest;
}

export function createLogReader(clock: Clock): LogReader {
  return { readLogs: (path, options, isRunning, signal) => read(clock, path, options, isRunning, signal) };
}
