// The rules of an aggregated ClusterRole: those of all ClusterRoles that its selectors match, each once. Pure.

import type * as rbac from 'kubernetes-types/rbac/v1';
import { matchesLabelSelector } from '../../../client/selectors.ts';
import type { Stored } from '../../../client/types.ts';
import { sameJson } from '../../../lib/same-json.ts';

export type ClusterRole = Omit<Stored<rbac.ClusterRole>, 'rules'> & { readonly rules?: readonly rbac.PolicyRule[] };

export function isAggregated({ aggregationRule }: ClusterRole): boolean {
  return aggregationRule !== undefined;
}

/** Selector by selector, and by the roles' names; undefined for a role that is not aggregated. */
export function aggregatedRules(
  role: ClusterRole,
  all: readonly ClusterRole[],
): readonly rbac.PolicyRule[] | undefined {
  if (role.aggregationRule === undefined) return undefined;
  const sorted = all.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const rules: rbac.PolicyRule[] = [];
  for (const selector of role.aggregationRule.clusterRoleSelectors ?? []) {
    for (const other of sorted) {
      if (other.metadata.name === role.metadata.name) continue;
      if (!matchesLabelSelector(selector, other.metadata.labels ?? {})) continue;
      for (const rule of other.rules ?? []) if (!rules.some((known) => sameJson(known, rule))) rules.push(rule);
    }
  }
  return rules;
}
