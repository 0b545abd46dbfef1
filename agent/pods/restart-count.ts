// How often a container has been restarted. The count never decreases: the runtime's instances and the reported status
// are both read, since either may have been lost (container removed, agent restarted, status not written yet). Pure.

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

type StatusList = 'containerStatuses' | 'initContainerStatuses' | 'ephemeralContainerStatuses';
const STATUS_LISTS: readonly StatusList[] = [
  'containerStatuses',
  'initContainerStatuses',
  'ephemeralContainerStatuses',
];

/**
 * `status` with no count lower than `written` has it: what an earlier agent wrote may arrive only after the
 * first observation of the runtime, which has removed the instances. The same object when there is nothing to raise.
 */
export function keepRestartCounts(status: PodStatus, written: PodStatus | undefined): PodStatus {
  let kept = status;
  for (const list of STATUS_LISTS) {
    const counts = new Map(written?.[list]?.map(({ name, restartCount }) => [name, restartCount]));
    if (status[list]?.some(({ name, restartCount }) => restartCount < (counts.get(name) ?? 0)) !== true) continue;
    const raised = status[list].map((each) => ({
      ...each,
      restartCount: Math.max(each.restartCount, counts.get(each.name) ?? 0),
    }));
    kept = { ...kept, [list]: raised };
  }
  return kept;
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
