// A log file on a disk that is full, or will be after some bytes: a tiny file system in memory.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execOk } from '../../../lib/exec.ts';

/** The smallest file system has one page. */
const PAGE = 4096;

/** Mounts a file system at `directory`, to be unmounted by the caller; the file in it takes `room` more bytes, up to 4096. */
export async function fullLog(directory: string, room: number): Promise<string> {
  await mkdir(directory, { recursive: true });
  await execOk('mount', ['-t', 'tmpfs', '-o', `size=${PAGE}`, 'nodelet-test', directory]);
  const file = join(directory, 'log');
  await writeFile(file, ' '.repeat(PAGE - room));
  return file;
}
