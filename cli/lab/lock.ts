// One `nodelet up` per root: lock files that name the process that has the root. A file whose process is gone is stale. A
// root is locked twice: under its path, which `nodelet down` has even when the directory itself is gone, and under its
// device and inode, which every alias of it (a symbolic link, a bind mount) shares.

import { createHash } from 'node:crypto';
import { link, mkdir, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readFileIfExists } from '../../lib/atomic.ts';
import { isErrno, UserError } from '../../lib/errors.ts';
import { isAlive, type ProcessId, readProcess } from '../../lib/processes.ts';
import { parsePidFile, readPidFile } from './child.ts';
import { LABS_DIR } from './claims.ts';
import type { RootIdentity } from './marker.ts';
import type { LabPaths } from './paths.ts';

const LOCKS_DIR = join(LABS_DIR, 'locks');

/** The lock that all aliases of a directory share. Pure. */
export function identityLockFile(identity: Pick<RootIdentity, 'device' | 'inode'>, directory = LOCKS_DIR): string {
  return join(directory, `${identity.device}-${identity.inode}.json`);
}

export async function selfId(): Promise<ProcessId> {
  const entry = await readProcess(process.pid);
  if (entry === undefined) throw new Error('/proc does not show this process');
  return { pid: entry.pid, startTime: entry.startTime };
}

let sequence = 0;

/**
 * Replaces a lock with the text `stale`, whose holder is gone, by `own`. Only the process that has the turn to replace
 * that very lock may, so a lock that another process has taken in between is never replaced. Returns whether it was
 * replaced. Rejects as acquireLock does when another process has the turn.
 */
async function replaceStale(file: string, own: string, stale: string, what: string): Promise<boolean> {
  const turn = `${file}.after-${createHash('sha256').update(stale).digest('hex').slice(0, 16)}`;
  await acquireLock(turn, what);
  try {
    if ((await readFileIfExists(file)) !== stale) return false;
    await rename(own, file);
    return true;
  } finally {
    await rm(turn, { force: true });
  }
}

/** Rejects with UserError when a process that lives has it: this one, too, unless it only takes it `again`. */
export async function acquireLock(file: string, what: string, again = false): Promise<void> {
  const self = await selfId();
  const own = `${file}.${self.pid}-${sequence++}`;
  try {
    // A link appears whole or not at all, and never replaces one that is there.
    for (let attempt = 0; attempt < 10; attempt++) {
      try {
        await mkdir(dirname(file), { recursive: true, mode: 0o711 });
        await writeFile(own, `${JSON.stringify(self)}\n`);
        await link(own, file);
        return;
      } catch (error) {
        // ENOENT: another lab that ends has removed the directory, which was empty, in between.
        if (!isErrno(error, 'EEXIST', 'ENOENT')) throw error;
      }
      const text = await readFileIfExists(file);
      if (text === undefined) continue;
      const holder = parsePidFile(text);
      if (holder !== undefined && (await isAlive(holder))) {
        if (again && holder.pid === self.pid && holder.startTime === self.startTime) return;
        throw new UserError(`${what} is in use by process ${holder.pid}`);
      }
      if (await replaceStale(file, own, text, what)) return;
    }
    throw new Error(`${file} is made again as often as it is removed`);
  } finally {
    await rm(own, { force: true });
  }
}

/** The living holder, if there is one. */
export async function lockHolder(file: string): Promise<ProcessId | undefined> {
  const holder = await readPidFile(file);
  return holder !== undefined && (await isAlive(holder)) ? holder : undefined;
}

/** Releases a lock of this process; another process's lock stays. */
async function releaseLock(file: string): Promise<void> {
  const [holder, self] = await Promise.all([readPidFile(file), selfId()]);
  if (holder?.pid === self.pid && holder.startTime === self.startTime) await rm(file, { force: true });
  for (const directory of [dirname(file), LABS_DIR]) {
    try {
      await rmdir(directory);
    } catch (error) {
      // Other locks and other labs are in it.
      if (!isErrno(error, 'ENOTEMPTY', 'ENOENT', 'EBUSY')) throw error;
    }
  }
}

export interface RootLock {
  /** Takes again what was removed with the run directory. */
  renew(): Promise<void>;
  release(): Promise<void>;
}

/** `identity` is undefined where the root is no directory: then its path alone is locked. Rejects as acquireLock does. */
export async function lockRoot(
  paths: Pick<LabPaths, 'root' | 'lockFile'>,
  identity: RootIdentity | undefined,
): Promise<RootLock> {
  const files = [paths.lockFile, ...(identity === undefined ? [] : [identityLockFile(identity)])];
  const taken: string[] = [];
  const lock: RootLock = {
    renew: async () => {
      for (const file of files) await acquireLock(file, `the root ${paths.root}`, true);
    },
    release: async () => {
      for (const file of taken.toReversed()) await releaseLock(file);
    },
  };
  try {
    for (const file of files) {
      await acquireLock(file, `the root ${paths.root}`);
      taken.push(file);
    }
  } catch (error) {
    await lock.release();
    throw error;
  }
  return lock;
}

/** Who has a root, by whichever of its names. */
export async function rootHolder(
  paths: Pick<LabPaths, 'lockFile'>,
  identity: RootIdentity | undefined,
): Promise<ProcessId | undefined> {
  const byIdentity = identity === undefined ? undefined : await lockHolder(identityLockFile(identity));
  return byIdentity ?? (await lockHolder(paths.lockFile));
}
