// Removes access by group and others from files and directories with keys, tokens or Secrets, which an older version,
// another umask or a copy may have made too open. Never widens a mode.

import { chmod, stat } from 'node:fs/promises';
import { isErrno } from './errors.ts';

/** Leaves the owner's bits. Does nothing where there is no such file. */
export async function narrowMode(path: string): Promise<void> {
  try {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) await chmod(path, mode & 0o700);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}
