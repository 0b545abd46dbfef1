// Files that are either the old content or the new, never half of one: write beside, then rename.

import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDiskFull, isErrno, withPath } from './errors.ts';

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
  await mkdir(dirname(path), { recursive: true });
  await makeAtomic(path, `${path}.tmp-${process.pid}-${sequence++}`, async (temporary) => {
    const handle = await open(temporary, 'wx', mode);
    try {
      await handle.writeFile(data);
      // The umask may have narrowed the mode that open was given.
      await handle.chmod(mode);
      if (durable) await handle.sync();
    } finally {
      await handle.close();
    }
  });
}

/**
 * Calls `make` to create a file or link at `temporary` (on the same file system) and renames it to `path`. What a failed
 * attempt has written is removed, since it takes room on a full disk.
 */
export async function makeAtomic(
  path: string,
  temporary: string,
  make: (temporary: string) => Promise<void>,
): Promise<void> {
  try {
    await make(temporary);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw withPath(error, path);
  }
}

/**
 * As writeFileAtomic, for records so small and rare that the thread pool costs more than the write. There is one writer
 * of a path at a time: what a killed writer left is at `temporaryOf(path)` and is overwritten.
 */
export function writeFileAtomicSync(
  path: string,
  data: string | Uint8Array,
  modes: { readonly file: number; readonly directory: number },
): void {
  const temporary = temporaryOf(path);
  try {
    try {
      writeFileSync(temporary, data, { mode: modes.file });
    } catch (error) {
      // The directory usually exists.
      if (!isErrno(error, 'ENOENT')) throw error;
      mkdirSync(dirname(path), { recursive: true, mode: modes.directory });
      writeFileSync(temporary, data, { mode: modes.file });
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw withPath(error, path);
  }
}

/** Where writeFileAtomicSync writes before it renames. */
export function temporaryOf(path: string): string {
  return `${path}.tmp`;
}

/** As writeFileAtomic, but a file that has this content and mode is left alone: on a full disk that is all there is to do. */
export async function ensureFile(path: string, text: string, mode = 0o644): Promise<void> {
  if ((await readFileIfExists(path)) === text && ((await stat(path)).mode & 0o7777) === mode) return;
  await writeFileAtomic(path, text, mode);
}

/**
 * As writeFileAtomic, for text in which trailing spaces have no meaning (JSON). When the disk has no room for a second
 * file, an existing file that is at least as long is overwritten in place by one write(2): a killed process leaves the old
 * or the new text, a loss of power may leave a mixture. For records that get shorter during teardown, which is what frees
 * the disk.
 */
export async function replaceTextFile(path: string, text: string, mode = 0o644): Promise<void> {
  try {
    await writeFileAtomic(path, text, mode);
  } catch (error) {
    if (!isDiskFull(error) || !(await overwrite(path, Buffer.from(text)))) throw error;
  }
}

/** False when there is no such file, or it is shorter. */
async function overwrite(path: string, bytes: Buffer): Promise<boolean> {
  let handle: FileHandle;
  try {
    handle = await open(path, 'r+');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
  try {
    const { size } = await handle.stat();
    if (size < bytes.length) return false;
    const { bytesWritten } = await handle.write(
      Buffer.concat([bytes, Buffer.alloc(size - bytes.length, ' ')]),
      0,
      size,
      0,
    );
    if (bytesWritten < size) throw new Error(`${path}: only ${bytesWritten} of ${size} bytes were overwritten`);
    return true;
  } finally {
    await handle.close();
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
