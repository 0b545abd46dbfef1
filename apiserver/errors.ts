// Failures as API Status objects: one constructor per reason, with the messages and details of the real API server, which
// clients match on. Never decides when something fails.

import type { Status } from '../client/types.ts';
import { aggregate } from '../lib/aggregate.ts';
import type { FieldError, ResourceKind } from './kinds/resource.ts';

/** Thrown anywhere below the HTTP layer; becomes the response. */
export class StatusError extends Error {
  override name = 'StatusError';
  readonly status: Status & { code: number };
  constructor(code: number, reason: string, message: string, details?: Status['details']) {
    super(message);
    this.status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      reason,
      ...(details === undefined ? {} : { details }),
      code,
    };
  }
}

type Resource = Pick<ResourceKind, 'group' | 'plural'>;
type Kind = Pick<ResourceKind, 'group' | 'kind'>;

/** "pods", "leases.coordination.k8s.io" */
export function qualified({ group, plural }: Resource): string {
  return group === '' ? plural : `${plural}.${group}`;
}

function detailsOf({ group, plural }: Resource, name: string): NonNullable<Status['details']> {
  return { ...(name === '' ? {} : { name }), ...(group === '' ? {} : { group }), kind: plural };
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, 'BadRequest', message);
}

export function unauthorized(): StatusError {
  return new StatusError(401, 'Unauthorized', 'Unauthorized');
}

export function forbidden(resource: Resource, name: string, why: string): StatusError {
  const what = name === '' ? `${qualified(resource)} is forbidden` : `${qualified(resource)} "${name}" is forbidden`;
  return new StatusError(403, 'Forbidden', `${what}: ${why}`, detailsOf(resource, name));
}

export function forbiddenPath(user: string, verb: string, path: string, reason = ''): StatusError {
  const why = reason === '' ? '' : `: ${reason}`;
  const message = `forbidden: User "${user}" cannot ${verb} path "${path}"${why}`;
  return new StatusError(403, 'Forbidden', message, {});
}

export function notFound(resource: Resource, name: string): StatusError {
  return new StatusError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, detailsOf(resource, name));
}

/** For a path that nothing serves. */
export function pathNotFound(): StatusError {
  return new StatusError(404, 'NotFound', 'the server could not find the requested resource', {});
}

export function methodNotAllowed(
  message = 'the server does not allow this method on the requested resource',
): StatusError {
  return new StatusError(405, 'MethodNotAllowed', message, {});
}

export function notAcceptable(accepted: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${accepted.join(', ')}`;
  return new StatusError(406, 'NotAcceptable', message);
}

/** The kind has no message. `type`: Go's. */
export function noProtobuf(type: string): StatusError {
  const why = 'does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message';
  return new StatusError(406, 'NotAcceptable', `object ${type} ${why}`);
}

export function alreadyExists(resource: Resource, name: string): StatusError {
  const message = `${qualified(resource)} "${name}" already exists`;
  return new StatusError(409, 'AlreadyExists', message, detailsOf(resource, name));
}

export function conflict(resource: Resource, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`;
  return new StatusError(409, 'Conflict', message, detailsOf(resource, name));
}

export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

/** 410, for lists, continue tokens and watches. */
export function expired(message: string): StatusError {
  return new StatusError(410, 'Expired', message);
}

export function tooLarge(limit: number): StatusError {
  return new StatusError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${limit}`);
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`;
  return new StatusError(415, 'UnsupportedMediaType', message);
}

/** A refusal shows this many of the errors, and this much of each: values in them may have megabytes. */
const MAX_CAUSES = 100;
const MAX_CAUSE = 4096;

function cut(text: string): string {
  return text.length > MAX_CAUSE ? `${text.slice(0, MAX_CAUSE)}…` : text;
}

export function invalid({ group, kind }: Kind, name: string, errors: readonly FieldError[]): StatusError {
  const causes = errors.slice(0, MAX_CAUSES).map((error) => ({
    reason: error.type,
    message: cut(error.detail),
    field: cut(error.field),
  }));
  // The same may be wrong twice, by the rules of every kind and by the kind's own; the message has it once.
  const lines = causes.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`));
  if (errors.length > MAX_CAUSES) lines.push(`and ${errors.length - MAX_CAUSES} more`);
  const why = aggregate(lines);
  const qualifiedKind = group === '' ? kind : `${kind}.${group}`;
  return new StatusError(422, 'Invalid', `${qualifiedKind} "${name}" is invalid: ${why}`, {
    ...(name === '' ? {} : { name }),
    ...(group === '' ? {} : { group }),
    kind,
    causes,
  });
}

export function internalError(message: string): StatusError {
  return new StatusError(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] });
}

/** What clients of the real API server see when etcd has no room: 500 without a reason. */
export function storeFull(message: string): StatusError {
  return new StatusError(500, '', message);
}

/** A resourceVersion from the future: this store has never been there. */
export function tooLargeResourceVersion(wanted: number, current: number): StatusError {
  return new StatusError(504, 'Timeout', `Timeout: Too large resource version: ${wanted}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });
}
