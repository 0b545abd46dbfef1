// ContainerStatus: what is reported about each container of a pod, from what the runtime shows, what was reported
// before and why a start waits. Follows the kubelet's convertToAPIContainerStatuses. Pure.

import type { Container, ContainerStatus, EphemeralContainer, Pod } from '../../client/types.ts';
import { epochMs } from '../../lib/clock.ts';
import { getOwn } from '../../lib/own-property.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { isSidecar } from '../../lib/sidecar.ts';
import { initRestartsAfterExit, restartsAfterExit, shouldContainerBeRestarted } from '../model/restart-policy.ts';
import type { ProbeResults } from '../ports/probes.ts';
import type { ContainerSnapshot, PodSnapshot } from '../ports/runtime.ts';
import { type ResizeReport, reportedResources } from './resize/resize-status.ts';

/** Why a container is not running although it should be. */
export interface WaitingReason {
  /** CrashLoopBackOff, ErrImagePull, ImagePullBackOff, CreateContainerConfigError, CreateContainerError, … */
  readonly reason: string;
  readonly message: string;
}

type State = NonNullable<ContainerStatus['state']>;

/** A ContainerStatus with the fields that are newer than the generated types. */
export type ReportedContainerStatus = ContainerStatus & {
  user?: { linux: { uid: number; gid: number; supplementalGroups: number[] } };
  stopSignal?: string;
};

export interface ContainerStatusFacts {
  readonly pod: Pod;
  /** As the runtime calls itself ("containerd", "cri-o"): ids are written with it. */
  readonly runtimeName: string;
  readonly snapshot: PodSnapshot;
  readonly probes: ProbeResults;
  /** Why a container's start waits or failed, by name. */
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  /** Names of containers that run again regardless of restartPolicy. */
  readonly restarting?: ReadonlySet<string>;
  /** The state of a resize of the pod. */
  readonly resize?: ResizeReport | undefined;
}

/** Exit code of a container whose exit was not observed. */
const UNKNOWN_EXIT_CODE = 137;
export const STATUS_UNKNOWN = 'ContainerStatusUnknown';

function unknownEnd(verb: 'deleted' | 'terminated', containerID?: string): NonNullable<State['terminated']> {
  const suffix = verb === 'deleted' ? '.  The container used to be Running' : '';
  return {
    exitCode: UNKNOWN_EXIT_CODE,
    reason: STATUS_UNKNOWN,
    message: `The container could not be located when the pod was ${verb}${suffix}`,
    ...(containerID === undefined ? {} : { containerID }),
    // The API requires neither time where they are unknown, but clients expect RFC 3339: the kubelet leaves them null.
  };
}

/** The id as the API writes it, with the runtime's own name in front. */
function apiContainerId(runtimeName: string, id: string): string {
  return `${runtimeName}://${id}`;
}

/** What was reported of the end of this very instance: its files may be gone since. */
function reportedMessage(containerID: string, old: ContainerStatus | undefined): string {
  const ends = [old?.state?.terminated, old?.lastState?.terminated];
  const end = ends.find((candidate) => candidate?.containerID === containerID && candidate.reason !== STATUS_UNKNOWN);
  return end?.message ?? '';
}

/** `old`: what was reported of the container while this was its newest instance; `reported`: last of all. */
function stateOf(
  container: ContainerSnapshot,
  containerID: string,
  old: ContainerStatus | undefined,
  reported: ContainerStatus | undefined,
): State {
  switch (container.state) {
    case 'running':
      // An instance runs once. After a restart of the agent the runtime may still show an instance as running whose exit
      // an event has reported, and a reported termination is never revoked.
      if (old?.state?.terminated?.containerID === containerID) return old.state;
      return { running: { startedAt: rfc3339(epochMs(container.startedAt)) } };
    case 'exited': {
      const message = container.message === '' ? reportedMessage(containerID, reported) : container.message;
      return {
        terminated: {
          exitCode: container.exitCode,
          ...(container.reason === '' ? {} : { reason: container.reason }),
          ...(message === '' ? {} : { message }),
          startedAt: rfc3339(epochMs(container.startedAt)),
          finishedAt: rfc3339(epochMs(container.finishedAt)),
          containerID,
        },
      };
    }
    case 'created':
      return { waiting: {} };
    default:
      if (old?.state?.terminated !== undefined) return old.state;
      return old?.state?.running === undefined
        ? { waiting: {} }
        : { terminated: unknownEnd('terminated', containerID) };
  }
}

type VolumeMountStatuses = NonNullable<ContainerStatus['volumeMounts']>;

/** IfPossible is what it came to: Enabled or Disabled. Before there is an instance only Enabled is certain. */
function volumeMountStatuses(
  container: Container | EphemeralContainer,
  instance: ContainerSnapshot | undefined,
): { volumeMounts?: VolumeMountStatuses } {
  const { volumeMounts = [] } = container;
  if (volumeMounts.length === 0) return {};
  const isRecursive = ({ mountPath, recursiveReadOnly }: (typeof volumeMounts)[number]): boolean =>
    instance === undefined ? recursiveReadOnly === 'Enabled' : instance.recursiveReadOnly?.includes(mountPath) === true;
  return {
    volumeMounts: volumeMounts.map((mount) => ({
      name: mount.name,
      mountPath: mount.mountPath,
      ...(mount.readOnly === true
        ? { readOnly: true, recursiveReadOnly: isRecursive(mount) ? 'Enabled' : 'Disabled' }
        : {}),
    })),
  };
}

function seen(
  { runtimeName }: ContainerStatusFacts,
  container: Container | EphemeralContainer,
  instance: ContainerSnapshot,
  before: ContainerSnapshot | undefined,
  old: ContainerStatus | undefined,
): ReportedContainerStatus {
  const containerID = apiContainerId(runtimeName, instance.id);
  const lastState =
    before === undefined ? old?.lastState : stateOf(before, apiContainerId(runtimeName, before.id), undefined, old);
  // What was reported of this very instance's predecessor stays, even after the runtime has removed it.
  const forgotten =
    before === undefined && old?.state?.terminated !== undefined && old.containerID !== containerID
      ? { terminated: old.state.terminated }
      : undefined;
  const kept = forgotten ?? lastState;
  return {
    name: container.name,
    image: instance.image,
    imageID: instance.imageId,
    containerID,
    restartCount: Math.max(instance.restartCount, old?.restartCount ?? 0),
    ready: false,
    started: false,
    state: stateOf(instance, containerID, old, old),
    lastState: kept ?? {},
    ...volumeMountStatuses(container, instance),
    ...(instance.user === undefined
      ? {}
      : {
          user: {
            linux: {
              uid: instance.user.uid,
              gid: instance.user.gid,
              supplementalGroups: [...instance.user.supplementalGroups],
            },
          },
        }),
    ...(instance.stopSignal === undefined ? {} : { stopSignal: instance.stopSignal }),
  };
}

function unseen(
  pod: Pod,
  container: Container | EphemeralContainer,
  old: ContainerStatus | undefined,
): ReportedContainerStatus {
  if (old?.state?.terminated !== undefined) return { ...old, ready: false, started: false };
  const wasRunning = old?.state?.running !== undefined;
  const lost = wasRunning && old?.lastState?.terminated === undefined;
  const base = old?.restartCount ?? 0;
  return {
    name: container.name,
    image: container.image ?? '',
    imageID: '',
    // It ran when it was last reported and is gone now: its end is reported as unknown, and the next is a restart.
    restartCount: lost && pod.metadata.deletionTimestamp === undefined ? base + 1 : base,
    ready: false,
    started: false,
    state: {
      waiting: { reason: (pod.spec.initContainers ?? []).length > 0 ? 'PodInitializing' : 'ContainerCreating' },
    },
    lastState: lost ? { terminated: unknownEnd('deleted') } : (old?.lastState ?? {}),
    ...volumeMountStatuses(container, undefined),
  };
}

/** Whether the container is going to be started (again), so that what holds it up is worth reporting. */
function isToRun(pod: Pod, container: Container, type: ContainerSnapshot['type'], newest?: ContainerSnapshot): boolean {
  if (type !== 'init') return shouldContainerBeRestarted(pod, container, newest);
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  if (newest?.state === 'exited') return initRestartsAfterExit(pod, container, newest.exitCode);
  return newest?.state !== 'running';
}

/** An init container that is nowhere to be found, though a container that comes after it was made in this sandbox. */
function hasCompleted(
  container: Container,
  { state }: ContainerStatus,
  { pod, snapshot }: ContainerStatusFacts,
): boolean {
  if (isSidecar(container) || state?.waiting === undefined) return false;
  const present = snapshot.sandboxes[0]?.id;
  // By name: an instance that a kubelet made has no type label.
  const regular = new Set(pod.spec.containers.map(({ name }) => name));
  return snapshot.containers.some(({ name, sandboxId }) => regular.has(name) && sandboxId === present);
}

const LOST_INIT_END: NonNullable<State['terminated']> = {
  exitCode: 0,
  reason: 'Completed',
  message:
    'Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally',
};

function health(
  container: Container,
  type: ContainerSnapshot['type'],
  state: State,
  id: ContainerSnapshot['id'] | undefined,
  probes: ProbeResults,
): { ready: boolean; started: boolean } {
  const running = state.running !== undefined && id !== undefined;
  const started = running && (container.startupProbe === undefined || probes.startup(id) === 'success');
  if (type === 'init' && !isSidecar(container)) return { started, ready: state.terminated?.exitCode === 0 };
  return { started, ready: started && (container.readinessProbe === undefined || probes.readiness(id) === 'success') };
}

/** Stopped in order to run again, and not created yet. */
const BETWEEN_LIVES: WaitingReason = { reason: 'ContainerCreating', message: '' };

/** One that the runtime has lost sight of is stopped to run again as well. */
function isBetweenLives(
  pod: Pod,
  container: Container,
  newest: ContainerSnapshot | undefined,
  restarting: boolean,
  toRun: boolean,
): boolean {
  if (newest?.state === 'unknown') return toRun && !restartsAfterExit(pod, container, UNKNOWN_EXIT_CODE);
  return restarting && !toRun && newest?.state === 'exited';
}

/**
 * The instances of a container, newest first. In a pod that is being deleted one that is only created is not to start: an end
 * of the one before it that was reported stays. One that was not reported is not reported now: a start under way may succeed.
 */
function reportedInstances(
  pod: Pod,
  { containers }: PodSnapshot,
  { name }: Container,
  previous: ContainerStatus | undefined,
): readonly ContainerSnapshot[] {
  const all = containers.filter((instance) => instance.name === name);
  if (pod.metadata.deletionTimestamp === undefined || previous?.state?.terminated === undefined) return all;
  const newestStarted = all.findIndex(({ state }) => state !== 'created');
  return newestStarted > 0 ? all.slice(newestStarted) : all;
}

/** The statuses of `containers`, in their order in the spec. `old` is what was reported before. */
export function computeContainerStatuses(
  facts: ContainerStatusFacts,
  type: ContainerSnapshot['type'],
  containers: readonly (Container | EphemeralContainer)[],
  old: readonly ContainerStatus[] | undefined,
): ReportedContainerStatus[] {
  const { pod, snapshot, probes, waiting } = facts;
  return containers.map((container) => {
    const previous = old?.find((status) => status.name === container.name);
    const [newest, before] = reportedInstances(pod, snapshot, container, previous);
    let status =
      newest === undefined ? unseen(pod, container, previous) : seen(facts, container, newest, before, previous);
    const toRun = isToRun(pod, container, type, newest);
    const restarting = facts.restarting?.has(container.name) === true;
    // An end that policy makes the last is not reported as one: the API takes none of those back.
    const again = type === 'container' && isBetweenLives(pod, container, newest, restarting, toRun);
    const between = again ? BETWEEN_LIVES : undefined;
    const waitingReason = waiting.get(container.name) ?? between;
    if (waitingReason !== undefined && (restarting || toRun)) {
      const { terminated } = status.state ?? {};
      status = {
        ...status,
        state: {
          waiting: {
            reason: waitingReason.reason,
            ...(waitingReason.message === '' ? {} : { message: waitingReason.message }),
          },
        },
        ...(terminated === undefined ? {} : { lastState: { terminated } }),
      };
    }
    if (type === 'ephemeral') {
      // It has no probes, and is neither ready nor started.
      const { started, ...rest } = status;
      return { ...rest, ...reportedResources(container, newest, undefined) };
    }
    if (type === 'init' && newest === undefined && hasCompleted(container, status, facts)) {
      status = { ...status, state: { terminated: LOST_INIT_END } };
    }
    return {
      ...status,
      ...reportedResources(container, newest, getOwn(facts.resize?.actual, container.name)),
      ...health(container, type, status.state ?? {}, newest?.id, probes),
    };
  });
}

function endedUnknown(status: ReportedContainerStatus): ReportedContainerStatus {
  if (status.state?.terminated !== undefined) return status;
  return {
    ...status,
    ready: false,
    started: false,
    state: { terminated: unknownEnd('terminated', status.containerID) },
  };
}

function neverStarted(status: ContainerStatus): boolean {
  return status.state?.running === undefined && status.state?.terminated === undefined && !status.lastState?.terminated;
}

/**
 * Statuses of a pod whose last container is dead: a container that was due and whose exit was not observed is reported as terminated
 * with ContainerStatusUnknown, even where it was never started. Containers that were never due stay as they are.
 */
export function endedContainerStatuses(
  regular: readonly ReportedContainerStatus[],
  init: readonly ReportedContainerStatus[],
): { regular: ReportedContainerStatus[]; init: ReportedContainerStatus[] } {
  const last = init.at(-1);
  // Without init containers there is nothing that a container could still be waiting for.
  const initialized = last === undefined || last.state?.terminated?.exitCode === 0 || last.started === true;
  const begun = Math.max(
    0,
    init.findLastIndex((status) => !neverStarted(status)),
  );
  return {
    regular: initialized || regular.some((status) => !neverStarted(status)) ? regular.map(endedUnknown) : [...regular],
    init: init.map((status, index) => (index <= begun ? endedUnknown(status) : status)),
  };
}
