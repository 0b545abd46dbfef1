// Small helpers for reading errors of unknown type. They never decide what to do about one.

/** The message of anything that was thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The errno name ("ENOENT") of a system error, or undefined for anything else. */
export function errnoOf(error: unknown): string | undefined {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return undefined;
}

export function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  const code = errnoOf(error);
  return code !== undefined && codes.includes(code);
}

/** Whether something could not be written because the disk or the quota is full. */
export function isDiskFull(error: unknown): boolean {
  return isErrno(error, 'ENOSPC', 'EDQUOT');
}

/**
 * The error with the path of its file, in Node's form ("ENOSPC: no space left on device, write '/x'"): a call on a
 * descriptor does not report it. Any other error, and one that has a path, is returned unchanged.
 */
export function withPath(error: unknown, path: string): unknown {
  if (errnoOf(error) === undefined || !(error instanceof Error) || 'path' in error) return error;
  return Object.assign(new Error(`${error.message} '${path}'`, { cause: error }), { code: errnoOf(error), path });
}

/**
 * An error that the user caused and can fix: bad flags, a missing file, a port in use.
 * Commands print its message as one line, without a stack, and exit 1.
 */
export class UserError extends Error {
  override name = 'UserError';
}
