// What the end of an action changes: the pod's state, when what failed is tried again, and the events about it. Pure.

import type { EpochMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { VolumeError } from '../ports/node.ts';
import type { PodUID } from '../ports/runtime.ts';
import { StartError } from './container-starter.ts';
import { goQuote, rpcMessage } from './format.ts';
import { finishedPod, type PodState, removedPod, type SyncingState, type TerminatingState } from './pod-state.ts';
import { restartBackoffAfterStart, restartBackoffKey } from './restart-backoff.ts';
import { retryAfterFailure, retryDone } from './retries.ts';
import { ACTION_IDS, type LastingAction } from './sync-action.ts';
import type { PodEvent, SyncConfig } from './sync-facts.ts';

/** How far an action came before it ended, as far as that matters. */
export interface ActionProgress {
  /** Cgroup and volumes were made. */
  readonly prepared?: boolean;
  /** When (epoch ms) a container was about to be created: from then on it counts as started. */
  readonly attemptedAt?: EpochMs;
}

export type ActionResult = ActionProgress &
  (
    | { readonly kind: 'done' }
    /** Given up, because the pod is to end. */
    | { readonly kind: 'aborted' }
    | { readonly kind: 'failed'; readonly error: unknown }
  );

/** What failed on the way of an action that has several steps, and why. */
export class StepError extends Error {
  override name = 'StepError';
  readonly step: 'cgroup' | 'volumes' | 'killContainer' | 'stopSandbox' | 'createSandbox';
  /** The container that could not be killed. */
  readonly container: string;
  constructor(step: StepError['step'], cause: unknown, container = '') {
    super(errorMessage(cause), { cause });
    this.step = step;
    this.container = container;
  }
}

export interface Outcome {
  readonly state: PodState;
  readonly events: readonly PodEvent[];
}

export interface OutcomeFacts {
  readonly podUID: PodUID;
  readonly config: SyncConfig;
  /** Epoch ms. */
  readonly now: EpochMs;
}

export function actionEnded(
  before: PodState,
  action: LastingAction,
  result: ActionResult,
  { podUID, config, now }: OutcomeFacts,
): Outcome {
  const state = noteEnd(before, action, result, config, now);
  const events = result.kind === 'failed' ? failureEvents(action, result.error, podUID) : [];
  switch (state.kind) {
    case 'syncing':
      return { state: endedInSyncing(state, action, result, config), events };
    case 'terminating':
      return { state: endedInTerminating(state, action, result, now), events };
    case 'terminated': {
      const released = action.kind === 'releaseResources' && result.kind === 'done';
      return { state: released ? finishedPod(state) : state, events };
    }
    case 'finished': {
      const removed = action.kind === 'removeFromRuntime' && action.last && result.kind === 'done';
      return { state: removed ? removedPod(state) : state, events };
    }
    default:
      return { state, events };
  }
}

/** The observation of the runtime failed. */
export function observationFailed(state: PodState, config: SyncConfig, now: EpochMs): PodState {
  return { ...state, retries: retryAfterFailure(state.retries, ACTION_IDS.sync, config.syncBackoff, now) };
}

export function observationDone<S extends PodState>(state: S): S {
  const retries = retryDone(state.retries, ACTION_IDS.sync);
  return retries === state.retries ? state : { ...state, retries };
}

/** It is not under way any more, and where it failed it waits before it is tried again. */
function noteEnd(state: PodState, action: LastingAction, result: ActionResult, config: SyncConfig, now: EpochMs) {
  const underWay = new Map(state.underWay);
  underWay.delete(action.id);
  let { retries } = state;
  if (result.kind === 'done') retries = retryDone(retries, action.id);
  else if (result.kind === 'failed') {
    const retryAt = result.error instanceof StartError ? result.error.retryAt : undefined;
    retries = retryAfterFailure(retries, action.id, config.syncBackoff, now, retryAt);
  }
  return { ...state, underWay, retries };
}

function endedInSyncing(
  before: SyncingState,
  action: LastingAction,
  result: ActionResult,
  config: SyncConfig,
): SyncingState {
  const state = result.prepared === true ? { ...before, prepared: true } : before;
  switch (action.kind) {
    case 'startContainer':
      return startEnded(state, action, result, config);
    case 'killContainer': {
      if (result.kind === 'done' || !action.thenStart) return state;
      const restartWanted = new Map(state.restartWanted);
      restartWanted.delete(action.kill.instance.name);
      return { ...state, restartWanted };
    }
    default:
      return state;
  }
}

function startEnded(
  state: SyncingState,
  { start }: Extract<LastingAction, { kind: 'startContainer' }>,
  result: ActionResult,
  config: SyncConfig,
): SyncingState {
  const { name } = start.container;
  const restartWanted = new Map(state.restartWanted);
  const restartBackoff = new Map(state.restartBackoff);
  const startErrors = new Map(state.startErrors);
  const failedPostStart = new Set(state.failedPostStart);
  if (result.attemptedAt !== undefined) {
    restartWanted.delete(name);
    if (start.previousFinishedAt !== undefined) {
      const key = restartBackoffKey(name, start.hash);
      const entry = restartBackoff.get(key);
      const { previousFinishedAt } = start;
      restartBackoff.set(
        key,
        restartBackoffAfterStart(config.restartBackoff, entry, previousFinishedAt, result.attemptedAt),
      );
    }
  }
  if (result.kind === 'done') startErrors.delete(name);
  else if (result.kind === 'failed' && result.error instanceof StartError) {
    startErrors.set(name, result.error.waiting);
    if (result.error.started !== undefined) failedPostStart.add(result.error.started);
  }
  return { ...state, restartWanted, restartBackoff, startErrors, failedPostStart };
}

function endedInTerminating(
  state: TerminatingState,
  action: LastingAction,
  result: ActionResult,
  now: EpochMs,
): TerminatingState {
  if (result.kind !== 'done') return state;
  if (action.kind === 'killContainer') {
    return { ...state, killedAt: new Map(state.killedAt).set(action.kill.instance.id, now) };
  }
  if (action.kind === 'stopSandbox') {
    return { ...state, stoppedSandboxes: new Set(state.stoppedSandboxes).add(action.sandboxId) };
  }
  return state;
}

function killPodFailed(sync: 'KillContainer' | 'KillPodSandbox', name: string, error: unknown): PodEvent {
  const failed = `failed to "${sync}" for "${name}" with ${sync}Error`;
  const message = `error killing pod: ${failed}: ${goQuote(rpcMessage(error))}`;
  return { type: 'Warning', reason: 'FailedKillPod', message };
}

function failureEvents(action: LastingAction, error: unknown, podUID: PodUID): PodEvent[] {
  if (error instanceof StepError) return [stepFailed(error, podUID)];
  if (action.kind === 'killContainer') return [killPodFailed('KillContainer', action.kill.instance.name, error)];
  return action.kind === 'stopSandbox' ? [killPodFailed('KillPodSandbox', podUID, error)] : [];
}

function stepFailed({ step, container, cause }: StepError, podUID: PodUID): PodEvent {
  switch (step) {
    case 'cgroup': {
      const message = `unable to ensure pod container exists: ${errorMessage(cause)}`;
      return { type: 'Warning', reason: 'FailedCreatePodContainer', message };
    }
    case 'volumes': {
      const why = errorMessage(cause);
      const message = cause instanceof VolumeError ? why : `Unable to attach or mount volumes: ${why}`;
      return { type: 'Warning', reason: 'FailedMount', message };
    }
    case 'killContainer':
      return killPodFailed('KillContainer', container, cause);
    case 'stopSandbox':
      return killPodFailed('KillPodSandbox', podUID, cause);
    case 'createSandbox': {
      const message = `Failed to create pod sandbox: ${rpcMessage(cause)}`;
      return { type: 'Warning', reason: 'FailedCreatePodSandBox', message };
    }
  }
}
