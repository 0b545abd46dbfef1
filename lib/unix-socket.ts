// Unix sockets that a server here listens on: one takes the place of a dead process's socket, never of a living one's, and
// only its owner may connect. Never removes anything that is no socket.

import { chmod, lstat, rm } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { errorMessage, isErrno, UserError } from './errors.ts';

/** Whether a server accepts connections at the path. What cannot be connected to for whatever reason does not. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });
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
