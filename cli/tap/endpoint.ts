// Unix sockets as runtimes are named: reads the name.

import { UserError } from '../../lib/errors.ts';

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
