// The status of a daemon set: on how many nodes a pod belongs, is, is ready, available and of the set's template. Pure.

import { sameJson } from '../../../lib/same-json.ts';
import type { DaemonSetStatus } from '../shared/objects.ts';
import { isReady } from '../shared/pods.ts';
import { byAge, type Facts, isAvailable } from './manage.ts';
import { isUpdated, placementOn } from './placement.ts';

/** `observed`: the generation that has been acted on. */
export function daemonSetStatus(facts: Facts, observed: number, collisions: number | undefined): DaemonSetStatus {
  const { set, nodes, pods, hash } = facts;
  const wanted = nodes.filter((node) => placementOn(set, node).run);
  const others = nodes.filter((node) => !wanted.includes(node));
  const podsOn = (name: string) => pods.get(name) ?? [];
  // Of several pods on a node the oldest counts.
  const counted = wanted.flatMap(({ metadata }) => byAge(podsOn(metadata.name))[0] ?? []);
  const ready = counted.filter(isReady);
  const available = ready.filter((pod) => isAvailable(pod, facts)).length;
  const { conditions } = set.status ?? {};
  return {
    currentNumberScheduled: counted.length,
    numberMisscheduled: others.filter(({ metadata }) => podsOn(metadata.name).length > 0).length,
    desiredNumberScheduled: wanted.length,
    numberReady: ready.length,
    observedGeneration: observed,
    updatedNumberScheduled: counted.filter((pod) => isUpdated(set, pod, hash)).length,
    numberAvailable: available,
    numberUnavailable: wanted.length - available,
    ...(collisions === undefined ? {} : { collisionCount: collisions }),
    ...(conditions === undefined ? {} : { conditions }),
  };
}

/** A count that the server leaves out when it is 0 counts as 0. */
export function sameStatus(a: DaemonSetStatus | undefined, b: DaemonSetStatus): boolean {
  const whole = (status: Partial<DaemonSetStatus> = {}) => ({
    currentNumberScheduled: 0,
    numberMisscheduled: 0,
    desiredNumberScheduled: 0,
    numberReady: 0,
    observedGeneration: 0,
    updatedNumberScheduled: 0,
    numberAvailable: 0,
    numberUnavailable: 0,
    ...status,
  });
  return sameJson(whole(a), whole(b));
}
