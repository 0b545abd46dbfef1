// Everything that a decision about a pod depends on, and how the newest instance of a container is found in it. Decides nothing.

import type { Pod, PodStatus } from '../../client/types.ts';
import type { BackoffEntry, BackoffPolicy } from '../../lib/backoff.ts';
import type { EpochMs } from '../../lib/clock.ts';
import type { ProbeResults } from '../ports/probes.ts';
import type { ContainerId, ContainerSnapshot, PodSnapshot } from '../ports/runtime.ts';
import type { ResizeFacts } from './resize/pod-resizes.ts';

/** Everything the decision depends on. */
export interface PodFacts {
  readonly pod: Pod;
  readonly snapshot: PodSnapshot;
  /** The status last reported, here or before the agent restarted. */
  readonly previous: PodStatus | undefined;
  readonly probes: ProbeResults;
  /** Restart back-off, by restartBackoffKey. */
  readonly backoff: ReadonlyMap<string, BackoffEntry<EpochMs>>;
  readonly backoffPolicy: BackoffPolicy;
  /** Epoch ms. */
  readonly now: EpochMs;
  /** A sandbox is being made or torn down; nothing can be decided before that is over. */
  readonly sandboxBusy: boolean;
  /** Names of containers whose start is under way, its postStart hook included. */
  readonly starting: ReadonlySet<string>;
  /** Instances that are being stopped. */
  readonly killing: ReadonlySet<ContainerId>;
  /** Containers that were stopped in order to run again, by name. */
  readonly restartWanted: ReadonlyMap<string, RestartWanted>;
  /** A resize that was granted and is not done. */
  readonly resize?: ResizeFacts | undefined;
}

/**
 * The start that follows a stop of our own is part of it, as in the kubelet: back-off is computed from the end (epoch ms) of
 * the instance before, and where there was none there is none. `waited`: it had to wait all the same, and back-off is computed from
 * its own end now.
 */
export type RestartWanted = { readonly endedBefore: EpochMs | undefined } | 'waited';

/** The newest instance of a container. */
export function newestOf(snapshot: PodSnapshot, name: string): ContainerSnapshot | undefined {
  return snapshot.containers.find((container) => container.name === name);
}

/** The newest instance of a container that has ended. */
export function newestEnded(snapshot: PodSnapshot, name: string): ContainerSnapshot | undefined {
  return snapshot.containers.find((container) => container.name === name && container.state === 'exited');
}
