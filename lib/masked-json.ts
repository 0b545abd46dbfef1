// Requests and responses as JSON for the trace: credentials are masked, and what is long is cut. Pure.

import { cutWithMark } from './cut.ts';

/** A value of a detail is no longer than this, in bytes of UTF-8. */
export const MAX_DETAIL_BYTES = 32 * 1024;
export const MASKED = '<masked>';

/**
 * CRI's PullImageRequest.auth, the `secrets` of CSI's requests, the token of a TokenRequest, and passwords of the CNI
 * specification's plugins' configurations.
 */
const MASKED_KEYS: ReadonlySet<string> = new Set([
  'auth',
  'secrets',
  'token',
  'password',
  'identity_token',
  'registry_token',
  'serviceAccountToken',
]);
/** Of a Secret of the API. */
const SECRET_FIELDS: ReadonlySet<string> = new Set(['data', 'stringData']);

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

/** Secrets in a list have no kind of their own; their field `type` tells them from ConfigMaps. */
function isSecret(holder: unknown): boolean {
  if (typeof holder !== 'object' || holder === null) return false;
  if ('kind' in holder) return holder.kind === 'Secret';
  return 'type' in holder && 'metadata' in holder && !('spec' in holder);
}

/** JSON without credentials. Environment variables and files of ConfigMaps are in it. */
export function maskedJson(value: unknown): string {
  const text = JSON.stringify(value, function replace(this: unknown, key: string, each: unknown): unknown {
    if (typeof each === 'bigint') return String(each);
    const isMasked = MASKED_KEYS.has(key) || (SECRET_FIELDS.has(key) && isSecret(this));
    return isMasked && !isEmpty(each) ? MASKED : each;
  });
  return cutWithMark(text ?? '', MAX_DETAIL_BYTES);
}
