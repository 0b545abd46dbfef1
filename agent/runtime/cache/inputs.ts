// What the cache is changed by, and what it reports of a change. Types only.

import type { EpochMs, MonotonicMs } from '../../../lib/clock.ts';
import type { ContainerStatus__Output } from '../../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { PodSandboxConfig } from '../../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { ContainerSnapshot, PodRef, SandboxSnapshot } from '../../ports/runtime.ts';

/** Calls whose beginning matters: the runtime's event may come before the call's response. */
export type BeganCall = 'StartContainer' | 'StopContainer' | 'RemoveContainer' | 'StopPodSandbox' | 'RemovePodSandbox';
export type DoneCall =
  | BeganCall
  /** Its result is read, not known: limits are what the runtime made of them. */
  | 'UpdateContainerResources';

export type CallInput =
  | { readonly kind: 'callBegan'; readonly call: BeganCall; readonly id: string }
  | { readonly kind: 'callDone'; readonly call: DoneCall; readonly id: string }
  | {
      readonly kind: 'callDone';
      readonly call: 'RunPodSandbox';
      /** The last input before the call. */
      readonly seqBefore: number;
      readonly pod: PodRef;
      readonly sandbox: SandboxSnapshot;
      /** Whether the snapshot's addresses are all that it will have. */
      readonly networkKnown: boolean;
      readonly config: PodSandboxConfig;
    }
  | {
      readonly kind: 'callDone';
      readonly call: 'CreateContainer';
      readonly seqBefore: number;
      readonly pod: PodRef;
      readonly container: ContainerSnapshot;
    }
  /** With an error, whatever it was: the outcome may be anything (DEADLINE_EXCEEDED, UNAVAILABLE) or half of it. */
  | { readonly kind: 'callFailed'; readonly call: string; readonly pod: PodRef; readonly id?: string };

/** An exit as a stream announces it, with what the container's files add. */
export interface AnnouncedExit {
  readonly exitCode: number;
  /** The termination message. */
  readonly message: string;
}

export type EventInput =
  | {
      readonly kind: 'event';
      readonly event: 'started' | 'oom' | 'removed';
      readonly id: string;
      /** Epoch ms, by the runtime's clock. */
      readonly at: EpochMs;
    }
  | {
      readonly kind: 'event';
      readonly event: 'exited';
      readonly id: string;
      readonly at: EpochMs;
      /** Where all of it is known already. */
      readonly exit?: AnnouncedExit;
      /** The status that came with the event, which shows the exit. */
      readonly status?: ContainerSnapshot;
    }
  /** An event stream begins or ends to serve. */
  | { readonly kind: 'stream'; readonly serving: boolean };

export interface ReadContainer {
  /** Undefined when its labels name none: not a pod's container. */
  readonly pod: PodRef | undefined;
  readonly snapshot: ContainerSnapshot;
  readonly status: ContainerStatus__Output;
}

export interface ReadSandbox {
  readonly pod: PodRef | undefined;
  readonly snapshot: SandboxSnapshot;
}

export type StatusInput =
  | {
      readonly kind: 'containerStatus';
      readonly id: string;
      /** The last input before the request. */
      readonly seqBefore: number;
      /** Undefined: NOT_FOUND. */
      readonly container: ReadContainer | undefined;
    }
  | {
      readonly kind: 'sandboxStatus';
      readonly id: string;
      readonly seqBefore: number;
      readonly sandbox: ReadSandbox | undefined;
    };

export interface ListInput {
  readonly kind: 'list';
  /** The last input before the requests. */
  readonly seqBefore: number;
  /** Monotonic ms, likewise. */
  readonly beganAt: MonotonicMs;
  /** Undefined: everything. */
  readonly pod: PodRef | undefined;
  readonly sandboxes: readonly { readonly pod: PodRef; readonly snapshot: SandboxSnapshot }[];
  /** As shallowContainer makes them: how they ended is not known. */
  readonly containers: readonly { readonly pod: PodRef; readonly snapshot: ContainerSnapshot }[];
}

export type CacheInput = CallInput | EventInput | StatusInput | ListInput;

/** Something that a pod's worker has not done itself. The words are the kubelet's (pkg/kubelet/pleg). */
export interface CacheChange {
  /** `changed`: none of the others, and worth a sync. */
  readonly type: 'started' | 'died' | 'removed' | 'changed';
  readonly id: string;
  readonly kind: 'sandbox' | 'container';
  readonly pod: PodRef;
  /** Epoch ms: as the runtime dates it where it does. */
  readonly at: EpochMs;
}
