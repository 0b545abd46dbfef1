// The two priority classes that every cluster has, for pods that it cannot do without (k8s.io/api/scheduling/v1).

import { getOwn } from '../../../lib/own-property.ts';

export const SYSTEM_PRIORITIES: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

/** Name and description of each. */
export const SYSTEM_PRIORITY_DESCRIPTIONS: readonly (readonly [name: string, description: string])[] = [
  [
    'system-cluster-critical',
    'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
  ],
  ['system-node-critical', 'Used for system critical pods that must not be moved from their current node.'],
];

/** Why a class with a reserved name is none of them; undefined for those that are. */
export function systemPriorityError(name: string, value: number, globalDefault: boolean): string | undefined {
  const expected = getOwn(SYSTEM_PRIORITIES, name);
  if (expected === undefined) return `${name} is not a known system priority class`;
  if (value !== expected) return `value of ${name} PriorityClass must be ${expected}`;
  return globalDefault ? `globalDefault of ${name} PriorityClass must be false` : undefined;
}
