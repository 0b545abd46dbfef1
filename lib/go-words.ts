// How a program written in Go words things, for the messages that users and tools search for: gRPC codes, network
// errors. Pure.

import { errnoOf, errorMessage } from './errors.ts';
import { getOwn } from './own-property.ts';

/** A string as Go's %q prints it. */
export function goQuote(text: string): string {
  return JSON.stringify(text);
}

const GO_CODES: Readonly<Record<string, string>> = {
  CANCELLED: 'Canceled',
  UNKNOWN: 'Unknown',
  INVALID_ARGUMENT: 'InvalidArgument',
  DEADLINE_EXCEEDED: 'DeadlineExceeded',
  NOT_FOUND: 'NotFound',
  ALREADY_EXISTS: 'AlreadyExists',
  PERMISSION_DENIED: 'PermissionDenied',
  RESOURCE_EXHAUSTED: 'ResourceExhausted',
  FAILED_PRECONDITION: 'FailedPrecondition',
  ABORTED: 'Aborted',
  OUT_OF_RANGE: 'OutOfRange',
  UNIMPLEMENTED: 'Unimplemented',
  INTERNAL: 'Internal',
  UNAVAILABLE: 'Unavailable',
  DATA_LOSS: 'DataLoss',
  UNAUTHENTICATED: 'Unauthenticated',
};

/** A gRPC status as Go prints it: "rpc error: code = NotFound desc = no such container". `code` is the status name. */
export function goRpcError(code: string, description: string): string {
  return `rpc error: code = ${getOwn(GO_CODES, code) ?? code} desc = ${description}`;
}

/** "10.0.0.1:80", "[fd00::1]:80" */
export function joinHostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset by peer',
  ECONNABORTED: 'software caused connection abort',
  EHOSTUNREACH: 'no route to host',
  EHOSTDOWN: 'host is down',
  ENETUNREACH: 'network is unreachable',
  ENETDOWN: 'network is down',
  ETIMEDOUT: 'connection timed out',
  EPIPE: 'broken pipe',
  EACCES: 'permission denied',
  EINVAL: 'invalid argument',
  EADDRNOTAVAIL: 'cannot assign requested address',
};

/** A name that was tried at several addresses fails with all their errors; the first one is reported. */
function firstOf(error: unknown): unknown {
  return error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
}

/** A failed connect to `host:port`, as Go's net package words it: "dial tcp 10.0.0.1:80: connect: connection refused". */
export function goDialError(error: unknown, host: string, port: number): string {
  const cause = firstOf(error);
  const code = errnoOf(cause) ?? '';
  if (code === 'ENOTFOUND') return `dial tcp: lookup ${host}: no such host`;
  if (code === 'EAI_AGAIN') return `dial tcp: lookup ${host}: Temporary failure in name resolution`;
  const words = getOwn(SYSTEM_ERRORS, code);
  const reason = words === undefined ? errorMessage(cause) : `connect: ${words}`;
  return `dial tcp ${joinHostPort(host, port)}: ${reason}`;
}

/** The message of Go's HTTP client for a connection that broke after it was established. */
export function goTransportError(error: unknown): string {
  const code = errnoOf(error) ?? '';
  const message = errorMessage(error);
  // Node's own word for a peer that closed before it answered.
  if (message === 'socket hang up') return 'EOF';
  if (/wrong version number|WRONG_VERSION_NUMBER|HTTP_REQUEST/.test(`${code} ${message}`)) {
    return 'http: server gave HTTP response to HTTPS client';
  }
  if (code.startsWith('HPE_')) {
    return `net/http: HTTP/1.x transport connection broken: malformed HTTP response (${message})`;
  }
  const words = getOwn(SYSTEM_ERRORS, code);
  return words === undefined ? message : `read: ${words}`;
}
