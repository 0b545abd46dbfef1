// Watches a manifest path by inotify: the directory, or the one that holds the file, or, while nothing is there yet, the
// one where it would appear. Only wakes; what is there is read by others.

import { watch as fsWatch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno } from '../../lib/errors.ts';

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

/** `changed` is called for anything that happens there, `failed` when watching ends by itself (no inotify left). */
export function watchPath(path: string, changed: () => void, failed: (error: Error) => void): PathWatcher {
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
      const watcher = fsWatch(target.path, { persistent: false }, changed);
      watcher.on('error', failed);
      watched = { ...target, close: () => watcher.close() };
      // What happened between the look and the watch.
      changed();
    },
    close() {
      closed = true;
      watched?.close();
      watched = undefined;
    },
  };
}
