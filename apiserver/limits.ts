// How much one request may bring. What is within these limits is read, checked and written in turns of the event loop
// below 50 ms each; what is beyond them is refused by name before it is parsed. Figures and refusals only.

import { beyond, type JsonLimits, jsonSize } from '../lib/json-limits.ts';
import { badRequest, StatusError } from './errors.ts';
import { MAX_OBJECT_BYTES } from './storage/object-store.ts';

/** The largest body that is read, in bytes: as in the real server. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;
/**
 * Far beyond any object of the API (an EndpointSlice of a thousand endpoints, the largest that is allowed, has 5,000
 * objects and 14,000 keys), and few enough to be parsed at once.
 */
export const JSON_LIMITS: JsonLimits = { depth: 128, objects: 8192, keys: 16_384, values: 32_768 };
/** Of a patch: room for as many operations as a JSON patch may have. */
export const PATCH_LIMITS: JsonLimits = { depth: 128, objects: 18_000, keys: 48_000, values: 72_000 };
/** A body of this many bytes or more is read and carried out in more than one turn of the event loop. */
export const LARGE_BYTES = 64 * 1024;

/** 413 with a reason that names the limit. */
export function entityTooLarge(why: string): StatusError {
  return new StatusError(413, 'RequestEntityTooLarge', `Request entity too large: ${why}`);
}

/** The refusal of what goes beyond one of the limits. `what` is "the body", "the patched object". */
export function excess(limit: keyof JsonLimits, what: string, limits = JSON_LIMITS): StatusError {
  if (limit === 'depth') return badRequest(`${what} exceeded max depth: more than ${limits.depth} levels`);
  return entityTooLarge(`${what} has more than ${limits[limit]} ${limit}`);
}

/** Throws 400 or 413 for JSON that would take too long to parse. */
export function checkJsonLimits(utf8: Uint8Array, what: string, limits = JSON_LIMITS): void {
  const limit = beyond(jsonSize(utf8, limits), limits);
  if (limit !== undefined) throw excess(limit, what, limits);
}

/** The refusal of an object too large to be stored. */
export function objectTooLarge(bytes: number): StatusError {
  return entityTooLarge(
    `etcdserver: request is too large: the object has ${bytes} bytes, limit is ${MAX_OBJECT_BYTES}`,
  );
}
