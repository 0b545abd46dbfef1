// The part of the decision about init containers and native sidecars: one after the other, sidecars kept running,
// the next gated by the one before. Follows the kubelet's computeInitContainerActions. Pure.

import type { Container } from '../../client/types.ts';
import { isSidecar } from '../../lib/sidecar.ts';
import { initRestartsAfterExit } from '../model/restart-policy.ts';
import type { ContainerSnapshot } from '../ports/runtime.ts';
import { hashContainer } from './hash.ts';
import type { Plan } from './plan.ts';
import { newestOf, type PodFacts } from './pod-facts.ts';

/** `done`: regular containers may be started; `failed`: initialization failed for good. */
export type Initialization = 'done' | 'pending' | 'failed';

/** What one init container needs. */
type Step = 'nothing' | 'restart' | 'next' | 'failed';

function sidecarStep(facts: PodFacts, plan: Plan, container: Container, newest: ContainerSnapshot): Step {
  const { probes } = facts;
  if (facts.starting.has(container.name) || facts.killing.has(newest.id)) return 'nothing';
  if (container.startupProbe !== undefined) {
    const startup = probes.startup(newest.id);
    if (startup === 'failure') {
      plan.kill(newest, 'startupProbe', `Init container ${container.name} failed startup probe`, true);
    }
    if (startup !== 'success') return 'nothing';
  }
  if (newest.hash !== hashContainer(container)) {
    plan.kill(newest, 'definitionChanged', `Init container ${container.name} definition changed`, true);
  } else if (probes.liveness(newest.id) === 'failure') {
    plan.kill(newest, 'livenessProbe', `Init container ${container.name} failed liveness probe`, true);
  } else plan.resize(container, newest);
  return 'next';
}

/** A process of it may have been killed for memory and the first one have ended as if nothing was. */
function initFailed({ exitCode, reason }: ContainerSnapshot): boolean {
  return exitCode !== 0 || reason === 'OOMKilled';
}

function initContainerStep(facts: PodFacts, plan: Plan, container: Container, newest: ContainerSnapshot): Step {
  switch (newest.state) {
    case 'created':
      return 'restart';
    case 'running':
      return isSidecar(container) ? sidecarStep(facts, plan, container, newest) : 'nothing';
    case 'exited':
      if (isSidecar(container)) return 'restart';
      if (!initFailed(newest)) return 'next';
      return initRestartsAfterExit(facts.pod, container, newest.exitCode || 137) ? 'restart' : 'failed';
    default:
      if (!isSidecar(container) && !initRestartsAfterExit(facts.pod, container, 137)) return 'failed';
      plan.kill(newest, 'unknownState', 'Init container is in "unknown" state, try killing it before restart', true);
      return 'nothing';
  }
}

/** A regular container that was created or runs proves that initialization was over, whatever is left of it. */
function everInitialized({ pod, snapshot, starting }: PodFacts): boolean {
  return pod.spec.containers.some((container) => {
    const state = newestOf(snapshot, container.name)?.state;
    return starting.has(container.name) || state === 'created' || state === 'running';
  });
}

/** Instances of a sandbox before the present one say nothing about this one's initialization. */
function inPresentSandbox(facts: PodFacts): PodFacts {
  const present = facts.snapshot.sandboxes[0]?.id;
  const containers = facts.snapshot.containers.filter(({ sandboxId }) => sandboxId === present);
  return { ...facts, snapshot: { ...facts.snapshot, containers } };
}

export function computeInitContainerActions(all: PodFacts, plan: Plan): Initialization {
  const facts = inPresentSandbox(all);
  const containers = facts.pod.spec.initContainers ?? [];
  if (containers.length === 0) return 'done';
  let initialized = everInitialized(facts);
  let earlierInitialized = initialized;
  const toStart: Container[] = [];
  // From the last to the first: finished init containers may be gone from the runtime, so only the furthest one that
  // still exists shows how far initialization came.
  for (let index = containers.length - 1; index >= 0; index--) {
    const container = containers[index];
    if (container === undefined) continue;
    const newest = newestOf(facts.snapshot, container.name);
    if (newest === undefined) {
      if (facts.starting.has(container.name)) earlierInitialized = true;
      else if (earlierInitialized && isSidecar(container)) toStart.push(container);
      continue;
    }
    if (earlierInitialized && !isSidecar(container)) continue;
    const step = initContainerStep(facts, plan, container, newest);
    if (step === 'failed') return 'failed';
    if (step === 'restart') toStart.push(container);
    if (step === 'next') {
      const following = containers[index + 1];
      if (following === undefined) initialized = true;
      else if (!earlierInitialized) toStart.push(following);
    }
    earlierInitialized = true;
  }
  const first = containers[0];
  if (!earlierInitialized && first !== undefined) toStart.push(first);
  for (const container of toStart.reverse()) plan.start(container, 'init');
  return initialized ? 'done' : 'pending';
}
