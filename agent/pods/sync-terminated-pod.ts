// What is done about a pod of which nothing runs (the kubelet's SyncTerminatedPod): its volumes and cgroup are released.
// After that a deleted pod's API object is finalized, and its sandboxes and containers are removed then,
// or, where it only terminated, stay for their logs. Pure.

import { invariant } from '../../lib/invariant.ts';
import type { PodSnapshot, SandboxId } from '../ports/runtime.ts';
import { type FinishedState, removedPod, type TerminatedState, terminatingPod } from './pod-state.ts';
import { ACTION_IDS, usesResources } from './sync-action.ts';
import { isLeaving, StepBuilder, type SyncFacts, type SyncResult, underWayDuring } from './sync-facts.ts';
import { isAlive } from './termination.ts';

export function syncTerminatedPod(state: TerminatedState, facts: SyncFacts): SyncResult {
  const { snapshot } = facts;
  const { podEnd, startErrors, stoppedSandboxes } = state;
  if (snapshot.containers.some(isAlive) || snapshot.sandboxes.some(({ id }) => !stoppedSandboxes.has(id))) {
    return { next: terminatingPod(state, 'startedLate') };
  }
  const step = new StepBuilder(state, facts);
  invariant(
    !usesResources(underWayDuring(state, facts)),
    'cgroup and volumes are given back when nothing under way uses them',
    () => ({ pod: snapshot.pod }),
  );
  // A pod that only ended has a status yet, and it says what its containers wrote last.
  step.begin({ kind: 'releaseResources', id: ACTION_IDS.release, keepsEnds: !isLeaving(facts) });
  return step.done(state, { snapshot, waiting: startErrors, restarting: new Set(), over: true, podEnd });
}

/** `reclaim`: what the runtime keeps of the pod goes, although the pod stays. */
export function syncFinishedPod(before: FinishedState, facts: SyncFacts, reclaim = false): SyncResult {
  const { snapshot } = facts;
  if (!before.neverRan && runsAfterAll(snapshot, before.stoppedSandboxes)) {
    return { next: terminatingPod(before, 'startedLate') };
  }
  const step = new StepBuilder(before, facts);
  const state = finalize(before, facts, step);
  const last = isLeaving(facts);
  const isEmpty = snapshot.containers.length === 0 && snapshot.sandboxes.length === 0;
  const isRemoving = underWayDuring(before, facts).has(ACTION_IDS.removeFromRuntime);
  if (last && isEmpty && !isRemoving) {
    // There is nothing to be removed, and nothing to wait for.
    return { step: { ...step.done(state).step, state: removedPod(state) } };
  }
  if (last || reclaim) {
    step.begin({ kind: 'removeFromRuntime', id: ACTION_IDS.removeFromRuntime, snapshot, last });
  }
  return step.done(state);
}

/** Something came up from a call that was given up long ago. */
function runsAfterAll({ sandboxes, containers }: PodSnapshot, stopped: ReadonlySet<SandboxId>): boolean {
  return containers.some(isAlive) || sandboxes.some(({ id, state }) => state === 'ready' && !stopped.has(id));
}

/** The API object of a deleted pod goes as soon as the pod uses nothing of the node, once. */
function finalize(state: FinishedState, { pod, removed, snapshot }: SyncFacts, step: StepBuilder): FinishedState {
  if (state.finalized || removed || pod.metadata.deletionTimestamp === undefined) return state;
  invariant(!snapshot.containers.some(isAlive), 'a pod is finalized when nothing of it runs', () => ({
    pod: snapshot.pod,
  }));
  step.actions.push({ kind: 'finalizePod' });
  return { ...state, finalized: true };
}
