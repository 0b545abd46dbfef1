// What sizes a deployment's replica sets get next: a step of a rolling update or of Recreate, or a scaling of everything
// that is there in proportion. Pure.

import type { Deployment, ReplicaSet } from '../shared/objects.ts';
import { replicasOf } from '../shared/objects.ts';
import { desiredReplicas, maxReplicas } from './annotations.ts';
import { isRolling, maxSurge, maxUnavailable, specReplicas } from './counts.ts';
import { activeSets, byAge, type Split } from './sets.ts';

export interface Scaling {
  readonly set: ReplicaSet;
  readonly replicas: number;
}

/** The size of the current set, which is `size` now (0 when it is not there yet), as far as maxSurge lets it grow. */
export function currentSetSize(deployment: Deployment, all: readonly ReplicaSet[], size: number): number {
  const wanted = replicasOf(deployment);
  if (!isRolling(deployment)) return wanted;
  const room = wanted + maxSurge(deployment) - specReplicas(all);
  return room <= 0 ? size : size + Math.min(room, wanted - size);
}

/** Old sets become smaller by at most `limit` in all: `share` says how much each can give. */
function shrink(sets: readonly ReplicaSet[], limit: number, share: (set: ReplicaSet) => number): Scaling[] {
  let left = limit;
  return byAge(sets).flatMap((set) => {
    const less = Math.min(left, share(set));
    if (less <= 0) return [];
    left -= less;
    return [{ set, replicas: replicasOf(set) - less }];
  });
}

/** Pods that are not available go first: they serve nothing, and would keep the rollout from going on. */
function shrinkOld(deployment: Deployment, current: ReplicaSet, old: readonly ReplicaSet[]): readonly Scaling[] {
  const all = [...old, current];
  const minAvailable = replicasOf(deployment) - maxUnavailable(deployment);
  const coming = replicasOf(current) - (current.status?.availableReplicas ?? 0);
  const limit = specReplicas(all) - minAvailable - coming;
  if (limit <= 0) return [];
  const unhealthy = shrink(old, limit, (set) => replicasOf(set) - (set.status?.availableReplicas ?? 0));
  const sizes = new Map(unhealthy.map(({ set, replicas }) => [set, replicas]));
  const sizeOf = (set: ReplicaSet): number => sizes.get(set) ?? replicasOf(set);
  // A set that has just been made smaller may report pods that are about to go: those do not count.
  const available = all.map((set) => Math.min(set.status?.availableReplicas ?? 0, replicasOf(set)));
  let left = available.reduce((total, each) => total + each, 0) - minAvailable;
  for (const set of byAge(old)) {
    const less = Math.min(left, sizeOf(set));
    if (less <= 0) continue;
    left -= less;
    sizes.set(set, sizeOf(set) - less);
  }
  return [...sizes].map(([set, replicas]) => ({ set, replicas }));
}

/** One step of a rolling update: the current set grows, or the old ones shrink. */
export function rollingStep(
  deployment: Deployment,
  current: ReplicaSet,
  old: readonly ReplicaSet[],
): readonly Scaling[] {
  const wanted = replicasOf(deployment);
  const size = replicasOf(current);
  const next = size > wanted ? wanted : currentSetSize(deployment, [...old, current], size);
  if (next !== size) return [{ set: current, replicas: next }];
  return shrinkOld(deployment, current, activeSets(old));
}

/** Whether a set's size is that of another spec.replicas: a scaling, not a rollout, is under way. */
export function isScalingEvent(deployment: Deployment, { current, old }: Split): boolean {
  const all = current === undefined ? old : [...old, current];
  return activeSets(all).some((set) => (desiredReplicas(set) ?? replicasOf(deployment)) !== replicasOf(deployment));
}

function isSaturated(deployment: Deployment, set: ReplicaSet | undefined): boolean {
  const wanted = replicasOf(deployment);
  return (
    set !== undefined &&
    replicasOf(set) === wanted &&
    desiredReplicas(set) === wanted &&
    (set.status?.availableReplicas ?? 0) === wanted
  );
}

/** Go's rounding: halves away from zero. */
const round = (value: number): number => Math.sign(value) * Math.round(Math.abs(value));

/** What a set's part of the change would be if the parts were exact. */
function fraction(deployment: Deployment, set: ReplicaSet): number {
  const size = replicasOf(set);
  const wanted = replicasOf(deployment);
  if (wanted === 0) return -size;
  const before = maxReplicas(set) || (deployment.status?.replicas ?? 0);
  return before === 0 ? 0 : round((size * (wanted + maxSurge(deployment))) / before) - size;
}

/** The larger first; of equal ones the newer when there are more to come, the older when there are fewer. */
function bySize(sets: readonly ReplicaSet[], growing: boolean): readonly ReplicaSet[] {
  const ordered = growing ? byAge(sets).toReversed() : byAge(sets);
  return ordered.toSorted((a, b) => replicasOf(b) - replicasOf(a));
}

function inProportion(deployment: Deployment, all: readonly ReplicaSet[]): readonly Scaling[] {
  const wanted = replicasOf(deployment);
  const change = (wanted > 0 ? wanted + maxSurge(deployment) : 0) - specReplicas(all);
  const ordered = bySize(all, change > 0);
  let added = 0;
  const sizes = ordered.map((set) => {
    const allowed = change - added;
    const exact = allowed === 0 ? 0 : fraction(deployment, set);
    const part = change > 0 ? Math.min(exact, allowed) : Math.max(exact, allowed);
    added += part;
    return replicasOf(set) + part;
  });
  return ordered.map((set, index) => {
    const leftover = index === 0 ? change - added : 0;
    return { set, replicas: Math.max(0, (sizes[index] ?? 0) + leftover) };
  });
}

/**
 * The sizes after spec.replicas has changed, or while the deployment is paused. A set that keeps its size is there where
 * its annotations have to be written.
 */
export function scaleAll(deployment: Deployment, { current, old }: Split): readonly Scaling[] {
  const wanted = replicasOf(deployment);
  const all = current === undefined ? old : [...old, current];
  const active = activeSets(all);
  const only = active.length === 0 ? (current ?? byAge(old).at(-1)) : active.length === 1 ? active[0] : undefined;
  if (only !== undefined) return replicasOf(only) === wanted ? [] : [{ set: only, replicas: wanted }];
  if (active.length === 0) return [];
  if (isSaturated(deployment, current)) return activeSets(old).map((set) => ({ set, replicas: 0 }));
  return isRolling(deployment) ? inProportion(deployment, active) : [];
}
