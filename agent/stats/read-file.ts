// Reads the kernel's small files. A page for 110 pods reads more than a thousand: one buffer for all, no call beyond open,
// read and close.

import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { isErrno } from '../../lib/errors.ts';

/** More than any file of a cgroup; a longer one (a network namespace with hundreds of interfaces) is read in parts. */
const buffer = Buffer.allocUnsafe(32 * 1024);

/** Latin-1, which all of these files are; undefined when there is no such file, or it went while it was read. */
export function readKernelFile(path: string): string | undefined {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENODEV', 'ESRCH')) return undefined;
    throw error;
  }
  try {
    let text = '';
    for (;;) {
      const length = readSync(file, buffer, 0, buffer.length, null);
      text += buffer.toString('latin1', 0, length);
      // The kernel ends a file of this kind with a read that is not full.
      if (length < buffer.length) return text;
    }
  } catch (error) {
    // The cgroup or the process ended. EOPNOTSUPP: the file exists, and nothing is behind it (PSI that is switched off).
    if (isErrno(error, 'ENODEV', 'ESRCH', 'EINVAL', 'EOPNOTSUPP')) return undefined;
    throw error;
  } finally {
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
