// How soon a status must be written: what others wait for at once, detail with the next that comes. Pure.

import type { PodStatus } from '../../client/types.ts';
import { sameValue } from './status-patch.ts';

const BEGINNING: ReadonlySet<string> = new Set(['', 'ContainerCreating', 'PodInitializing']);

/** How much a status matters to whoever reads it. */
export type StatusUrgency = 'now' | 'soon' | 'later';

/**
 * How long a status may wait for one that takes it along. `now`: the phase, a container or readiness changed. `soon`: a
 * new pod is being worked on, which a moment later most have left behind, or detail. `later`: how far that work is, such
 * as an address before anything listens on it; of interest where the rest of the start takes its time.
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
