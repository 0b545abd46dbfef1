// What `startLab` is given, and what it returns. Types only.

import type { ApiClient } from '../../client/api.ts';
import type { BackoffPolicy } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { LabPurpose } from './marker.ts';
import type { NodeActions } from './node/actions.ts';
import type { LabPart, LabPaths, LabProcess } from './paths.ts';
import type { Program } from './programs.ts';
import type { LabState } from './state.ts';

export interface LabOptions {
  readonly root?: string;
  /** Default: the host name. */
  readonly nodeName?: string;
  /** Taken or UserError; by default 6443 or any free one. */
  readonly apiserverPort?: number;
  /** Taken or UserError; by default 10250 or any free one. */
  readonly kubeletPort?: number;
  /** The API server's address; 127.0.0.1 by default. */
  readonly bindAddress?: string;
  /** Who runs CNI. Default `agent`. */
  readonly network?: 'agent' | 'runtime';
  /** What runs the containers. Default `containerd`. */
  readonly runtime?: 'containerd' | 'docker';
  /** Whether pods' cgroups are plain directories or systemd's slices. Default `cgroupfs`. */
  readonly cgroupDriver?: 'cgroupfs' | 'systemd';
  /** Fields of the agent's KubeletConfiguration, over the lab's own. */
  readonly kubeletConfiguration?: Readonly<Record<string, unknown>>;
  /** More flags for `nodelet apiserver`. */
  readonly apiserverFlags?: readonly string[];
  /** More flags for `nodelet controlplane`. */
  readonly controlplaneFlags?: readonly string[];
  /** Of the control plane, what is not started. The proxy, DNS and netpol are left out by `proxy`, `dns` and `netpol`, the registry by `registry`. */
  readonly without?: readonly LabPart[];
  /** Several nodes, each with a network namespace and a containerd of its own; absent: the machine is the one node. */
  readonly nodes?: NodesOptions;
  /** More flags for `nodelet agent`. */
  readonly agentFlags?: readonly string[];
  /** What runs in place of `nodelet agent`: the lab's agent with other flags, or another kubelet. */
  readonly agentProgram?: (paths: LabPaths, state: LabState, flags?: readonly string[]) => Program;
  /** Where the agent reaches the API server: https://127.0.0.1:PORT of a proxy. Default: the server itself. */
  readonly agentServer?: string;
  /** Where images come from; `none` leaves containerd as it is. Default `auto`. */
  readonly images?: 'auto' | 'build' | 'none';
  /**
   * A CSI driver with volumes on loop devices, registered, and storage classes for it; or the same with more flags for
   * `nodelet csi-driver`. Default: none.
   */
  readonly csi?: boolean | readonly string[];
  /** How many addresses pods can have, of a lab whose one node is the machine. Default: what a /24 has for them. */
  readonly podAddresses?: number;
  /** How Services are forwarded; absent: they are not. Another proxy of the machine's keeps its place, and this lab goes without. */
  readonly proxy?: 'iptables' | 'nftables';
  /** More flags for `nodelet proxy`. */
  readonly proxyFlags?: readonly string[];
  /** Whether the lab has a DNS server, which pods use. Default: none, and they use the node's. */
  readonly dns?: boolean;
  /** Whether network policies are enforced. Default: they are not. */
  readonly netpol?: boolean;
  /** Whether the lab has a registry of its own, which serves its images under the names of the usual registries. Default: none. */
  readonly registry?: boolean;
  /** URL of a mirror of the usual registries, in place of the lab's own. */
  readonly registryMirror?: string;
  /** More flags for `nodelet registry`. */
  readonly registryFlags?: readonly string[];
  /** Pauses before a process that has ended is started again. Default: 250 ms, doubling, at most 10 s. */
  readonly restart?: BackoffPolicy;
  /** A snapshot of the API server's objects that takes the place of its store before anything starts. */
  readonly restore?: string;
  /** Default `lab`. */
  readonly purpose?: LabPurpose;
  /** On stop, keep certificates, objects and images for the next start. */
  readonly keep?: boolean;
  /** Prints one line. */
  readonly say?: (line: string) => void;
  /** Aborts the start. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

export interface NodesOptions {
  /** 1 to 32. */
  readonly count: number;
  /** Zones of the nodes, in turn. */
  readonly zones?: readonly string[];
  /** Addresses of Services, which the machine reaches by one of the nodes; default: as everywhere. */
  readonly serviceRange?: string;
}

export interface RunningLab {
  readonly paths: LabPaths;
  readonly state: LabState;
  /** The admin's client, for the caller. */
  readonly client: ApiClient;
  /** What can be done to the nodes of a lab with several; undefined in a lab with one. */
  readonly nodes?: NodeActions | undefined;
  /** The process that runs now under a name; undefined while it is between two starts. */
  pid(name: LabProcess): number | undefined;
  /** Kills a process (SIGKILL), which stays dead until `resume`. Rejects with UserError where the lab has none of that name. */
  halt(name: LabProcess): Promise<void>;
  /** Starts a process that was halted. Does nothing while it runs. */
  resume(name: LabProcess): Promise<void>;
  /** Stops everything in order and cleans up. Returns what could not be cleaned. Idempotent. */
  stop(): Promise<readonly string[]>;
}
