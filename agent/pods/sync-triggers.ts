// What triggers a sync of a pod: runtime events that may show something new, and versions of the pod that change
// something. A cause is recorded in the trace and nowhere else: nothing is decided by it. Pure.

import type { Pod } from '../../client/types.ts';
import type { PodSource } from '../ports/api.ts';
import type { ProbeCause } from '../ports/probes.ts';
import type { PodLifecycleEvent, PodSnapshot } from '../ports/runtime.ts';
import { sameValue } from './status-patch.ts';
import type { LastingAction } from './sync-action.ts';

/** Why a pod is synced, for the trace. */
export type SyncCause =
  | `pod added by ${PodSource['name']}`
  | 'pod updated'
  | 'pod resized'
  | 'pod removed'
  | 'pod evicted'
  | 'pod started late'
  | 'timer'
  | PodLifecycleEvent['type']
  | `${LastingAction['kind']} ended`
  | ProbeCause;

/**
 * Whether an event may show something that the last observation does not. `starting`: the worker is starting something
 * itself and observes when that is done, so starts are nothing new.
 */
export function eventNeedsSync(
  event: PodLifecycleEvent,
  snapshot: PodSnapshot | undefined,
  starting: boolean,
): boolean {
  if (snapshot === undefined || event.type === 'podSync') return true;
  const { containerId, type } = event;
  if (type === 'containerStarted' && starting) return false;
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

/** Whether a newer version of the pod needs a sync; the echo of our own status does not. */
export function podNeedsSync(before: Pod, after: Pod): boolean {
  // Readiness gates are conditions that other components write into the status.
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
