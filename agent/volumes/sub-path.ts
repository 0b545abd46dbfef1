// Opens a path inside a volume without ever leaving it, whatever the pod does to the volume meanwhile
// (CVE-2017-1002101, CVE-2021-25741). Links are resolved once and checked to lead inside; then every component is opened
// by itself, relative to the one before and following no link, so that what was checked is what is mounted.

import { closeSync, constants, fstatSync, mkdirSync, openSync, realpathSync, type Stats } from 'node:fs';
import { mkdir, open, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { isErrno } from '../../lib/errors.ts';

/** Linux's O_PATH, which Node has no name for: a handle to the place itself, for fstat and /proc/self/fd only. */
const O_PATH = 0o10000000;
const HOLD = O_PATH | constants.O_NOFOLLOW;

/** A place in the file system held open; `/proc/self/fd/<fd>` stays that place even when names around it change. */
export interface HeldPath {
  readonly fd: number;
  readonly isDirectory: boolean;
  /** What the kernel knows the place by. */
  readonly dev: number;
  readonly ino: number;
  readonly mode: number;
  close(): Promise<void>;
}

/** The few file calls that this takes. */
export interface PathCalls {
  realpath(path: string): Promise<string>;
  mkdir(path: string, mode: number): Promise<void>;
  /** Opens the place itself, whatever it is; a link is not followed. */
  hold(path: string): Promise<HeldPath & { readonly isLink: boolean }>;
}

/** For file systems of this machine: each call takes some 20 µs, the way through the thread pool and back 1 to 3 ms. */
export const atOnce: PathCalls = {
  realpath: async (path) => realpathSync.native(path),
  mkdir: async (path, mode) => mkdirSync(path, mode),
  hold: async (path) => {
    const fd = openSync(path, HOLD);
    const stat = fstatSync(fd);
    return { fd, ...facts(stat), close: async () => closeSync(fd) };
  },
};

/** For file systems behind a network or a driver: one that hangs takes a thread, not the whole agent. */
export const inPool: PathCalls = {
  realpath,
  mkdir: (path, mode) => mkdir(path, mode),
  hold: async (path) => {
    const handle = await open(path, HOLD);
    const stat = await handle.stat();
    return { fd: handle.fd, ...facts(stat), close: () => handle.close() };
  },
};

function facts(stat: Stats) {
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

const through = (held: HeldPath, name: string): string => `/proc/self/fd/${held.fd}/${name}`;

/** Why a subPath may not be used, or undefined; pure. */
export function subPathProblem(subPath: string): string | undefined {
  if (subPath.startsWith('/')) return `error SubPath \`${subPath}\` must not be an absolute path`;
  if (subPath.split('/').includes('..')) return `unable to provision SubPath \`${subPath}\`: must not contain '..'`;
  return undefined;
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

async function holdNoLink(path: string, calls: PathCalls): Promise<HeldPath> {
  const held = await calls.hold(path);
  if (!held.isLink) return held;
  await held.close();
  throw new Error('is a symbolic link');
}

/**
 * Holds `subPath` of the volume at `volumePath`; directories that do not exist are made with the volume's own mode. The
 * caller closes what it gets. Rejects when the path leads out of the volume.
 */
export async function holdSubPath(volumePath: string, subPath: string, calls: PathCalls = inPool): Promise<HeldPath> {
  const problem = subPathProblem(subPath);
  if (problem !== undefined) throw new Error(problem);
  const root = await calls.realpath(volumePath);
  const { real, missing } = await resolveExisting(join(root, subPath), calls);
  if (!isInside(root, real)) throw new Error(`subpath "${subPath}" not within volume path "${volumePath}"`);

  let held = await holdNoLink(root, calls);
  try {
    const mode = held.mode & 0o777;
    for (const name of relative(root, real).split('/').filter(Boolean)) held = await step(held, name, calls);
    for (const name of missing.filter((part) => part !== '' && part !== '.')) {
      await calls.mkdir(through(held, name), mode).catch((error: unknown) => {
        // Made by another container of the pod meanwhile; the step below checks what it is.
        if (!isErrno(error, 'EEXIST')) throw error;
      });
      held = await step(held, name, calls);
    }
    return held;
  } catch (error) {
    await held.close();
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`failed to open subpath "${subPath}" in volume path "${volumePath}": ${reason}`, { cause: error });
  }
}

/** From one held place to a name in it; gives up the old one once the new one is there. */
async function step(held: HeldPath, name: string, calls: PathCalls): Promise<HeldPath> {
  const next = await holdNoLink(through(held, name), calls);
  await held.close();
  return next;
}
