// What the pods agent is built from and how it can be set, in one place. Types and defaults only.

import type { Pod, PodStatus } from '../../client/types.ts';
import type { BackoffPolicy } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { EventRecorder, ObjectReader, PodApi, PodSource } from '../ports/api.ts';
import type { PodCgroups, PodVolumes } from '../ports/node.ts';
import type { PodEnd } from '../ports/pod-end.ts';
import type { PodProbes } from '../ports/probes.ts';
import type { PullCredentials } from '../ports/pull-credentials.ts';
import type { ContainerId, ContainerRuntime, PodSnapshot, PodUID } from '../ports/runtime.ts';
import type { CheckpointTexts } from './resize/checkpoint.ts';
import { restartBackoffPolicy } from './restart-backoff.ts';
import type { StatusUrgency } from './status-urgency.ts';
import type { SyncCause } from './sync-triggers.ts';

/** What the workers need to know about the node they run on. */
export interface NodeFacts {
  readonly name: string;
  /** Addresses of the node, primary first; empty while unknown. Becomes hostIP(s). */
  hostIPs(): readonly string[];
  /** Allocatable quantities ("cpu", "memory", "ephemeral-storage"), the default of a missing limit in resourceFieldRef. */
  allocatable(): Readonly<Record<string, string>>;
}

/** Why a pod is not run. */
export interface PodRefusal {
  readonly reason: string;
  readonly message: string;
}

/** Pods that are preempted; the preemptor is admitted again when they have terminated. */
export interface PodPreemption {
  readonly preempt: readonly Pod[];
}

/** One rule that may refuse a pod before anything of it runs. Pure: `others` are the admitted, unfinished pods. */
export type PodAdmit = (pod: Pod, others: readonly Pod[]) => PodRefusal | PodPreemption | undefined;

export interface PodsConfig {
  /** Namespace of the `kubernetes` service whose variables every pod gets. */
  readonly masterServiceNamespace: string;
  /** KubeletConfiguration.serializeImagePulls. */
  readonly serializeImagePulls: boolean;
  /** KubeletConfiguration.maxParallelImagePulls; 0 is no limit. Only without serializeImagePulls. */
  readonly maxParallelImagePulls: number;
  /** CrashLoopBackOff: 10 s doubling to 5 min, from the start again after 10 min of running. */
  readonly restartBackoff: BackoffPolicy;
  /** ImagePullBackOff, per image. */
  readonly imageBackoff: BackoffPolicy;
  /** Wait after a sync that failed (sandbox, volumes, container creation). */
  readonly syncBackoff: BackoffPolicy;
  /** Wait after a status that could not be written. */
  readonly statusBackoff: BackoffPolicy;
  /** Longest time between two syncs of a pod, in ms: the fallback for missed lifecycle events. */
  readonly resyncMs: number;
  /** KubeletConfiguration.runtimeRequestTimeout, in ms: how long a call to the runtime may take. */
  readonly runtimeRequestTimeoutMs: number;
  /** How long a status may wait for a more important one, in ms. */
  readonly statusDelayMs: Readonly<Record<StatusUrgency, number>>;
  /** Dead instances kept per container, for `logs -p`. */
  readonly maxPerPodContainer: number;
  /** KubeletConfiguration.cpuCFSQuota. */
  readonly cpuCFSQuota: boolean;
  /** KubeletConfiguration.cpuCFSQuotaPeriod, in µs. */
  readonly cpuCFSQuotaPeriodUs: number;
  readonly admit: readonly PodAdmit[];
}

export const DEFAULT_PODS_CONFIG: PodsConfig = {
  masterServiceNamespace: 'default',
  serializeImagePulls: true,
  maxParallelImagePulls: 0,
  restartBackoff: restartBackoffPolicy(),
  imageBackoff: { initialMs: 10_000, maxMs: 300_000, factor: 2, resetMs: 600_000 },
  syncBackoff: { initialMs: 1_000, maxMs: 10_000, factor: 2, resetMs: 60_000 },
  statusBackoff: { initialMs: 200, maxMs: 10_000, factor: 2, resetMs: 60_000 },
  resyncMs: 60_000,
  runtimeRequestTimeoutMs: 120_000,
  statusDelayMs: { now: 0, soon: 500, later: 5_000 },
  maxPerPodContainer: 1,
  cpuCFSQuota: true,
  cpuCFSQuotaPeriodUs: 100_000,
  admit: [],
};

/** Where lines for the operator go; `log` in tests and in the agent's own logger alike. */
export type PodsLog = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

/** The checkpoints of allocated and actuated resources: `allocated_pods_state` and `actuated_pods_state`. */
export interface AllocationStore {
  /** What was there when the agent started. */
  readonly initial: CheckpointTexts;
  /** Replaces one file, atomically. */
  save(file: keyof CheckpointTexts, text: string): Promise<void>;
}

export interface PodsAgentOptions {
  readonly runtime: ContainerRuntime;
  readonly cgroups: PodCgroups;
  readonly volumes: PodVolumes;
  /** Absent in standalone mode: no status is written and no pod is finalized. */
  readonly api?: PodApi;
  readonly objects: ObjectReader;
  readonly recorder: EventRecorder;
  readonly sources: readonly PodSource[];
  /** Absent: every running container counts as started, alive and ready unless it has a probe. */
  readonly probes?: PodProbes;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly node: NodeFacts;
  readonly config?: Partial<PodsConfig>;
  /**
   * The runtime handler that a RuntimeClass names. Rejects with the words that the event is to have. Absent in standalone
   * mode: every pod has the runtime's default.
   */
  readonly runtimeHandler?: (runtimeClassName: string) => Promise<string>;
  /** The node's own registry credentials; absent: none. */
  readonly credentials?: PullCredentials;
  /** Absent: allocations are lost with the agent. */
  readonly allocations?: AllocationStore;
  readonly log?: PodsLog;
  /** Removes the logs of pods that no longer exist and that the runtime does not list. */
  readonly sweep?: (isKept: (uid: string) => boolean) => Promise<void>;
  /** Called when nothing of a pod is left on the node. */
  readonly onPodGone?: (pod: Pod) => void;
  /** Called with every status that is computed of a pod. */
  readonly onStatus?: (pod: Pod, status: PodStatus) => void;
}

export interface PodsAgent {
  /** Reads what is on the machine, then follows the sources. Returns at once. */
  start(): void;
  /** Stops following. Pods keep running; work under way is abandoned, not undone. */
  stop(): void;
  /** The desired pod as the workers see it, or one still being terminated. */
  getPod(namespace: string, name: string): Pod | undefined;
  listPods(): readonly Pod[];
  /** What was last computed for the pod, written to the API server or not. */
  statusOf(uid: PodUID): PodStatus | undefined;
  /** What was last observed of the pod. */
  snapshotOf(uid: PodUID): PodSnapshot | undefined;
  /** The newest instance of a container (the one before it with `previous`), running or dead. */
  containerIdFor(
    namespace: string,
    name: string,
    container: string,
    options?: { readonly previous?: boolean },
  ): ContainerId | undefined;
  /** The server showed what is written of a pod elsewhere than in its source: the mirror of a static pod changed. */
  statusSeen(pod: Pod): void;
  /** Pods that use resources of the node and have not ended. */
  activePods(): readonly Pod[];
  /** Ends a pod for a reason of the node's own; resolves when nothing runs and what it used is given back. */
  endPod(uid: string, end: PodEnd): Promise<void>;
  /** Removes what pods that have ended left in the runtime. */
  removeEnded(): Promise<void>;
  /** Why the sync loop counts as stuck, in the kubelet's words; undefined while it moves. For /healthz/syncloop. */
  syncLoopProblem(): string | undefined;
  /** Wakes the pod's worker for a sync. */
  wake(uid: PodUID, cause: SyncCause): void;
}
