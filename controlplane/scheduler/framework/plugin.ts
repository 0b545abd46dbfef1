// The extension points of the scheduling framework, as a plugin implements them; it implements those that it needs. All but
// PreBind and Bind are pure: they decide by the pod, the nodes and what they have stored in the cycle's state. Types.

import type { NodeInfo } from '../cache/node-info.ts';
import type { PodInfo } from '../cache/pod-info.ts';
import type { Snapshot } from '../cache/snapshot.ts';
import type { ClusterEvent } from '../events.ts';
import type { CycleState } from './cycle-state.ts';
import type { Rejection } from './status.ts';

/** 0 to 100, after normalisation. */
export const MAX_NODE_SCORE = 100;

/** `nodes`: no other than these can pass the filters. */
export type PreFilterResult =
  | { readonly kind: 'skip' }
  | { readonly kind: 'reject'; readonly rejection: Rejection }
  | { readonly kind: 'go'; readonly nodes?: ReadonlySet<string> };

export const SKIP: PreFilterResult = { kind: 'skip' };
export const GO: PreFilterResult = { kind: 'go' };

/** Why each node was rejected; `absent` is the answer for those that are not in `nodes`. */
export interface NodeStatuses {
  readonly nodes: ReadonlyMap<string, Rejection>;
  readonly absent: Rejection;
}

/** What a PostFilter plugin may try out: the filters on changed copies of nodes. */
export interface DryRun {
  /** All filters, with the pods that are nominated to the node. */
  filter(state: CycleState, pod: PodInfo, node: NodeInfo): Rejection | undefined;
  addPod(state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo): void;
  removePod(state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo): void;
}

export type PostFilterResult =
  | { readonly kind: 'nominate'; readonly node: string; readonly victims: readonly PodInfo[] }
  /** `clear`: an earlier nomination of the pod is void. */
  | { readonly kind: 'unschedulable'; readonly message: string; readonly clear: boolean };

export type PermitResult =
  | { readonly kind: 'allow' }
  | { readonly kind: 'reject'; readonly rejection: Rejection }
  /** Bound when `allowed` resolves without a rejection; rejected after `timeoutMs`. */
  | { readonly kind: 'wait'; readonly timeoutMs: number; readonly allowed: Promise<Rejection | undefined> };

/** Of a pod in the queue, for its order. */
export interface Sortable {
  readonly info: PodInfo;
  /** When it came into the queue for the first time or came back, on the monotonic clock's scale. */
  readonly order: number;
}

export interface Plugin {
  readonly name: string;

  /** Whether the pod may enter the active queue. */
  preEnqueue?(pod: PodInfo): Rejection | undefined;
  /** Negative when `a` goes first. */
  compare?(a: Sortable, b: Sortable): number;
  /** Whether this event may make a pod schedulable that the plugin rejected. Without it every event may. */
  worthRetrying?(event: ClusterEvent, pod: PodInfo): boolean;

  preFilter?(state: CycleState, pod: PodInfo, snapshot: Snapshot): PreFilterResult;
  filter?(state: CycleState, pod: PodInfo, node: NodeInfo): Rejection | undefined;
  /** Brings what PreFilter stored up to date: `added` is now on the node. */
  addPod?(state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo): void;
  removePod?(state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo): void;

  postFilter?(
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    statuses: NodeStatuses,
    dryRun: DryRun,
  ): PostFilterResult;

  /** 'skip': the plugin scores all nodes alike. */
  preScore?(state: CycleState, pod: PodInfo, snapshot: Snapshot, nodes: readonly NodeInfo[]): 'skip' | undefined;
  score?(state: CycleState, pod: PodInfo, node: NodeInfo): number;
  /** Brings the scores, in the order of `nodes`, to 0…100 in place. */
  normalizeScores?(state: CycleState, pod: PodInfo, scores: number[], nodes: readonly NodeInfo[]): void;

  reserve?(state: CycleState, pod: PodInfo, node: NodeInfo): Rejection | undefined;
  /** Called for every plugin when a later step fails, also where its own reserve was not reached. */
  unreserve?(state: CycleState, pod: PodInfo, node: string): void;
  permit?(state: CycleState, pod: PodInfo, node: string): PermitResult;
  preBind?(state: CycleState, pod: PodInfo, node: string): Promise<void>;
  /** False: another plugin is to bind the pod. */
  bind?(pod: PodInfo, node: string): Promise<boolean>;
  postBind?(state: CycleState, pod: PodInfo, node: string): void;
}
