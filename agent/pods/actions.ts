// The decision: what must be done about a pod that should run, given what is. computePodActions follows the kubelet's
// function of that name rule by rule. Pure: it starts nothing, reads no clock, and calling it twice changes nothing.

import type { Container, EphemeralContainer, Pod, PodStatus } from '../../client/types.ts';
import type { BackoffEntry, BackoffPolicy } from '../../lib/backoff.ts';
import type { ProbeResults } from '../ports/probes.ts';
import type { ContainerId, ContainerSnapshot, PodSnapshot, SandboxSnapshot } from '../ports/runtime.ts';
import { hashContainer } from './hash.ts';
import { computeInitContainerActions } from './init-actions.ts';
import type { Resources } from './resize/allocation.ts';
import type { ResizeFacts } from './resize/pod-resizes.ts';
import { judgeContainerResize } from './resize/resize-actions.ts';
import { crashLoopMessage, restartBackoffKey, restartNotBefore } from './restart-backoff.ts';
import { nextRestartCount } from './restart-count.ts';
import {
  type RestartableContainer,
  restartsAfterExit,
  restartsAfterProbe,
  shouldContainerBeRestarted,
} from './restart-policy.ts';
import { podSandboxChanged, type SandboxVerdict } from './sandbox-changed.ts';

/** Everything the decision depends on. */
export interface PodFacts {
  readonly pod: Pod;
  readonly snapshot: PodSnapshot;
  /** The status last reported, here or before the agent restarted. */
  readonly previous: PodStatus | undefined;
  readonly probes: ProbeResults;
  /** Restart back-off, by restartBackoffKey. */
  readonly backoff: ReadonlyMap<string, BackoffEntry>;
  readonly backoffPolicy: BackoffPolicy;
  /** Epoch ms. */
  readonly now: number;
  /** A sandbox is being made or torn down; nothing can be decided before that is over. */
  readonly sandboxBusy: boolean;
  /** Names of containers whose start is under way, its postStart hook included. */
  readonly starting: ReadonlySet<string>;
  /** Instances that are being stopped. */
  readonly killing: ReadonlySet<ContainerId>;
  /** Containers that were stopped in order to run again, whatever policy says, by name. */
  readonly restartWanted: ReadonlyMap<string, RestartWanted>;
  /** A resize that was granted and is not done. */
  readonly resize?: ResizeFacts | undefined;
}

/**
 * The start that follows a stop of our own is part of it, as in the kubelet: back-off is judged by the end (epoch ms) of
 * the instance before, and where there was none there is none. `waited`: it had to wait all the same, and is judged by
 * its own end now.
 */
export type RestartWanted = { readonly endedBefore: number | undefined } | 'waited';

/** Why a container is stopped; decides which grace period applies. */
export type KillReason =
  | 'livenessProbe'
  | 'startupProbe'
  | 'definitionChanged'
  | 'unknownState'
  | 'postStartHook'
  | 'resize';

export interface StartAction {
  readonly kind: 'startContainer';
  readonly type: ContainerSnapshot['type'];
  readonly container: Container | EphemeralContainer;
  readonly hash: string;
  readonly restartCount: number;
  readonly sandbox: SandboxSnapshot;
  /** A container that was created but never started, to be started instead of making another. */
  readonly created?: ContainerId;
  /** When the instance before this one ended (epoch ms); it decides the next back-off, and without it there is none. */
  readonly previousFinishedAt?: number;
}

export interface KillAction {
  readonly kind: 'killContainer';
  readonly container: ContainerSnapshot;
  /** The kubelet's words for the Killing event. */
  readonly message: string;
  readonly reason: KillReason;
  readonly thenStart: boolean;
  /** When the instance before it ended (epoch ms), where one is known. */
  readonly endedBefore: number | undefined;
}

/** Running containers get what the pod has been promised. Without any the pod's cgroup alone is brought to it. */
export interface ResizeAction {
  readonly kind: 'resizePod';
  readonly updates: readonly {
    readonly instance: ContainerSnapshot;
    readonly container: Container;
    /** What it runs with. */
    readonly from: Resources;
  }[];
}

export type PodAction =
  /** Nothing runs and nothing will again: the pod is at its end. */
  | { readonly kind: 'finishPod'; readonly why: 'completed' | 'initFailed' | 'sandboxDead' }
  /** `replaces`: whatever is left of the old sandbox goes first, containers included. */
  | {
      readonly kind: 'createSandbox';
      readonly attempt: number;
      readonly replaces: boolean;
      readonly why: Extract<SandboxVerdict, { kind: 'create' }>['why'];
    }
  | KillAction
  | StartAction
  | ResizeAction;

/** A container that must wait before it may start. */
export interface WaitingFor {
  readonly reason: 'CrashLoopBackOff';
  readonly message: string;
  /** Epoch ms. */
  readonly until: number;
}

export interface PodActions {
  readonly actions: readonly PodAction[];
  /** By container name. */
  readonly waiting: ReadonlyMap<string, WaitingFor>;
  /** When to decide again although nothing happens (epoch ms). */
  readonly wakeAt?: number;
}

/** The newest instance of a container. */
export function newestOf(snapshot: PodSnapshot, name: string): ContainerSnapshot | undefined {
  return snapshot.containers.find((container) => container.name === name);
}

function newestEnded(snapshot: PodSnapshot, name: string): ContainerSnapshot | undefined {
  return snapshot.containers.find((container) => container.name === name && container.state === 'exited');
}

/** Collects the actions of one decision; what must wait goes to `waiting` instead. */
export class Plan {
  readonly actions: PodAction[] = [];
  readonly waiting = new Map<string, WaitingFor>();
  readonly #facts: PodFacts;
  readonly #sandbox: SandboxSnapshot;
  readonly #planned = new Set<string>();
  readonly #resizes: ResizeAction['updates'][number][] = [];

  constructor(facts: PodFacts, sandbox: SandboxSnapshot) {
    this.#facts = facts;
    this.#sandbox = sandbox;
  }

  /** Plans the start of a container, unless it is under way already or its back-off is not over. */
  start(container: Container | EphemeralContainer, type: ContainerSnapshot['type']): void {
    const { snapshot, starting, killing, pod, now, backoffPolicy } = this.#facts;
    if (starting.has(container.name) || this.#planned.has(container.name)) return;
    const newest = newestOf(snapshot, container.name);
    // Never two instances at once: the old one must be seen dead first.
    if (newest !== undefined && killing.has(newest.id)) return;
    this.#planned.add(container.name);
    const hash = hashContainer(container);
    const ownEnd = newestEnded(snapshot, container.name)?.finishedAt;
    const wanted = this.#facts.restartWanted.get(container.name) ?? 'waited';
    const judgedBy = wanted === 'waited' ? ownEnd : wanted.endedBefore;
    if (ownEnd !== undefined && judgedBy !== undefined) {
      const entry = this.#facts.backoff.get(restartBackoffKey(container.name, hash));
      const until = restartNotBefore(backoffPolicy, entry, ownEnd, now, judgedBy);
      if (until !== undefined && entry !== undefined) {
        const message = crashLoopMessage(entry.delayMs, container.name, pod);
        this.waiting.set(container.name, { reason: 'CrashLoopBackOff', message, until });
        return;
      }
    }
    const reusable =
      newest?.state === 'created' && newest.sandboxId === this.#sandbox.id && newest.hash === hash ? newest : undefined;
    this.actions.push({
      kind: 'startContainer',
      type,
      container,
      hash,
      restartCount: reusable?.restartCount ?? nextRestartCount(container.name, snapshot, this.#facts.previous),
      sandbox: this.#sandbox,
      ...(reusable === undefined ? {} : { created: reusable.id }),
      ...(ownEnd === undefined || judgedBy === undefined ? {} : { previousFinishedAt: ownEnd }),
    });
  }

  /** Plans to stop an instance, unless that is under way. With `thenStart` it runs again once it is dead. */
  kill(container: ContainerSnapshot, reason: KillReason, message: string, thenStart: boolean): void {
    if (this.#facts.killing.has(container.id)) return;
    const endedBefore = newestEnded(this.#facts.snapshot, container.name)?.finishedAt;
    this.actions.push({ kind: 'killContainer', container, reason, message, thenStart, endedBefore });
  }

  /** Plans what a resize asks of a running instance; true when it must run again for it. */
  resize(container: Container, newest: ContainerSnapshot): boolean {
    const from = this.#facts.resize?.actual.get(newest.id);
    const verdict = from === undefined ? 'none' : judgeContainerResize(container, from);
    if (verdict === 'restart') {
      this.kill(newest, 'resize', `Container ${container.name} resize requires restart`, true);
    } else if (verdict === 'update' && from !== undefined) this.#resizes.push({ instance: newest, container, from });
    return verdict === 'restart';
  }

  #finishResize(): void {
    const { resize } = this.#facts;
    if (resize === undefined) return;
    const updates = this.#resizes;
    // First of all, lest a container grow, or start again, in too small a cgroup.
    if (!resize.roomMade || updates.length > 0 || resize.actual.size === 0) {
      this.actions.unshift({ kind: 'resizePod', updates });
    }
  }

  done(): PodActions {
    this.#finishResize();
    const wakeAt = Math.min(...[...this.waiting.values()].map((wait) => wait.until));
    return { actions: this.actions, waiting: this.waiting, ...(Number.isFinite(wakeAt) ? { wakeAt } : {}) };
  }
}

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

/** Judges one regular container; true when it keeps the pod going (it runs, starts, waits or is being stopped). */
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
      // It may be running for all we know: two instances of one container must never be.
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

/** What to do next about a pod that is meant to run. A pod that is being terminated is not this function's affair. */
export function computePodActions(facts: PodFacts): PodActions {
  const { pod, snapshot } = facts;
  if (facts.sandboxBusy) return NOTHING;
  const verdict = podSandboxChanged(pod, snapshot);
  if (verdict.kind === 'create') {
    // A start under way would land in a sandbox that is going; it fails by itself and is looked at again.
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
