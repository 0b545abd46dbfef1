// How the shim refuses and fails: gRPC statuses by name, made from what Docker answered. Only makes errors.

import type { status } from '@grpc/grpc-js';
import { errorMessage, isErrno } from '../lib/errors.ts';

export type CriCode = keyof typeof status;

/** A failure as the client of CRI gets it. */
export class CriError extends Error {
  override name = 'CriError';
  readonly code: CriCode;
  constructor(code: CriCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What Docker has no means for. `field`: CRI's path of it, such as `linux.security_context.selinux_options`. */
export function unsupported(field: string, why: string): CriError {
  return new CriError('UNIMPLEMENTED', `${field}: ${why}`);
}

export function invalid(field: string, why: string): CriError {
  return new CriError('INVALID_ARGUMENT', `${field}: ${why}`);
}

/** Docker's HTTP statuses; what is not here is UNKNOWN, as failures of containerd are. */
const CODES: ReadonlyMap<number, CriCode> = new Map([
  [400, 'INVALID_ARGUMENT'],
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [409, 'FAILED_PRECONDITION'],
  [501, 'UNIMPLEMENTED'],
  [503, 'UNAVAILABLE'],
]);

/** The HTTP status of an answer of Docker that is an error; undefined where there was no answer. */
export function dockerStatus(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('statusCode' in error)) return undefined;
  return typeof error.statusCode === 'number' ? error.statusCode : undefined;
}

export function isNotFound(error: unknown): boolean {
  return error instanceof CriError ? error.code === 'NOT_FOUND' : dockerStatus(error) === 404;
}

/** Docker's own words, without the HTTP status that the library puts in front of them. */
function dockerMessage(error: Error): string {
  const body: unknown = 'json' in error ? error.json : undefined;
  if (typeof body === 'object' && body !== null && 'message' in body && typeof body.message === 'string') {
    return body.message;
  }
  return error.message;
}

/** Any failure as a CriError: Docker's answers by their status, a daemon that is away as UNAVAILABLE. Pure. */
export function toCriError(error: unknown): CriError {
  if (error instanceof CriError) return error;
  const status = dockerStatus(error);
  if (status !== undefined && error instanceof Error) {
    return new CriError(CODES.get(status) ?? 'UNKNOWN', dockerMessage(error), { cause: error });
  }
  if (isErrno(error, 'ECONNREFUSED', 'ENOENT', 'ECONNRESET', 'EPIPE') && isErrnoOfSocket(error)) {
    return new CriError('UNAVAILABLE', `Docker does not answer: ${errorMessage(error)}`, { cause: error });
  }
  return new CriError('UNKNOWN', errorMessage(error), { cause: error });
}

/** A file that is missing is no daemon that is away. */
function isErrnoOfSocket(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (!('syscall' in error)) return true;
  return error.syscall === 'connect' || error.syscall === 'read' || error.syscall === 'write';
}
