// How often a container has been restarted. The count never goes back: the runtime's memory and the reported status
// are both asked, since either may have been lost (container removed, agent restarted, status not written yet). Pure.

import type { ContainerStatus, PodStatus } from '../../client/types.ts';
import type { PodSnapshot } from '../ports/runtime.ts';

/** The last reported status of a container of any type. */
export function previousStatusOf(previous: PodStatus | undefined, name: string): ContainerStatus | undefined {
  const byName = (status: ContainerStatus): boolean => status.name === name;
  return (
    previous?.containerStatuses?.find(byName) ??
    previous?.initContainerStatuses?.find(byName) ??
    previous?.ephemeralContainerStatuses?.find(byName)
  );
}

/** The restart count of the next instance. */
export function nextRestartCount(name: string, snapshot: PodSnapshot, previous: PodStatus | undefined): number {
  const known = snapshot.containers.filter((container) => container.name === name).map((c) => c.restartCount + 1);
  const reported = previousStatusOf(previous, name);
  if (reported === undefined) return Math.max(0, ...known);
  const { state, lastState } = reported;
  // A status that waits without an instance behind it already carries the next instance's count.
  const counted =
    state?.running !== undefined || state?.terminated !== undefined || lastState?.terminated?.containerID !== undefined;
  return Math.max(counted ? reported.restartCount + 1 : reported.restartCount, ...known);
}
