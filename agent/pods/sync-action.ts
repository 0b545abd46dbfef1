// The actions of the sync of a pod. The executor does it and reports how it ended; it decides nothing,
// so an action contains all its parameters. Types, ids and what follows from the actions under way.

import type { Container, EphemeralContainer } from '../../client/types.ts';
import type { ContainerId, ContainerSnapshot, PodSnapshot, SandboxId } from '../ports/runtime.ts';
import type { KillAction, ResizeAction, StartAction } from './pod-action.ts';

/** All that the stop of one container takes, beside its pod. */
export interface KillSpec {
  readonly instance: ContainerSnapshot;
  readonly spec: Container | EphemeralContainer | undefined;
  /** Text of the Killing event. */
  readonly message: string;
  readonly graceSeconds: number;
  /** Names of containers of this pod that must be dead first. */
  readonly after: ReadonlySet<string>;
  readonly podIP: string | undefined;
}

/** What is left of a sandbox that is replaced. */
export interface ReplacedSandbox {
  readonly kills: readonly KillSpec[];
  readonly sandboxes: readonly SandboxId[];
  /** Init containers are dropped, since they must run again. */
  readonly initContainers: readonly ContainerId[];
}

/** An action that takes time: it is under way until its outcome is known. No two of one id are under way at once. */
export type LastingAction =
  /** The pod's cgroup and its volumes. */
  | { readonly kind: 'preparePod'; readonly id: string }
  /** `replaced` goes first, then cgroup and volumes where they are not `prepared`, then the sandbox is made. */
  | {
      readonly kind: 'createSandbox';
      readonly id: string;
      readonly attempt: number;
      readonly prepared: boolean;
      readonly replaced: ReplacedSandbox | undefined;
    }
  | {
      readonly kind: 'startContainer';
      readonly id: string;
      readonly start: StartAction;
      /** Actions that must have ended first, however they end. */
      readonly after: readonly string[];
      readonly podIPs: readonly string[];
      /** The container whose process namespace an ephemeral container joins, and its instance where there is one. */
      readonly target: { readonly name: string; readonly id: ContainerId | undefined } | undefined;
    }
  | {
      readonly kind: 'killContainer';
      readonly id: string;
      readonly kill: KillSpec;
      readonly reason: KillAction['reason'] | 'podEnds';
      /** It runs again once it is dead. */
      readonly thenStart: boolean;
    }
  | { readonly kind: 'resizePod'; readonly id: string; readonly resize: ResizeAction }
  /** A dead instance, and a dead sandbox, of a pod that goes on. */
  | { readonly kind: 'removeContainer'; readonly id: string; readonly containerId: ContainerId }
  | { readonly kind: 'removeSandbox'; readonly id: string; readonly sandboxId: SandboxId }
  /** Its network is given back. */
  | { readonly kind: 'stopSandbox'; readonly id: string; readonly sandboxId: SandboxId }
  /** Volumes are unmounted, then the cgroup is removed. */
  /** `keepsEnds`: what containers wrote when they ended stays on disk, for a status that is written later. */
  | { readonly kind: 'releaseResources'; readonly id: string; readonly keepsEnds: boolean }
  /** What the runtime keeps of a pod that has ended. `last`: nothing of the pod is left then. */
  | { readonly kind: 'removeFromRuntime'; readonly id: string; readonly snapshot: PodSnapshot; readonly last: boolean };

/** An action that is over as soon as it is done. */
export type ImmediateAction =
  /** Every kill under way is granted no more than this from now on. */
  | { readonly kind: 'shortenGrace'; readonly graceSeconds: number }
  /** The API object is deleted as soon as the last status is written. */
  | { readonly kind: 'finalizePod' };

export type SyncAction = LastingAction | ImmediateAction;

/** By id. */
export type UnderWay = ReadonlyMap<string, LastingAction>;

export const NOTHING_UNDER_WAY: UnderWay = new Map();

// Names of containers never begin with "#".
export const ACTION_IDS = {
  sync: '#sync',
  prepare: '#prepare',
  sandbox: '#sandbox',
  resize: '#resize',
  release: '#release',
  removeFromRuntime: '#removeFromRuntime',
  start: (containerName: string): string => `start ${containerName}`,
  kill: (id: ContainerId): string => `kill ${id}`,
  remove: (id: ContainerId | SandboxId): string => `remove ${id}`,
  stop: (id: SandboxId): string => `stop ${id}`,
} as const;

export function isLasting(action: SyncAction): action is LastingAction {
  return action.kind !== 'shortenGrace' && action.kind !== 'finalizePod';
}

/** Names of containers whose start is under way, its postStart hook included. */
export function startingContainers(underWay: UnderWay): ReadonlySet<string> {
  const names = new Set<string>();
  for (const action of underWay.values()) if (action.kind === 'startContainer') names.add(action.start.container.name);
  return names;
}

/** Instances that are being stopped. */
export function killedContainers(underWay: UnderWay): ReadonlySet<ContainerId> {
  const ids = new Set<ContainerId>();
  for (const action of underWay.values()) {
    if (action.kind === 'killContainer') ids.add(action.kill.instance.id);
    else if (action.kind === 'createSandbox')
      for (const kill of action.replaced?.kills ?? []) ids.add(kill.instance.id);
  }
  return ids;
}

/** Whether a container or a sandbox may come up by itself before long. */
export function isStarting(underWay: UnderWay): boolean {
  return [...underWay.values()].some(({ kind }) => kind === 'createSandbox' || kind === 'startContainer');
}

/** Whether any action under way may use or create the cgroup or the volumes, which a terminated pod releases. */
export function usesResources(underWay: UnderWay): boolean {
  return isStarting(underWay) || underWay.has(ACTION_IDS.prepare) || underWay.has(ACTION_IDS.resize);
}
