// Whether a request fits into the quotas of its namespace (k8s.io/apiserver/pkg/admission/plugin/resourcequota,
// CheckRequest). Pure.

import type { PersistentVolumeClaim, ResourceQuotaSpec } from 'kubernetes-types/core/v1';
import { type Amount, type Amounts, added, amountOf, shownAmounts } from '../../../lib/quota/amounts.ts';
import { inScopes, scopeFacts } from '../../../lib/quota/scopes.ts';
import { resourcesLimited, unstated, usageOf } from '../../../lib/quota/usage.ts';
import type { KubeObject } from '../../kinds/resource.ts';
import { as, type Loose } from '../../kinds/shapes.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import { countedOf } from './counted.ts';

/** One quota, with what its namespace uses. */
export interface QuotaView {
  readonly name: string;
  readonly spec: Loose<ResourceQuotaSpec>;
  readonly used: Amounts;
  /** False until everything it counts has been measured. */
  readonly known: boolean;
}

export interface QuotaUsage {
  /** `counted`: the objects ("<group>/<plural>") that the decision is about. */
  quotas(namespace: string, counted: string): readonly QuotaView[];
}

function allocated(claim: KubeObject | undefined): string | undefined {
  if (claim === undefined) return undefined;
  return as<PersistentVolumeClaim>(claim, 'PersistentVolumeClaim').status?.allocatedResources?.['storage'];
}

/** Whether such a request can use more of anything. */
export function isCounted({ operation, resource, object, old }: AdmissionAttributes): boolean {
  const { group, plural, subresource } = resource;
  if (group === '' && plural === 'pods' && subresource === 'resize') return operation === 'UPDATE';
  if (group === '' && plural === 'services') {
    return subresource === '' && (operation === 'CREATE' || operation === 'UPDATE');
  }
  if (group === '' && plural === 'persistentvolumeclaims') {
    if (subresource === 'status') return operation === 'UPDATE' && allocated(object) !== allocated(old);
    return subresource === '' && (operation === 'CREATE' || operation === 'UPDATE');
  }
  return subresource === '' && operation === 'CREATE';
}

/** What the request adds; what it gives back is no matter here. */
function delta(now: Amounts, before: Amounts): Amounts {
  const result = new Map<string, Amount>();
  for (const [name, amount] of now) {
    const was = before.get(name);
    const more = was === undefined ? amount : { ...amount, nano: amount.nano - was.nano };
    if (more.nano > 0n) result.set(name, more);
  }
  return result;
}

function only(amounts: Amounts, names: readonly string[]): Amounts {
  return new Map(names.map((name) => [name, amounts.get(name) ?? { nano: 0n, binary: false }]));
}

const hardOf = ({ hard = {} }: Loose<ResourceQuotaSpec>): Map<string, Amount> =>
  new Map(Object.entries(hard).map(([name, text]) => [name, amountOf(text)]));

/** The reason to refuse the request; undefined when it fits. */
export function quotaRefusal(attributes: AdmissionAttributes, quotas: readonly QuotaView[]): string | undefined {
  const { object, old, operation, resource } = attributes;
  if (object === undefined || quotas.length === 0 || !isCounted(attributes)) return undefined;
  const now = countedOf(resource, object);
  const before = old === undefined ? undefined : countedOf(resource, old);
  const facts = scopeFacts(now);
  const usage = usageOf(resource, now);
  for (const quota of quotas) {
    const hard = hardOf(quota.spec);
    const limited = resourcesLimited(resource, [...hard.keys()]);
    if (limited.length === 0 || !inScopes(quota.spec, facts)) continue;
    const missing = unstated(now, limited);
    if (missing !== undefined) return `failed quota: ${quota.name}: must specify ${missing}`;
    if (!quota.known) return `status unknown for quota: ${quota.name}, resources: ${limited.sort().join(',')}`;
  }
  const negative = [...usage].filter(([, { nano }]) => nano < 0n).map(([name]) => name);
  if (negative.length > 0) return `quota usage is negative for resource(s): ${negative.sort().join(',')}`;
  for (const quota of quotas) {
    if (!inScopes(quota.spec, facts)) continue;
    const hard = hardOf(quota.spec);
    const counted = operation === 'UPDATE' && before !== undefined && inScopes(quota.spec, scopeFacts(before));
    const requested = counted ? delta(usage, usageOf(resource, before)) : usage;
    const refusal = exceeds(quota, hard, requested, resource.subresource);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function exceeds(quota: QuotaView, hard: Amounts, requested: Amounts, subresource: string): string | undefined {
  // A status reports what is, which no refusal would change.
  if (subresource === 'status') return undefined;
  const exceeded = [...requested.keys()].filter((name) => {
    const [limit, more] = [hard.get(name), requested.get(name)];
    if (limit === undefined || more === undefined || more.nano === 0n) return false;
    return added(quota.used.get(name), more).nano > limit.nano;
  });
  if (exceeded.length === 0) return undefined;
  const shown = (amounts: Amounts): string => shownAmounts(only(amounts, exceeded));
  return `exceeded quota: ${quota.name}, requested: ${shown(requested)}, used: ${shown(quota.used)}, limited: ${shown(hard)}`;
}
