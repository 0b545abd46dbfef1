// Something happened in a directory, by inotify; by looking now and then when the machine has no inotify watch or
// instance left. Only wakes: whoever is woken looks at what there is.

import fs, { type FSWatcher } from 'node:fs';
import type { Clock, Timer } from './clock.ts';
import { isErrno } from './errors.ts';

/** How often somebody is woken without inotify, and inotify is tried again. ms. */
export const POLL_MS = 1000;

export interface DirectoryWatchOptions {
  /** Called with the name of what changed, or null where that is not known. */
  readonly changed: (name: string | null) => void;
  /** Watching has ended by itself: the directory went away, or the kernel refused to go on. */
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

/** Watches one directory (not what is below it). Throws what the kernel says of the directory: ENOENT, EACCES. */
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
    // What happened since the last look; a watch that works again has not seen it.
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
