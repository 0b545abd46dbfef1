// JSON merge patch (RFC 7386): objects meet, everything else is replaced, null removes. Pure; changes `target`.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { isObject, type JsonObject } from './json-value.ts';

/** `target` after the merge patch. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: JsonObject = isObject(target) ? target : {};
  for (const key of Object.keys(patch)) {
    const value = getOwn(patch, key);
    if (value === null) delete result[key];
    else setOwn(result, key, applyMergePatch(getOwn(result, key), value));
  }
  return result;
}
