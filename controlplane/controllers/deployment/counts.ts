// How many pods a deployment has and may have: sums over its replica sets, and the bounds of a rolling update. Pure.

import type { Deployment, ReplicaSet } from '../shared/objects.ts';
import { replicasOf } from '../shared/objects.ts';
import { scaledValue } from '../shared/scaled-value.ts';

const sum = (sets: readonly ReplicaSet[], of: (set: ReplicaSet) => number): number =>
  sets.reduce((total, set) => total + of(set), 0);

/** By the sets' specs. */
export const specReplicas = (sets: readonly ReplicaSet[]): number => sum(sets, replicasOf);
/** By the sets' statuses, as the next three. */
export const actualReplicas = (sets: readonly ReplicaSet[]): number => sum(sets, ({ status }) => status?.replicas ?? 0);
export const readyReplicas = (sets: readonly ReplicaSet[]): number =>
  sum(sets, ({ status }) => status?.readyReplicas ?? 0);
export const availableReplicas = (sets: readonly ReplicaSet[]): number =>
  sum(sets, ({ status }) => status?.availableReplicas ?? 0);

export const isRolling = ({ spec }: Deployment): boolean =>
  (spec.strategy?.type ?? 'RollingUpdate') === 'RollingUpdate';

/** The two bounds; both 0 would be no way forward, so one pod may then be missing. */
function bounds(deployment: Deployment): { readonly surge: number; readonly unavailable: number } {
  if (!isRolling(deployment)) return { surge: 0, unavailable: 0 };
  const { maxSurge: over, maxUnavailable: under } = deployment.spec.strategy?.rollingUpdate ?? {};
  const total = replicasOf(deployment);
  const surge = scaledValue(over, total, Math.ceil);
  const unavailable = scaledValue(under, total, Math.floor);
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** Pods beyond spec.replicas. */
export function maxSurge(deployment: Deployment): number {
  return bounds(deployment).surge;
}

/** Pods of spec.replicas that may be missing; 0 with Recreate. */
export function maxUnavailable(deployment: Deployment): number {
  return Math.min(bounds(deployment).unavailable, replicasOf(deployment));
}
