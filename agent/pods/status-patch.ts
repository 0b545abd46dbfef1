// The difference between the status at the API server and the one to be reported, as a strategic merge patch. Only
// fields and conditions that the kubelet owns are ever touched. Pure.

import type { PodCondition, PodStatus } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
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

/** Fields of a container's status that servers older than they are drop. */
export const NEWER_CONTAINER_FIELDS = [
  'allocatedResources',
  'resources',
  'stopSignal',
  'user',
  'volumeMounts',
] as const;

/** How observedGeneration of conditions is named among the fields that are to be ignored. */
export const CONDITION_GENERATION = 'conditions[].observedGeneration';

/** How such a field is named among those that are to be ignored. */
export function containerField(name: string): string {
  return `containerStatuses[].${name}`;
}

function withoutIgnored(value: unknown, ignored: ReadonlySet<string>): unknown {
  const fields = NEWER_CONTAINER_FIELDS.filter((name) => ignored.has(containerField(name)));
  if (fields.length === 0 || !Array.isArray(value)) return value;
  return value.map((status: object) =>
    Object.fromEntries(Object.entries(status).filter(([name]) => !fields.some((field) => field === name))),
  );
}

/** Lists merged by their `ip`. */
const IP_LISTS = ['hostIPs', 'podIPs'] as const;

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Absent, however that is spelled: null, {}, [] and missing are one. */
function isNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isFields(value) && Object.values(value).every(isNothing);
}

/** Whether two values say the same. Keys need not be in the same order. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => sameValue(item, b[index]));
  }
  if (!isFields(a) || !isFields(b)) return isNothing(a) && isNothing(b);
  for (const key of Object.keys(a)) if (!sameValue(getOwn(a, key), getOwn(b, key))) return false;
  return Object.keys(b).every((key) => Object.hasOwn(a, key) || isNothing(getOwn(b, key)));
}

function withoutGeneration({ observedGeneration, ...condition }: PodCondition): PodCondition {
  return condition;
}

function conditionPatch(
  base: readonly PodCondition[],
  wanted: readonly PodCondition[],
  ignored: ReadonlySet<string>,
): unknown[] {
  const desired = ignored.has(CONDITION_GENERATION) ? wanted.map(withoutGeneration) : wanted;
  const changed = desired.filter((condition) => {
    if (!isOwnedCondition(condition)) return false;
    return !sameValue(
      condition,
      base.find((other) => other.type === condition.type),
    );
  });
  const written = changed.map((condition) => {
    const before = base.find((other) => other.type === condition.type);
    // A merge keeps absent fields, so a field that is no longer set must be cleared.
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
    if (ignored.has(field)) continue;
    const wanted = field.endsWith('Statuses') ? withoutIgnored(desired[field], ignored) : desired[field];
    if (!sameValue(base[field], wanted)) patch[field] = wanted ?? null;
  }
  for (const field of IP_LISTS) {
    if (ignored.has(field) || sameValue(base[field], desired[field])) continue;
    patch[field] = ipListPatch(base[field] ?? [], desired[field] ?? []);
    patch[`$setElementOrder/${field}`] = (desired[field] ?? []).map(({ ip }) => ({ ip }));
  }
  const conditions = conditionPatch(base.conditions ?? [], desired.conditions ?? [], ignored);
  if (conditions.length > 0) patch['conditions'] = conditions;
  return Object.keys(patch).length === 0 ? undefined : patch;
}
