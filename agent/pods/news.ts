// What is worth waking up for, and what is worth writing at once. Pure.

import type { Pod, PodStatus } from '../../client/types.ts';
import type { PodLifecycleEvent, PodSnapshot } from '../ports/runtime.ts';
import { sameValue } from './status-patch.ts';

const BEGINNING: ReadonlySet<string> = new Set(['', 'ContainerCreating', 'PodInitializing']);

/**
 * Whether an event may tell something that the last observation does not. `acting`: the worker is starting something
 * itself and will look when that is done, so starts are no news.
 */
export function isNews(event: PodLifecycleEvent, snapshot: PodSnapshot | undefined, acting: boolean): boolean {
  if (snapshot === undefined || event.type === 'podSync') return true;
  const { containerId, type } = event;
  if (type === 'containerStarted' && acting) return false;
  if (containerId === undefined) return true;
  // Some runtimes report a sandbox's own process as a container.
  const sandbox = snapshot.sandboxes.find(({ id }) => String(id) === String(containerId));
  const container = snapshot.containers.find(({ id }) => id === containerId);
  switch (type) {
    case 'containerStarted':
      return sandbox === undefined && (container === undefined || container.state === 'created');
    case 'containerDied':
      return sandbox?.state !== 'notReady' && container?.state !== 'exited';
    default:
      return sandbox !== undefined || container !== undefined;
  }
}

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
  const tellsMore =
    previous === undefined ||
    previous.phase !== status.phase ||
    previous.startTime === undefined ||
    readiness(previous) !== readiness(status) ||
    !sameValue(previous.containerStatuses, status.containerStatuses) ||
    !sameValue(previous.initContainerStatuses, status.initContainerStatuses) ||
    !sameValue(previous.ephemeralContainerStatuses, status.ephemeralContainerStatuses);
  return tellsMore ? 'now' : 'soon';
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

/** Whether a newer version of the pod asks for anything; the echo of our own status does not. */
export function asksForMore(before: Pod, after: Pod): boolean {
  // Readiness gates are conditions that others write into the status.
  if ((after.spec.readinessGates ?? []).length > 0) return true;
  const [old, now] = [before.metadata, after.metadata];
  return (
    // The status names the generation that it is about.
    old.generation !== now.generation ||
    old.deletionTimestamp !== now.deletionTimestamp ||
    old.deletionGracePeriodSeconds !== now.deletionGracePeriodSeconds ||
    !sameValue(old.labels, now.labels) ||
    !sameValue(old.annotations, now.annotations) ||
    !sameValue(before.spec, after.spec)
  );
}
