// What the rules and the workload read from objects. Pure.

import type { OwnerReference } from 'kubernetes-types/meta/v1';
import type { Pod } from '../../../client/types.ts';
import type { Deployment } from '../../../controlplane/controllers/shared/objects.ts';

interface Owned {
  readonly metadata: { readonly ownerReferences?: readonly OwnerReference[] };
}

export const controllerUid = ({ metadata }: Owned): string | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;

export const controllerKind = ({ metadata }: Owned): string | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller === true)?.kind;

export const isLeaving = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
export const isOver = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';
export const isActive = (pod: Pod): boolean => !isLeaving(pod) && !isOver(pod);
export const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;

export const ordinalOf = ({ metadata }: Pod): number => Number(/-(\d+)$/.exec(metadata.name)?.[1] ?? '-1');

/** The node that a daemon's pod is for. */
export function targetNode({ spec }: Pod): string | undefined {
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return terms[0]?.matchFields?.[0]?.values?.[0];
}

/** An int or a percentage of `of`, rounded up or down. */
export function scaled(value: number | string | undefined, of: number, round: 'up' | 'down'): number {
  if (typeof value !== 'string') return value ?? 0;
  const exact = (Number(value.replace('%', '')) * of) / 100;
  return round === 'up' ? Math.ceil(exact) : Math.floor(exact);
}

export interface Bounds {
  /** Pods at most, and available ones at least. */
  readonly most: number;
  readonly available: number;
}

/** What a deployment's strategy allows. */
export function boundsOf({ spec }: Deployment): Bounds {
  const replicas = spec.replicas ?? 1;
  if (spec.strategy?.type === 'Recreate') return { most: replicas, available: 0 };
  const { maxSurge, maxUnavailable } = spec.strategy?.rollingUpdate ?? {};
  const surge = scaled(maxSurge, replicas, 'up');
  const unavailable = scaled(maxUnavailable, replicas, 'down');
  return { most: replicas + surge, available: replicas - (surge === 0 && unavailable === 0 ? 1 : unavailable) };
}
