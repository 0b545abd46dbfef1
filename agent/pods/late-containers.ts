// Containers that the runtime made for an agent that was killed meanwhile: the agent after it had already reported the end before
// them as the last one. A last end is never taken back (an API server refuses it), so they do not start. Pure.

import type { Pod, PodStatus } from '../../client/types.ts';
import { restartsAfterExit } from '../model/restart-policy.ts';
import type { ContainerSnapshot, PodSnapshot } from '../ports/runtime.ts';

/** Names of regular containers whose end was reported, and is the last one by policy. */
function lastEnds(pod: Pod, previous: PodStatus | undefined): ReadonlySet<string> {
  const ended = (previous?.containerStatuses ?? []).flatMap(({ name, state }) => {
    const container = pod.spec.containers.find((each) => each.name === name);
    const end = state?.terminated;
    return end === undefined || container === undefined || restartsAfterExit(pod, container, end.exitCode)
      ? []
      : [name];
  });
  return new Set(ended);
}

/** The snapshot without containers that were never started and whose predecessor's end is reported as the last one. */
export function withoutLateContainers(
  pod: Pod,
  previous: PodStatus | undefined,
  snapshot: PodSnapshot,
  restartWanted: (name: string) => boolean,
): PodSnapshot {
  if (!snapshot.containers.some(({ state }) => state === 'created')) return snapshot;
  const ended = lastEnds(pod, previous);
  const isLate = ({ name, state }: ContainerSnapshot): boolean =>
    state === 'created' && ended.has(name) && !restartWanted(name);
  return { ...snapshot, containers: snapshot.containers.filter((container) => !isLate(container)) };
}
