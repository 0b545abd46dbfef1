// How long the texts in a PodStatus may be. Much of them comes from programs in containers: what they leave as their last
// words, what their hooks print, what a runtime quotes of it. Cut here, no status outgrows the API. Pure.

import type { ContainerStatus, Pod, PodStatus } from '../../client/types.ts';
import { cutText } from '../../lib/cut.ts';

/**
 * All messages of a pod's container states together, in bytes of UTF-8: each container has an equal share. The kubelet's
 * figure for termination messages (MaxPodTerminationMessageLogLength); here it holds for messages of waiting, too.
 */
const MAX_POD_MESSAGE_BYTES = 12 * 1024;
/** Of the pod's own message and of each condition: what metav1.Condition allows. */
const MAX_CONDITION_MESSAGE_BYTES = 32 * 1024;

type State = NonNullable<ContainerStatus['state']>;

function limitState(state: State | undefined, limit: number): State | undefined {
  const { terminated, waiting } = state ?? {};
  const message = terminated?.message ?? waiting?.message;
  if (message === undefined) return state;
  const kept = cutText(message, limit);
  if (kept.length === message.length) return state;
  return terminated === undefined
    ? { waiting: { ...waiting, message: kept } }
    : { terminated: { ...terminated, message: kept } };
}

function limitStatuses<T extends ContainerStatus>(statuses: readonly T[], limit: number): T[] {
  return statuses.map((status) => {
    const [state, lastState] = [limitState(status.state, limit), limitState(status.lastState, limit)];
    if (state === status.state && lastState === status.lastState) return status;
    return { ...status, ...(state && { state }), ...(lastState && { lastState }) };
  });
}

function limitMessage<T extends { message?: string }>(holder: T): T {
  const { message } = holder;
  if (message === undefined) return holder;
  const kept = cutText(message, MAX_CONDITION_MESSAGE_BYTES);
  return kept.length === message.length ? holder : { ...holder, message: kept };
}

/** The status with no message longer than it may be. Applied twice it changes nothing more. */
export function limitMessages(spec: Pod['spec'], status: PodStatus): PodStatus {
  const containers =
    spec.containers.length + (spec.initContainers?.length ?? 0) + (spec.ephemeralContainers?.length ?? 0);
  const limit = Math.floor(MAX_POD_MESSAGE_BYTES / Math.max(1, containers));
  const { containerStatuses, initContainerStatuses, ephemeralContainerStatuses, conditions } = status;
  return {
    ...limitMessage(status),
    ...(containerStatuses && { containerStatuses: limitStatuses(containerStatuses, limit) }),
    ...(initContainerStatuses && { initContainerStatuses: limitStatuses(initContainerStatuses, limit) }),
    ...(ephemeralContainerStatuses && {
      ephemeralContainerStatuses: limitStatuses(ephemeralContainerStatuses, limit),
    }),
    ...(conditions && { conditions: conditions.map(limitMessage) }),
  };
}
