// The difference between the status at the API server and the one to be reported, as a strategic merge patch. Only
// fields and conditions that the kubelet owns are ever touched. Pure.

import type { PodCondition, PodStatus } from '../../client/types.ts';
import type { StatusPatch } from '../ports/api.ts';
import { isOwnedCondition, OWNED_CONDITIONS } from './conditions.ts';

/** Fields replaced as a whole. */
const PLAIN = [
  'observedGeneration',
  'phase',
  'reason',
  'message',
  'hostIP',
  'podIP',
  'startTime',
  'qosClass',
  'resize',
  'initContainerStatuses',
  'containerStatuses',
  'ephemeralContainerStatuses',
] as const;

/** Lists merged by their `ip`. */
const IP_LISTS = ['hostIPs', 'podIPs'] as const;

/** What a value says, whatever way absent things are spelled: null, {}, [] and missing are one. */
function normalise(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => normalise(item) ?? null);
  if (typeof value !== 'object' || value === null) return value ?? undefined;
  const entries = Object.entries(value)
    .map(([key, item]) => [key, normalise(item)] as const)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

export function sameValue(a: unknown, b: unknown): boolean {
  return JSON.stringify(normalise(a)) === JSON.stringify(normalise(b));
}

function conditionPatch(base: readonly PodCondition[], desired: readonly PodCondition[]): unknown[] {
  const changed = desired.filter((condition) => {
    if (!isOwnedCondition(condition)) return false;
    return !sameValue(
      condition,
      base.find((other) => other.type === condition.type),
    );
  });
  const written = changed.map((condition) => {
    const before = base.find((other) => other.type === condition.type);
    // A merge keeps what it is not told about, so what is no longer so must be taken back.
    const cleared = { ...(before?.reason === undefined ? {} : { reason: null }) };
    return { ...cleared, ...(before?.message === undefined ? {} : { message: null }), ...condition };
  });
  const dropped = base
    .filter(({ type }) => OWNED_CONDITIONS.has(type) && !desired.some((condition) => condition.type === type))
    .map(({ type }) => ({ $patch: 'delete', type }));
  return [...written, ...dropped];
}

type IpList = readonly { readonly ip?: string }[];

function ipListPatch(base: IpList, desired: IpList): unknown[] {
  const dropped = base.filter(({ ip }) => !desired.some((other) => other.ip === ip));
  return [...desired, ...dropped.map(({ ip }) => ({ $patch: 'delete', ip }))];
}

/** The patch that turns `base` into `desired`; undefined when there is nothing to write. Fields in `ignored` stay. */
export function computeStatusPatch(
  base: PodStatus,
  desired: PodStatus,
  ignored: ReadonlySet<string> = new Set(),
): StatusPatch | undefined {
  const patch: Record<string, unknown> = {};
  for (const field of PLAIN) {
    if (!ignored.has(field) && !sameValue(base[field], desired[field])) patch[field] = desired[field] ?? null;
  }
  for (const field of IP_LISTS) {
    if (ignored.has(field) || sameValue(base[field], desired[field])) continue;
    patch[field] = ipListPatch(base[field] ?? [], desired[field] ?? []);
    patch[`$setElementOrder/${field}`] = (desired[field] ?? []).map(({ ip }) => ({ ip }));
  }
  const conditions = conditionPatch(base.conditions ?? [], desired.conditions ?? []);
  if (conditions.length > 0) patch['conditions'] = conditions;
  return Object.keys(patch).length === 0 ? undefined : patch;
}
