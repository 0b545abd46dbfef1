// Merges the pod sources and owns one PodWorker per pod UID: admits, routes events, removes pods that no source has. It
// never decides what happens inside a pod: the worker does.

import type { Pod, PodStatus } from '../../client/types.ts';
import type { Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { retryUntilAborted } from '../../lib/retry.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import { TERMINATION_BY_KUBELET } from '../model/disruption.ts';
import { isStaticPod } from '../model/static-pods.ts';
import type { PodSource } from '../ports/api.ts';
import type { PodEnd } from '../ports/pod-end.ts';
import type { ContainerId, PodLifecycleEvent, PodSnapshot, PodUID } from '../ports/runtime.ts';
import { podReference } from './events.ts';
import type { PodPreemption, PodRefusal, PodsAgent, PodsAgentOptions } from './options.ts';
import { listPodsOnMachine, removeOrphans } from './orphans.ts';
import { isTerminalPhase } from './phase.ts';
import { rejectedStatus } from './status.ts';
import type { SyncCause } from './sync-triggers.ts';
import { PodWorker } from './worker.ts';
import { createWorkerContext, type WorkerContext } from './worker-context.ts';

const PREEMPTED = {
  reason: TERMINATION_BY_KUBELET,
  message: 'Pod was preempted by Kubelet to accommodate a critical pod.',
};

/** Whether a container of it was ever made, by what is written of it. */
function hasRun({ status }: Pod): boolean {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return statuses.some(({ containerID, restartCount }) => containerID !== undefined || restartCount > 0);
}

export class PodManager implements PodsAgent {
  readonly #sources: readonly PodSource[];
  readonly #context: WorkerContext;
  readonly #desired = new Map<PodSource['name'], ReadonlyMap<string, Pod>>();
  readonly #workers = new Map<string, PodWorker>();
  /** Each worker's pod as its source last showed it. */
  readonly #lastSeen = new WeakMap<PodWorker, Pod>();
  /** Pods of which this machine had anything when the agent started; undefined until that is known. */
  #podsAtStart: ReadonlySet<string> | undefined;
  /** As the runtime calls itself; known before there is any worker. */
  #runtimeName = '';
  /** Pods that are being ended to make room for a critical one; nothing else is admitted until they have. */
  readonly #preemptedPods = new Set<string>();
  /** Pods that the server no longer has, although the source still shows them: they are not taken for new. */
  readonly #deletedFromServer = new Set<string>();
  /** Callbacks for when a pod uses nothing any more. */
  readonly #finishWaiters = new Map<string, (() => void)[]>();
  #unsubscribe: (() => void)[] = [];
  readonly #ending = new AbortController();
  #timer: Timer | undefined;
  #housekeepingUnderWay = false;

  constructor(options: PodsAgentOptions) {
    this.#sources = options.sources;
    this.#context = createWorkerContext(options, (uid) => this.#podDeletedFromServer(uid), {
      activePods: () => this.activePods(),
      resizeChanged: (uid, effective) => {
        this.#workers.get(uid)?.update(effective, 'pod resized');
        this.#workers.get(uid)?.wake('pod resized');
      },
    });
  }

  start(): void {
    const { runtime, probes } = this.#context;
    this.#unsubscribe = [
      runtime.watch((event) => this.#lifecycleEvent(event)),
      probes.subscribe((uid, cause) => this.wake(uid, cause)),
    ];
    for (const source of this.#sources) {
      source.start((pods) => {
        this.#desired.set(source.name, pods);
        this.#reconcile();
      });
    }
    void this.#listPodsAtStart();
  }

  stop(): void {
    this.#ending.abort(new Error('the agent stops'));
    for (const source of this.#sources) source.stop();
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#timer?.cancel();
    for (const worker of this.#workers.values()) worker.stop();
    this.#context.statuses.stop();
    this.#context.resizes.stop();
  }

  getPod(namespace: string, name: string): Pod | undefined {
    return this.#find(namespace, name)?.pod;
  }

  listPods(): readonly Pod[] {
    return [...this.#workers.values()].map((worker) => worker.pod);
  }

  statusOf(uid: PodUID): PodStatus | undefined {
    return this.#workers.get(uid)?.previous();
  }

  snapshotOf(uid: PodUID): PodSnapshot | undefined {
    return this.#workers.get(uid)?.snapshot;
  }

  containerIdFor(
    namespace: string,
    name: string,
    container: string,
    options: { readonly previous?: boolean } = {},
  ): ContainerId | undefined {
    const instances = this.#find(namespace, name)?.snapshot?.containers.filter((each) => each.name === container);
    return instances?.[options.previous === true ? 1 : 0]?.id;
  }

  statusSeen(pod: Pod): void {
    this.#context.statuses.podSeen(pod);
  }

  activePods(): readonly Pod[] {
    return [...this.#workers.values()]
      .filter((worker) => worker.isActive && !isTerminalPhase(worker.previous()?.phase))
      .map((worker) => worker.pod);
  }

  endPod(uid: string, end: PodEnd): Promise<void> {
    const worker = this.#workers.get(uid);
    if (worker === undefined || !worker.isActive) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#finishWaiters.set(uid, [...(this.#finishWaiters.get(uid) ?? []), resolve]);
    worker.evict(end);
    return promise;
  }

  async removeEnded(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((worker) => worker.removeFromRuntime()));
  }

  syncLoopProblem(): string | undefined {
    return this.#context.syncLoop.problem();
  }

  wake(uid: PodUID, cause: SyncCause): void {
    this.#workers.get(uid)?.wake(cause);
  }

  /** Of two pods of one name, the one that is not on its way out. */
  #find(namespace: string, name: string): PodWorker | undefined {
    const matching = [...this.#workers.values()].filter(({ ref }) => ref.namespace === namespace && ref.name === name);
    return matching.find(({ pod }) => pod.metadata.deletionTimestamp === undefined) ?? matching[0];
  }

  #lifecycleEvent(event: PodLifecycleEvent): void {
    const worker = this.#workers.get(event.podUID);
    if (worker === undefined) return;
    const { type, containerId } = event;
    this.#log('debug', 'SyncLoop (PLEG): event for pod', worker.pod, { event: type, containerID: containerId });
    worker.event(event);
  }

  #log(level: 'debug' | 'info', message: string, { metadata }: Pod, fields: Readonly<Record<string, unknown>>): void {
    const { namespace, name, uid } = metadata;
    this.#context.log(level, message, { pod: `${namespace}/${name}`, podUID: uid, ...fields });
  }

  /** What runs already must be known before any worker takes a pod for new. */
  async #listPodsAtStart(): Promise<void> {
    const { runtime, clock, config, log } = this.#context;
    const list = async (): Promise<void> => {
      const [{ name }, { onMachine }] = await Promise.all([runtime.version(), listPodsOnMachine(this.#context)]);
      this.#runtimeName = name;
      this.#podsAtStart = new Set(onMachine.keys());
      this.#reconcile();
    };
    const onFailure = (error: unknown, inMs: number): void =>
      log('warn', 'Failed to list the pods on this node, will retry', { inMs, error: errorMessage(error) });
    await retryUntilAborted(list, { clock, policy: config.syncBackoff, onFailure, signal: this.#ending.signal });
  }

  #reconcile(): void {
    if (this.#podsAtStart === undefined || this.#ending.signal.aborted) return;
    const { resizes } = this.#context;
    const wanted = new Map<string, { pod: Pod; source: PodSource['name'] }>();
    for (const [source, pods] of this.#desired) {
      for (const pod of pods.values()) wanted.set(pod.metadata.uid, { pod, source });
    }
    for (const [uid, worker] of this.#workers) {
      if (wanted.has(uid)) continue;
      if (worker.isRemoved) this.#forget(uid);
      else this.#remove(worker);
    }
    for (const uid of this.#deletedFromServer) if (!wanted.has(uid)) this.#deletedFromServer.delete(uid);
    const newPods: { pod: Pod; source: PodSource['name']; rank: number }[] = [];
    for (const { pod, source } of wanted.values()) {
      const worker = this.#workers.get(pod.metadata.uid);
      if (worker === undefined) newPods.push({ pod, source, rank: this.#rank(pod) });
      else if (this.#lastSeen.get(worker) !== pod) {
        // A change of one pod is delivered with the unchanged other pods.
        this.#lastSeen.set(worker, pod);
        this.#traced('UPDATE', pod, { source }, () => this.#update(worker, resizes.seen(pod), source));
      }
    }
    // Pods that ran before come first, then the older ones: admission must not turn out otherwise after a restart.
    for (const { pod, source } of newPods.sort((a, b) => a.rank - b.rank)) {
      if (!this.#deletedFromServer.has(pod.metadata.uid) && !this.#mustWaitToStart(pod))
        this.#traced('ADD', pod, { source }, () => this.#add(pod, resizes.seen(pod), source));
    }
    resizes.retry();
    // Until every source has delivered its pods, a missing pod may only not have been delivered yet.
    if (this.#desired.size === this.#sources.length && this.#timer === undefined) this.#startHousekeeping();
  }

  /** Passes on what a source delivered, with a span that is its cause. */
  #traced(
    operation: 'ADD' | 'UPDATE' | 'REMOVE',
    { metadata }: Pod,
    from: { readonly source?: PodSource['name'] },
    pass: () => void,
  ): void {
    const { tracer } = this.#context;
    const { namespace, name, uid, resourceVersion } = metadata;
    const pod = { namespace, name, uid };
    const id = tracer.event('api', `SyncLoop ${operation}`, { pod }, { ...from, resourceVersion });
    tracer.causedBy([id], { pod }, pass);
  }

  #update(worker: PodWorker, pod: Pod, source: PodSource['name']): void {
    const before = worker.pod;
    if (before === pod) return;
    const deleted = before.metadata.deletionTimestamp === undefined && pod.metadata.deletionTimestamp !== undefined;
    if (deleted) this.#log('info', 'SyncLoop DELETE', pod, { source });
    else this.#log('debug', 'SyncLoop UPDATE', pod, { source });
    worker.update(pod, 'pod updated');
  }

  #remove(worker: PodWorker): void {
    if (worker.isUndesired) return;
    this.#log('info', 'SyncLoop REMOVE', worker.pod, {});
    this.#traced('REMOVE', worker.pod, {}, () => worker.remove());
  }

  #rank(pod: Pod): number {
    const created = parseRfc3339(pod.metadata.creationTimestamp) ?? 0;
    return this.#podsAtStart?.has(pod.metadata.uid) === true ? created - Number.MAX_SAFE_INTEGER / 2 : created;
  }

  /** `pod` as it is to run; `desired`: as its source has it. */
  #add(desired: Pod, pod: Pod, source: PodSource['name']): void {
    const { uid } = pod.metadata;
    this.#log('info', 'SyncLoop ADD', pod, { source });
    const over = isTerminalPhase(pod.status?.phase) || pod.metadata.deletionTimestamp !== undefined;
    const verdict = over ? undefined : this.#admit(pod);
    if (verdict !== undefined && 'preempt' in verdict) {
      this.#preempt(verdict.preempt);
      return;
    }
    const refusal = verdict;
    const neverRan = this.#podsAtStart?.has(uid) !== true && !hasRun(pod);
    const worker = new PodWorker(pod, this.#context, {
      unknownToRuntime: neverRan,
      runtimeName: this.#runtimeName,
      onFinished: () => this.#podFinished(uid),
      onRemoved: () => this.#podRemoved(uid),
      neverRan: refusal !== undefined && neverRan,
    });
    this.#workers.set(uid, worker);
    if (refusal !== undefined) {
      const { statuses, recorder, clock } = this.#context;
      const { reason, message } = refusal;
      recorder.event(podReference(pod), 'Warning', reason, message);
      // A pod that ran already cannot simply be reported as refused: it is ended like any other, and Failed when nothing runs.
      if (neverRan) statuses.set(pod, rejectedStatus(pod, refusal, clock.now()), 'now');
      else worker.evict({ reason, message: `Pod was rejected: ${message}` });
    } else if (!over) this.#context.resizes.admitted(desired);
    worker.wake(`pod added by ${source}`);
  }

  /** Whether the pod may not be synced yet: preemption is under way, or a static pod's former version has not terminated. */
  #mustWaitToStart(pod: Pod): boolean {
    if (this.#preemptedPods.size > 0) return true;
    if (!isStaticPod(pod)) return false;
    const { namespace, name } = pod.metadata;
    return [...this.#workers.values()].some(
      (worker) => worker.ref.namespace === namespace && worker.ref.name === name && isStaticPod(worker.pod),
    );
  }

  #preempt(victims: readonly Pod[]): void {
    const message = 'Preempted in order to admit critical pod';
    for (const victim of victims) {
      const { uid } = victim.metadata;
      this.#preemptedPods.add(uid);
      this.#context.recorder.event(podReference(victim), 'Warning', 'Preempting', message);
      this.#workers.get(uid)?.evict({ reason: 'Preempting', message, disruption: PREEMPTED });
    }
  }

  /** The pod uses nothing of the node any more. */
  #podFinished(uid: string): void {
    for (const resolve of this.#finishWaiters.get(uid) ?? []) resolve();
    this.#finishWaiters.delete(uid);
    this.#context.resizes.retry();
    if (this.#preemptedPods.delete(uid) && this.#preemptedPods.size === 0) this.#reconcile();
  }

  #admit(pod: Pod): PodRefusal | PodPreemption | undefined {
    // A pod that was removed from its source, such as a force-deleted one, may still be terminating, and does not count, as upstream:
    // the scheduler has given its place away.
    const desired = this.#desiredUids();
    const others = this.activePods().filter(({ metadata }) => desired.has(metadata.uid ?? ''));
    for (const admit of this.#context.config.admit) {
      const refusal = admit(pod, others);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  #desiredUids(): ReadonlySet<string> {
    return new Set(
      [...this.#desired.values()].flatMap((pods) => [...pods.values()].map(({ metadata }) => metadata.uid ?? '')),
    );
  }

  #isDesired(uid: string): boolean {
    return [...this.#desired.values()].some((pods) => [...pods.values()].some((pod) => pod.metadata.uid === uid));
  }

  /** Nothing of the pod is left here. Its uid is kept as long as a source has it, so that it is not taken for new. */
  #podRemoved(uid: string): void {
    const pod = this.#workers.get(uid)?.pod;
    this.#podFinished(uid);
    if (this.#isDesired(uid) && pod?.metadata.deletionTimestamp !== undefined) return;
    this.#forget(uid);
    if (pod !== undefined) this.#context.onPodGone?.(pod);
    // A pod that a source removed and added again starts afresh.
    this.#reconcile();
  }

  /** The object is gone from the server, whatever the source still shows: what is left here is removed. */
  #podDeletedFromServer(uid: PodUID): void {
    const worker = this.#workers.get(uid);
    if (worker === undefined) return;
    if (this.#isDesired(uid)) this.#deletedFromServer.add(uid);
    if (!worker.isRemoved) this.#remove(worker);
    else if (!this.#isDesired(uid)) this.#forget(uid);
  }

  #forget(uid: string): void {
    this.#workers.get(uid)?.stop();
    this.#workers.delete(uid);
    this.#context.statuses.forget(uid);
    this.#context.resizes.forget(uid);
  }

  /** Starts housekeeping: removes orphaned pods, now and periodically. */
  #startHousekeeping(): void {
    const { clock, config, log, syncLoop } = this.#context;
    syncLoop.roundBegins();
    this.#timer = clock.after(config.resyncMs, () => this.#startHousekeeping());
    const isKept = (uid: string): boolean => this.#workers.has(uid) || this.#isDesired(uid);
    this.#context.resizes.prune(isKept);
    this.#context.resizes.retry();
    if (this.#housekeepingUnderWay) return;
    this.#housekeepingUnderWay = true;
    removeOrphans(this.#context, isKept, (uid) => this.#workers.get(uid)?.seenRunning())
      // A call to start a container of a pod that resisted may still be under way: its log needs the directory.
      .then((left) => this.#context.sweep?.((uid) => isKept(uid) || left.has(uid)))
      .catch((error) => log('warn', 'Failed cleaning pods', { error: errorMessage(error) }))
      .finally(() => {
        this.#housekeepingUnderWay = false;
      });
  }
}
