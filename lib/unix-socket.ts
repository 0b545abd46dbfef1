// Unix sockets that a server here listens on: one takes the place of a dead process's socket, never of a living one's, and
// only its owner may connect. Never removes anything that is no socket.

import { chmod, lstat, readdir, rm } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { join } from 'node:path';
import type { Clock } from './clock.ts';
import { errorMessage, isErrno, UserError } from './errors.ts';
import { poll } from './retry.ts';

/** Why a connection to the path fails; undefined when a server accepts it. */
function refusal(path: string): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(undefined);
    });
    probe.once('error', resolve);
  });
}

/** Whether a server accepts connections at the path. What cannot be connected to for whatever reason does not. */
async function answers(path: string): Promise<boolean> {
  return (await refusal(path)) === undefined;
}

/**
 * Removes the socket that a dead process left at `path`. Rejects with UserError where a living one serves (`inUse`: what it
 * says then), and for what is no socket.
 */
export async function removeStaleSocket(path: string, inUse = `another process serves on ${path}`): Promise<void> {
  try {
    if (!(await lstat(path)).isSocket()) throw new UserError(`${path} is there and is no socket`);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    throw error;
  }
  if (await answers(path)) throw new UserError(inUse);
  await rm(path, { force: true });
}

/** Listens with mode 0600, in place of a dead process's socket. Rejects with UserError, as `removeStaleSocket` does. */
export async function listenOnSocket(server: Server, path: string, inUse?: string): Promise<void> {
  await removeStaleSocket(path, inUse);
  await new Promise<void>((resolve, reject) => {
    const failed = (error: Error): void => reject(new UserError(`cannot listen on ${path}: ${errorMessage(error)}`));
    server.once('error', failed);
    // From the first moment on, not only after a chmod.
    const mask = process.umask(0o177);
    try {
      server.listen({ path, backlog: 511 }, () => {
        server.off('error', failed);
        resolve();
      });
    } finally {
      process.umask(mask);
    }
  });
  await chmod(path, 0o600);
}

/** A socket is bound before it listens, and refuses until then. A younger one may be on its way. ms */
const BOUND_MS = 1_000;

/**
 * Removes the sockets in a directory that no process listens on any more: a connection to them is refused. One that was
 * made within the last second is waited for. A directory that is not there has none.
 */
export async function removeDeadSockets(directory: string, clock: Clock): Promise<void> {
  for (const path of await socketsIn(directory)) {
    const serves = async (): Promise<boolean> => !isErrno(await refusal(path), 'ECONNREFUSED');
    try {
      const isYoung = clock.now() - (await lstat(path)).ctimeMs < BOUND_MS;
      const living = isYoung ? await poll(serves, { clock, everyMs: 100, limitMs: BOUND_MS }) : await serves();
      if (!living) await rm(path, { force: true });
    } catch (error) {
      // Its owner has removed it meanwhile.
      if (!isErrno(error, 'ENOENT')) throw error;
    }
  }
}

async function socketsIn(directory: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isSocket()).map(({ name }) => join(directory, name));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}
