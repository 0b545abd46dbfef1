// A strategic merge patch of a pod's status, as an API server applies it. Pure.

import type { StatusPatch } from '../../agent/ports/api.ts';
import type { PodStatus } from '../../client/types.ts';
import { getOwn, setOwn } from '../../lib/own-property.ts';

type Keyed = Record<string, unknown>;

function mergeList(base: readonly Keyed[], patch: readonly Keyed[], key: string): Keyed[] {
  const merged = new Map(base.map((item) => [getOwn(item, key), item]));
  for (const { $patch, ...item } of patch) {
    if ($patch === 'delete') merged.delete(getOwn(item, key));
    else {
      const whole = { ...merged.get(getOwn(item, key)), ...item };
      merged.set(getOwn(item, key), Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== null)));
    }
  }
  return [...merged.values()];
}

const MERGE_KEYS: Readonly<Record<string, string>> = { conditions: 'type', podIPs: 'ip', hostIPs: 'ip' };

/** Applies a strategic merge patch to a status, as the API server does. */
export function applyStatusPatch(status: PodStatus, patch: StatusPatch): PodStatus {
  const result: Record<string, unknown> = { ...status };
  for (const [field, value] of Object.entries(patch)) {
    const key = getOwn(MERGE_KEYS, field);
    if (field.startsWith('$setElementOrder/')) continue;
    if (value === null) Reflect.deleteProperty(result, field);
    else if (key !== undefined && Array.isArray(value)) {
      const base = getOwn(result, field);
      setOwn(result, field, mergeList(Array.isArray(base) ? base : [], value, key));
    } else setOwn(result, field, value);
  }
  return result;
}
