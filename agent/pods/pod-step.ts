// The one function that decides about a pod, whatever its state: `stepPod` after each observation of the runtime, and before it
// `advancePod`, for what can be decided from the pod alone. Pure: no clock, no I/O; the cause of the sync is no argument.

import type { Pod } from '../../client/types.ts';
import type { PodEnd } from '../ports/pod-end.ts';
import { activeDeadline } from './deadline.ts';
import { hashContainer } from './hash.ts';
import { withoutLateContainers } from './late-containers.ts';
import { isTerminalPhase } from './phase.ts';
import { type PodState, type SyncingState, type TerminatingState, terminatingPod } from './pod-state.ts';
import { resourcesOf, sameResources } from './resize/allocation.ts';
import { restartBackoffKey } from './restart-backoff.ts';
import { ACTION_IDS, killedContainers } from './sync-action.ts';
import { type DesiredFacts, isLeaving, type Step, type SyncFacts, type SyncResult } from './sync-facts.ts';
import { syncPod } from './sync-pod.ts';
import { syncFinishedPod, syncTerminatedPod } from './sync-terminated-pod.ts';
import { syncTerminatingPod } from './sync-terminating-pod.ts';
import { gracePeriodSeconds } from './termination.ts';

function syncState(state: Exclude<PodState, { kind: 'removed' }>, facts: SyncFacts): SyncResult {
  switch (state.kind) {
    case 'syncing':
      return syncPod(state, facts);
    case 'terminating':
      return syncTerminatingPod(state, facts);
    case 'terminated':
      return syncTerminatedPod(state, facts);
    case 'finished':
      return syncFinishedPod(state, facts);
  }
}

/** The result of one observation of the runtime. */
export function stepPod(state: PodState, observed: SyncFacts): Step {
  const isWanted = (name: string): boolean => state.kind === 'syncing' && state.restartWanted.has(name);
  const { pod, previous } = observed;
  const facts = { ...observed, snapshot: withoutLateContainers(pod, previous, observed.snapshot, isWanted) };
  let now = state;
  while (now.kind !== 'removed') {
    const result = syncState(now, facts);
    if ('step' in result) return result.step;
    now = result.next;
  }
  return { state: now, actions: [], events: [] };
}

/** What the runtime keeps of a pod that has ended goes, although the pod stays. */
export function reclaimPod(state: PodState, facts: SyncFacts): Step {
  if (state.kind !== 'finished') return stepPod(state, facts);
  const result = syncFinishedPod(state, facts, true);
  return 'step' in result ? result.step : stepPod(result.next, facts);
}

/** What follows from the desired pod alone, without an observation of the runtime. */
export function advancePod(state: PodState, facts: DesiredFacts): Step {
  switch (state.kind) {
    case 'syncing':
      return advanceSyncing(state, facts);
    case 'terminating':
      return shortenGrace(state, facts.pod);
    default:
      return { state, actions: [], events: [] };
  }
}

/** Whether the next step depends on what the runtime shows. */
export function needsObservation(state: PodState, facts: Pick<DesiredFacts, 'pod' | 'removed'>): boolean {
  switch (state.kind) {
    case 'terminated':
      return !state.underWay.has(ACTION_IDS.release);
    case 'finished':
      return isLeaving(facts) && !state.underWay.has(ACTION_IDS.removeFromRuntime);
    case 'removed':
      return false;
    default:
      return true;
  }
}

function advanceSyncing(state: SyncingState, { pod, removed, previous, now }: DesiredFacts): Step {
  const terminate = (...args: Parameters<typeof terminatingPod> extends [unknown, ...infer R] ? R : never): Step =>
    shortenGrace(terminatingPod(state, ...args), pod);
  if (isTerminalPhase(previous?.phase)) return terminate('terminalPhase');
  const deadline = activeDeadline(pod, previous?.startTime, now);
  if (deadline?.failure !== undefined) {
    const { reason, message } = deadline.failure;
    const step = terminate('deadlineExceeded', deadline.failure);
    return { ...step, events: [{ type: 'Normal', reason, message }] };
  }
  if (removed) return terminate('removed');
  if (pod.metadata.deletionTimestamp !== undefined) return terminate('deleted');
  return { state, actions: [], events: [], ...(deadline === undefined ? {} : { wakeAt: deadline.at }) };
}

/** Kills under way are shortened when the pod is granted another time than when they began. */
function shortenGrace(state: TerminatingState, pod: Pod): Step {
  const graceSeconds = gracePeriodSeconds(pod, undefined, 'podEnds', state.grantedSeconds);
  if (graceSeconds === state.graceSeconds) return { state, actions: [], events: [] };
  const kills = killedContainers(state.underWay).size > 0;
  return {
    state: { ...state, graceSeconds },
    actions: kills ? [{ kind: 'shortenGrace', graceSeconds }] : [],
    events: [],
  };
}

/** The node ends the pod. The first reason stays; the least time granted counts. */
export function evictPod(state: PodState, end: PodEnd): PodState {
  switch (state.kind) {
    case 'syncing':
      return terminatingPod(state, 'evicted', end);
    case 'terminating':
    case 'terminated': {
      const granted = Math.min(
        state.grantedSeconds ?? Number.POSITIVE_INFINITY,
        end.graceSeconds ?? Number.POSITIVE_INFINITY,
      );
      const grantedSeconds = Number.isFinite(granted) ? granted : undefined;
      return { ...state, podEnd: state.podEnd ?? end, grantedSeconds };
    }
    default:
      return state;
  }
}

/** Something of the pod runs: where it has ended, it is to end like the rest. */
export function runningPodSeen(state: PodState): PodState {
  return state.kind === 'finished' && !state.neverRan ? terminatingPod(state, 'startedLate') : state;
}

/** A container whose resources changed does not wait for the back-off that it had with the old ones. */
export function podDefinitionChanged(state: PodState, before: Pod, pod: Pod): PodState {
  if (state.kind !== 'syncing' || before === pod) return state;
  const restartBackoff = new Map(state.restartBackoff);
  for (const container of pod.spec.containers) {
    const old = before.spec.containers.find(({ name }) => name === container.name);
    if (old === undefined || sameResources(resourcesOf(old), resourcesOf(container))) continue;
    restartBackoff.delete(restartBackoffKey(container.name, hashContainer(container)));
  }
  return restartBackoff.size === state.restartBackoff.size ? state : { ...state, restartBackoff };
}
