// Opens a path inside a volume without ever leaving it, whatever the pod does to the volume meanwhile
// (CVE-2017-1002101, CVE-2021-25741). Links are resolved once and checked to lead inside; then every component is opened
// by itself, relative to the one before and following no link, so that what was checked is what is mounted.

import { constants, type FileHandle, mkdir, open, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { isErrno } from '../../lib/errors.ts';

/** Linux's O_PATH, which Node has no name for: a handle to the place itself, for fstat and /proc/self/fd only. */
const O_PATH = 0o10000000;

/** A place in the file system held open; `path` stays that place even when names around it change. */
export interface HeldPath {
  readonly handle: FileHandle;
  readonly isDirectory: boolean;
}

const throughHandle = (handle: FileHandle, name: string): string => `/proc/self/fd/${handle.fd}/${name}`;

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
async function resolveExisting(path: string): Promise<{ readonly real: string; readonly missing: readonly string[] }> {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    try {
      return { real: await realpath(at), missing: missing.reverse() };
    } catch (error) {
      if (!isErrno(error, 'ENOENT') || at === dirname(at)) throw error;
      missing.push(at.slice(dirname(at).length).replace(/^\//, ''));
    }
  }
}

async function openNoFollow(path: string): Promise<HeldPath> {
  const handle = await open(path, O_PATH | constants.O_NOFOLLOW);
  const stat = await handle.stat();
  if (!stat.isSymbolicLink()) return { handle, isDirectory: stat.isDirectory() };
  await handle.close();
  throw new Error('is a symbolic link');
}

/**
 * Holds `subPath` of the volume at `volumePath`; directories that do not exist are made with the volume's own mode. The
 * caller closes the handle. Rejects when the path leads out of the volume.
 */
export async function holdSubPath(volumePath: string, subPath: string): Promise<HeldPath> {
  const problem = subPathProblem(subPath);
  if (problem !== undefined) throw new Error(problem);
  const root = await realpath(volumePath);
  const { real, missing } = await resolveExisting(join(root, subPath));
  if (!isInside(root, real)) throw new Error(`subpath "${subPath}" not within volume path "${volumePath}"`);

  let held = await openNoFollow(root);
  try {
    const mode = (await held.handle.stat()).mode & 0o777;
    for (const name of relative(root, real).split('/').filter(Boolean)) held = await step(held, name);
    for (const name of missing.filter((part) => part !== '' && part !== '.')) {
      await mkdir(throughHandle(held.handle, name), mode).catch((error: unknown) => {
        // Made by another container of the pod meanwhile; the step below checks what it is.
        if (!isErrno(error, 'EEXIST')) throw error;
      });
      held = await step(held, name);
    }
    return held;
  } catch (error) {
    await held.handle.close();
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`failed to open subpath "${subPath}" in volume path "${volumePath}": ${reason}`, { cause: error });
  }
}

/** From one held place to a name in it; gives up the old handle once the new one is there. */
async function step(held: HeldPath, name: string): Promise<HeldPath> {
  const next = await openNoFollow(throughHandle(held.handle, name));
  await held.handle.close();
  return next;
}
