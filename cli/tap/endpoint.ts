// Unix sockets as runtimes are named: reads the name, and makes the socket a command listens on.

import { chmod, lstat, rm } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';

/** A socket's path, as the kernel takes it. */
const MAX_SOCKET_PATH = 107;

/** The path in "unix:///run/x.sock", or a path by itself. Throws UserError for another text. */
export function socketPath(text: string, flag: string): string {
  const path = text.replace(/^unix:(\/\/)?/, '');
  if (!path.startsWith('/')) throw new UserError(`${flag} must be unix:///absolute/path or a path, not "${text}"`);
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH)
    throw new UserError(`${flag}: ${path} is longer than a socket's path may be (${MAX_SOCKET_PATH} bytes)`);
  return path;
}

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

/** Removes the socket of a dead process. Throws UserError where a living one serves, and for what is no socket. */
async function removeStale(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isSocket()) throw new UserError(`${path} is there and is no socket`);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    throw error;
  }
  if (await answers(path)) throw new UserError(`another process serves on ${path}`);
  await rm(path, { force: true });
}

/** Listens with mode 0600: callers of a runtime are root. Rejects with UserError. */
export async function listenOn(server: Server, path: string): Promise<void> {
  await removeStale(path);
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
