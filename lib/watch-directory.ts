// Reports changes in a directory, by inotify, or by polling when no inotify watch or instance is left. A report only
// wakes the caller, which then reads the directory.

import fs, { type FSWatcher } from 'node:fs';
import type { Clock, Timer } from './clock.ts';
import { isErrno } from './errors.ts';

/** How often the caller is woken without inotify, and inotify is tried again. ms. */
export const POLL_MS = 1000;

export interface DirectoryWatchOptions {
  /** Called with the name of what changed, or null where that is not known. */
  readonly changed: (name: string | null) => void;
  /** Watching has ended by itself: the directory was removed, or the kernel ended the watch. */
  readonly failed: (error: Error) => void;
  /** Called once when inotify has run out and polling begins; the error is the kernel's. */
  readonly polling?: (error: Error) => void;
  readonly clock: Clock;
  /** Defaults to `POLL_MS`. */
  readonly pollMs?: number;
}

export interface DirectoryWatch {
  /** Idempotent. */
  close(): void;
}

/** What inotify_init1 and inotify_add_watch fail with when a limit is reached (inotify(7)). */
export function isInotifyExhausted(error: unknown): error is Error {
  return isErrno(error, 'ENOSPC', 'EMFILE', 'ENFILE');
}

/** Watches one directory (not what is below it). Throws the kernel's error for the directory: ENOENT, EACCES. */
export function watchDirectory(path: string, options: DirectoryWatchOptions): DirectoryWatch {
  const { changed, failed, clock, pollMs = POLL_MS } = options;
  let watcher: FSWatcher | undefined;
  let timer: Timer | undefined;
  let closed = false;

  const begin = (): void => {
    const made = fs.watch(path, { persistent: false }, (_event, name) => changed(name));
    watcher = made;
    made.on('error', (error) => {
      made.close();
      if (closed) return;
      if (isInotifyExhausted(error)) startPolling(error);
      else failed(error);
    });
  };
  const poll = (): void => {
    try {
      begin();
    } catch (error) {
      if (!isInotifyExhausted(error)) {
        failed(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      timer = clock.after(pollMs, poll);
    }
    // Changes since the last poll, which the new watch has not reported.
    changed(null);
  };
  const startPolling = (error: Error): void => {
    options.polling?.(error);
    timer = clock.after(pollMs, poll);
  };

  try {
    begin();
  } catch (error) {
    if (!isInotifyExhausted(error)) throw error;
    startPolling(error);
  }
  return {
    close() {
      closed = true;
      timer?.cancel();
      watcher?.close();
    },
  };
}
