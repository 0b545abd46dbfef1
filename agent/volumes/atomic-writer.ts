// Projects files into a directory so that a reader sees either all of the old ones or all of the new ones: files are in
// a timestamped directory, `..data` is a link to it that is replaced by rename, and each visible name is a link through
// `..data`. The layout is the kubelet's, which programs that watch for `..data` rely on.
//
// Files are small and mostly on tmpfs: some twenty system calls of microseconds each. Run in Node's thread pool one by
// one they cost a pod 50 ms of its start; run synchronously they cost half a millisecond of the event loop.

import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fchmodSync,
  fchownSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { EpochMs } from '../../lib/clock.ts';
import { isErrno, withPath } from '../../lib/errors.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';

/** Bytes that lie in a file of the volume's own directory already: see Staging. */
export interface StoredData {
  readonly file: string;
  /** It is there for this payload alone; else it is what the volume shows now. */
  readonly staged: boolean;
}

export interface PayloadFile {
  readonly data: Uint8Array | StoredData;
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
function stampedName(now: EpochMs, random: number): string {
  const stamp = rfc3339(now).slice(0, -1).replace(/[-:T]/g, '_');
  return `..${stamp}.${String(Math.floor(random * 2 ** 32)).padStart(10, '0')}`;
}

export interface WriteOptions {
  /** Group of every file and directory (fsGroup); group members may then read. */
  readonly gid?: number | undefined;
  /** Epoch ms, for the directory's name. */
  readonly now: EpochMs;
  readonly random?: () => number;
}

/**
 * Takes the big files of a payload that is still being collected, so that they need not be in memory together: each is
 * written beside the volume's files, or, when the volume shows the same bytes already, just named. What a crash leaves of
 * it, the next writePayload removes.
 */
export class Staging {
  readonly #staged: string;
  readonly #current: string | undefined;
  #count = 0;

  /** `directory`: the volume's, which must exist. What a crash left there goes first: it would take the room. */
  static async open(directory: string, options: WriteOptions): Promise<Staging> {
    const current = linkTarget(join(directory, DATA));
    for (const name of readdirSync(directory)) {
      if (STAMPED.test(name) && name !== current) await removeTree(join(directory, name));
    }
    return new Staging(directory, current, options);
  }

  private constructor(directory: string, current: string | undefined, options: WriteOptions) {
    this.#staged = join(directory, stampedName(options.now, (options.random ?? Math.random)()));
    this.#current = current === undefined ? undefined : join(directory, current);
  }

  /** Puts the bytes of the file `path` of the volume on disk. Throws when the path is not allowed. */
  put(path: string, data: Uint8Array): StoredData {
    const problem = pathProblem(path);
    if (problem !== undefined) throw new Error(problem);
    if (this.#current !== undefined && isFileOf(join(this.#current, path), data)) {
      return { file: join(this.#current, path), staged: false };
    }
    if (this.#count === 0) mkdirSync(this.#staged, 0o700);
    const file = join(this.#staged, String(this.#count++));
    writeFileSync(file, data, { mode: 0o600, flag: 'wx' });
    return { file, staged: true };
  }

  /** Nothing will come of the payload. */
  discard(): void {
    if (this.#count === 0 || !existsSync(this.#staged)) return;
    for (const name of readdirSync(this.#staged)) unlinkSync(join(this.#staged, name));
    rmdirSync(this.#staged);
  }
}

/** True when there is a file with exactly these bytes. */
function isFileOf(path: string, data: Uint8Array): boolean {
  try {
    return statSync(path).size === data.byteLength && readFileSync(path).equals(data);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EISDIR')) return false;
    throw error;
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
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
  const current = linkTarget(join(directory, DATA));
  const same = current !== undefined && hasPayload(join(directory, current), payload);
  let target = current;
  if (!same) {
    target = stampedName(options.now, (options.random ?? Math.random)());
    await writeAside(directory, target, payload, options.gid);
  }
  const links = linkVisible(directory, visible);
  const removed = await removeOthers(directory, visible, target, current === undefined);
  return !same || links || removed;
}

/** The new files beside the old ones, then the link to them. What is not finished is taken away: it holds room. */
async function writeAside(directory: string, target: string, payload: Payload, gid: number | undefined): Promise<void> {
  try {
    writeTree(join(directory, target), payload, gid);
    replaceLink(directory, target);
  } catch (error) {
    await removeTree(join(directory, target));
    throw error;
  }
}

/** True when the tree below `root` is exactly `payload`, by content. */
function hasPayload(root: string, payload: Payload): boolean {
  let names: string[];
  try {
    const entries = readdirSync(root, { recursive: true, withFileTypes: true });
    names = entries.filter((e) => !e.isDirectory()).map((e) => join(e.parentPath, e.name).slice(root.length + 1));
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
  if (names.length !== payload.size || !names.every((name) => payload.has(name))) return false;
  return [...payload].every(([path, { data }]) =>
    data instanceof Uint8Array ? isFileOf(join(root, path), data) : data.file === join(root, path),
  );
}

function writeTree(root: string, payload: Payload, gid: number | undefined): void {
  makeDirectory(root, gid);
  const directories = new Set<string>();
  for (const path of payload.keys()) {
    for (let dir = dirname(path); dir !== '.'; dir = dirname(dir)) directories.add(dir);
  }
  // Shorter first: parents before children.
  for (const dir of [...directories].sort((a, b) => a.length - b.length)) makeDirectory(join(root, dir), gid);
  for (const [path, file] of payload) writeOne(join(root, path), file, gid);
}

function makeDirectory(path: string, gid: number | undefined): void {
  mkdirSync(path, 0o755);
  if (gid !== undefined) chownSync(path, 0, gid);
  // mkdir obeys the umask, and chown clears the setgid bit: the mode comes last.
  chmodSync(path, gid === undefined ? 0o755 : 0o2755);
}

function writeOne(path: string, file: PayloadFile, gid: number | undefined): void {
  if (!(file.data instanceof Uint8Array)) {
    if (file.data.staged) renameSync(file.data.file, path);
    else copyFileSync(file.data.file, path, constants.COPYFILE_EXCL);
  }
  const descriptor = openSync(path, file.data instanceof Uint8Array ? 'wx' : 'r', 0o600);
  try {
    if (file.data instanceof Uint8Array) writeFileSync(descriptor, file.data);
    if (file.uid !== undefined || gid !== undefined) fchownSync(descriptor, file.uid ?? 0, gid ?? 0);
    fchmodSync(descriptor, gid === undefined ? file.mode : file.mode | 0o440);
  } catch (error) {
    throw withPath(error, path);
  } finally {
    closeSync(descriptor);
  }
}

function replaceLink(directory: string, target: string): void {
  const temporary = join(directory, DATA_TEMPORARY);
  try {
    symlinkSync(target, temporary);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
    unlinkSync(temporary);
    symlinkSync(target, temporary);
  }
  renameSync(temporary, join(directory, DATA));
}

function linkVisible(directory: string, visible: ReadonlySet<string>): boolean {
  const made = [...visible].map((name) => {
    try {
      symlinkSync(join(DATA, name), join(directory, name));
      return true;
    } catch (error) {
      // A container can have replaced the name only in a writable volume; it is left alone.
      if (isErrno(error, 'EEXIST')) return false;
      throw error;
    }
  });
  return made.includes(true);
}

/** Removes links to names that are gone, and timestamped directories that a crash or this update left behind. */
async function removeOthers(
  directory: string,
  visible: ReadonlySet<string>,
  target: string | undefined,
  fresh: boolean,
): Promise<boolean> {
  if (fresh && target !== undefined && readdirSync(directory).length === visible.size + 2) return false;
  let removed = false;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (STAMPED.test(entry.name)) {
      if (entry.name !== target) await removeTree(path);
    } else if (entry.isSymbolicLink() && !visible.has(entry.name) && entry.name !== DATA) {
      if (!readlinkSync(path).startsWith(`${DATA}/`)) continue;
      unlinkSync(path);
      removed = true;
    }
  }
  return removed;
}
