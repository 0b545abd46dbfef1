// The status of a replica set or a replication controller, from its pods and from how making or deleting pods went. Pure.

import { matchesLabelSelector } from '../../../client/selectors.ts';
import type { Pod } from '../../../client/types.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { type ReplicaSetCondition, type ReplicaSetStatus, type Replicated, replicasOf } from '../shared/objects.ts';
import { availableInMs, isReady } from '../shared/pods.ts';

const FAILURE = 'ReplicaFailure';

/** A failure that is reported stays as it is until pods can be made and deleted again. */
function conditions(set: Replicated, have: number, failure: string | undefined, now: EpochMs): ReplicaSetCondition[] {
  const known = set.status?.conditions ?? [];
  const others = known.filter(({ type }) => type !== FAILURE);
  if (failure === undefined) return others;
  if (others.length < known.length) return known;
  const reason = have < replicasOf(set) ? 'FailedCreate' : 'FailedDelete';
  return [...known, { type: FAILURE, status: 'True', lastTransitionTime: rfc3339(now), reason, message: failure }];
}

/** `active` are the set's pods as they were before the sync; `failure` is why pods could not be made or deleted. */
export function replicaSetStatus(
  set: Replicated,
  active: readonly Pod[],
  failure: string | undefined,
  now: EpochMs,
): ReplicaSetStatus {
  const { template, minReadySeconds = 0 } = set.spec;
  const labels = { matchLabels: template?.metadata?.labels ?? {} };
  const count = (holds: (pod: Pod) => boolean): number => active.filter(holds).length;
  const nextConditions = conditions(set, active.length, failure, now);
  const { conditions: _, ...rest } = set.status ?? { replicas: 0 };
  return {
    ...rest,
    replicas: active.length,
    fullyLabeledReplicas: count((pod) => matchesLabelSelector(labels, pod.metadata.labels ?? {})),
    readyReplicas: count(isReady),
    availableReplicas: count((pod) => availableInMs(pod, minReadySeconds, now) === 0),
    observedGeneration: set.metadata.generation ?? 0,
    ...(nextConditions.length === 0 ? {} : { conditions: nextConditions }),
  };
}

/** A field that the server leaves out when it is 0 counts as 0. */
export function sameStatus(a: ReplicaSetStatus | undefined, b: ReplicaSetStatus): boolean {
  const whole = (status: ReplicaSetStatus | undefined) => ({
    replicas: status?.replicas ?? 0,
    fullyLabeledReplicas: status?.fullyLabeledReplicas ?? 0,
    readyReplicas: status?.readyReplicas ?? 0,
    availableReplicas: status?.availableReplicas ?? 0,
    observedGeneration: status?.observedGeneration ?? 0,
    conditions: status?.conditions ?? [],
  });
  return sameJson(whole(a), whole(b));
}
