// The rules about time: what must not come too early, whatever happens, and what must have come by then when nothing went
// wrong meanwhile. They look at what the agent asks the runtime for, and when.

import { isCriticalPod, isMirrorPod } from '../../../agent/model/static-pods.ts';
import { isTerminalPhase } from '../../../agent/pods/phase.ts';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import type { Container, Pod } from '../../../client/types.ts';
import type { Instance } from '../../../labs/sim/cri/state.ts';
import type { Process } from '../../../labs/sim/processes.ts';
import { plusMs } from '../../../lib/clock.ts';
import { isSidecar } from '../../../lib/sidecar.ts';
import type { World } from './world.ts';

type WhatIsThere = Pick<
  World,
  'clock' | 'rules' | 'api' | 'runtime' | 'weather' | 'processes' | 'objects' | 'volumes' | 'memory' | 'nodeRules'
>;

/** What else a pod's end may take beyond its grace period, ms: a pull, an attachment, an unmount that is under way. */
const SLACK_MS = 45_000;
/** What a stop may take beyond its grace period: the least time between TERM and KILL, and calls. ms. */
const STOP_MS = 6_000;
/** How long a volume may show what a ConfigMap had before: the resync, spread, and a read. ms. */
const LIVE_MS = 100_000;
/** How long it may take until there is enough memory again: a round, one pod after another, a grace period. ms. */
const RELIEF_MS = 180_000;
/** A probe's first run, and the news of a verdict. */
const PROBE_SLACK_MS = 12_000;
/** A restart waits this long after the second end, and twice as long after each further one, ms. */
const BACKOFF_MS = 10_000;
const LONGEST_BACKOFF_MS = 300_000;
/** Until a container that is due has been made and started: a pull, what a slow start takes, the news of the end. ms. */
const START_MS = 40_000;
/** What went wrong so long ago does not hold up anything any more, ms. */
const CLEARED_MS = 60_000;
/** Who ran longer than this begins anew, ms. */
const RESET_MS = 600_000;

/** Restarts in a row of one container, as one agent has seen them. */
interface Streak {
  /** Of the newest instance. */
  readonly id: string;
  readonly sandboxId: string;
  /** Starts after an end that came by itself. */
  readonly restarts: number;
  readonly startedAt: number;
  endedAt: number | undefined;
  /** A container that is another one, or has other resources, begins anew. */
  readonly definition: string;
}

export class Timing {
  readonly #world: WhatIsThere;
  /** By pod: until when (monotonic ms) its deletion leaves its processes alone, at the least. */
  readonly #granted = new Map<string, number>();
  /** Pods that the node itself has ended, with little time. */
  readonly #hurried = new Set<string>();
  /** By instance: when its end was first asked for, a preStop hook included. */
  readonly #firstSign = new Map<string, number>();
  /** Instances whose preStop hook was asked for. */
  readonly #preStops = new Set<string>();
  readonly #streaks = new Map<string, Streak>();
  /** By "uid/name": how often an instance of a container was to be made. */
  readonly #attempts = new Map<string, number>();
  /** Instances that the agent has begun to stop; one may have ended by itself before it could be asked to. */
  readonly #stopped = new Set<string>();

  constructor(world: WhatIsThere) {
    this.#world = world;
  }

  // ---------------------------------------------------------------- what happens

  /** The agent begins: what only its memory holds is gone. So it is when the clock jumps. */
  agentForgets(): void {
    this.#streaks.clear();
  }

  podDeleted(pod: Pod, graceSeconds: number): void {
    const { clock, api, weather, rules } = this.#world;
    const { uid, name } = pod.metadata;
    const now = clock.monotonic();
    const until = now + graceSeconds * 1000;
    this.#granted.set(uid, Math.min(this.#granted.get(uid) ?? Number.POSITIVE_INFINITY, until));
    clock.after(graceSeconds * 1000 + SLACK_MS, () => {
      if (api.podNamed(name)?.metadata.uid !== uid || !weather.isFairSince(now)) return;
      rules.break(`${name} was deleted ${(clock.monotonic() - now) / 1000} s ago and is still there`);
    });
    this.#mustBeDead(pod, graceSeconds);
  }

  /** A container that runs when its pod is deleted does so no longer than that grants, also where it grants less than before. */
  #mustBeDead({ metadata: { uid } }: Pod, graceSeconds: number): void {
    const { clock, weather, rules, runtime } = this.#world;
    const now = clock.monotonic();
    const running = (runtime.state.pods.get(uid as PodUID)?.instances ?? []).flatMap(({ id, process }) =>
      process === undefined ? [] : [{ id, process }],
    );
    clock.after(graceSeconds * 1000 + STOP_MS, () => {
      if (!weather.isFairSince(now)) return;
      for (const { id, process } of running) {
        if (runtime.state.instance(id)?.process !== process) continue;
        rules.break(
          `${id} runs, and its deleted pod was granted ${graceSeconds} s ${(clock.monotonic() - now) / 1000} s ago`,
        );
      }
    });
  }

  /** The node ends a pod, with less time than its own. */
  podHurried(uid: string): void {
    this.#hurried.add(uid);
  }

  /** A process is not well any more, or its pod has a deadline: it must come to its end. */
  mustBeKilled(instance: Instance, process: Process): void {
    const { clock, weather, rules, processes } = this.#world;
    const probe = instance.spec.container.livenessProbe;
    if (probe === undefined || instance.spec.container.startupProbe !== undefined) return;
    const { periodSeconds = 10, failureThreshold = 3, initialDelaySeconds = 0, timeoutSeconds = 1 } = probe;
    const limit = initialDelaySeconds + (periodSeconds + timeoutSeconds) * (failureThreshold + 1);
    const since = clock.monotonic();
    clock.after(limit * 1000 + PROBE_SLACK_MS, () => {
      if (instance.process !== process || !weather.isFairSince(since) || !process.wrongSince('liveness', since)) return;
      if (processes.calm || this.#firstSign.has(instance.id) || this.#podOf(instance) === undefined) return;
      rules.break(`${instance.id} fails its liveness probe for ${limit} s, and is not stopped`);
    });
  }

  /** The ConfigMap has another content: its volumes show it before long. */
  settingsEdited(): void {
    const { clock, weather, rules, objects, volumes, api } = this.#world;
    const { value } = objects;
    const since = clock.monotonic();
    clock.after(LIVE_MS, () => {
      if (!weather.isFairSince(since) || objects.value !== value) return;
      for (const pod of api.pods.values()) {
        const shown = isTerminalPhase(pod.status?.phase) ? undefined : volumes.shownSettings(pod);
        // One that was mounted meanwhile shows it anyway.
        if (shown !== undefined && shown !== value) {
          rules.break(
            `${pod.metadata.name} shows "${shown}" of the ConfigMap, which says "${value}" for ${LIVE_MS} ms`,
          );
        }
      }
    });
  }

  /** A process has taken nearly all memory: the node evicts a pod. */
  memoryTaken(): void {
    const { clock, weather, rules, memory, api } = this.#world;
    const since = clock.monotonic();
    const mayGo = (): string[] =>
      [...api.pods.values()]
        .filter((pod) => !isTerminalPhase(pod.status?.phase) && !isCriticalPod(pod))
        .map(({ metadata }) => metadata.uid);
    // One that came later had less time to be evicted.
    const before = new Set(mayGo());
    clock.after(RELIEF_MS, () => {
      const { shortSince } = memory;
      if (shortSince === undefined || shortSince > since || !weather.isFairSince(since)) return;
      if (mayGo().some((uid) => before.has(uid))) {
        rules.break(`the node is short of memory for ${RELIEF_MS} ms, and no pod is evicted`);
      }
    });
  }

  /** The agent says that something is scarce. */
  pressureReported(): void {
    const { memory, rules } = this.#world;
    this.#world.nodeRules.pressureMeasured();
    if (!memory.isShort) rules.break(`the agent evicts pods while ${memory.available} bytes of memory are there`);
  }

  /** A pod's status says when it began. */
  podBegan(pod: Pod): void {
    const { clock, weather, rules, runtime, api } = this.#world;
    const { activeDeadlineSeconds, terminationGracePeriodSeconds = 30 } = pod.spec;
    const { startTime } = pod.status ?? {};
    if (activeDeadlineSeconds === undefined || startTime === undefined || isMirrorPod(pod)) return;
    const { uid, name } = pod.metadata;
    const since = clock.monotonic();
    const leftMs = Math.max(0, Date.parse(startTime) + activeDeadlineSeconds * 1000 - clock.now());
    clock.after(leftMs + terminationGracePeriodSeconds * 1000 + SLACK_MS, () => {
      if (!weather.isFairSince(since) || api.podNamed(name)?.metadata.uid !== uid) return;
      const alive = runtime.state.pods.get(uid as PodUID)?.instances.find(({ process }) => process !== undefined);
      if (alive !== undefined) rules.break(`${alive.id} runs beyond its pod's deadline of ${activeDeadlineSeconds} s`);
    });
  }

  /** A status says that the deadline is over. */
  deadlineReported(pod: Pod): void {
    const { clock, rules } = this.#world;
    const { activeDeadlineSeconds = Number.POSITIVE_INFINITY } = pod.spec;
    const began = Date.parse(pod.status?.startTime ?? '');
    if (clock.now() >= began + activeDeadlineSeconds * 1000 || this.#jumped) return;
    rules.break(`${pod.metadata.name} is DeadlineExceeded before its deadline of ${activeDeadlineSeconds} s`);
  }

  #jumped = false;
  /** Wall-clock time jumped: what is reckoned by it is not checked any more. */
  clockJumped(): void {
    this.#jumped = true;
    this.#streaks.clear();
    this.#world.nodeRules.clockJumped();
    this.#world.weather.bad();
  }

  // ---------------------------------------------------------------- what the agent asks the runtime for

  execRequested(id: string, command: readonly string[]): void {
    if (command[1] !== 'preStop') return;
    this.#preStops.add(id);
    this.#sign(id);
  }

  /** The agent says that it stops a container. `fieldPath`: as in `spec.containers{main}`. */
  killingReported(uid: string | undefined, fieldPath = ''): void {
    const [, name] = /\{(.+)\}$/.exec(fieldPath) ?? [];
    const newest = this.#world.runtime.state.pods.get(uid as PodUID)?.instances.find((each) => each.name === name);
    if (newest !== undefined) this.#stopped.add(newest.id);
  }

  #sign(id: string): void {
    if (!this.#firstSign.has(id)) this.#firstSign.set(id, this.#world.clock.monotonic());
  }

  stopRequested(id: string): void {
    const instance = this.#world.runtime.state.instance(id);
    const pod = instance === undefined ? undefined : this.#podOf(instance);
    if (instance?.process !== undefined && instance.shown === 'running' && pod !== undefined) {
      this.#checkPreStop(instance, pod);
      this.#checkOrder(instance, pod);
    }
    this.#sign(id);
  }

  /** The object of its pod, where the API server has it; not of a static pod. */
  #podOf({ pod: { uid, name } }: Instance): Pod | undefined {
    const found = this.#world.api.podNamed(name);
    return found?.metadata.uid === uid ? found : undefined;
  }

  #checkPreStop({ id, spec }: Instance, pod: Pod): void {
    const { container } = spec;
    const hook = 'lifecycle' in container ? container.lifecycle?.preStop?.exec : undefined;
    if (hook === undefined || this.#preStops.has(id) || this.#firstSign.has(id)) return;
    if (this.#leastSeconds(pod, container) === 0) return;
    this.#world.rules.break(`${id} is stopped without its preStop hook`);
  }

  /** Sidecars are stopped after the containers that they serve, the last one first. */
  #checkOrder({ id, name, pod: { uid } }: Instance, pod: Pod): void {
    const { clock, weather, runtime, rules } = this.#world;
    const init = pod.spec.initContainers ?? [];
    const index = init.findIndex((container) => container.name === name && isSidecar(container));
    const now = clock.monotonic();
    const granted = this.#granted.get(uid);
    if (index < 0 || granted === undefined || now >= granted || this.#hurried.has(uid)) return;
    if (this.#firstSign.has(id) || !weather.isFairSince(plusMs(now, -60_000))) return;
    const before = new Set(
      [...pod.spec.containers, ...init.slice(index + 1).filter(isSidecar)].map((other) => other.name),
    );
    const alive = runtime.state.pods
      .get(uid)
      ?.instances.find((other) => before.has(other.name) && other.process !== undefined && other.shown === 'running');
    if (alive !== undefined) rules.break(`sidecar ${id} is stopped while ${alive.id} runs`);
  }

  /** The shortest time that a container of a pod may be granted by whatever ends it, but for the pod's deletion. */
  #leastSeconds(pod: Pod, container: Instance['spec']['container']): number {
    const probes = [container.livenessProbe, container.startupProbe];
    const own = probes.flatMap((probe) => probe?.terminationGracePeriodSeconds ?? []);
    const { terminationGracePeriodSeconds = 30, metadata } = { ...pod.spec, metadata: pod.metadata };
    const least = Math.min(terminationGracePeriodSeconds, ...own);
    return this.#hurried.has(metadata.uid) ? Math.min(1, least) : least;
  }

  // ---------------------------------------------------------------- what becomes of processes

  /** The time granted to a process is over, and it is killed. */
  killed(instance: Instance): void {
    const pod = this.#podOf(instance);
    if (pod === undefined) return;
    const { clock, rules } = this.#world;
    const { id, spec } = instance;
    const now = clock.monotonic();
    const granted = this.#granted.get(pod.metadata.uid);
    if (granted !== undefined && now >= granted) return;
    const init = pod.spec.initContainers ?? [];
    // One that waits for its turn, or that sleeps first, is asked to end later than its time began.
    if (init.some((container: Container) => container.name === instance.name && isSidecar(container))) return;
    const lifecycle = 'lifecycle' in spec.container ? spec.container.lifecycle : undefined;
    const slept = lifecycle?.preStop?.sleep?.seconds ?? 0;
    const least = this.#leastSeconds(pod, spec.container) - slept;
    const since = now - (this.#firstSign.get(id) ?? now);
    if (since + 1 < least * 1000) rules.break(`${id} was killed after ${since} ms, and was granted ${least} s`);
  }

  /** A sandbox is stopped: what runs in it is killed at once. */
  killedWithSandbox(instance: Instance): void {
    if (instance.process === undefined || instance.shown !== 'running' || this.#podOf(instance) === undefined) return;
    if (this.#firstSign.has(instance.id)) return;
    this.#world.rules.break(`${instance.id} was killed with its sandbox, and had not been stopped`);
  }

  ended(instance: Instance): void {
    const { id, pod, name } = instance;
    this.#mustRunAgain(instance);
    const streak = this.#streaks.get(`${pod.uid}/${name}`);
    if (streak?.id === id) streak.endedAt = this.#world.clock.monotonic();
  }

  /**
   * The agent is about to create an instance of a container, whatever becomes of it. Each attempt raises its back-off, as in
   * the kubelet, also one that fails before the runtime hears of CreateContainer.
   */
  startAttempted(uid: string, name: string): void {
    const key = `${uid}/${name}`;
    this.#attempts.set(key, (this.#attempts.get(key) ?? 0) + 1);
  }

  /** What has to run again does so once its back-off is over, and not long after. */
  #mustRunAgain(instance: Instance): void {
    const { clock, weather, rules, runtime } = this.#world;
    const { id, pod, name, spec, sandboxId } = instance;
    const end = clock.monotonic();
    if (spec.type !== 'container' || this.#podOf(instance) === undefined) return;
    // No more than one for each attempt to make it.
    const restarts = (this.#attempts.get(`${pod.uid}/${name}`) ?? 1) - 1;
    const waitMs = restarts === 0 ? 0 : Math.min(LONGEST_BACKOFF_MS, BACKOFF_MS * 2 ** (restarts - 1));
    clock.after(waitMs + START_MS, () => {
      if (!weather.isFairSince(plusMs(end, -CLEARED_MS)) || !this.#isDue(instance)) return;
      const newest = runtime.state.pods.get(pod.uid)?.instances.find((other) => other.name === name);
      if (newest !== undefined && newest.id !== id) return;
      if (runtime.state.sandbox(sandboxId)?.state !== 'ready') return;
      const ago = (clock.monotonic() - end) / 1000;
      rules.break(`${id} ended ${ago} s ago, its back-off was ${waitMs / 1000} s at most, and it is not started again`);
    });
  }

  /** Where nothing else of the pod runs, its containers wait for the sidecars, which have a back-off of their own. */
  #sidecarsRun({ metadata, spec }: Pod): boolean {
    const { runtime, clock } = this.#world;
    const instances = runtime.state.pods.get(metadata.uid as PodUID)?.instances ?? [];
    return (spec.initContainers ?? []).filter(isSidecar).every(({ name }) => {
      const newest = instances.find((instance) => instance.name === name);
      return newest?.process !== undefined && newest.startedAt < clock.now() - START_MS;
    });
  }

  /** Whether a container that has ended is to run again. */
  #isDue({ name, pod: { uid }, end }: Instance): boolean {
    const { runtime, objects, clock } = this.#world;
    const pod = this.#world.api.podOfUid(uid);
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined || isTerminalPhase(pod.status?.phase))
      return false;
    const { activeDeadlineSeconds: deadline, restartPolicy, containers } = pod.spec;
    const container = containers.find((each) => each.name === name);
    const began = Date.parse(pod.status?.startTime ?? '');
    if (this.#hurried.has(uid) || (deadline !== undefined && clock.now() >= began + deadline * 1000)) return false;
    if (container === undefined || runtime.images.find(container.image ?? '') === undefined || !objects.present)
      return false;
    if (!this.#sidecarsRun(pod)) return false;
    const policy = container.restartPolicy ?? restartPolicy;
    return policy === 'Always' || (policy === 'OnFailure' && end?.exitCode !== 0);
  }

  /** What ended by itself waits before it runs again; what the agent has stopped to run again does not. */
  started({ id, pod, name, spec, sandboxId }: Instance): void {
    if (spec.type === 'ephemeral') return;
    const { clock, rules } = this.#world;
    const now = clock.monotonic();
    const key = `${pod.uid}/${name}`;
    const before = this.#streaks.get(key);
    const definition = `${spec.hash} ${JSON.stringify(spec.container.resources)}`;
    const goesOn =
      before?.endedAt !== undefined &&
      before.endedAt - before.startedAt <= RESET_MS &&
      before.definition === definition &&
      before.sandboxId === sandboxId;
    const byItself = goesOn && !this.#firstSign.has(before.id) && !this.#stopped.has(before.id);
    const restarts = goesOn ? before.restarts + (byItself ? 1 : 0) : 0;
    this.#streaks.set(key, { id, sandboxId, restarts, startedAt: now, endedAt: undefined, definition });
    if (!byItself || restarts < 2) return;
    const wait = Math.min(LONGEST_BACKOFF_MS, BACKOFF_MS * 2 ** (restarts - 2));
    const waited = now - (before.endedAt ?? now);
    if (waited < wait) rules.break(`${id}, restarted ${restarts} times, waited ${waited} ms instead of ${wait} ms`);
  }
}
