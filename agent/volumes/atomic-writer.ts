// Projects files into a directory so that a reader sees either all of the old ones or all of the new ones: files lie in
// a timestamped directory, `..data` is a link to it that is replaced by rename, and each visible name is a link through
// `..data`. The layout is the kubelet's, which programs that watch for `..data` rely on.

import { chmod, chown, mkdir, open, readdir, readFile, readlink, rename, rm, symlink, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';

export interface PayloadFile {
  readonly data: Uint8Array;
  /** Permission bits. */
  readonly mode: number;
  /** Owner; root when absent. */
  readonly uid?: number;
}

/** Files by path relative to the volume ("ca.crt", "a/b"). */
export type Payload = ReadonlyMap<string, PayloadFile>;

const DATA = '..data';
const DATA_TEMPORARY = '..data_tmp';
/** Names of the timestamped directories. */
const STAMPED = /^\.\.\d{4}_/;

/** Why a path may not be projected, or undefined when it may. */
export function pathProblem(path: string): string | undefined {
  if (path === '') return 'invalid path: must not be empty';
  if (path.startsWith('/')) return `invalid path: must be relative path: ${path}`;
  if (path.length > 4096) return 'invalid path: must be less than or equal to 4096 characters';
  const parts = path.split('/');
  if (parts.includes('..')) return `invalid path: must not contain '..': ${path}`;
  if (parts.some((part) => Buffer.byteLength(part) > 255)) {
    return `invalid path: filenames must be less than or equal to 255 characters: ${path}`;
  }
  if (parts[0]?.startsWith('..')) return `invalid path: must not start with '..': ${path}`;
  if (parts.includes('') || parts.includes('.') || path.includes('\0')) return `invalid path: ${JSON.stringify(path)}`;
  return undefined;
}

/** `..2006_01_02_15_04_05.<random>` */
function stampedName(now: number, random: number): string {
  const stamp = new Date(now).toISOString().slice(0, 19).replace(/[-:T]/g, '_');
  return `..${stamp}.${String(Math.floor(random * 2 ** 32)).padStart(10, '0')}`;
}

export interface WriteOptions {
  /** Group of every file and directory (fsGroup); group members may then read. */
  readonly gid?: number | undefined;
  /** Epoch ms, for the directory's name. */
  readonly now: number;
  readonly random?: () => number;
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/**
 * Makes `directory` show exactly `payload`. Resolves to whether anything changed. Safe to repeat after a crash at any
 * point. Throws before touching anything when a path is not allowed.
 */
export async function writePayload(directory: string, payload: Payload, options: WriteOptions): Promise<boolean> {
  for (const path of payload.keys()) {
    const problem = pathProblem(path);
    if (problem !== undefined) throw new Error(problem);
  }
  const visible = new Set([...payload.keys()].map((path) => path.split('/')[0] ?? path));
  const current = await linkTarget(join(directory, DATA));
  const same = current !== undefined && (await holds(join(directory, current), payload));
  let target = current;
  if (!same) {
    target = stampedName(options.now, (options.random ?? Math.random)());
    await writeTree(join(directory, target), payload, options.gid);
    await replaceLink(directory, target);
  }
  const links = await linkVisible(directory, visible);
  const removed = await removeOthers(directory, visible, target, current === undefined);
  return !same || links || removed;
}

/** True when the tree below `root` is exactly `payload`, by content. */
async function holds(root: string, payload: Payload): Promise<boolean> {
  let names: string[];
  try {
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    names = entries.filter((e) => !e.isDirectory()).map((e) => join(e.parentPath, e.name).slice(root.length + 1));
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
  if (names.length !== payload.size || !names.every((name) => payload.has(name))) return false;
  const equal = await Promise.all(
    [...payload].map(async ([path, file]) => (await readFile(join(root, path))).equals(file.data)),
  );
  return equal.every(Boolean);
}

async function writeTree(root: string, payload: Payload, gid: number | undefined): Promise<void> {
  await makeDirectory(root, gid);
  const directories = new Set<string>();
  for (const path of payload.keys()) {
    for (let dir = dirname(path); dir !== '.'; dir = dirname(dir)) directories.add(dir);
  }
  // Shorter first: parents before children.
  for (const dir of [...directories].sort((a, b) => a.length - b.length)) await makeDirectory(join(root, dir), gid);
  await Promise.all([...payload].map(([path, file]) => writeOne(join(root, path), file, gid)));
}

async function makeDirectory(path: string, gid: number | undefined): Promise<void> {
  await mkdir(path, 0o755);
  if (gid !== undefined) await chown(path, 0, gid);
  // mkdir obeys the umask, and chown clears the setgid bit: the mode comes last.
  await chmod(path, gid === undefined ? 0o755 : 0o2755);
}

async function writeOne(path: string, file: PayloadFile, gid: number | undefined): Promise<void> {
  const handle = await open(path, 'wx', 0o600);
  try {
    await handle.writeFile(file.data);
    if (file.uid !== undefined || gid !== undefined) await handle.chown(file.uid ?? 0, gid ?? 0);
    await handle.chmod(gid === undefined ? file.mode : file.mode | 0o440);
  } finally {
    await handle.close();
  }
}

async function replaceLink(directory: string, target: string): Promise<void> {
  const temporary = join(directory, DATA_TEMPORARY);
  try {
    await symlink(target, temporary);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
    await unlink(temporary);
    await symlink(target, temporary);
  }
  await rename(temporary, join(directory, DATA));
}

async function linkVisible(directory: string, visible: ReadonlySet<string>): Promise<boolean> {
  const made = await Promise.all(
    [...visible].map(async (name) => {
      try {
        await symlink(join(DATA, name), join(directory, name));
        return true;
      } catch (error) {
        // Something else under the name is the container's doing only where the volume is writable; leave it alone.
        if (isErrno(error, 'EEXIST')) return false;
        throw error;
      }
    }),
  );
  return made.includes(true);
}

/** Removes links to names that are gone, and timestamped directories that a crash or this update left behind. */
async function removeOthers(
  directory: string,
  visible: ReadonlySet<string>,
  target: string | undefined,
  fresh: boolean,
): Promise<boolean> {
  if (fresh && target !== undefined && (await readdir(directory)).length === visible.size + 2) return false;
  let removed = false;
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (STAMPED.test(entry.name)) {
      if (entry.name !== target) await rm(path, { recursive: true, force: true });
    } else if (entry.isSymbolicLink() && !visible.has(entry.name) && entry.name !== DATA) {
      if (!(await readlink(path)).startsWith(`${DATA}/`)) continue;
      await unlink(path);
      removed = true;
    }
  }
  return removed;
}
