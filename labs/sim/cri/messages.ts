// What a simulated runtime keeps, as the messages that CRI has for it: what containerd fills in is filled in, with its
// own defaults for the rest. Pure.

import type { RuntimeImage } from '../../../agent/ports/runtime.ts';
import type { Container__Output } from '../../../proto/gen/runtime/v1/Container.ts';
import type { ContainerState__Output } from '../../../proto/gen/runtime/v1/ContainerState.ts';
import type { ContainerStatus__Output } from '../../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { Image__Output } from '../../../proto/gen/runtime/v1/Image.ts';
import type { ImageSpec__Output } from '../../../proto/gen/runtime/v1/ImageSpec.ts';
import type { PodSandbox__Output } from '../../../proto/gen/runtime/v1/PodSandbox.ts';
import type { PodSandboxMetadata__Output } from '../../../proto/gen/runtime/v1/PodSandboxMetadata.ts';
import type { PodSandboxStatus__Output } from '../../../proto/gen/runtime/v1/PodSandboxStatus.ts';
import type { RuntimeKind } from './kinds.ts';
import type { Instance, Sandbox } from './state.ts';

/** Epoch ms as CRI's nanoseconds. */
export function nanos(ms: number): string {
  return ms === 0 ? '0' : `${ms}000000`;
}

function sandboxMetadata({ pod, attempt }: Sandbox): PodSandboxMetadata__Output {
  return { name: pod.name, uid: pod.uid, namespace: pod.namespace, attempt };
}

export function listedSandbox(sandbox: Sandbox): PodSandbox__Output {
  return {
    id: sandbox.id,
    metadata: sandboxMetadata(sandbox),
    state: sandbox.state === 'ready' ? 'SANDBOX_READY' : 'SANDBOX_NOTREADY',
    created_at: nanos(sandbox.createdAt),
    labels: sandbox.config.labels,
    annotations: sandbox.config.annotations,
    runtime_handler: sandbox.handler,
  };
}

export function sandboxStatus(sandbox: Sandbox): PodSandboxStatus__Output {
  const [ip = '', ...others] = sandbox.netns === '' ? [] : sandbox.ips;
  const options = sandbox.config.linux?.security_context?.namespace_options ?? null;
  return {
    ...listedSandbox(sandbox),
    network: { ip, additional_ips: others.map((address) => ({ ip: address })) },
    linux: { namespaces: { options } },
  };
}

const STATES: Readonly<Record<Instance['shown'], ContainerState__Output>> = {
  created: 'CONTAINER_CREATED',
  running: 'CONTAINER_RUNNING',
  exited: 'CONTAINER_EXITED',
  unknown: 'CONTAINER_UNKNOWN',
};

function imageSpec(image: string): ImageSpec__Output {
  return { image, annotations: {}, user_specified_image: '', runtime_handler: '', image_ref: '' };
}

function imageRef({ repoDigests, id }: RuntimeImage): string {
  return repoDigests[0] ?? id;
}

export function listedContainer(instance: Instance): Container__Output {
  return {
    id: instance.id,
    pod_sandbox_id: instance.sandboxId,
    metadata: instance.config.metadata,
    image: instance.config.image,
    image_ref: imageRef(instance.image),
    state: STATES[instance.shown],
    created_at: nanos(instance.createdAt),
    labels: instance.config.labels,
    annotations: instance.config.annotations,
    image_id: instance.image.id,
  };
}

export function containerStatus(instance: Instance, kind: RuntimeKind): ContainerStatus__Output {
  const { config, image } = instance;
  const end = instance.shown === 'exited' ? instance.end : undefined;
  const begun = instance.shown !== 'created';
  return {
    id: instance.id,
    metadata: config.metadata,
    state: STATES[instance.shown],
    created_at: nanos(instance.createdAt),
    started_at: nanos(begun ? instance.startedAt : 0),
    finished_at: nanos(end?.at ?? 0),
    exit_code: end?.exitCode ?? 0,
    image: imageSpec(image.repoTags[0] ?? image.id),
    image_ref: imageRef(image),
    reason: end?.reason ?? '',
    message: end?.message ?? '',
    labels: config.labels,
    annotations: config.annotations,
    mounts: config.mounts,
    log_path: instance.logPath,
    resources:
      kind.tellsResources && instance.resources !== undefined ? { linux: instance.resources, windows: null } : null,
    image_id: image.id,
    user: kind.tellsUser ? { linux: { uid: '0', gid: '0', supplemental_groups: ['0'] } } : null,
    stop_signal: config.stop_signal,
  };
}

export function imageMessage(image: RuntimeImage): Image__Output {
  return {
    id: image.id,
    repo_tags: [...image.repoTags],
    repo_digests: [...image.repoDigests],
    size: String(image.sizeBytes),
    uid: { value: '0' },
    username: '',
    spec: null,
    pinned: image.pinned,
  };
}
