// What is done about a pod that should run (the kubelet's SyncPod): which of the actions of computePodActions begin
// now, which wait for their back-off, what is reported until then. Pure.

import { invariant } from '../../lib/invariant.ts';
import { sortPodIPs } from '../model/pod-ips.ts';
import type { ContainerSnapshot, PodSnapshot } from '../ports/runtime.ts';
import { computePodActions } from './actions.ts';
import { computeGarbage } from './garbage.ts';
import { killSpec } from './kill-spec.ts';
import type { KillAction, PodAction, PodActions, StartAction } from './pod-action.ts';
import { newestOf, type RestartWanted } from './pod-facts.ts';
import { type SyncingState, terminatingPod } from './pod-state.ts';
import { backOffEventMessage } from './restart-backoff.ts';
import {
  ACTION_IDS,
  killedContainers,
  type ReplacedSandbox,
  startingContainers,
  type UnderWay,
} from './sync-action.ts';
import { type StatusInputs, StepBuilder, type SyncFacts, type SyncResult, underWayDuring } from './sync-facts.ts';
import { isAlive } from './termination.ts';

export function syncPod(before: SyncingState, facts: SyncFacts): SyncResult {
  const { pod, snapshot } = facts;
  const underWay = underWayDuring(before, facts);
  const noted = noteContainers(before, snapshot, underWay);
  const decision = computePodActions({
    pod,
    snapshot,
    previous: facts.previous,
    probes: facts.probes,
    backoff: noted.restartBackoff,
    backoffPolicy: facts.config.restartBackoff,
    now: facts.now,
    sandboxBusy: underWay.has(ACTION_IDS.sandbox),
    starting: startingContainers(underWay),
    killing: new Set([...killedContainers(underWay), ...noted.failedPostStart]),
    restartWanted: noted.restartWanted,
    resize: facts.resize,
  });
  const finish = decision.actions.find((action) => action.kind === 'finishPod');
  if (finish !== undefined) return { next: terminatingPod(noted, finish.why) };
  const state = noteBackOff(noted, decision);
  const step = new StepBuilder(state, facts);
  announceBackOff(noted, decision, facts, step);
  step.wakeAt(decision.wakeAt);
  killFailedPostStarts(state, facts, step);
  const prepared = prepare(state, facts, underWay, step);
  const restartWanted = beginActions(state, decision.actions, prepared, facts, underWay, step);
  collectGarbage(facts, step);
  return step.done({ ...state, restartWanted }, statusInputs(state, decision, facts, underWay));
}

/** A running container has no start failure any more; an exited one needs no kill any more. */
function noteContainers(state: SyncingState, { containers }: PodSnapshot, underWay: UnderWay): SyncingState {
  const starting = startingContainers(underWay);
  const failedPostStart = new Set(state.failedPostStart);
  const startErrors = new Map(state.startErrors);
  for (const instance of containers) {
    const { id, name } = instance;
    if (failedPostStart.has(id)) {
      if (!isAlive(instance)) failedPostStart.delete(id);
    } else if (instance.state === 'running' && !starting.has(name)) startErrors.delete(name);
  }
  return { ...state, failedPostStart, startErrors };
}

/** Containers that must wait after all: whatever they were stopped for, their own end counts from now on. */
function noteBackOff(state: SyncingState, { waiting }: PodActions): SyncingState {
  const restartWanted = new Map(state.restartWanted);
  for (const name of waiting.keys()) if (restartWanted.has(name)) restartWanted.set(name, 'waited');
  const backOffEvents = new Map(state.backOffEvents);
  for (const [name, { until }] of waiting) backOffEvents.set(name, until);
  return { ...state, restartWanted, backOffEvents };
}

/** One BackOff event per wait. */
function announceBackOff(before: SyncingState, { waiting }: PodActions, { pod }: SyncFacts, step: StepBuilder): void {
  for (const [name, { until }] of waiting) {
    if (before.backOffEvents.get(name) === until) continue;
    const message = backOffEventMessage(name, pod);
    step.events.push({ container: name, type: 'Warning', reason: 'BackOff', message });
  }
}

/** A container whose postStart hook failed is killed first, whatever restartPolicy decides then. */
function killFailedPostStarts(state: SyncingState, { pod, previous, snapshot }: SyncFacts, step: StepBuilder): void {
  for (const instance of snapshot.containers) {
    if (!state.failedPostStart.has(instance.id)) continue;
    const kill = killSpec(pod, previous, instance, 'postStartHook', { message: 'FailedPostStartHook' });
    step.begin({
      kind: 'killContainer',
      id: ACTION_IDS.kill(instance.id),
      kill,
      reason: 'postStartHook',
      thenStart: false,
    });
  }
}

/**
 * Whether cgroup and volumes are there. Where the sandbox is older than the agent they are looked after again; otherwise
 * they are made with the sandbox.
 */
function prepare(state: SyncingState, { snapshot }: SyncFacts, underWay: UnderWay, step: StepBuilder): boolean {
  if (state.prepared || underWay.has(ACTION_IDS.sandbox)) return state.prepared;
  if (snapshot.sandboxes[0]?.state === 'ready') step.begin({ kind: 'preparePod', id: ACTION_IDS.prepare });
  return false;
}

/** Returns the containers that were, or are now, stopped in order to run again. */
function beginActions(
  state: SyncingState,
  actions: readonly PodAction[],
  prepared: boolean,
  facts: SyncFacts,
  underWay: UnderWay,
  step: StepBuilder,
): SyncingState['restartWanted'] {
  const restartWanted = new Map<string, RestartWanted>(state.restartWanted);
  // Containers start in order only where one has a postStart hook that the others wait for.
  let hook: string | undefined;
  let resizing = underWay.has(ACTION_IDS.resize);
  for (const action of actions) {
    switch (action.kind) {
      case 'createSandbox':
        beginSandbox(state, action, facts, step);
        break;
      case 'killContainer':
        // Nothing of that name starts while the kill is under way.
        if (beginKill(action, facts, step) && action.thenStart) {
          restartWanted.set(action.container.name, { endedBefore: action.endedBefore });
        }
        break;
      case 'resizePod':
        resizing = step.begin({ kind: 'resizePod', id: ACTION_IDS.resize, resize: action }) || resizing;
        break;
      case 'startContainer': {
        const after = [...(hook === undefined ? [] : [hook]), ...(resizing ? [ACTION_IDS.resize] : [])];
        const { container } = action;
        if (prepared && beginStart(action, after, facts, step) && 'lifecycle' in container) {
          if (container.lifecycle?.postStart !== undefined) hook = ACTION_IDS.start(container.name);
        }
        break;
      }
      default:
        break;
    }
  }
  return restartWanted;
}

function beginSandbox(
  { prepared }: SyncingState,
  action: Extract<PodAction, { kind: 'createSandbox' }>,
  facts: SyncFacts,
  step: StepBuilder,
): void {
  const replaced = action.replaces ? replacedSandbox(facts) : undefined;
  invariant(
    action.replaces || facts.snapshot.sandboxes.length === 0,
    'a sandbox that is there goes before another is made',
    () => ({ pod: facts.snapshot.pod }),
  );
  const { attempt } = action;
  if (step.begin({ kind: 'createSandbox', id: ACTION_IDS.sandbox, attempt, prepared, replaced }) && action.replaces) {
    const message = 'Pod sandbox changed, it will be killed and re-created.';
    step.events.push({ type: 'Normal', reason: 'SandboxChanged', message });
  }
}

function replacedSandbox({ pod, previous, snapshot }: SyncFacts): ReplacedSandbox {
  const init = new Set((pod.spec.initContainers ?? []).map(({ name }) => name));
  return {
    kills: snapshot.containers.filter(isAlive).map((instance) => killSpec(pod, previous, instance, 'podEnds')),
    sandboxes: snapshot.sandboxes.map(({ id }) => id),
    // By name: an instance that a kubelet made has no type label.
    initContainers: snapshot.containers.filter(({ name }) => init.has(name)).map(({ id }) => id),
  };
}

function beginKill(action: KillAction, { pod, previous }: SyncFacts, step: StepBuilder): boolean {
  const { container: instance, reason, message, thenStart } = action;
  const kill = killSpec(pod, previous, instance, reason, { message });
  return step.begin({ kind: 'killContainer', id: ACTION_IDS.kill(instance.id), kill, reason, thenStart });
}

function beginStart(action: StartAction, after: readonly string[], facts: SyncFacts, step: StepBuilder): boolean {
  const { container, sandbox } = action;
  const { pod, snapshot, hostIPs } = facts;
  const running = snapshot.containers.find((instance) => instance.name === container.name && isAlive(instance));
  invariant(running === undefined, 'a container starts only when its instance before is dead', () => ({
    pod: snapshot.pod,
    running: running?.id,
  }));
  const target = 'targetContainerName' in container ? container.targetContainerName : undefined;
  return step.begin({
    kind: 'startContainer',
    id: ACTION_IDS.start(container.name),
    start: action,
    after,
    podIPs: pod.spec.hostNetwork === true ? hostIPs : sortPodIPs(sandbox.ips, hostIPs),
    target: target === undefined || target === '' ? undefined : { name: target, id: newestOf(snapshot, target)?.id },
  });
}

function collectGarbage({ snapshot, config }: SyncFacts, step: StepBuilder): void {
  const { containers, sandboxes } = computeGarbage(snapshot, config.maxPerPodContainer);
  for (const { id } of containers) step.begin({ kind: 'removeContainer', id: ACTION_IDS.remove(id), containerId: id });
  for (const { id } of sandboxes) step.begin({ kind: 'removeSandbox', id: ACTION_IDS.remove(id), sandboxId: id });
}

/**
 * The snapshot as it may be reported and probed: a container counts as running when its start is over, its postStart hook
 * included, and no longer when that failed. Until then it is as it was before.
 */
export function startedContainers(state: SyncingState, snapshot: PodSnapshot): PodSnapshot {
  const starting = startingContainers(state.underWay);
  if (starting.size === 0 && state.failedPostStart.size === 0) return snapshot;
  const isStarted = ({ id, name, state: now }: ContainerSnapshot): boolean =>
    now !== 'running' || !(starting.has(name) || state.failedPostStart.has(id));
  return { ...snapshot, containers: snapshot.containers.filter(isStarted) };
}

function statusInputs(
  state: SyncingState,
  { waiting }: PodActions,
  { snapshot }: SyncFacts,
  underWay: UnderWay,
): StatusInputs {
  // A container reported as not started runs until it is killed: its previous instance does not decide the phase.
  const unfinished = snapshot.containers.filter(({ id }) => state.failedPostStart.has(id)).map(({ name }) => name);
  return {
    snapshot: startedContainers(state, snapshot),
    waiting: new Map([...state.startErrors, ...waiting]),
    restarting: new Set([...state.restartWanted.keys(), ...startingContainers(underWay), ...unfinished]),
    over: false,
    podEnd: undefined,
  };
}
