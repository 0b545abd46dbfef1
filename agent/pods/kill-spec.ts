// The parameters of the stop of one container: its definition, its grace period, the containers it waits for. Pure.

import type { Pod, PodStatus } from '../../client/types.ts';
import type { ContainerSnapshot } from '../ports/runtime.ts';
import type { KillAction } from './pod-action.ts';
import type { KillSpec } from './sync-action.ts';
import { gracePeriodSeconds, stopsAfter } from './termination.ts';

/** `grantedSeconds`: the most that the node grants, where it has little time itself. */
export function killSpec(
  pod: Pod,
  previous: PodStatus | undefined,
  instance: ContainerSnapshot,
  reason: KillAction['reason'] | 'podEnds',
  options: { readonly message?: string; readonly grantedSeconds?: number | undefined } = {},
): KillSpec {
  const { message = `Stopping container ${instance.name}`, grantedSeconds } = options;
  const spec = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find(({ name }) => name === instance.name);
  return {
    instance,
    spec,
    message,
    graceSeconds: gracePeriodSeconds(pod, spec, reason, grantedSeconds),
    after: reason === 'podEnds' ? stopsAfter(pod, instance.name) : new Set(),
    podIP: previous?.podIP,
  };
}
