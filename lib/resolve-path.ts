// Resolves paths with links. A directory that mounts are made in is resolved once, at start: the kernel's mount table has
// every link resolved, and a path with a link in it is never found there. Changes nothing on disk.

import { lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isErrno, UserError } from './errors.ts';

/**
 * `path` made absolute, with every link in it resolved. What does not exist yet is appended as it is. Throws UserError
 * for a link that leads nowhere: what will be there cannot be known.
 */
export function resolvePath(path: string): string {
  const absolute = resolve(path);
  const missing: string[] = [];
  for (let at = absolute; ; at = dirname(at)) {
    try {
      return join(realpathSync.native(at), ...missing);
    } catch (error) {
      if (!isErrno(error, 'ENOENT') || at === dirname(at)) throw error;
      if (exists(at))
        throw new UserError(`${at} is a symbolic link that leads nowhere: make what it names, or remove it`);
      missing.unshift(basename(at));
    }
  }
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
