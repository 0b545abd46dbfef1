// Failures of requests to an API server: it responded with a failure (ApiError), or it did not respond
// (UnreachableError). Turns socket and TLS failures into one clear line each; never retries anything itself.

import { errnoOf, errorMessage } from '../lib/errors.ts';
import { getOwn } from '../lib/own-property.ts';
import type { Status } from './types.ts';

/** The server answered, and the answer is a failure. `code` is the HTTP status. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly status: Status;
  readonly code: number;
  /** The request: "PATCH pods/status". */
  readonly request: string;
  constructor(status: Status, code: number, request: string) {
    super(status.message ?? `${request}: the API server answered ${code}`);
    this.status = status;
    this.code = code;
    this.request = request;
  }
}

/** The server could not be reached, did not answer in time, or its certificate is not signed by the configured CA. */
export class UnreachableError extends Error {
  override name = 'UnreachableError';
  /** The errno or OpenSSL name ("ECONNREFUSED", "DEPTH_ZERO_SELF_SIGNED_CERT"), where there is one. */
  readonly code: string;
  constructor(message: string, code: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

function hasReason(error: unknown, reason: string): boolean {
  return error instanceof ApiError && error.status.reason === reason;
}

export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404;
}
/** A 403: the authorizer, or admission. */
export function isForbidden(error: unknown): boolean {
  return error instanceof ApiError && error.code === 403;
}
/** A 409 because the object has changed or a precondition does not hold; not "AlreadyExists". */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.code === 409 && error.status.reason !== 'AlreadyExists';
}
export function isAlreadyExists(error: unknown): boolean {
  return hasReason(error, 'AlreadyExists');
}
/** A resourceVersion that the server no longer has (410, reasons Expired and Gone). */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 410 || hasReason(error, 'Expired') || hasReason(error, 'Gone'));
}
export function isUnreachable(error: unknown): error is UnreachableError {
  return error instanceof UnreachableError;
}
/** True where trying the same request again later can help: no answer, overload, or an internal error of the server. */
export function isTransient(error: unknown): boolean {
  return isUnreachable(error) || (error instanceof ApiError && (error.code === 429 || error.code >= 500));
}

const TLS_REASONS: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is not signed by the CA that the kubeconfig names',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed and not the CA that the kubeconfig names',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not signed by the CA that the kubeconfig names',
  UNABLE_TO_GET_ISSUER_CERT: 'its certificate is not signed by the CA that the kubeconfig names',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is not signed by the CA that the kubeconfig names',
  CERT_SIGNATURE_FAILURE: 'its certificate is not signed by the CA that the kubeconfig names',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet (is the clock right?)',
  EPROTO: 'it does not speak TLS as expected (http instead of https, or another service on that port?)',
  ERR_SSL_WRONG_VERSION_NUMBER:
    'it does not speak TLS as expected (http instead of https, or another service on that port?)',
};
const SOCKET_REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was closed before an answer came',
  EPIPE: 'the connection was closed before an answer came',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  ETIMEDOUT: 'no answer in time',
};

/** Wraps a failure of the socket or of TLS; `server` is the URL from the kubeconfig. */
export function unreachable(server: string, error: unknown): UnreachableError {
  const code = errnoOf(error) ?? 'UNKNOWN';
  return new UnreachableError(`cannot reach the API server ${server}: ${reasonOf(server, code, error)}`, code, {
    cause: error,
  });
}

function reasonOf(server: string, code: string, error: unknown): string {
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return `the host name "${new URL(server).hostname}" does not resolve (${code})`;
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `its certificate is for another name: ${errorMessage(error)}`;
  const tls = getOwn(TLS_REASONS, code);
  if (tls !== undefined) return `${tls} (${code})`;
  const socket = getOwn(SOCKET_REASONS, code);
  if (socket !== undefined) return socket;
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_OSSL_')) {
    return `the TLS handshake failed: ${errorMessage(error)}`;
  }
  return errorMessage(error);
}
