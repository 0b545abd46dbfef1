// What kind of disk the labs' files are on. It decides how steady a run is: an ext4 without a journal looks, for a minute or
// more, past every inode that was deleted a moment ago (recently_deleted in fs/ext4/ialloc.c), and a benchmark deletes thousands.

import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { isErrno } from '../../lib/errors.ts';

/**
 * `device`: the kernel's name of it, undefined where the file system has none of its own; `ext4` and `journals`: the names in
 * /proc/fs/ext4 ("vda") and /proc/fs/jbd2 ("vda-8"). Pure.
 */
export function diskText(device: string | undefined, ext4: readonly string[], journals: readonly string[]): string {
  if (device === undefined || !ext4.includes(device)) return 'not ext4';
  const journal = journals.some((name) => name.replace(/-\d+$/, '') === device);
  return journal ? 'ext4 with a journal' : 'ext4 without a journal, which slows down from round to round: see --root';
}

export function diskOf(path: string): string {
  return diskText(deviceOf(path), namesIn('/proc/fs/ext4'), namesIn('/proc/fs/jbd2'));
}

function deviceOf(path: string): string | undefined {
  const { dev } = statSync(path, { bigint: true });
  // As glibc's major(3) and minor(3) take st_dev apart.
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
  const minor = (dev & 0xffn) | ((dev >> 12n) & 0xffffff00n);
  try {
    return basename(readlinkSync(`/sys/dev/block/${major}:${minor}`));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}
