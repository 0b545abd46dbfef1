// The actions that a decision about a pod can contain. Types only.

import type { Container, EphemeralContainer } from '../../client/types.ts';
import type { EpochMs } from '../../lib/clock.ts';
import type { ContainerId, ContainerSnapshot, SandboxId, SandboxSnapshot } from '../ports/runtime.ts';
import type { Resources } from './resize/allocation.ts';
import type { SandboxVerdict } from './sandbox-changed.ts';

/** Why a container is stopped; decides which grace period applies. */
export type KillReason =
  | 'livenessProbe'
  | 'startupProbe'
  | 'definitionChanged'
  | 'unknownState'
  | 'postStartHook'
  | 'resize';

export interface StartAction {
  readonly kind: 'startContainer';
  readonly type: ContainerSnapshot['type'];
  readonly container: Container | EphemeralContainer;
  readonly hash: string;
  readonly restartCount: number;
  readonly sandbox: SandboxSnapshot;
  /** A container that was created but never started, to be started instead of making another. */
  readonly created?: ContainerId;
  /**
   * Containers of the same name that were created and will not be started by this agent: of another definition, or of
   * another sandbox. They are removed before another is created: a StartContainer that failed for its caller (deadline,
   * broken connection) may still be executed, and two instances would run.
   */
  readonly superseded?: readonly ContainerId[];
  /** When the instance before this one ended (epoch ms); it decides the next back-off, and without it there is none. */
  readonly previousFinishedAt?: EpochMs;
}

export interface KillAction {
  readonly kind: 'killContainer';
  readonly container: ContainerSnapshot;
  /** The kubelet's words for the Killing event. */
  readonly message: string;
  readonly reason: KillReason;
  readonly thenStart: boolean;
  /** When the instance before it ended (epoch ms), where one is known. */
  readonly endedBefore: EpochMs | undefined;
}

/** Applies the pod's allocation to running containers. Without any, to the pod's cgroup alone. */
export interface ResizeAction {
  readonly kind: 'resizePod';
  /** The pod's sandbox; undefined where it has none. */
  readonly sandboxId: SandboxId | undefined;
  readonly updates: readonly {
    readonly instance: ContainerSnapshot;
    readonly container: Container;
    /** What it runs with. */
    readonly from: Resources;
  }[];
}

export type PodAction =
  /** Nothing runs and nothing will again: the pod is at its end. */
  | { readonly kind: 'finishPod'; readonly why: 'completed' | 'initFailed' | 'sandboxDead' }
  /** `replaces`: whatever is left of the old sandbox goes first, containers included. */
  | {
      readonly kind: 'createSandbox';
      readonly attempt: number;
      readonly replaces: boolean;
      readonly why: Extract<SandboxVerdict, { kind: 'create' }>['why'];
    }
  | KillAction
  | StartAction
  | ResizeAction;

/** A container that must wait before it may start. */
export interface WaitingFor {
  readonly reason: 'CrashLoopBackOff';
  readonly message: string;
  /** Epoch ms. */
  readonly until: EpochMs;
}

export interface PodActions {
  readonly actions: readonly PodAction[];
  /** By container name. */
  readonly waiting: ReadonlyMap<string, WaitingFor>;
  /** When to decide again although nothing happens (epoch ms). */
  readonly wakeAt?: EpochMs;
}
