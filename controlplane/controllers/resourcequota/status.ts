// What a quota's status should be, and what of a namespace's changes concerns it. Pure; what one object uses is in lib/quota.

import type { ResourceQuota as CoreResourceQuota, ResourceQuotaStatus } from 'kubernetes-types/core/v1';
import type { Stored } from '../../../client/types.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { type Amount, type Amounts, added, amountOf, amountText } from '../../../lib/quota/amounts.ts';
import type { Counted, CountingSpec } from '../../../lib/quota/objects.ts';
import { inScopes, scopeFacts } from '../../../lib/quota/scopes.ts';
import { type CountedResource, countedBy, resourcesLimited, usageOf } from '../../../lib/quota/usage.ts';
import { sameJson } from '../../../lib/same-json.ts';

export type ResourceQuota = Stored<CoreResourceQuota>;
type Text = Readonly<Record<string, string>>;

/** "pods", "deployments.apps" */
export function resourceKey({ group, plural }: CountedResource): string {
  return group === '' ? plural : `${plural}.${group}`;
}

/** What a quota counts, each once. */
export function countedResources({ hard = {} }: CountingSpec): readonly CountedResource[] {
  const found = new Map<string, CountedResource>();
  for (const name of Object.keys(hard)) {
    const resource = countedBy(name);
    if (resource !== undefined) found.set(resourceKey(resource), resource);
  }
  return [...found.values()];
}

/** All objects of one resource in the quota's namespace. */
export interface Population {
  readonly resource: CountedResource;
  readonly objects: readonly Counted[];
}

/** What the quota limits and these use of it, in its scopes; zero where they use none. */
export function usedBy(spec: CountingSpec, populations: readonly Population[]): Amounts {
  const used = new Map<string, Amount>();
  for (const { resource, objects } of populations) {
    const names = resourcesLimited(resource, Object.keys(spec.hard ?? {}));
    for (const name of names) used.set(name, { nano: 0n, binary: false });
    for (const object of objects) {
      if (!inScopes(spec, scopeFacts(object))) continue;
      const usage = usageOf(resource, object);
      for (const name of names) {
        const amount = usage.get(name);
        if (amount !== undefined) used.set(name, added(used.get(name), amount));
      }
    }
  }
  return used;
}

function sameQuantities(a: Text, b: Text): boolean {
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every(
    (name) => Object.hasOwn(b, name) && amountOf(getOwn(a, name)).nano === amountOf(getOwn(b, name)).nano,
  );
}

/** The status to write; undefined where the one that is there says the same. What could not be counted stays as it was. */
export function quotaStatus({ spec = {}, status = {} }: ResourceQuota, used: Amounts): ResourceQuotaStatus | undefined {
  const { hard = {} } = spec;
  const shown = Object.fromEntries(
    Object.keys(hard).flatMap((name): [string, string][] => {
      const amount = used.get(name);
      const text = amount === undefined ? getOwn(status.used, name) : amountText(amount);
      return text === undefined ? [] : [[name, text]];
    }),
  );
  if (sameQuantities(hard, status.hard ?? {}) && sameQuantities(shown, status.used ?? {})) return undefined;
  return { hard: { ...hard }, used: shown };
}

/** Until such a quota has been counted, the API server refuses what it counts: it comes before those that are only checked. */
export function isUncounted({ spec, status }: ResourceQuota): boolean {
  const hard = status?.hard ?? {};
  return (
    !sameQuantities(spec?.hard ?? {}, hard) ||
    Object.keys(hard).some((name) => getOwn(status?.used, name) === undefined)
  );
}

/** Whether the object counts otherwise than before: a pod that has ended, a claim that has grown. */
export function countsOtherwise(resource: CountedResource, before: Counted, now: Counted): boolean {
  if (before.kind === 'other' && now.kind === 'other') return false;
  const [a, b] = [usageOf(resource, before), usageOf(resource, now)];
  if (a.size !== b.size || [...a].some(([name, { nano }]) => b.get(name)?.nano !== nano)) return true;
  return !sameJson(scopeFacts(before), scopeFacts(now));
}
