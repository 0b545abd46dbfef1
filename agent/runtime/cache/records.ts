// The cache's record of a sandbox or a container, and the source of each part. Types only.

import type { EpochMs, MonotonicMs } from '../../../lib/clock.ts';
import type { ContainerStatus__Output } from '../../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { PodSandboxConfig } from '../../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { ContainerSnapshot, PodRef, SandboxSnapshot } from '../../ports/runtime.ts';

/**
 * The source of a part: the result of a call of ours, an event of a stream, a list (ListPodSandbox,
 * ListContainers), or a status (ContainerStatus, PodSandboxStatus), which is CRI's fullest response.
 */
export type SourceKind = 'call' | 'event' | 'list' | 'status';

export interface Provenance {
  readonly from: SourceKind;
  /** The call's or the event's name: "StartContainer", "TaskExit", "ListContainers". */
  readonly what: string;
  /** Epoch ms, by the agent's clock: when it was learned. */
  readonly at: EpochMs;
  /** The input that brought it, counted from 1. */
  readonly seq: number;
}

/** Fields of a container's snapshot that are always learned together. */
export type ContainerGroup =
  /** id, sandboxId, name, type, restartCount, hash, createdAt, image. */
  | 'identity'
  /** state, startedAt. */
  | 'state'
  /** finishedAt, exitCode, reason, message. */
  | 'exit'
  /** imageId, logPath, user, stopSignal, recursiveReadOnly. */
  | 'details'
  | 'resources';
export type SandboxGroup =
  /** id, attempt, createdAt, runtimeHandler. */
  | 'identity'
  | 'state'
  /** ips, hostNetwork. */
  | 'network';

interface RecordBase {
  readonly id: string;
  readonly pod: PodRef;
  /** The newest input that proves its existence: an earlier list without it proves nothing. */
  evidenceSeq: number;
  /** The last input before the newest status that was taken in was requested; undefined before the first. */
  statusSeqBefore: number | undefined;
  /** A status requested before this input does not say everything any more; 0 when none is due. */
  dueSeq: number;
  /** A call of ours that is under way: its events are expected. */
  pending: 'start' | 'stop' | 'remove' | undefined;
  /** An exit that was announced and does not show in the state yet. Epoch ms, by the runtime's clock. */
  exitAnnouncedAt: EpochMs | undefined;
}

export interface SandboxRecord extends RecordBase {
  readonly kind: 'sandbox';
  snapshot: SandboxSnapshot;
  readonly sources: Map<SandboxGroup, Provenance>;
  /** The sandbox config, which every CreateContainer in it needs; made once. */
  config: PodSandboxConfig | undefined;
}

export interface ContainerRecord extends RecordBase {
  readonly kind: 'container';
  snapshot: ContainerSnapshot;
  readonly sources: Map<ContainerGroup, Provenance>;
  /** The state that the newest status showed. */
  statusState: ContainerSnapshot['state'] | undefined;
  /** That status itself while the container runs: it names the files that an announced exit's message is in. */
  status: ContainerStatus__Output | undefined;
  /** The kernel's OOM killer killed a process in it. */
  oomKilled: boolean;
}

export type RuntimeRecord = SandboxRecord | ContainerRecord;

/** A complete read of one pod or of all. */
export interface CompleteRead {
  /** The last input before the read began. */
  readonly seqBefore: number;
  /** Monotonic ms at which it began. */
  readonly beganAt: MonotonicMs;
}

export interface PodEntry {
  readonly pod: PodRef;
  readonly ids: Set<string>;
  read: CompleteRead | undefined;
  /** The newest input after which the pod has to be read as a whole again. */
  staleSeq: number;
}

/** The cache's whole state. Written only by the reducer's caller; all others read. */
export interface CacheState {
  /** Inputs so far. */
  seq: number;
  readonly records: Map<string, RuntimeRecord>;
  readonly pods: Map<string, PodEntry>;
  /** What was removed while a read was under way that may still show it: the input that removed it. */
  readonly removed: Map<string, number>;
  /** The newest list of everything. */
  read: CompleteRead | undefined;
  /** The newest input after which every pod has to be read again. */
  staleSeq: number;
  /** Whether an event stream serves: without one nothing that is known can be relied on. */
  streaming: boolean;
}

export function emptyCache(): CacheState {
  return {
    seq: 0,
    records: new Map(),
    pods: new Map(),
    removed: new Map(),
    read: undefined,
    staleSeq: 0,
    streaming: false,
  };
}
