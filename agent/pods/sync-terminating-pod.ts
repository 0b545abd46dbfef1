// What is done about a pod that should stop (the kubelet's SyncTerminatingPod): containers are killed, then sandboxes are
// stopped; when both are done the pod is terminated. Pure.

import { elapsedMs, plusMs } from '../../lib/clock.ts';
import type { ContainerSnapshot } from '../ports/runtime.ts';
import { killSpec } from './kill-spec.ts';
import { type TerminatingState, terminatedPod } from './pod-state.ts';
import { ACTION_IDS, isStarting, killedContainers, usesResources } from './sync-action.ts';
import { type StatusInputs, StepBuilder, type SyncFacts, type SyncResult, underWayDuring } from './sync-facts.ts';
import { computeTermination, isAlive } from './termination.ts';

/** How long a container that was killed may still be shown alive before it is killed again, ms. */
const KILL_AGAIN_MS = 1_000;

export function syncTerminatingPod(state: TerminatingState, facts: SyncFacts): SyncResult {
  const { snapshot } = facts;
  const underWay = underWayDuring(state, facts);
  const next = computeTermination({
    snapshot,
    killing: killedContainers(underWay),
    busy: usesResources(underWay),
    stopped: state.stoppedSandboxes,
  });
  const status: StatusInputs = {
    snapshot,
    waiting: state.startErrors,
    restarting: new Set(),
    over: !isStarting(underWay) && !snapshot.containers.some(isAlive),
    podEnd: state.podEnd,
  };
  if (next.kind === 'release') return { next: terminatedPod(state) };
  const step = new StepBuilder(state, facts);
  if (next.kind === 'kill') for (const instance of next.containers) kill(state, instance, facts, step);
  if (next.kind === 'stopSandboxes') {
    for (const { id } of next.sandboxes) step.begin({ kind: 'stopSandbox', id: ACTION_IDS.stop(id), sandboxId: id });
  }
  return step.done(state, status);
}

function kill(state: TerminatingState, instance: ContainerSnapshot, facts: SyncFacts, step: StepBuilder): void {
  // The runtime reported that it is dead, and shows it alive: it is killed again, but not at once.
  const killedAt = state.killedAt.get(instance.id);
  const waitedMs = killedAt === undefined ? KILL_AGAIN_MS : elapsedMs(killedAt, facts.now);
  if (killedAt !== undefined && waitedMs >= 0 && waitedMs < KILL_AGAIN_MS) {
    step.wakeAt(plusMs(killedAt, KILL_AGAIN_MS));
    return;
  }
  const { grantedSeconds } = state;
  const spec = killSpec(facts.pod, facts.previous, instance, 'podEnds', { grantedSeconds });
  const id = ACTION_IDS.kill(instance.id);
  step.begin({ kind: 'killContainer', id, kill: spec, reason: 'podEnds', thenStart: false });
}
