// What a sync of a pod is decided from, beside the pod's state, and what it decides. Types, and the little arithmetic that
// every state shares.

import type { Pod, PodStatus } from '../../client/types.ts';
import { type EpochMs, earlier } from '../../lib/clock.ts';
import { invariant } from '../../lib/invariant.ts';
import type { PodEnd } from '../ports/pod-end.ts';
import type { ProbeResults } from '../ports/probes.ts';
import type { PodSnapshot } from '../ports/runtime.ts';
import type { WaitingReason } from './container-status.ts';
import type { PodsConfig } from './options.ts';
import type { PodState } from './pod-state.ts';
import type { ResizeFacts } from './resize/pod-resizes.ts';
import { notBefore } from './retries.ts';
import { isLasting, type LastingAction, type SyncAction, type UnderWay } from './sync-action.ts';

export type SyncConfig = Pick<PodsConfig, 'restartBackoff' | 'syncBackoff' | 'imageBackoff' | 'maxPerPodContainer'>;

/** The desired pod, and its reported status. */
export interface DesiredFacts {
  readonly pod: Pod;
  /** No source has the pod any more. */
  readonly removed: boolean;
  /** The status last reported, here or before the agent was restarted. */
  readonly previous: PodStatus | undefined;
  readonly config: SyncConfig;
  /** Epoch ms. */
  readonly now: EpochMs;
}

export interface SyncFacts extends DesiredFacts {
  readonly snapshot: PodSnapshot;
  /** What was under way when the observation began. What ended while it lasted may be missing from the snapshot. */
  readonly underWayBefore: UnderWay;
  readonly probes: ProbeResults;
  /** A resize that was granted and is not done. */
  readonly resize: ResizeFacts | undefined;
  /** Addresses of the node, primary first. */
  readonly hostIPs: readonly string[];
}

/** An event about the pod, or about one of its containers. */
export interface PodEvent {
  readonly container?: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** The inputs of the status besides the pod and its snapshot. */
export interface StatusInputs {
  readonly snapshot: PodSnapshot;
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  /** Names of containers that run again regardless of restartPolicy. */
  readonly restarting: ReadonlySet<string>;
  /** No container runs or can still begin to. */
  readonly over: boolean;
  readonly podEnd: PodEnd | undefined;
}

/** The result of one sync of a pod. */
export interface Step {
  readonly state: PodState;
  readonly actions: readonly SyncAction[];
  readonly events: readonly PodEvent[];
  /** When to sync again without an event, epoch ms. */
  readonly wakeAt?: EpochMs;
  /** Absent where there is nothing to report. */
  readonly status?: StatusInputs;
}

/**
 * The result of the sync of one state: a step, or another state, which is synced with the same snapshot.
 */
export type SyncResult = { readonly step: Step } | { readonly next: PodState };

/** Whether nothing of the pod is to stay: it is being deleted, or no source has it any more. */
export function isLeaving({ pod, removed }: Pick<DesiredFacts, 'pod' | 'removed'>): boolean {
  return removed || pod.metadata.deletionTimestamp !== undefined;
}

/** Everything that was under way at some time of the observation. */
export function underWayDuring(state: PodState, { underWayBefore }: SyncFacts): UnderWay {
  return new Map([...underWayBefore, ...state.underWay]);
}

/** Collects the results of one sync: an action in back-off is left out, and decided again when the back-off is over. */
export class StepBuilder {
  readonly actions: SyncAction[] = [];
  readonly events: PodEvent[] = [];
  readonly #state: PodState;
  readonly #facts: SyncFacts;
  readonly #underWay: UnderWay;
  #wakeAt: EpochMs | undefined;

  constructor(state: PodState, facts: SyncFacts) {
    this.#state = state;
    this.#facts = facts;
    this.#underWay = underWayDuring(state, facts);
  }

  /** Begins an action unless it is under way or its pause is not over; true when it begins. */
  begin(action: LastingAction): boolean {
    if (this.#underWay.has(action.id) || !this.#isDue(action.id)) return false;
    this.actions.push(action);
    return true;
  }

  #isDue(id: string): boolean {
    const { config, now } = this.#facts;
    const longestMs = Math.max(config.syncBackoff.maxMs, config.imageBackoff.maxMs);
    const at = notBefore(this.#state.retries, id, longestMs, now);
    if (at !== undefined) this.wakeAt(at);
    return at === undefined;
  }

  wakeAt(at: EpochMs | undefined): void {
    if (at !== undefined) this.#wakeAt = earlier(this.#wakeAt ?? at, at);
  }

  /** `state` as it is with the new actions under way. */
  done(state: PodState, status?: StatusInputs): { readonly step: Step } {
    const underWay = new Map(state.underWay);
    for (const action of this.actions) {
      if (!isLasting(action)) continue;
      invariant(!underWay.has(action.id), 'no two actions of one id are under way at once', () => ({ id: action.id }));
      underWay.set(action.id, action);
    }
    const step: Step = {
      state: { ...state, underWay },
      actions: this.actions,
      events: this.events,
      ...(this.#wakeAt === undefined ? {} : { wakeAt: this.#wakeAt }),
      ...(status === undefined ? {} : { status }),
    };
    return { step };
  }
}
