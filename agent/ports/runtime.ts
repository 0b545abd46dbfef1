// The ContainerRuntime port: what the agent needs from a container runtime, in the kubelet's words and free of gRPC.
// agent/runtime implements it over CRI, test/sim implements it in memory. Types only.

import type { Container, EphemeralContainer, Pod } from '../../client/types.ts';
import type { EpochMs } from '../../lib/clock.ts';

declare const brand: unique symbol;
/** Ids that are all strings but never interchangeable. */
export type PodUID = string & { readonly [brand]: 'PodUID' };
export type SandboxId = string & { readonly [brand]: 'SandboxId' };
export type ContainerId = string & { readonly [brand]: 'ContainerId' };

export interface PodRef {
  readonly uid: PodUID;
  readonly namespace: string;
  readonly name: string;
}

// ---------------------------------------------------------------- what is: one pod's truth, immutable

export interface SandboxSnapshot {
  readonly id: SandboxId;
  readonly attempt: number;
  readonly state: 'ready' | 'notReady';
  /** Epoch ms. */
  readonly createdAt: EpochMs;
  /** First is the primary address; empty for a host-network pod or one without an address yet. */
  readonly ips: readonly string[];
  readonly hostNetwork: boolean;
  readonly runtimeHandler: string;
}

export interface ContainerSnapshot {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly name: string;
  readonly type: 'init' | 'container' | 'ephemeral';
  /** How often this container of the pod had been started before; the CRI attempt. */
  readonly restartCount: number;
  /** Identity of the container spec it was created from (io.kubernetes.container.hash). */
  readonly hash: string;
  readonly state: 'created' | 'running' | 'exited' | 'unknown';
  /** Epoch ms; 0 when it has not happened. */
  readonly createdAt: EpochMs;
  readonly startedAt: EpochMs;
  readonly finishedAt: EpochMs;
  readonly exitCode: number;
  /** The runtime's own words: "Completed", "Error", "OOMKilled", "StartError". */
  readonly reason: string;
  /** The termination message when exited (file or log tail, by the container's policy), else the runtime's words. */
  readonly message: string;
  /** The image as the runtime names it ("docker.io/library/nginx:stable"); of several names, any. */
  readonly image: string;
  /** What runs: a repo digest where there is one ("docker.io/library/nginx@sha256:…"), else the image's id. */
  readonly imageId: string;
  readonly logPath: string;
  /** Uid, gid and groups of the first process, where the runtime reports them. */
  readonly user?: { readonly uid: number; readonly gid: number; readonly supplementalGroups: readonly number[] };
  /** Limits in force, where the runtime reports them. */
  readonly resources?: ContainerResourceFigures;
  readonly stopSignal?: string;
  /** Paths in the container whose mounts are read-only with everything below them; absent where there are none. */
  readonly recursiveReadOnly?: readonly string[];
}

export interface ContainerResourceFigures {
  readonly cpuShares?: number;
  /** Microseconds per period; -1 is no limit. */
  readonly cpuQuota?: number;
  readonly cpuPeriod?: number;
  /** Bytes; 0 is no limit. */
  readonly memoryLimitBytes?: number;
  readonly oomScoreAdj?: number;
}

export interface PodSnapshot {
  readonly pod: PodRef;
  /** Newest attempt first. */
  readonly sandboxes: readonly SandboxSnapshot[];
  /** Newest first; every instance that the runtime still lists, exited ones too. */
  readonly containers: readonly ContainerSnapshot[];
  /** Epoch ms at which the observation began. */
  readonly observedAt: EpochMs;
}

export interface RuntimeVersion {
  readonly name: string;
  readonly version: string;
  readonly apiVersion: string;
}

export interface RuntimeConditionSnapshot {
  readonly ok: boolean;
  readonly reason: string;
  readonly message: string;
}

export interface RuntimeStatus {
  readonly runtimeReady: RuntimeConditionSnapshot;
  readonly networkReady: RuntimeConditionSnapshot;
  readonly handlers: readonly {
    readonly name: string;
    readonly recursiveReadOnlyMounts: boolean;
    readonly userNamespaces: boolean;
  }[];
  readonly features: { readonly supplementalGroupsPolicy: boolean };
}

export interface RuntimeImage {
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
  readonly sizeBytes: number;
  /** The image's USER when it is numeric; undefined when it is a name or absent. */
  readonly uid?: number;
  readonly username?: string;
  readonly pinned: boolean;
}

/** What one container uses, where the runtime reports it. */
export interface ContainerStats {
  readonly podUID: PodUID;
  readonly name: string;
  readonly restartCount: number;
  readonly workingSetBytes?: number;
  /** What it has written into its own layer. */
  readonly writableLayer?: { readonly bytes: number; readonly inodes: number };
}

// ---------------------------------------------------------------- what to make

export interface SandboxSpec {
  readonly pod: Pod;
  readonly attempt: number;
  /** RuntimeClass handler; '' is the runtime's default. */
  readonly runtimeHandler: string;
}

/** An image that the runtime mounts into a container. */
export interface MountedImage {
  /** As the pod names it. */
  readonly reference: string;
  readonly pullPolicy: string | undefined;
  /** A path in the image; '' is its root. */
  readonly subPath: string;
  /** As `imageStatus` or `pullImage` gave it; there once the image is on the machine. */
  readonly id?: string;
}

/** One bind mount into a container, already resolved to a host path. */
export interface ContainerMount {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly readOnly: boolean;
  readonly recursiveReadOnly?: boolean;
  readonly propagation: 'private' | 'hostToContainer' | 'bidirectional';
  readonly selinuxRelabel?: boolean;
  /** Instead of the host path, which is '' then. */
  readonly image?: MountedImage;
}

/** A device node given to a container (block volumes, device plugins). */
export interface ContainerDevice {
  readonly hostPath: string;
  readonly containerPath: string;
  /** Subset of "rwm". */
  readonly permissions: string;
}

export interface ContainerSpec {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly type: ContainerSnapshot['type'];
  readonly sandboxId: SandboxId;
  readonly restartCount: number;
  readonly hash: string;
  /** The image to run, as `imageStatus` or `pullImage` returned it. */
  readonly image: RuntimeImage;
  /** Addresses of the pod, primary first. */
  readonly podIPs: readonly string[];
  /** The environment, resolved and expanded, in order. */
  readonly env: readonly { readonly name: string; readonly value: string }[];
  /** Volume mounts only; the runtime adapter adds /etc/hosts and the termination log. */
  readonly mounts: readonly ContainerMount[];
  readonly devices: readonly ContainerDevice[];
  /** Groups of the first process beside the pod's own. */
  readonly supplementalGroups?: readonly number[];
  /** For ephemeral containers with targetContainerName: the container whose process namespace is joined. */
  readonly targetContainerId?: ContainerId;
}

export interface ImageAuth {
  readonly username?: string;
  readonly password?: string;
  readonly auth?: string;
  readonly serverAddress?: string;
  readonly identityToken?: string;
  readonly registryToken?: string;
}

// ---------------------------------------------------------------- lifecycle events

/** Something happened to a pod in the runtime. Only wakes a worker; carries no state to act on. */
export interface PodLifecycleEvent {
  readonly podUID: PodUID;
  readonly type: 'containerStarted' | 'containerDied' | 'containerRemoved' | 'podSync';
  readonly containerId?: ContainerId;
  /** Epoch ms, as the runtime dates it. */
  readonly at: EpochMs;
}

// ---------------------------------------------------------------- the port

/**
 * A runtime call that failed. `code` is the gRPC status name ("NOT_FOUND", "DEADLINE_EXCEEDED", "UNAVAILABLE") or
 * NOT_CALLED.
 */
export class RuntimeError extends Error {
  /** The code of a call that was not made, because the agent itself could not: the message is the agent's own. */
  static readonly NOT_CALLED = 'NOT_CALLED';
  override name = 'RuntimeError';
  readonly call: string;
  readonly code: string;
  constructor(call: string, code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.call = call;
    this.code = code;
  }
}

/**
 * Every method rejects with RuntimeError. Stop and remove of something that is already stopped or gone succeed.
 * Deadlines are the implementation's, as the kubelet's: 2 min for most, stop = grace + 2 min, pull = until no
 * progress, exec = its own timeout.
 */
export interface ContainerRuntime {
  version(): Promise<RuntimeVersion>;
  status(): Promise<RuntimeStatus>;

  /** Every pod that the runtime lists, shallow: states and identities are right, exit details may be missing. */
  listPods(): Promise<readonly PodSnapshot[]>;
  /** The full state of one pod; empty when the runtime has nothing of it. */
  observePod(pod: PodRef): Promise<PodSnapshot>;

  runPodSandbox(spec: SandboxSpec): Promise<SandboxId>;
  stopPodSandbox(id: SandboxId): Promise<void>;
  removePodSandbox(id: SandboxId): Promise<void>;
  /**
   * Reports the resources of a pod, as `pod` has them, whose cgroup was resized. For runtimes that size a VM by them; one
   * that does not serve the call is left alone.
   */
  updatePodSandboxResources(id: SandboxId, pod: Pod): Promise<void>;

  /** Creates the container but does not start it. */
  createContainer(spec: ContainerSpec): Promise<ContainerId>;
  startContainer(id: ContainerId): Promise<void>;
  /** TERM (or its stop signal), then KILL after `graceSeconds`. Resolves when it is dead. */
  stopContainer(id: ContainerId, graceSeconds: number): Promise<void>;
  removeContainer(id: ContainerId): Promise<void>;
  updateContainerResources(id: ContainerId, resources: ContainerResourceFigures): Promise<void>;

  /** Undefined when the runtime does not have the image. */
  imageStatus(image: string): Promise<RuntimeImage | undefined>;
  /** Pulls and returns the image. When `signal` aborts, the pull is cancelled and the call rejects. */
  pullImage(image: string, auth: ImageAuth | undefined, pod: Pod, signal?: AbortSignal): Promise<RuntimeImage>;
  listImages(): Promise<readonly RuntimeImage[]>;
  removeImage(id: string): Promise<void>;

  /** Runs a command to its end; the process is killed when `timeoutMs` passes (0 is no limit). */
  execSync(
    id: ContainerId,
    command: readonly string[],
    timeoutMs: number,
  ): Promise<{
    readonly stdout: Buffer;
    readonly stderr: Buffer;
    readonly exitCode: number;
    readonly timedOut: boolean;
  }>;
  /** URLs of the runtime's streaming server. */
  execUrl(id: ContainerId, options: StreamOptions & { readonly command: readonly string[] }): Promise<string>;
  attachUrl(id: ContainerId, options: StreamOptions): Promise<string>;
  portForwardUrl(id: SandboxId, ports: readonly number[]): Promise<string>;
  reopenContainerLog(id: ContainerId): Promise<void>;

  /** Calls back on every lifecycle event until the returned function is called. Events may be lost or doubled. */
  watch(listener: (event: PodLifecycleEvent) => void): () => void;
}

export interface StreamOptions {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}
