// The loop of one pod (the kubelet's pod worker): observe, step, report, perform. It is strictly serial; actions go on
// beside it and wake it when they end, so that events and deletions never wait for them. It decides nothing: pod-step.ts and
// outcome.ts do, from the state that it keeps for them.

import type { Pod, PodStatus } from '../../client/types.ts';
import { type EpochMs, elapsedMs, plusMs, type Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { InvariantViolation } from '../../lib/invariant.ts';
import type { OpenSpan } from '../../lib/trace.ts';
import { podUID } from '../model/pod-uid.ts';
import type { PodEnd } from '../ports/pod-end.ts';
import type { PodLifecycleEvent, PodRef, PodSnapshot } from '../ports/runtime.ts';
import { decisionFacts } from './decision-facts.ts';
import { containerReference, podReference } from './events.ts';
import { ActionExecutor } from './executor.ts';
import { rpcMessage } from './format.ts';
import { type ActionResult, actionEnded, observationDone, observationFailed } from './outcome.ts';
import { admittedPod, type PodState, rejectedPod, stateMessage } from './pod-state.ts';
import {
  advancePod,
  evictPod,
  needsObservation,
  podDefinitionChanged,
  reclaimPod,
  runningPodSeen,
  stepPod,
} from './pod-step.ts';
import { computePodStatus } from './status.ts';
import { checkStatus } from './status-invariants.ts';
import { statusUrgency } from './status-urgency.ts';
import { ACTION_IDS, isStarting, type LastingAction, type SyncAction, type UnderWay } from './sync-action.ts';
import type { DesiredFacts, PodEvent, StatusInputs, Step, SyncFacts } from './sync-facts.ts';
import { startedContainers } from './sync-pod.ts';
import { eventNeedsSync, podNeedsSync, type SyncCause } from './sync-triggers.ts';
import type { WorkerContext } from './worker-context.ts';

/** What woke a round is in its causes; of the spans behind them, the trace has this many. */
const MAX_LINKS = 16;

export interface PodWorkerOptions {
  /** The runtime has nothing of this pod, so the first observation is not needed. */
  readonly unknownToRuntime: boolean;
  /** As the runtime calls itself: in the ids of containers. */
  readonly runtimeName: string;
  /** The pod was refused: nothing of it was ever here, and nothing will be. */
  readonly neverRan: boolean;
  /** Called when nothing of the pod runs any more and its network, volumes and cgroup are given back. */
  readonly onFinished: () => void;
  /** Called once when nothing of the pod is left on this node. */
  readonly onRemoved: () => void;
}

export class PodWorker {
  readonly ref: PodRef;
  readonly #context: WorkerContext;
  readonly #options: PodWorkerOptions;
  readonly #executor: ActionExecutor;
  // The desired pod, the state, and the last snapshot.
  #pod: Pod;
  #removed = false;
  #state: PodState;
  #snapshot: PodSnapshot | undefined;
  // When the loop runs.
  #looping = false;
  #stopped = false;
  #causes: SyncCause[] = [];
  /** The spans of what woke the loop. */
  #links: number[] = [];
  #timer: { readonly at: EpochMs; readonly handle: Timer } | undefined;

  constructor(pod: Pod, context: WorkerContext, options: PodWorkerOptions) {
    const { uid, namespace, name } = pod.metadata;
    this.ref = { uid: podUID(uid), namespace, name };
    this.#pod = pod;
    this.#context = context;
    this.#options = options;
    this.#state = options.neverRan ? rejectedPod() : admittedPod();
    this.#executor = new ActionExecutor(this.ref, context, (action, result) => this.#actionEnded(action, result));
  }

  get pod(): Pod {
    return this.#pod;
  }
  get snapshot(): PodSnapshot | undefined {
    return this.#snapshot;
  }
  /** Nothing of the pod is left here. */
  get isRemoved(): boolean {
    return this.#state.kind === 'removed';
  }
  /** No source has the pod any more. */
  get isUndesired(): boolean {
    return this.#removed;
  }
  /** Whether the pod still uses resources of the node. */
  get isActive(): boolean {
    return this.#state.kind !== 'finished' && this.#state.kind !== 'removed';
  }

  /** The status last computed here, or else what the API has. */
  previous(): PodStatus | undefined {
    return this.#context.statuses.get(this.ref.uid) ?? this.#pod.status;
  }

  /** A newer version of the pod. */
  update(pod: Pod, cause: SyncCause): void {
    const before = this.#pod;
    this.#pod = pod;
    this.#context.statuses.podSeen(pod);
    if (this.#state.kind === 'syncing') this.#context.volumes.podChanged?.(pod);
    this.#enter(podDefinitionChanged(this.#state, before, pod));
    this.#advance();
    if (podNeedsSync(before, pod)) this.wake(cause);
  }

  /** No source has the pod any more: it is stopped, and nothing is left of it. */
  remove(): void {
    if (this.#removed) return;
    this.#removed = true;
    this.#advance();
    this.wake('pod removed');
  }

  /** Ends the pod for a reason of the node's own; its phase becomes Failed. */
  evict(end: PodEnd): void {
    this.#enter(evictPod(this.#state, end));
    this.#advance();
    this.wake('pod evicted');
  }

  /** Something of the pod runs, as a list of all pods shows. */
  seenRunning(): void {
    const state = runningPodSeen(this.#state);
    if (state === this.#state) return;
    this.#enter(state);
    this.wake('pod started late');
  }

  /** Removes what a pod that has ended keeps in the runtime for its logs. Rejects with what could not be removed. */
  async removeFromRuntime(): Promise<void> {
    if (this.#state.kind !== 'finished') return;
    const underWay = this.#state.underWay;
    const snapshot = await this.#observe();
    this.#apply(reclaimPod(this.#state, this.#facts(snapshot, underWay)));
    const result = await this.#executor.result(ACTION_IDS.removeFromRuntime);
    if (result?.kind === 'failed') throw result.error;
  }

  /** Something happened in the runtime. */
  event(event: PodLifecycleEvent): void {
    if (!eventNeedsSync(event, this.#snapshot, isStarting(this.#state.underWay))) return;
    const { tracer } = this.#context;
    const about = event.containerId === undefined ? {} : { containerId: event.containerId };
    const id = tracer.event('cri', `PLEG ${event.type}`, { pod: this.ref }, about);
    this.#wake(event.type, [id]);
  }

  wake(cause: SyncCause): void {
    this.#wake(cause, this.#context.tracer.origin());
  }

  /** `links`: the spans that are the cause. */
  #wake(cause: SyncCause, links: readonly number[]): void {
    if (!this.#causes.includes(cause)) this.#causes.push(cause);
    for (const link of links) if (this.#links.length < MAX_LINKS && !this.#links.includes(link)) this.#links.push(link);
    if (!this.#looping && !this.#stopped) void this.#loop();
  }

  /** Stops deciding. What runs keeps running. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.handle.cancel();
    this.#executor.abort('the agent is stopping');
  }

  async #loop(): Promise<void> {
    this.#looping = true;
    const { tracer, syncLoop } = this.#context;
    const what = `syncPod ${this.ref.namespace}/${this.ref.name}`;
    while (this.#causes.length > 0 && !this.#stopped) {
      const cause = this.#causes.join(', ');
      const links = this.#links;
      this.#causes = [];
      this.#links = [];
      try {
        const { resourceVersion } = this.#pod.metadata;
        await tracer.causedBy(links, { pod: this.ref, cause }, () =>
          tracer.span('worker', 'syncPod', { state: this.#state.kind, resourceVersion }, (span) =>
            syncLoop.step(what, () => this.#sync(span)),
          ),
        );
      } catch (error) {
        // Where invariants throw, nothing hides them.
        if (error instanceof InvariantViolation) throw error;
        this.#syncFailed(error);
      }
    }
    this.#looping = false;
  }

  async #sync(span: OpenSpan): Promise<void> {
    this.#timer?.handle.cancel();
    this.#timer = undefined;
    const { clock, config } = this.#context;
    const advanced = this.#advance();
    if (needsObservation(this.#state, this.#desired())) {
      // What ends while the observation lasts may be missing from it: it counts as under way.
      const { underWay } = this.#state;
      const snapshot = await this.#observe();
      const step = stepPod(observationDone(this.#state), this.#facts(snapshot, underWay));
      this.#apply(step);
      span.set(decisionFacts(snapshot, step, this.#context.statuses.get(this.ref.uid)));
      for (const { wakeAt } of [step, advanced]) if (wakeAt !== undefined) this.#wakeAt(wakeAt);
    }
    if (this.isActive) this.#wakeAt(plusMs(clock.now(), config.resyncMs));
  }

  async #observe(): Promise<PodSnapshot> {
    const { runtime, probes, clock, resizes } = this.#context;
    const unknown = this.#snapshot === undefined && this.#options.unknownToRuntime;
    const snapshot: PodSnapshot = unknown
      ? { pod: this.ref, sandboxes: [], containers: [], observedAt: clock.now() }
      : await runtime.observePod(this.ref);
    this.#snapshot = snapshot;
    resizes.observed(this.ref.uid, snapshot);
    const started = this.#state.kind === 'syncing' ? startedContainers(this.#state, snapshot) : snapshot;
    probes.podObserved(this.#pod, started);
    return snapshot;
  }

  #desired(): DesiredFacts {
    const { config, clock } = this.#context;
    return { pod: this.#pod, removed: this.#removed, previous: this.previous(), config, now: clock.now() };
  }

  #facts(snapshot: PodSnapshot, underWayBefore: UnderWay): SyncFacts {
    const { probes, resizes, node } = this.#context;
    return {
      ...this.#desired(),
      snapshot,
      underWayBefore,
      probes: probes.results,
      resize: resizes.facts(this.ref.uid),
      hostIPs: node.hostIPs(),
    };
  }

  #advance(): Step {
    const step = advancePod(this.#state, this.#desired());
    this.#apply(step);
    return step;
  }

  #apply({ state, events, status, actions }: Step): void {
    const before = this.#state;
    this.#enter(state);
    for (const event of events) this.#record(event);
    if (status !== undefined) this.#report(status);
    for (const action of actions) this.#perform(action);
    if (state.kind === 'removed' && before.kind !== 'removed') this.#entirelyRemoved();
  }

  /** The state that counts from now on. */
  #enter(state: PodState): void {
    const before = this.#state;
    this.#state = state;
    if (before.kind === state.kind) return;
    const { probes, log } = this.#context;
    const { namespace, name, uid } = this.ref;
    log('debug', stateMessage(state), { pod: `${namespace}/${name}`, podUID: uid, from: before.kind });
    if (before.kind !== 'syncing') return;
    probes.podTerminating(this.#pod);
    this.#executor.abort('the pod is being terminated');
  }

  #perform(action: SyncAction): void {
    switch (action.kind) {
      case 'shortenGrace':
        this.#executor.shortenGrace(action.graceSeconds);
        return;
      case 'finalizePod': {
        const status = this.previous();
        if (status !== undefined) this.#context.statuses.finalize(this.#pod, status);
        return;
      }
      default:
        this.#executor.perform(action, this.#pod);
    }
  }

  #actionEnded(action: LastingAction, result: ActionResult): void {
    if (this.#stopped) return;
    const { config, clock, resizes } = this.#context;
    const before = this.#state;
    const facts = { podUID: this.ref.uid, config, now: clock.now() };
    const { state, events } = actionEnded(before, action, result, facts);
    this.#enter(state);
    for (const event of events) this.#record(event);
    if (result.kind === 'failed') {
      this.#logFailure(action.id, result.error);
      if (action.kind === 'resizePod') resizes.failed(this.ref.uid, rpcMessage(result.error));
    }
    if (state.kind === 'finished' && before.kind !== 'finished') this.#options.onFinished();
    if (state.kind === 'removed' && before.kind !== 'removed') this.#entirelyRemoved();
    else this.wake(`${action.kind} ended`);
  }

  #syncFailed(error: unknown): void {
    const { config, clock } = this.#context;
    this.#state = observationFailed(this.#state, config, clock.now());
    this.#logFailure(ACTION_IDS.sync, error);
    const retry = this.#state.retries.get(ACTION_IDS.sync);
    if (retry !== undefined) this.#wakeAt(retry.at);
  }

  /** `inMs`: when it is tried again. */
  #logFailure(id: string, error: unknown): void {
    const { log, clock } = this.#context;
    const { namespace, name, uid } = this.ref;
    const at = this.#state.retries.get(id)?.at;
    log('warn', 'Error syncing pod, skipping', {
      pod: `${namespace}/${name}`,
      podUID: uid,
      action: id,
      err: errorMessage(error),
      ...(at === undefined ? {} : { inMs: elapsedMs(clock.now(), at) }),
    });
  }

  #entirelyRemoved(): void {
    const { images, probes } = this.#context;
    this.#timer?.handle.cancel();
    images.forget(this.ref.uid);
    probes.podRemoved(this.ref.uid);
    this.#options.onRemoved();
  }

  #record({ container, type, reason, message }: PodEvent): void {
    const reference = container === undefined ? podReference(this.#pod) : containerReference(this.#pod, container);
    this.#context.recorder.event(reference, type, reason, message);
  }

  #report({ podEnd, ...inputs }: StatusInputs): void {
    // There is no object left to report on.
    if (this.#removed) return;
    const { statuses, node, probes, clock, resizes } = this.#context;
    const previous = this.previous();
    const status = computePodStatus({
      pod: this.#pod,
      runtimeName: this.#options.runtimeName,
      ...inputs,
      probes: probes.results,
      previous,
      hostIPs: node.hostIPs(),
      ...(podEnd === undefined ? {} : { failure: podEnd }),
      resize: resizes.report(this.ref.uid),
      now: clock.now(),
    });
    checkStatus(this.ref, previous, status, this.#snapshot ?? inputs.snapshot);
    statuses.set(this.#pod, status, statusUrgency(previous, status));
  }

  /** Wakes the loop at the time or before. */
  #wakeAt(at: EpochMs): void {
    if (this.#stopped) return;
    const { clock } = this.#context;
    if (this.#timer !== undefined && this.#timer.at <= at) return;
    this.#timer?.handle.cancel();
    const handle = clock.after(Math.max(0, elapsedMs(clock.now(), at)), () => {
      this.#timer = undefined;
      this.wake('timer');
    });
    this.#timer = { at, handle };
  }
}
