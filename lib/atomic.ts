// Files that are either the old content or the new, never half of one: write beside, then rename.

import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno } from './errors.ts';

let sequence = 0;

/**
 * Replaces `path` with `data` atomically; the directory is created when it is missing. A reader, or a process that is
 * killed at any moment, sees the old content or the new. `durable` also survives a loss of power, at the price of an
 * fsync (milliseconds); state that a reboot voids anyway (containers, network namespaces) does not need it.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  mode = 0o644,
  durable = false,
): Promise<void> {
  const temporary = `${path}.tmp-${process.pid}-${sequence++}`;
  await mkdir(dirname(path), { recursive: true });
  const handle = await open(temporary, 'wx', mode);
  try {
    try {
      await handle.writeFile(data);
      // The umask may have narrowed the mode that open was given.
      await handle.chmod(mode);
      if (durable) await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** The file's text, or undefined when there is no such file. Any other failure is thrown. */
export async function readFileIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}
