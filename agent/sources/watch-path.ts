// Watches a manifest path by inotify: the directory, or the one that holds the file, or, while nothing is there yet, the
// one where it would appear. Only wakes; the sources read the files.

import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { isErrno } from '../../lib/errors.ts';
import { watchDirectory } from '../../lib/watch-directory.ts';

export interface PathWatcher {
  /** Watches whatever is at the path now. Called again after every change: directories are replaced. */
  follow(): Promise<void>;
  close(): void;
}

interface Watched {
  readonly path: string;
  readonly inode: number;
  close(): void;
}

/**
 * `changed` is called for anything that happens there, and every second while there is no inotify watch left, which
 * `failed` is called with; also when watching ends by itself.
 */
export function watchPath(
  path: string,
  changed: () => void,
  failed: (error: Error) => void,
  clock: Clock,
): PathWatcher {
  let watched: Watched | undefined;
  let closed = false;

  const place = async (): Promise<{ path: string; inode: number } | undefined> => {
    for (const candidate of [path, dirname(path)]) {
      try {
        const found = await stat(candidate);
        if (found.isDirectory()) return { path: candidate, inode: found.ino };
      } catch (error) {
        if (!isErrno(error, 'ENOENT') && !isErrno(error, 'ENOTDIR')) throw error;
      }
    }
    return undefined;
  };

  return {
    async follow() {
      const target = await place();
      if (closed || (watched?.path === target?.path && watched?.inode === target?.inode)) return;
      watched?.close();
      watched = undefined;
      if (target === undefined) return;
      const watcher = watchDirectory(target.path, { changed, failed, polling: failed, clock });
      watched = { ...target, close: () => watcher.close() };
      // Changes between the scan and the watch.
      changed();
    },
    close() {
      closed = true;
      watched?.close();
      watched = undefined;
    },
  };
}
