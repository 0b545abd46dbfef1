// The loop of one pod: observe, decide, report, act. Strictly serial in what it decides; long work (pulling an image,
// making a sandbox, stopping a container) runs beside the loop and wakes it when it ends, so that news and deletions
// never wait for it. The rules are elsewhere: actions.ts, termination.ts, status.ts; the doing is in pod-acts.ts and, once
// the pod is to end, in pod-ending.ts.

import type { Pod, PodStatus } from '../../client/types.ts';
import type { Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { podUID } from '../model/pod-uid.ts';
import type { PodEnd } from '../ports/pod-end.ts';
import type { PodLifecycleEvent, PodRef, PodSnapshot } from '../ports/runtime.ts';
import { computePodActions } from './actions.ts';
import { activeDeadline } from './deadline.ts';
import { containerReference, podReference } from './events.ts';
import { computeGarbage } from './garbage.ts';
import { asksForMore, isNews, statusUrgency } from './news.ts';
import { isTerminalPhase } from './phase.ts';
import type { PodActions } from './pod-action.ts';
import { type ActsHost, PodActs } from './pod-acts.ts';
import { type EndingHost, PodEnding } from './pod-ending.ts';
import { backOffEventMessage } from './restart-backoff.ts';
import { computePodStatus } from './status.ts';
import { gracePeriodSeconds } from './termination.ts';
import type { WorkerContext } from './worker-context.ts';

/** `ended`: nothing runs, network, volumes and cgroup are released; `gone`: nothing of the pod is left here. */
type Mode = 'running' | 'terminating' | 'ended' | 'gone';

export interface PodWorkerOptions {
  /** The runtime is known to have nothing of this pod, so the first look at it can be spared. */
  readonly unknownToRuntime: boolean;
  /** The pod was refused: nothing of it was ever here, and nothing will be. */
  readonly neverRan: boolean;
  /** Called once when nothing of the pod runs any more and its network, volumes and cgroup are given back. */
  readonly onEnded: () => void;
  /** Called once when nothing of the pod is left on this node. */
  readonly onGone: () => void;
}

const LOOP = '#sync';

export class PodWorker implements ActsHost, EndingHost {
  readonly ref: PodRef;
  readonly #context: WorkerContext;
  readonly #options: PodWorkerOptions;
  readonly #acts: PodActs;
  readonly #ending: PodEnding;
  #pod: Pod;
  #mode: Mode = 'running';
  #snapshot: PodSnapshot | undefined;
  #spareLook: boolean;
  /** Why the agent itself ends the pod. */
  #failure: PodEnd | undefined;
  /** No source wants the pod any more. */
  #unwanted = false;

  #looping = false;
  #stopped = false;
  #causes: string[] = [];
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  /** Until when (epoch ms) each BackOff event stands. */
  readonly #announced = new Map<string, number>();
  readonly #collecting = new Set<string>();

  constructor(pod: Pod, context: WorkerContext, options: PodWorkerOptions) {
    const { uid, namespace, name } = pod.metadata;
    this.ref = { uid: podUID(uid), namespace, name };
    this.#pod = pod;
    this.#context = context;
    this.#options = options;
    this.#spareLook = options.unknownToRuntime;
    if (options.neverRan) this.#mode = 'ended';
    this.#acts = new PodActs(this, context);
    this.#ending = new PodEnding(this, this.#acts, context);
  }

  get pod(): Pod {
    return this.#pod;
  }
  get snapshot(): PodSnapshot | undefined {
    return this.#snapshot;
  }
  get gone(): boolean {
    return this.#mode === 'gone';
  }
  /** Seconds that the node grants a pod that it ends itself. */
  get grantedSeconds(): number | undefined {
    return this.#failure?.graceSeconds;
  }
  /** Whether the pod still uses resources of the node. */
  get active(): boolean {
    return this.#mode === 'running' || this.#mode === 'terminating';
  }

  /** The status last computed here, or else what the API has. */
  previous(): PodStatus | undefined {
    return this.#context.statuses.get(this.ref.uid) ?? this.#pod.status;
  }

  /** A newer version of the pod. */
  update(pod: Pod, cause: string): void {
    const before = this.#pod;
    this.#pod = pod;
    this.#context.statuses.podSeen(pod);
    if (this.#mode === 'running') this.#context.volumes.podChanged?.(pod);
    this.#acts.definitionSeen(before, pod);
    const grace = pod.metadata.deletionGracePeriodSeconds;
    if (this.#mode === 'terminating' && grace !== before.metadata.deletionGracePeriodSeconds) {
      this.#acts.killer.shortenAll(gracePeriodSeconds(pod, undefined, 'podEnds', this.grantedSeconds));
    }
    if (asksForMore(before, pod)) this.wake(cause);
  }

  /** No source wants the pod any more: it is stopped, and nothing is left of it. */
  remove(): void {
    if (this.#unwanted) return;
    this.#unwanted = true;
    this.wake('pod removed');
  }

  /** Ends the pod for a reason of the node's own; its phase becomes Failed. */
  fail(failure: PodEnd): void {
    this.#failure ??= failure;
    const { graceSeconds } = failure;
    // A pod that was on its way out already goes faster now.
    if (this.#mode === 'terminating' && graceSeconds !== undefined) this.#acts.killer.shortenAll(graceSeconds);
    this.wake(failure.reason);
  }

  /** Removes what a pod that has ended keeps in the runtime for its logs, where the disk is wanted for better. */
  async dropRemains(): Promise<void> {
    if (this.#mode === 'ended') await this.#ending.removeFromRuntime(await this.#observe());
  }

  /**
   * Something of the pod runs. Where the pod has ended it came up after all, from a call that was given up long ago, and
   * is ended like the rest.
   */
  seenRunning(): void {
    if (this.#mode !== 'ended' || this.#options.neverRan) return;
    this.#mode = 'terminating';
    this.wake('it runs although the pod has ended');
  }

  /** Something happened in the runtime. */
  event(event: PodLifecycleEvent): void {
    if (isNews(event, this.#snapshot, this.#acts.busy)) this.wake(event.type);
  }

  wake(cause: string): void {
    if (!this.#causes.includes(cause)) this.#causes.push(cause);
    if (!this.#looping && !this.#stopped) void this.#loop();
  }

  wakeAt(epochMs: number): void {
    if (epochMs >= this.#timerAt || this.#stopped) return;
    this.#timer?.cancel();
    this.#timerAt = epochMs;
    this.#timer = this.#context.clock.after(Math.max(0, epochMs - this.#context.clock.now()), () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.wake('timer');
    });
  }

  /** Stops deciding. What runs keeps running. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#acts.abort('the agent is stopping');
  }

  async #loop(): Promise<void> {
    this.#looping = true;
    const { tracer, syncLoop } = this.#context;
    const what = `syncPod ${this.ref.namespace}/${this.ref.name}`;
    while (this.#causes.length > 0 && !this.#stopped) {
      const cause = this.#causes.join(', ');
      this.#causes = [];
      try {
        await tracer.within({ pod: this.ref, cause }, () =>
          tracer.span('worker', 'syncPod', { mode: this.#mode }, () => syncLoop.step(what, () => this.#sync())),
        );
        this.#acts.settled(LOOP);
      } catch (error) {
        this.wakeAt(this.#acts.postpone(LOOP, error));
      }
    }
    this.#looping = false;
  }

  async #sync(): Promise<void> {
    this.#timer?.cancel();
    this.#timerAt = Number.POSITIVE_INFINITY;
    if (this.#mode === 'running' && this.#mustEnd()) this.#beginEnd();
    if (this.#mode === 'gone' || this.#ending.releasing) return;
    if (this.#mode === 'ended') {
      if (this.leaving) await this.#leave(await this.#observe());
      return;
    }
    this.wakeAt(this.#context.clock.now() + this.#context.config.resyncMs);
    const snapshot = await this.#observe();
    if (this.#mode === 'running') this.#run(snapshot);
    else await this.#ending.step(snapshot);
  }

  async #observe(): Promise<PodSnapshot> {
    const { runtime, probes, clock } = this.#context;
    const empty: PodSnapshot = { pod: this.ref, sandboxes: [], containers: [], observedAt: clock.now() };
    const snapshot = this.#spareLook ? empty : await runtime.observePod(this.ref);
    this.#spareLook = false;
    this.#snapshot = snapshot;
    this.#context.resizes.observed(this.ref.uid, snapshot);
    probes.podObserved(this.#pod, this.#begun(snapshot));
    return snapshot;
  }

  /**
   * What may be told of a pod that runs: a container counts as running when its start is over, its postStart hook
   * included. Until then it is reported as it was before, and no probe asks it.
   */
  #begun(snapshot: PodSnapshot): PodSnapshot {
    const { starting } = this.#acts;
    if (this.#mode !== 'running' || starting.size === 0) return snapshot;
    const containers = snapshot.containers.filter(({ name, state }) => state !== 'running' || !starting.has(name));
    return { ...snapshot, containers };
  }

  #mustEnd(): boolean {
    const previous = this.previous();
    if (isTerminalPhase(previous?.phase)) return true;
    const deadline = activeDeadline(this.#pod, previous?.startTime, this.#context.clock.now());
    if (deadline?.failure !== undefined) this.#pastDeadline(deadline.failure);
    else if (deadline !== undefined) this.wakeAt(deadline.at);
    return this.leaving || this.#failure !== undefined;
  }

  #pastDeadline(failure: PodEnd): void {
    if (this.#failure !== undefined) return;
    this.#failure = failure;
    this.#context.recorder.event(podReference(this.#pod), 'Normal', failure.reason, failure.message);
  }

  get leaving(): boolean {
    return this.#unwanted || this.#pod.metadata.deletionTimestamp !== undefined;
  }

  reportEnd(snapshot: PodSnapshot, over: boolean): void {
    this.#report(snapshot, new Map(), over);
  }

  released(leaving: boolean): void {
    this.#mode = 'ended';
    this.#options.onEnded();
    if (leaving) this.#letGo();
  }

  #beginEnd(): void {
    this.#mode = 'terminating';
    this.#context.probes.podTerminating(this.#pod);
    this.#acts.abort('the pod is being terminated');
  }

  #run(snapshot: PodSnapshot): void {
    const { clock, config, probes } = this.#context;
    const acts = this.#acts;
    acts.noteRunning(snapshot);
    const decision = computePodActions({
      pod: this.#pod,
      snapshot,
      previous: this.previous(),
      probes: probes.results,
      backoff: acts.restarts,
      backoffPolicy: config.restartBackoff,
      now: clock.now(),
      sandboxBusy: acts.sandboxBusy,
      starting: acts.starting,
      killing: acts.killer.underWay,
      restartWanted: acts.restartWanted,
      resize: this.#context.resizes.facts(this.ref.uid),
    });
    acts.heldBack(decision.waiting.keys());
    this.#announce(decision);
    this.#report(this.#begun(snapshot), decision.waiting, false);
    if (decision.wakeAt !== undefined) this.wakeAt(decision.wakeAt);
    if (decision.actions.some((action) => action.kind === 'finishPod')) {
      this.#beginEnd();
      this.wake('pod completed');
      return;
    }
    if (snapshot.sandboxes[0]?.state === 'ready') acts.adopt();
    acts.perform(decision.actions, snapshot);
    this.#collectGarbage(snapshot);
  }

  #collectGarbage(snapshot: PodSnapshot): void {
    const { runtime, config, log } = this.#context;
    const { containers, sandboxes } = computeGarbage(snapshot, config.maxPerPodContainer);
    const collect = (id: string, work: () => Promise<void>): void => {
      if (this.#collecting.has(id)) return;
      this.#collecting.add(id);
      work()
        .catch((error) => log('warn', 'not removed, will try again', { id, error: errorMessage(error) }))
        .finally(() => this.#collecting.delete(id));
    };
    for (const { id } of containers) collect(id, () => runtime.removeContainer(id));
    for (const { id } of sandboxes) {
      collect(id, async () => {
        await runtime.stopPodSandbox(id);
        await runtime.removePodSandbox(id);
      });
    }
  }

  /** The pod ended earlier and is leaving now: what was kept for its logs goes too. */
  async #leave(snapshot: PodSnapshot): Promise<void> {
    await this.#ending.removeFromRuntime(snapshot);
    this.#letGo();
  }

  #letGo(): void {
    const { statuses, images, probes } = this.#context;
    this.#mode = 'gone';
    this.#timer?.cancel();
    images.forget(this.ref.uid);
    probes.podRemoved(this.ref.uid);
    const status = this.previous();
    if (!this.#unwanted && status !== undefined) statuses.finalize(this.#pod, status);
    this.#options.onGone();
  }

  #report(snapshot: PodSnapshot, held: PodActions['waiting'], over: boolean): void {
    // There is no object left to report on.
    if (this.#unwanted) return;
    const { statuses, node, probes, clock } = this.#context;
    const previous = this.previous();
    const status = computePodStatus({
      pod: this.#pod,
      snapshot,
      probes: probes.results,
      previous,
      hostIPs: node.hostIPs(),
      waiting: new Map([...this.#acts.troubles, ...held]),
      // What a pod that ends wanted to start again has ended, too.
      restarting: new Set(this.#mode === 'running' ? [...this.#acts.restartWanted.keys(), ...this.#acts.starting] : []),
      over,
      // A failure that came while the pod was being looked at is told once its end has begun.
      ...(this.#failure === undefined || this.#mode === 'running' ? {} : { failure: this.#failure }),
      resize: this.#context.resizes.report(this.ref.uid),
      now: clock.now(),
    });
    statuses.set(this.#pod, status, statusUrgency(previous, status));
  }

  /** One BackOff event per wait. */
  #announce({ waiting }: PodActions): void {
    for (const [name, { until }] of waiting) {
      if (this.#announced.get(name) === until) continue;
      this.#announced.set(name, until);
      const message = backOffEventMessage(name, this.#pod);
      this.#context.recorder.event(containerReference(this.#pod, name), 'Warning', 'BackOff', message);
    }
  }
}
