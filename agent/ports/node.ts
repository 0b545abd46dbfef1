// Ports of the pod workers toward the node: cgroups, network and volumes. Types only.

import type { Container, EphemeralContainer, Pod } from '../../client/types.ts';
import type {
  ContainerDevice,
  ContainerId,
  ContainerMount,
  PodRef,
  PodUID,
  RuntimeConditionSnapshot,
  SandboxId,
} from './runtime.ts';

/** Pod-level cgroups under kubepods. Every method is idempotent. */
export interface PodCgroups {
  /** Makes the pod's cgroup with its limits, and the QoS cgroup above it. */
  ensurePod(pod: Pod): Promise<void>;
  /** Bytes of memory that a container's own cgroup accounts for; undefined when that is not known. */
  containerMemory?(pod: Pod, id: ContainerId): Promise<number | undefined>;
  /** Kills what is left inside and removes the pod's cgroup. */
  removePod(uid: PodUID): Promise<void>;
  /** Pods that have a cgroup under our root. */
  listPods(): Promise<readonly PodUID[]>;
}

/** One interface of a pod, as CNI reported it and the kernel shows it. */
export interface PodInterface {
  readonly name: string;
  readonly hostName?: string;
  readonly mac?: string;
  readonly mtu?: number;
  readonly addresses: readonly string[];
  readonly routes: readonly { readonly dst: string; readonly gw?: string }[];
}

export interface PodNetwork {
  /** Whether sandboxes can get a network, with the kubelet's reason (NetworkPluginNotReady) and why. */
  status(): Promise<RuntimeConditionSnapshot>;
  /** What the sandbox's network consists of; empty when it has none or the runtime runs CNI by itself. */
  interfaces(sandboxId: SandboxId): Promise<readonly PodInterface[]>;
  /** The addresses of a sandbox that got its network from this process; undefined for any other. */
  addresses(sandboxId: SandboxId): readonly string[] | undefined;
}

/** A volume could not be set up. The message is that of the FailedMount event. */
export class VolumeError extends Error {
  override name = 'VolumeError';
  readonly volume: string;
  constructor(volume: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.volume = volume;
  }
}

/** What one container gets of its pod's volumes. */
export interface ContainerVolumes {
  readonly mounts: readonly ContainerMount[];
  readonly devices: readonly ContainerDevice[];
  /** Groups beside the pod's own, so that it can use them. */
  readonly supplementalGroups?: readonly number[];
}

export interface PodVolumes {
  /**
   * Mounts every volume of the pod and keeps updatable ones current from then on. Idempotent. Rejects with VolumeError.
   * When `signal` aborts, waiting ends and the call rejects; an `unmountAll` that follows undoes what was half done.
   */
  mountAll(pod: Pod, signal?: AbortSignal): Promise<void>;
  /** A newer version of a pod whose volumes are mounted: their content is updated. Returns at once. */
  podChanged?(pod: Pod): void;
  /** The mounts and devices of one container of a pod whose volumes are mounted. Rejects with VolumeError. */
  containerMounts(
    pod: Pod,
    container: Container | EphemeralContainer,
    env: readonly { readonly name: string; readonly value: string }[],
  ): Promise<ContainerVolumes>;
  /**
   * Unmounts everything of the pod and removes its directory. Idempotent; works from disk alone. `keepsEnds`: of a pod
   * whose containers the runtime still has, what they wrote when they ended stays, for an agent that is started later.
   */
  unmountAll(pod: PodRef, options?: { readonly keepsEnds: boolean }): Promise<void>;
  /** Pods that still have a directory on this machine. */
  listPods(): Promise<readonly PodUID[]>;
}
