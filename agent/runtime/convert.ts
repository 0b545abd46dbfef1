// CRI's messages as the port's snapshots: strings of nanoseconds become ms, enum names become ours. Pure.

import { type EpochMs, epochMs, ZERO_TIME } from '../../lib/clock.ts';
import type { Container__Output } from '../../proto/gen/runtime/v1/Container.ts';
import type { ContainerState__Output } from '../../proto/gen/runtime/v1/ContainerState.ts';
import type { ContainerStatus__Output } from '../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { Image__Output } from '../../proto/gen/runtime/v1/Image.ts';
import type { LinuxContainerResources__Output } from '../../proto/gen/runtime/v1/LinuxContainerResources.ts';
import type { PodSandbox__Output } from '../../proto/gen/runtime/v1/PodSandbox.ts';
import type { PodSandboxStatus__Output } from '../../proto/gen/runtime/v1/PodSandboxStatus.ts';
import type { StatusResponse__Output } from '../../proto/gen/runtime/v1/StatusResponse.ts';
import type {
  ContainerId,
  ContainerResourceFigures,
  ContainerSnapshot,
  ContainerSpec,
  RuntimeImage,
  RuntimeStatus,
  SandboxId,
  SandboxSnapshot,
  SandboxSpec,
} from '../ports/runtime.ts';
import {
  ANNOTATION_HASH,
  ANNOTATION_TERMINATION_PATH,
  containerTypeOf,
  LABEL_CONTAINER_NAME,
  restartCountOf,
} from './config/labels.ts';

/** The one place where ids read from the runtime become ours. */
export function containerId(text: string): ContainerId {
  return text as ContainerId;
}

export function sandboxId(text: string): SandboxId {
  return text as SandboxId;
}

/** CRI's nanoseconds as epoch ms; 0 for what has not happened (0, or Go's zero time, which is long before 1970). */
export function nanosToMs(nanos: string): EpochMs {
  // Nanoseconds do not fit a double: cut the digits, not the number.
  return nanos.startsWith('-') ? ZERO_TIME : epochMs(Number(nanos.slice(0, -6)));
}

const CONTAINER_STATES: Readonly<Record<ContainerState__Output, ContainerSnapshot['state']>> = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
  CONTAINER_UNKNOWN: 'unknown',
};

export function containerState(state: ContainerState__Output): ContainerSnapshot['state'] {
  return CONTAINER_STATES[state];
}

/** The fields that only PodSandboxStatus has, and that never change. */
export interface SandboxDetail {
  readonly ips: readonly string[];
  readonly hostNetwork: boolean;
}

export function sandboxDetail(status: PodSandboxStatus__Output): SandboxDetail {
  const hostNetwork = status.linux?.namespaces?.options?.network === 'NODE';
  const ips = [status.network?.ip ?? '', ...(status.network?.additional_ips ?? []).map(({ ip }) => ip)];
  return { hostNetwork, ips: hostNetwork ? [] : ips.filter((ip) => ip !== '') };
}

/** From a list or a status: the fields of both. */
export function sandboxSnapshot(
  item: Pick<
    PodSandbox__Output & PodSandboxStatus__Output,
    'id' | 'metadata' | 'state' | 'created_at' | 'runtime_handler'
  >,
  detail: SandboxDetail,
): SandboxSnapshot {
  return {
    id: sandboxId(item.id),
    attempt: item.metadata?.attempt ?? 0,
    state: item.state === 'SANDBOX_READY' ? 'ready' : 'notReady',
    createdAt: nanosToMs(item.created_at),
    ips: detail.ips,
    hostNetwork: detail.hostNetwork,
    runtimeHandler: item.runtime_handler,
  };
}

/**
 * A sandbox as RunPodSandbox's result and its request show it. `networkKnown`: there is nothing left to read of it;
 * otherwise it has, or may yet get, addresses that have to be read.
 */
export function newSandbox(
  id: SandboxId,
  { pod, attempt, runtimeHandler }: SandboxSpec,
  addresses: readonly string[],
  createdAt: EpochMs,
): { readonly sandbox: SandboxSnapshot; readonly networkKnown: boolean } {
  const hostNetwork = pod.spec.hostNetwork === true;
  const ips = hostNetwork ? [] : addresses;
  return {
    sandbox: { id, attempt, state: 'ready', createdAt, ips, hostNetwork, runtimeHandler },
    networkKnown: hostNetwork || ips.length > 0,
  };
}

/** A container as CreateContainer's result and its request show it: what it was made of has to be read. */
export function newContainer(
  id: ContainerId,
  { sandboxId: sandbox, container, type, restartCount, hash }: ContainerSpec,
  createdAt: EpochMs,
): ContainerSnapshot {
  return {
    id,
    sandboxId: sandbox,
    name: container.name,
    type,
    restartCount,
    hash,
    state: 'created',
    createdAt,
    startedAt: ZERO_TIME,
    finishedAt: ZERO_TIME,
    exitCode: 0,
    reason: '',
    message: '',
    image: container.image ?? '',
    imageId: '',
    logPath: '',
  };
}

/** A container of a list: its identity and state; no exit details. */
export function shallowContainer(item: Container__Output): ContainerSnapshot {
  return {
    id: containerId(item.id),
    sandboxId: sandboxId(item.pod_sandbox_id),
    name: item.labels[LABEL_CONTAINER_NAME] ?? item.metadata?.name ?? '',
    type: containerTypeOf(item.annotations),
    restartCount: restartCountOf(item.annotations, item.metadata?.attempt ?? 0),
    hash: item.annotations[ANNOTATION_HASH] ?? '',
    state: containerState(item.state),
    createdAt: nanosToMs(item.created_at),
    startedAt: ZERO_TIME,
    finishedAt: ZERO_TIME,
    exitCode: 0,
    reason: '',
    message: '',
    image: item.image?.image ?? '',
    imageId: item.image_ref,
    logPath: '',
  };
}

function figures(linux: LinuxContainerResources__Output): ContainerResourceFigures {
  return {
    cpuShares: Number(linux.cpu_shares),
    cpuQuota: Number(linux.cpu_quota),
    cpuPeriod: Number(linux.cpu_period),
    memoryLimitBytes: Number(linux.memory_limit_in_bytes),
    oomScoreAdj: Number(linux.oom_score_adj),
  };
}

/** A container in full; `message` is what terminationMessage read, for one that has exited. */
export function fullContainer(sandbox: string, status: ContainerStatus__Output, message: string): ContainerSnapshot {
  const user = status.user?.linux ?? undefined;
  const resources = status.resources?.linux ?? undefined;
  const stopSignal = status.stop_signal === 'RUNTIME_DEFAULT' ? undefined : status.stop_signal;
  const recursive = status.mounts.filter(({ recursive_read_only }) => recursive_read_only);
  return {
    id: containerId(status.id),
    sandboxId: sandboxId(sandbox),
    name: status.labels[LABEL_CONTAINER_NAME] ?? status.metadata?.name ?? '',
    type: containerTypeOf(status.annotations),
    restartCount: restartCountOf(status.annotations, status.metadata?.attempt ?? 0),
    hash: status.annotations[ANNOTATION_HASH] ?? '',
    state: containerState(status.state),
    createdAt: nanosToMs(status.created_at),
    startedAt: nanosToMs(status.started_at),
    finishedAt: nanosToMs(status.finished_at),
    exitCode: status.exit_code,
    reason: status.reason,
    message,
    image: status.image?.image ?? '',
    imageId: status.image_ref,
    logPath: status.log_path,
    ...(user === undefined
      ? {}
      : {
          user: {
            uid: Number(user.uid),
            gid: Number(user.gid),
            supplementalGroups: user.supplemental_groups.map(Number),
          },
        }),
    ...(resources === undefined ? {} : { resources: figures(resources) }),
    ...(stopSignal === undefined ? {} : { stopSignal }),
    ...(recursive.length === 0 ? {} : { recursiveReadOnly: recursive.map(({ container_path }) => container_path) }),
  };
}

/** The files on the node that belong to one container. */
export interface ContainerFileNames {
  readonly name: string;
  readonly id: string;
  /** '' when it has no log. */
  readonly logPath: string;
  readonly terminationLog: string | undefined;
}

export function containerFileNames(status: ContainerStatus__Output): ContainerFileNames {
  const path = status.annotations[ANNOTATION_TERMINATION_PATH];
  return {
    name: status.labels[LABEL_CONTAINER_NAME] ?? status.metadata?.name ?? '',
    id: status.id,
    logPath: status.log_path,
    terminationLog: status.mounts.find((mount) => mount.container_path === path)?.host_path,
  };
}

export function runtimeImage(image: Image__Output): RuntimeImage {
  return {
    id: image.id,
    repoTags: image.repo_tags,
    repoDigests: image.repo_digests,
    sizeBytes: Number(image.size),
    ...(image.uid === null ? {} : { uid: Number(image.uid.value) }),
    ...(image.username === '' ? {} : { username: image.username }),
    pinned: image.pinned,
  };
}

export function runtimeStatus(response: StatusResponse__Output): RuntimeStatus {
  const condition = (type: string): RuntimeStatus['runtimeReady'] => {
    const found = response.status?.conditions.find((candidate) => candidate.type === type);
    if (found === undefined) {
      return { ok: false, reason: `${type}ConditionMissing`, message: `the runtime reports no condition ${type}` };
    }
    return { ok: found.status, reason: found.reason, message: found.message };
  };
  return {
    runtimeReady: condition('RuntimeReady'),
    networkReady: condition('NetworkReady'),
    handlers: response.runtime_handlers.map((handler) => ({
      name: handler.name,
      recursiveReadOnlyMounts: handler.features?.recursive_read_only_mounts ?? false,
      userNamespaces: handler.features?.user_namespaces ?? false,
    })),
    features: { supplementalGroupsPolicy: response.features?.supplemental_groups_policy ?? false },
  };
}
