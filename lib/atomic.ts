// Files that are either the old content or the new, never half of one: write beside, fsync, rename.

import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno } from './errors.ts';

let sequence = 0;

/** Replaces `path` with `data` atomically; the directory is created when it is missing. `mode` defaults to 0o644. */
export async function writeFileAtomic(path: string, data: string | Uint8Array, mode = 0o644): Promise<void> {
  const temporary = `${path}.tmp-${process.pid}-${sequence++}`;
  await mkdir(dirname(path), { recursive: true });
  const handle = await open(temporary, 'wx', mode);
  try {
    await handle.writeFile(data);
    await handle.chmod(mode);
    await handle.sync();
  } catch (error) {
    await handle.close();
    await rm(temporary, { force: true });
    throw error;
  }
  await handle.close();
  await rename(temporary, path);
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
