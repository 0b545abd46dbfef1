// JSON merge patch (RFC 7386): objects meet, everything else is replaced, null removes. Pure; changes `target`.

import { getKey, isObject, type JsonObject, setKey } from './json-value.ts';

/** `target` after the merge patch. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: JsonObject = isObject(target) ? target : {};
  for (const key of Object.keys(patch)) {
    const value = getKey(patch, key);
    if (value === null) delete result[key];
    else setKey(result, key, applyMergePatch(getKey(result, key), value));
  }
  return result;
}
