// How soon a status must be written: at once where clients wait for it, details with the next write. Pure.

import type { PodStatus } from '../../client/types.ts';
import { sameValue } from './status-patch.ts';

const BEGINNING: ReadonlySet<string> = new Set(['', 'ContainerCreating', 'PodInitializing']);

/** How urgent a status is for its readers. */
export type StatusUrgency = 'now' | 'soon' | 'later';

/**
 * How long a status may wait for the next write. `now`: the phase, a container or readiness changed. `soon`: a
 * new pod is being started, which is soon outdated, or detail. `later`: the progress of a start, such
 * as an address before anything listens on it; of interest only when the start is slow.
 */
export function statusUrgency(previous: PodStatus | undefined, status: PodStatus): StatusUrgency {
  if (isBeginning(previous) && isBeginning(status)) return previous?.startTime === undefined ? 'soon' : 'later';
  const readiness = (of: PodStatus | undefined) => of?.conditions?.find(({ type }) => type === 'Ready')?.status;
  const isImportant =
    previous === undefined ||
    previous.phase !== status.phase ||
    previous.startTime === undefined ||
    readiness(previous) !== readiness(status) ||
    !sameValue(previous.containerStatuses, status.containerStatuses) ||
    !sameValue(previous.initContainerStatuses, status.initContainerStatuses) ||
    !sameValue(previous.ephemeralContainerStatuses, status.ephemeralContainerStatuses);
  return isImportant ? 'now' : 'soon';
}

/** Nothing has started yet and nothing has gone wrong. */
function isBeginning(status: PodStatus | undefined): boolean {
  if (status === undefined) return true;
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  return (
    (status.phase ?? 'Pending') === 'Pending' &&
    all.every(
      ({ state = {}, restartCount }) =>
        restartCount === 0 &&
        state.running === undefined &&
        state.terminated === undefined &&
        BEGINNING.has(state.waiting?.reason ?? ''),
    )
  );
}
