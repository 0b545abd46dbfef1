// The states of a pod on this node, what each holds, and every way from one to the next: the states of the kubelet's pod
// workers (pkg/kubelet/pod_workers.go). Data and pure functions. What is done in a state is decided in sync-pod.ts,
// sync-terminating-pod.ts and sync-terminated-pod.ts; what an action's end changes, in outcome.ts. docs/pod-lifecycle.md shows
// the table below.

import type { BackoffEntry } from '../../lib/backoff.ts';
import type { EpochMs } from '../../lib/clock.ts';
import { invariant } from '../../lib/invariant.ts';
import type { PodEnd } from '../ports/pod-end.ts';
import type { ContainerId, SandboxId } from '../ports/runtime.ts';
import type { WaitingReason } from './container-status.ts';
import type { RestartWanted } from './pod-facts.ts';
import { NO_RETRIES, type Retries } from './retries.ts';
import { NOTHING_UNDER_WAY, type UnderWay } from './sync-action.ts';

interface Activity {
  readonly underWay: UnderWay;
  /** When what failed may be tried again, by action id. */
  readonly retries: Retries;
}

/** The pod should run: what is missing is made, what ended is started again. */
export interface SyncingState extends Activity {
  readonly kind: 'syncing';
  /** Its cgroup is made and its volumes are mounted. */
  readonly prepared: boolean;
  /** Back-off of restarts, by restartBackoffKey. */
  readonly restartBackoff: ReadonlyMap<string, BackoffEntry<EpochMs>>;
  /** Containers that were stopped in order to run again, by name. */
  readonly restartWanted: ReadonlyMap<string, RestartWanted>;
  /** Why a container's start failed, by name. */
  readonly startErrors: ReadonlyMap<string, WaitingReason>;
  /** Instances whose postStart hook failed, until they are seen dead. */
  readonly failedPostStart: ReadonlySet<ContainerId>;
  /** Until when (epoch ms) the wait lasts that had its BackOff event, by container name. */
  readonly backOffEvents: ReadonlyMap<string, EpochMs>;
}

/** What every state after `syncing` contains about the termination. */
interface Ended {
  /** Why the node itself ended the pod; its phase becomes Failed. */
  readonly podEnd: PodEnd | undefined;
  /** The most seconds that the node grants; undefined where the pod's own grace period counts. */
  readonly grantedSeconds: number | undefined;
  /** Why a container's start had failed, by name. */
  readonly startErrors: ReadonlyMap<string, WaitingReason>;
  /** Sandboxes that were stopped, whatever the runtime shows of them. */
  readonly stoppedSandboxes: ReadonlySet<SandboxId>;
}

/** The pod should stop: containers are killed, then its sandboxes are stopped. */
export interface TerminatingState extends Activity, Ended {
  readonly kind: 'terminating';
  readonly cause: TerminationCause;
  /** The pod's grace period when it was last computed; kills under way use it. */
  readonly graceSeconds: number | undefined;
  /** When (epoch ms) a kill of an instance last ended well. */
  readonly killedAt: ReadonlyMap<ContainerId, EpochMs>;
}

/** No container runs and no sandbox holds a network: volumes are unmounted and the cgroup is removed. */
export interface TerminatedState extends Activity, Ended {
  readonly kind: 'terminated';
}

/** The pod uses nothing of the node. Its dead containers stay for their logs until it is deleted. */
export interface FinishedState extends Activity, Ended {
  readonly kind: 'finished';
  /** Nothing of the pod was ever here. */
  readonly neverRan: boolean;
  /** The API object may go. */
  readonly finalized: boolean;
}

/** Nothing of the pod is left on this node. */
export interface RemovedState extends Activity {
  readonly kind: 'removed';
}

export type PodState = SyncingState | TerminatingState | TerminatedState | FinishedState | RemovedState;

export type TerminationCause =
  | 'deleted'
  | 'removed'
  | 'evicted'
  | 'deadlineExceeded'
  | 'terminalPhase'
  | 'completed'
  | 'initFailed'
  | 'sandboxDead'
  | 'startedLate';

export interface Transition {
  readonly from: PodState['kind'] | 'new';
  readonly cause: TerminationCause | 'admitted' | 'rejected' | 'stopped' | 'resourcesReleased' | 'removedFromRuntime';
  readonly to: PodState['kind'];
  readonly comment: string;
}

/** Every way from a state to the next; there is no other. */
export const TRANSITIONS: readonly Transition[] = [
  {
    from: 'new',
    cause: 'admitted',
    to: 'syncing',
    comment:
      'The node takes the pod, or has it from before: a restart of the agent begins here, whatever the pod was at.',
  },
  {
    from: 'new',
    cause: 'rejected',
    to: 'finished',
    comment: 'Admission refuses the pod and nothing of it was ever here: it is Failed.',
  },
  { from: 'syncing', cause: 'deleted', to: 'terminating', comment: 'The API object has a deletionTimestamp.' },
  { from: 'syncing', cause: 'removed', to: 'terminating', comment: 'No source has the pod any more.' },
  {
    from: 'syncing',
    cause: 'evicted',
    to: 'terminating',
    comment: 'The node ends the pod: eviction, preemption, shutdown, or admission refuses what an earlier agent ran.',
  },
  {
    from: 'syncing',
    cause: 'deadlineExceeded',
    to: 'terminating',
    comment: 'It was active for longer than activeDeadlineSeconds.',
  },
  {
    from: 'syncing',
    cause: 'terminalPhase',
    to: 'terminating',
    comment: 'It was reported Succeeded or Failed before the agent was restarted.',
  },
  {
    from: 'syncing',
    cause: 'completed',
    to: 'terminating',
    comment: 'No regular container runs, and none is to run again.',
  },
  {
    from: 'syncing',
    cause: 'initFailed',
    to: 'terminating',
    comment: 'An init container failed and is not to run again.',
  },
  {
    from: 'syncing',
    cause: 'sandboxDead',
    to: 'terminating',
    comment: 'The sandbox is gone and nothing is left to run in a new one.',
  },
  {
    from: 'terminating',
    cause: 'stopped',
    to: 'terminated',
    comment: 'No container runs, nothing is being started, and every sandbox was stopped.',
  },
  {
    from: 'terminated',
    cause: 'startedLate',
    to: 'terminating',
    comment: 'A container or sandbox came up after all, from a call that was given up.',
  },
  {
    from: 'terminated',
    cause: 'resourcesReleased',
    to: 'finished',
    comment: 'Volumes are unmounted and the cgroup is removed. A deleted pod is finalized now: its API object goes.',
  },
  {
    from: 'finished',
    cause: 'startedLate',
    to: 'terminating',
    comment: 'A container or sandbox came up after all, from a call that was given up.',
  },
  {
    from: 'finished',
    cause: 'removedFromRuntime',
    to: 'removed',
    comment: 'The pod is deleted or no source has it, and the runtime has nothing of it any more.',
  },
];

/** Whether the table has this way. */
export function isTransition(from: Transition['from'], cause: Transition['cause'], to: Transition['to']): boolean {
  return TRANSITIONS.some((each) => each.from === from && each.cause === cause && each.to === to);
}

function enter<S extends PodState>(from: Transition['from'], cause: Transition['cause'], next: S): S {
  invariant(isTransition(from, cause, next.kind), 'a pod changes its state as the table says', () => ({
    from,
    cause,
    to: next.kind,
  }));
  return next;
}

const TERMINATION_MESSAGES: Readonly<Record<TerminationCause, string>> = {
  deleted: 'Pod is marked for graceful deletion, begin teardown',
  removed: 'Pod is being removed by the kubelet, begin teardown',
  evicted: 'Pod is being evicted by the kubelet, begin teardown',
  deadlineExceeded: 'Pod exceeded its activeDeadlineSeconds, begin teardown',
  terminalPhase: 'Pod is in a terminal phase (success/failed), begin teardown',
  completed: 'Pod indicated lifecycle completed naturally and should now terminate',
  initFailed: 'Pod has a failed init container and should now terminate',
  sandboxDead: 'Pod has no sandbox and nothing left to run, and should now terminate',
  startedLate: 'Pod has a container or sandbox that started late, begin teardown',
};

/** The log line of a pod that enters the state: the kubelet's, where it has one. */
export function stateMessage(state: PodState): string {
  switch (state.kind) {
    case 'syncing':
      return 'Pod is being synced for the first time';
    case 'terminating':
      return TERMINATION_MESSAGES[state.cause];
    case 'terminated':
      return 'Pod terminated all containers successfully';
    case 'finished':
      return 'Pod is complete and the worker can now stop';
    case 'removed':
      return 'Pod has been removed from the container runtime';
  }
}

export function admittedPod(): SyncingState {
  return enter('new', 'admitted', {
    kind: 'syncing',
    underWay: NOTHING_UNDER_WAY,
    retries: NO_RETRIES,
    prepared: false,
    restartBackoff: new Map(),
    restartWanted: new Map(),
    startErrors: new Map(),
    failedPostStart: new Set(),
    backOffEvents: new Map(),
  });
}

export function rejectedPod(): FinishedState {
  return enter('new', 'rejected', {
    kind: 'finished',
    underWay: NOTHING_UNDER_WAY,
    retries: NO_RETRIES,
    podEnd: undefined,
    grantedSeconds: undefined,
    startErrors: new Map(),
    stoppedSandboxes: new Set(),
    neverRan: true,
    finalized: false,
  });
}

/** Actions under way continue; failed ones may be retried at once. */
export function terminatingPod(
  from: SyncingState | TerminatedState | FinishedState,
  cause: TerminationCause,
  podEnd?: PodEnd,
): TerminatingState {
  const ended: Ended =
    from.kind === 'syncing'
      ? { podEnd, grantedSeconds: podEnd?.graceSeconds, startErrors: from.startErrors, stoppedSandboxes: new Set() }
      : endOf(from);
  return enter(from.kind, cause, {
    ...ended,
    kind: 'terminating',
    cause,
    underWay: from.underWay,
    retries: NO_RETRIES,
    graceSeconds: undefined,
    killedAt: new Map(),
  });
}

function endOf({ podEnd, grantedSeconds, startErrors, stoppedSandboxes }: Ended): Ended {
  return { podEnd, grantedSeconds, startErrors, stoppedSandboxes };
}

export function terminatedPod(from: TerminatingState): TerminatedState {
  return enter(from.kind, 'stopped', {
    ...endOf(from),
    kind: 'terminated',
    underWay: from.underWay,
    retries: NO_RETRIES,
  });
}

export function finishedPod(from: TerminatedState): FinishedState {
  return enter(from.kind, 'resourcesReleased', {
    ...endOf(from),
    kind: 'finished',
    underWay: from.underWay,
    retries: NO_RETRIES,
    neverRan: false,
    finalized: false,
  });
}

export function removedPod(from: FinishedState): RemovedState {
  return enter(from.kind, 'removedFromRuntime', {
    kind: 'removed',
    underWay: NOTHING_UNDER_WAY,
    retries: NO_RETRIES,
  });
}
