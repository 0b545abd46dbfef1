// Picks the patch by its content type and turns what goes wrong into the API's answers. Pure: the patched object comes
// back as plain JSON and is decoded, defaulted and validated like any other.

import { beyond, valueSize } from '../../lib/json-limits.ts';
import { badRequest, StatusError, unsupportedMediaType } from '../errors.ts';
import { entityTooLarge, excess, JSON_LIMITS } from '../limits.ts';
import { schemaNode } from '../schema/definitions.ts';
import { applyJsonPatch, MAX_OPERATIONS } from './json-patch.ts';
import { isObject, type JsonObject, PatchError } from './json-value.ts';
import { applyMergePatch } from './merge-patch.ts';
import { applyStrategicPatch } from './strategic.ts';

export const PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
] as const;
export type PatchType = (typeof PATCH_TYPES)[number];

/** Server-side apply: the body is a configuration, in YAML or JSON, and no patch of what is stored. */
export const APPLY_TYPE = 'application/apply-patch+yaml';
const ACCEPTED = [...PATCH_TYPES, APPLY_TYPE] as const;

/** The patch type of a Content-Type; throws 415 for any other. */
export function patchType(contentType: string | undefined): PatchType | typeof APPLY_TYPE {
  const bare = (contentType ?? '').split(';')[0]?.trim().toLowerCase();
  const found = ACCEPTED.find((type) => type === bare);
  if (found === undefined) throw unsupportedMediaType(ACCEPTED);
  return found;
}

/** `object` with the patch applied; `object` is used up. Throws StatusError 400, 413 or 422. */
export function applyPatch(object: JsonObject, patch: unknown, type: PatchType, schemaName: string): JsonObject {
  if (type === 'application/json-patch+json' && Array.isArray(patch) && patch.length > MAX_OPERATIONS) {
    throw entityTooLarge(`The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`);
  }
  try {
    const result = patched(object, patch, type, schemaName);
    if (!isObject(result)) throw new PatchError('inapplicable', 'the patch leaves something that is not an object');
    const limit = beyond(valueSize(result, JSON_LIMITS), JSON_LIMITS);
    if (limit !== undefined) throw excess(limit, 'the patched object');
    return result;
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    if (error.kind === 'malformed') throw badRequest(`error decoding patch: ${error.message}`);
    if (error.kind === 'tooLarge') throw entityTooLarge(error.message);
    // As upstream, without a word on what the error is.
    throw new StatusError(422, 'Invalid', 'the server rejected our request due to an error in our request', {});
  }
}

function patched(object: JsonObject, patch: unknown, type: PatchType, schemaName: string): unknown {
  switch (type) {
    case 'application/json-patch+json':
      return applyJsonPatch(object, patch);
    case 'application/merge-patch+json':
      if (!isObject(patch)) throw new PatchError('malformed', 'a merge patch is an object');
      return applyMergePatch(object, patch);
    case 'application/strategic-merge-patch+json':
      return applyStrategicPatch(object, patch, schemaNode(schemaName));
  }
}
