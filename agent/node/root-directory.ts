// The agent's root directory at start. Every comparison of a path with the mount table uses its result.

import { lstat, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno, UserError } from '../../lib/errors.ts';
import { resolvePath } from '../../lib/resolve-path.ts';

/** Below these mounts are made. */
const MOUNTED_BELOW = ['pods', 'plugins', 'plugins_registry'];

/**
 * Makes the directory unless it is there. Resolves to its path with every link resolved, as the mount table has it.
 * Rejects with UserError where a directory of mounts in it is itself a link: mounts below would not be found again.
 */
export async function openRootDirectory(path: string): Promise<string> {
  const root = resolvePath(path);
  await mkdir(root, { recursive: true, mode: 0o750 });
  for (const name of MOUNTED_BELOW) {
    const directory = join(root, name);
    if (await isLink(directory)) {
      throw new UserError(
        `${directory} is a symbolic link: make it a bind mount of what it leads to, or put --root-dir there as a whole`,
      );
    }
  }
  return root;
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
}
