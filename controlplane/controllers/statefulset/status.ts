// The status of a stateful set. When all pods are of the update version, that becomes the current one. Pure.

import type { Pod } from '../../../client/types.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { replicasOf, type StatefulSetStatus } from '../shared/objects.ts';
import { availableInMs, isReady } from '../shared/pods.ts';
import { podRevision } from './identity.ts';
import type { Facts } from './plan.ts';

/** `updating` is the old pod that is being deleted: it no longer counts as one of the current version. */
export function statefulSetStatus(
  { set, pods, current, update, now }: Facts,
  updating: Pod | undefined,
  collisionCount: number,
): StatefulSetStatus {
  const { minReadySeconds = 0, updateStrategy } = set.spec;
  const staying = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const ready = pods.filter((pod) => pod.status?.phase === 'Running' && isReady(pod));
  const of = (name: string): number => staying.filter((pod) => podRevision(pod) === name).length;
  const left = updating !== undefined && podRevision(updating) === current.name ? 1 : 0;
  const { conditions } = set.status ?? {};
  const status: StatefulSetStatus = {
    observedGeneration: set.metadata.generation ?? 0,
    replicas: pods.length,
    readyReplicas: ready.length,
    availableReplicas: ready.filter((pod) => availableInMs(pod, minReadySeconds, now) === 0).length,
    currentReplicas: of(current.name) - left,
    updatedReplicas: of(update.name),
    currentRevision: current.name,
    updateRevision: update.name,
    collisionCount,
    ...(conditions === undefined ? {} : { conditions }),
  };
  const wanted = replicasOf(set);
  const complete =
    (updateStrategy?.type ?? 'RollingUpdate') === 'RollingUpdate' &&
    status.updatedReplicas === wanted &&
    status.readyReplicas === wanted &&
    status.replicas === wanted;
  return complete ? { ...status, currentReplicas: wanted, currentRevision: update.name } : status;
}

/** A count that the server leaves out when it is 0 counts as 0. */
export function sameStatus(a: StatefulSetStatus | undefined, b: StatefulSetStatus): boolean {
  const whole = (status: Partial<StatefulSetStatus> = {}) => ({
    observedGeneration: 0,
    replicas: 0,
    readyReplicas: 0,
    availableReplicas: 0,
    currentReplicas: 0,
    updatedReplicas: 0,
    collisionCount: 0,
    ...status,
  });
  return sameJson(whole(a), whole(b));
}
