// Opens a path inside a volume without ever leaving it, whatever the pod does to the volume concurrently
// (CVE-2017-1002101, CVE-2021-25741). Links are resolved once and checked to lead inside; then every component is opened
// by itself, relative to the one before and following no link, so that what was checked is what is mounted.

import { chmodSync, closeSync, constants, fstatSync, mkdirSync, openSync, realpathSync, type Stats } from 'node:fs';
import { chmod, mkdir, open, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { errorMessage, isErrno } from '../../lib/errors.ts';

/** Linux's O_PATH, which Node has no name for: a handle to the place itself, for fstat and /proc/self/fd only. */
const O_PATH = 0o10000000;
const OPEN_FLAGS = O_PATH | constants.O_NOFOLLOW;

/** An open file or directory (O_PATH); `/proc/self/fd/<fd>` stays that place even when names around it change. */
export interface OpenPath {
  readonly fd: number;
  readonly isDirectory: boolean;
  /** The kernel's identity of the place. */
  readonly dev: number;
  readonly ino: number;
  readonly mode: number;
  close(): Promise<void>;
}

/** The few file calls that this takes. */
export interface PathCalls {
  realpath(path: string): Promise<string>;
  mkdir(path: string, mode: number): Promise<void>;
  chmod(path: string, mode: number): Promise<void>;
  /** Opens the place itself, whatever it is; a link is not followed. */
  openPath(path: string): Promise<OpenPath & { readonly isLink: boolean }>;
}

/** For file systems of this machine: each call takes some 20 µs, the way through the thread pool and back 1 to 3 ms. */
export const atOnce: PathCalls = {
  realpath: async (path) => realpathSync.native(path),
  mkdir: async (path, mode) => mkdirSync(path, mode),
  chmod: async (path, mode) => chmodSync(path, mode),
  openPath: async (path) => {
    const fd = openSync(path, OPEN_FLAGS);
    const stat = fstatSync(fd);
    return { fd, ...factsOf(stat), close: async () => closeSync(fd) };
  },
};

/** For file systems behind a network or a driver: one that hangs takes a thread, not the whole agent. */
export const inPool: PathCalls = {
  realpath,
  mkdir: (path, mode) => mkdir(path, mode),
  chmod,
  openPath: async (path) => {
    const handle = await open(path, OPEN_FLAGS);
    const stat = await handle.stat();
    return { fd: handle.fd, ...factsOf(stat), close: () => handle.close() };
  },
};

function factsOf(stat: Stats) {
  const { dev, ino, mode } = stat;
  return { dev, ino, mode: mode & 0o7777, isDirectory: stat.isDirectory(), isLink: stat.isSymbolicLink() };
}

/** File systems that no other machine and no program has a part in. */
const LOCAL: ReadonlySet<string> = new Set([
  'bcachefs',
  'btrfs',
  'ext2',
  'ext3',
  'ext4',
  'f2fs',
  'hugetlbfs',
  'overlay',
  'tmpfs',
  'vfat',
  'xfs',
  'zfs',
]);

/** How to make file calls on a file system of this type; undefined is one that is not known. */
export function callsFor(fsType: string | undefined): PathCalls {
  return fsType !== undefined && LOCAL.has(fsType) ? atOnce : inPool;
}

const childOf = (opened: OpenPath, name: string): string => `/proc/self/fd/${opened.fd}/${name}`;

/** Why a subPath may not be used, or undefined; pure. */
export function subPathProblem(subPath: string): string | undefined {
  if (subPath.startsWith('/')) return `error SubPath \`${subPath}\` must not be an absolute path`;
  if (subPath.split('/').includes('..')) return `unable to provision SubPath \`${subPath}\`: must not contain '..'`;
  return undefined;
}

/** A subPath that could not be opened. Its message names the machine's files: it is not shown to the pod. */
export class SubPathError extends Error {
  override name = 'SubPathError';
  /** It was to be made, because it did not exist. */
  readonly making: boolean;
  constructor(message: string, making: boolean, options?: ErrorOptions) {
    super(message, options);
    this.making = making;
  }
}

function isInside(root: string, path: string): boolean {
  return path === root || path.startsWith(root === '/' ? '/' : `${root}/`);
}

/** The deepest part of `path` that exists, with links resolved, and the names that are still missing below it. */
async function resolveExisting(
  path: string,
  calls: PathCalls,
): Promise<{ readonly real: string; readonly missing: readonly string[] }> {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    try {
      return { real: await calls.realpath(at), missing: missing.reverse() };
    } catch (error) {
      if (!isErrno(error, 'ENOENT') || at === dirname(at)) throw error;
      missing.push(at.slice(dirname(at).length).replace(/^\//, ''));
    }
  }
}

async function openNoFollow(path: string, calls: PathCalls): Promise<OpenPath> {
  const opened = await calls.openPath(path);
  if (!opened.isLink) return opened;
  await opened.close();
  throw new Error('is a symbolic link');
}

/**
 * Opens `subPath` of the volume at `volumePath`; directories that do not exist are made with the volume's own mode, so
 * that a user who may write to the volume may write to them. The caller closes what it gets. Rejects when the path leads
 * out of the volume.
 */
export async function safeOpenSubPath(
  volumePath: string,
  subPath: string,
  calls: PathCalls = inPool,
): Promise<OpenPath> {
  const problem = subPathProblem(subPath);
  if (problem !== undefined) throw new Error(problem);
  const root = await calls.realpath(volumePath);
  const { real, missing } = await resolveExisting(join(root, subPath), calls);
  const making = missing.length > 0;
  if (!isInside(root, real)) {
    throw new SubPathError(`subpath "${subPath}" not within volume path "${volumePath}"`, making);
  }
  let opened = await openNoFollow(root, calls);
  try {
    const { mode } = opened;
    for (const name of relative(root, real).split('/').filter(Boolean)) opened = await openChild(opened, name, calls);
    for (const name of missing.filter((part) => part !== '' && part !== '.')) {
      const made = await make(childOf(opened, name), mode & 0o777, calls);
      opened = await openChild(opened, name, calls);
      // mkdir applies the umask and cannot set setgid.
      if (made) await calls.chmod(`/proc/self/fd/${opened.fd}`, mode);
    }
    return opened;
  } catch (error) {
    await opened.close();
    const why = `failed to open subpath "${subPath}" in volume path "${volumePath}": ${errorMessage(error)}`;
    throw new SubPathError(why, making, { cause: error });
  }
}

/** False when it is there already, made concurrently by another container of the pod; the step into it checks what it is. */
async function make(path: string, mode: number, calls: PathCalls): Promise<boolean> {
  try {
    await calls.mkdir(path, mode);
    return true;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  }
}

/** Opens a name in an open directory, and closes the directory then. */
async function openChild(opened: OpenPath, name: string, calls: PathCalls): Promise<OpenPath> {
  const next = await openNoFollow(childOf(opened, name), calls);
  await opened.close();
  return next;
}
