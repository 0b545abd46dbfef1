// What createCriRuntime returns beyond the ContainerRuntime port. Types only.

import type { Pod } from '../../client/types.ts';
import type { LogWriter } from '../ports/logs.ts';
import type { ContainerRuntime, ContainerStats, PodRef, SandboxId } from '../ports/runtime.ts';
import type { RecordProvenance } from './cache/runtime-cache.ts';
import type { EventSource } from './options.ts';

/** The runtime's features, by its own responses; never concluded from its version. */
export interface RuntimeCapabilities {
  /** Where lifecycle events come from now. */
  readonly events: EventSource;
  /** The cgroup driver that the runtime reports (RuntimeConfig, containerd 2); undefined when it does not say. */
  readonly cgroupDriver: 'cgroupfs' | 'systemd' | undefined;
}

export interface CriRuntime extends ContainerRuntime, LogWriter {
  /** Reads them from the runtime; undefined while it is unreachable. */
  capabilities(): Promise<RuntimeCapabilities | undefined>;
  /** Every sandbox, straight from the runtime: also those that belong to no pod, such as another CRI client's. */
  listSandboxIds(): Promise<readonly SandboxId[]>;
  /** /etc/hosts of the pod's containers, rewritten after an address is known; done by createContainer already. */
  writeHostsFile(pod: Pod, podIPs: readonly string[]): Promise<void>;
  /** The log file of one instance of a container: `<podLogsDir>/<ns>_<name>_<uid>/<container>/<restartCount>.log`. */
  containerLogPath(pod: PodRef, container: string, restartCount: number): string;
  /**
   * Removes this adapter's files of a pod: etc-hosts, termination logs, log directory, log links. For pods
   * whose sandboxes are all gone; removePodSandbox does the same with a pod's last sandbox. Idempotent.
   */
  removePodFiles(pod: PodRef): Promise<void>;
  /** Bytes and inodes of the file system that images are on. */
  imageFsInfo(): Promise<{ readonly mountpoint: string; readonly usedBytes: number; readonly inodesUsed: number }[]>;
  /** Where images are, and writable layers where they are kept apart; undefined where the runtime does not say. */
  imageFsPaths(): Promise<{ readonly image: string | undefined; readonly container: string | undefined }>;
  /** What containers use, running and dead ones; empty when the runtime does not count. */
  containerStats(): Promise<readonly ContainerStats[]>;
  /** Every image, by id or name, that a container was made from or that sandboxes are made from. */
  imagesInUse(): Promise<readonly string[]>;
  /** Where what is known of a sandbox or container came from; undefined when nothing is known of it. */
  provenance(id: string): RecordProvenance | undefined;
  /** Why the list of what runs cannot be relied on, in the kubelet's words; undefined while it can. */
  plegProblem(): string | undefined;
  /** Ends the event stream, timers and connections. */
  close(): void;
}
