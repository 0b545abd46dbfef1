// The decision: what must be done about a pod that should run, given what is. computePodActions follows the kubelet's
// function of that name rule by rule. Pure: it starts nothing, reads no clock, and calling it twice changes nothing.

import type { Container } from '../../client/types.ts';
import {
  type RestartableContainer,
  restartsAfterExit,
  restartsAfterProbe,
  shouldContainerBeRestarted,
} from '../model/restart-policy.ts';
import { hashContainer } from './hash.ts';
import { computeInitContainerActions } from './init-actions.ts';
import { Plan } from './plan.ts';
import type { PodAction, PodActions } from './pod-action.ts';
import { newestOf, type PodFacts } from './pod-facts.ts';
import { podSandboxChanged, type SandboxVerdict } from './sandbox-changed.ts';

const NOTHING: PodActions = { actions: [], waiting: new Map() };

function only(action: PodAction): PodActions {
  return { actions: [action], waiting: new Map() };
}

/** Whether any regular container could run again although the pod's policy is Never. */
function hasOwnRestartPolicy(container: RestartableContainer): boolean {
  const rules = container.restartPolicyRules ?? [];
  return container.restartPolicy !== undefined && (container.restartPolicy !== 'Never' || rules.length > 0);
}

function decideSandbox(facts: PodFacts, verdict: Extract<SandboxVerdict, { kind: 'create' }>): PodActions {
  const { pod, snapshot } = facts;
  const everMade = snapshot.sandboxes.length > 0;
  const over = only({ kind: 'finishPod', why: 'sandboxDead' });
  if (
    pod.spec.restartPolicy === 'Never' &&
    everMade &&
    snapshot.containers.length > 0 &&
    !pod.spec.containers.some(hasOwnRestartPolicy)
  ) {
    return over;
  }
  const leftToRun = pod.spec.containers.filter((container) => {
    const newest = newestOf(snapshot, container.name);
    return newest?.state !== 'exited' || restartsAfterExit(pod, container, newest.exitCode);
  });
  if (leftToRun.length === 0) return over;
  return only({ kind: 'createSandbox', attempt: verdict.attempt, replaces: everMade, why: verdict.why });
}

/** Decides about one regular container; true when it keeps the pod going (it runs, starts, waits or is being stopped). */
function decideContainer(facts: PodFacts, plan: Plan, container: Container): boolean {
  const { pod, snapshot, probes } = facts;
  const { name } = container;
  if (facts.starting.has(name)) return true;
  const newest = newestOf(snapshot, name);
  if (newest !== undefined && facts.killing.has(newest.id)) return true;
  if (newest === undefined || newest.state !== 'running') {
    const wanted = facts.restartWanted.has(name) || shouldContainerBeRestarted(pod, container, newest);
    if (!wanted) return false;
    if (newest?.state === 'unknown') {
      // It may still be running: two instances of one container must never run at once.
      plan.kill(newest, 'unknownState', 'Container is in "unknown" state, try killing it before restart', true);
    } else plan.start(container, 'container');
    return true;
  }
  const restarts = restartsAfterProbe(pod, container);
  const suffix = restarts ? ', will be restarted' : '';
  if (newest.hash !== hashContainer(container)) {
    plan.kill(newest, 'definitionChanged', `Container ${name} definition changed, will be restarted`, true);
  } else if (probes.liveness(newest.id) === 'failure') {
    plan.kill(newest, 'livenessProbe', `Container ${name} failed liveness probe${suffix}`, restarts);
  } else if (probes.startup(newest.id) === 'failure') {
    plan.kill(newest, 'startupProbe', `Container ${name} failed startup probe${suffix}`, restarts);
  } else plan.resize(container, newest);
  return true;
}

/** What to do next about a pod that should run. Not for terminating pods. */
export function computePodActions(facts: PodFacts): PodActions {
  const { pod, snapshot } = facts;
  if (facts.sandboxBusy) return NOTHING;
  const verdict = podSandboxChanged(pod, snapshot);
  if (verdict.kind === 'create') {
    // A start under way would end up in a sandbox that is being removed; it fails and the pod is synced again.
    return facts.starting.size > 0 ? NOTHING : decideSandbox(facts, verdict);
  }
  const plan = new Plan(facts, verdict.sandbox);
  // Ephemeral containers start even before initialization is over, and only ever once.
  for (const ephemeral of pod.spec.ephemeralContainers ?? []) {
    const newest = newestOf(snapshot, ephemeral.name);
    if (newest === undefined || newest.state === 'created') plan.start(ephemeral, 'ephemeral');
  }
  const initialization = computeInitContainerActions(facts, plan);
  if (initialization === 'failed') return only({ kind: 'finishPod', why: 'initFailed' });
  if (initialization === 'pending') return plan.done();
  const keeping = pod.spec.containers.filter((container) => decideContainer(facts, plan, container));
  // Sidecars do not keep a pod alive.
  if (keeping.length === 0) return only({ kind: 'finishPod', why: 'completed' });
  return plan.done();
}
