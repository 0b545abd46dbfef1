// The scheduler: takes pods from its queue, one scheduling cycle after the other, and binds them in cycles that run side by
// side. cycle.ts and the plugins decide; this file does what follows: it assumes, binds, undoes, evicts, and records why a pod
// has no node. To be run once its informers are synced.

import { setMaxListeners } from 'node:events';
import { isConflict, isNotFound } from '../../client/errors.ts';
import type { Pod } from '../../client/types.ts';
import { abortable } from '../../lib/abort.ts';
import { elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { nextTurn } from '../../lib/turns.ts';
import type { ControllerContext, Recorder } from '../runtime.ts';
import { SchedulerCache } from './cache/cache.ts';
import type { NodeInfo } from './cache/node-info.ts';
import { type PodInfo, podInfo } from './cache/pod-info.ts';
import { DEFAULT_SCHEDULER, DEFAULT_SETTINGS, type SchedulerSettings } from './config/model.ts';
import { choose } from './cycle.ts';
import { CycleState } from './framework/cycle-state.ts';
import { type Diagnosis, fitErrorMessage, NO_NODES } from './framework/fit-error.ts';
import type { Framework } from './framework/framework.ts';
import type { PermitResult } from './framework/plugin.ts';
import { makeFramework } from './framework/profile.ts';
import { type Rejection, unschedulable } from './framework/status.ts';
import { SchedulerMetrics } from './metrics.ts';
import { Nominator } from './nominator.ts';
import { PLUGINS, type PluginRow } from './plugins/registry.ts';
import { type Failure, PodWrites } from './pod-writes.ts';
import { type QueuedPod, SchedulingQueue } from './queue/queue.ts';
import { defaultSelectorFrom, isPending, type SchedulerInformers, storageView, watchSources } from './sources.ts';
import { AssumedStorage } from './storage-assumptions.ts';
import { VolumeWrites } from './volume-writes.ts';

/** Other work gets a turn after this long, ms. */
const TURN_MS = 10;

export interface SchedulerOptions {
  readonly settings?: SchedulerSettings;
  /** 0 ≤ x < 1; Math.random by default. */
  readonly random?: () => number;
  /** Records a profile's events; context.recorder by default. */
  readonly recorderOf?: (profile: string) => Recorder;
  readonly plugins?: readonly PluginRow[];
}

/** One pod on its way through a cycle. */
interface Cycle {
  readonly queued: QueuedPod;
  readonly pod: PodInfo;
  readonly framework: Framework;
  readonly state: CycleState;
  readonly startedAt: MonotonicMs;
}

/** A step's rejection of a pod that had a node already. */
class RejectedError extends Error {
  readonly rejection: Rejection;

  constructor(rejection: Rejection) {
    super(rejection.reasons.join(', '));
    this.rejection = rejection;
  }
}

export class Scheduler {
  readonly metrics: SchedulerMetrics;
  readonly #context: ControllerContext;
  readonly #informers: SchedulerInformers;
  readonly #settings: SchedulerSettings;
  readonly #random: () => number;
  readonly #recorderOf: (profile: string) => Recorder;
  readonly #cache: SchedulerCache;
  readonly #queue: SchedulingQueue;
  readonly #nominator = new Nominator();
  readonly #frameworks = new Map<string, Framework>();
  readonly #writes: PodWrites;
  /** Pods whose victims are being evicted. */
  readonly #preempting = new Set<string>();
  /** Aborts what waits when the scheduler ends. */
  readonly #ending = new AbortController();
  /** Bindings and evictions that are under way. */
  readonly #underWay = new Set<Promise<void>>();
  /** Where the next search for nodes begins, so that all nodes have their turn. */
  #start = 0;

  constructor(context: ControllerContext, informers: SchedulerInformers, options: SchedulerOptions = {}) {
    // Every pod that waits for its volumes listens.
    setMaxListeners(0, this.#ending.signal);
    this.#context = context;
    this.#informers = informers;
    this.#settings = options.settings ?? DEFAULT_SETTINGS;
    this.#random = options.random ?? Math.random;
    this.#recorderOf = options.recorderOf ?? (() => context.recorder);
    this.#cache = new SchedulerCache((name) => informers.namespaces.get(name)?.metadata.labels ?? {});
    this.#writes = new PodWrites(context);
    this.metrics = new SchedulerMetrics(context.clock, () => this.#gauges());
    const handle = {
      client: context.client,
      storage: new AssumedStorage(storageView(informers)),
      volumes: new VolumeWrites(context, informers.persistentVolumeClaims, this.#ending.signal),
      preemption: {
        budgets: () => informers.podDisruptionBudgets.list(),
        isPreempting: (uid: string) => this.#preempting.has(uid),
        random: this.#random,
      },
      defaultSelector: defaultSelectorFrom(informers),
    };
    for (const profile of this.#settings.profiles) {
      const framework = makeFramework(profile, options.plugins ?? PLUGINS, handle, this.#nominator, this.metrics);
      this.#frameworks.set(profile.schedulerName, framework);
    }
    const [first] = this.#frameworks.values();
    if (first === undefined) throw new Error('a scheduler needs a profile');
    this.#queue = new SchedulingQueue({
      clock: context.clock,
      // All profiles sort alike: the configuration is refused otherwise.
      compare: (a, b) => first.compare(a, b),
      mayEnter: (pod) => this.#frameworkOf(pod.pod)?.preEnqueue(pod) === undefined,
      worthRetrying: (event, { info, plugins }) => {
        const known = this.#frameworkOf(info.pod)?.plugins;
        if (plugins.size === 0) return true;
        return [...plugins].some((name) => known?.get(name)?.worthRetrying?.(event, info) ?? true);
      },
      onIncoming: (queue, event) => this.metrics.incoming(queue, event),
      initialBackoffMs: this.#settings.podInitialBackoffSeconds * 1000,
      maxBackoffMs: this.#settings.podMaxBackoffSeconds * 1000,
    });
    watchSources(informers, {
      cache: this.#cache,
      queue: this.#queue,
      nominator: this.#nominator,
      isPending: (pod) => this.#isPending(pod),
    });
  }

  /** Schedules until the signal aborts, and ends what is under way then: another scheduler may begin. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = (): void => {
      this.#queue.close();
      this.#ending.abort(new Error('the scheduler ends'));
    };
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const { clock } = this.#context;
    let turn = clock.monotonic();
    for (;;) {
      const queued = await this.#queue.take();
      if (queued === undefined) break;
      this.#schedule(queued);
      if (elapsedMs(turn, clock.monotonic()) < TURN_MS) continue;
      await nextTurn();
      turn = clock.monotonic();
    }
    await Promise.all(this.#underWay);
  }

  #gauges() {
    return {
      pending: this.#queue.sizes,
      rejected: this.#queue.rejected.map(({ info, plugins }) => ({
        plugins,
        profile: info.pod.spec.schedulerName ?? DEFAULT_SCHEDULER,
      })),
      cache: this.#cache.sizes,
    };
  }

  /** `work` must not reject. */
  #follow(work: Promise<void>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }

  #frameworkOf(pod: Pod): Framework | undefined {
    return this.#frameworks.get(pod.spec.schedulerName ?? DEFAULT_SCHEDULER);
  }

  #isPending(pod: Pod): boolean {
    return isPending(pod, new Set(this.#frameworks.keys()), DEFAULT_SCHEDULER);
  }

  /** The scheduling cycle of one pod. Synchronous: nothing else changes the cache meanwhile. */
  #schedule(queued: QueuedPod): void {
    const { key, uid } = queued.info;
    const pod = this.#informers.pods.get(key);
    const framework = pod && this.#frameworkOf(pod);
    if (pod === undefined || pod.metadata.uid !== uid || framework === undefined || !this.#isPending(pod)) {
      this.#queue.done(uid);
      return;
    }
    const info = pod === queued.info.pod ? queued.info : podInfo(pod);
    const cycle = { queued, pod: info, framework, state: new CycleState(), startedAt: this.metrics.now() };
    try {
      this.#findNode(cycle);
    } catch (error) {
      this.#failed(cycle, new Set(), errorFailure(error));
    }
  }

  #findNode(cycle: Cycle): void {
    const { pod, framework, state } = cycle;
    const nodes = this.#cache.nodes.length;
    if (nodes === 0) {
      // What NodeName waits for is what helps: a new node.
      this.#failed(cycle, new Set(['NodeName']), { reason: 'Unschedulable', message: NO_NODES, nominatedNode: '' });
      return;
    }
    const choice = choose(framework, state, pod, this.#cache, {
      random: this.#random,
      start: this.#start,
      percentageOfNodesToScore: this.#settings.percentageOfNodesToScore,
      nominated: this.#nominator.nodeOf(pod.uid),
    });
    this.#start = (this.#start + choice.searched) % nodes;
    if (choice.kind === 'none') {
      this.#preemptFor(cycle, choice.diagnosis);
      return;
    }
    this.metrics.nodeFound(cycle.startedAt);
    this.#reserve(cycle, choice.node);
  }

  #preemptFor(cycle: Cycle, diagnosis: Diagnosis): void {
    const { pod, framework, state } = cycle;
    if (framework.at('postFilter').length > 0) this.metrics.preemptionTried();
    const result = framework.postFilter(state, pod, this.#cache, diagnosis.statuses);
    const reason = 'Unschedulable';
    if (result.kind === 'nominate') {
      this.#nominator.set(pod, result.node);
      this.metrics.victimsChosen(result.victims.length);
      const message = fitErrorMessage(diagnosis);
      // Before the pod is parked: while its victims are evicted it is not tried again.
      this.#evict(cycle, result.node, result.victims);
      this.#failed(cycle, diagnosis.plugins, { reason, message, nominatedNode: result.node });
      return;
    }
    if (result.clear) this.#nominator.delete(pod.uid);
    const message = fitErrorMessage(diagnosis, result.message);
    this.#failed(cycle, diagnosis.plugins, { reason, message, nominatedNode: result.clear ? '' : undefined });
  }

  #reserve(cycle: Cycle, node: NodeInfo): void {
    const { pod, framework, state } = cycle;
    const nominated = this.#nominator.nodeOf(pod.uid);
    this.#cache.assume(pod, node.name);
    this.#nominator.delete(pod.uid);
    const rejection =
      framework.reserve(state, pod, node) ??
      framework.timed('Permit', () => this.#permit(cycle, node.name), permitStatus);
    if (rejection !== undefined && 'code' in rejection) {
      if (nominated !== undefined) this.#nominator.set(pod, nominated);
      this.#undo(cycle, node.name);
      this.#failed(cycle, pluginsOf(rejection), {
        reason: 'Unschedulable',
        message: rejection.reasons.join(', '),
        nominatedNode: undefined,
      });
      return;
    }
    this.#follow(this.#bind(cycle, node.name, rejection ?? []));
  }

  /** A rejection, or what has to be waited for. */
  #permit({ framework, state, pod }: Cycle, node: string): Rejection | readonly PermitWait[] {
    const waits: PermitWait[] = [];
    for (const plugin of framework.at('permit')) {
      const result = plugin.permit?.(state, pod, node);
      if (result?.kind === 'reject') return { ...result.rejection, plugin: plugin.name };
      if (result?.kind === 'wait') waits.push({ plugin: plugin.name, ...result });
    }
    return waits;
  }

  /** The binding cycle. Never rejects. */
  async #bind(cycle: Cycle, node: string, waits: readonly PermitWait[]): Promise<void> {
    const { pod, framework, state } = cycle;
    try {
      await Promise.all(waits.map((wait) => this.#permitted(wait)));
      await framework.timedAsync('PreBind', async () => {
        for (const plugin of framework.at('preBind')) {
          await step('PreBind', plugin.name, () => plugin.preBind?.(state, pod, node));
        }
      });
      await framework.timedAsync('Bind', async () => {
        for (const plugin of framework.at('bind')) {
          if ((await step('Bind', plugin.name, () => plugin.bind?.(pod, node))) === true) break;
        }
      });
    } catch (error) {
      this.#bindingFailed(cycle, node, error);
      return;
    }
    this.metrics.attempted('scheduled', framework.profile, cycle.startedAt);
    if (cycle.queued.enteredAt !== undefined) this.metrics.bound(cycle.queued.attempts, cycle.queued.enteredAt);
    framework.timed('PostBind', () => {
      for (const plugin of framework.at('postBind')) plugin.postBind?.(state, pod, node);
    });
    this.#queue.done(pod.uid);
    const subject = { ...pod.pod, kind: 'Pod', apiVersion: 'v1' };
    this.#recorderOf(framework.profile).event(
      subject,
      'Normal',
      'Scheduled',
      `Successfully assigned ${pod.key} to ${node}`,
    );
  }

  async #permitted({ plugin, timeoutMs, allowed }: PermitWait): Promise<void> {
    const { clock } = this.#context;
    let cancel = (): void => undefined;
    const late = new Promise<Rejection>((resolve) => {
      const timer = clock.after(timeoutMs, () => resolve(unschedulable(`timeout after ${timeoutMs / 1000}s`)));
      cancel = () => timer.cancel();
    });
    const decided = Promise.race([allowed, late]);
    const rejection = await abortable(decided, this.#ending.signal).finally(() => cancel());
    if (rejection !== undefined) throw new RejectedError({ ...rejection, plugin });
  }

  #bindingFailed(cycle: Cycle, node: string, error: unknown): void {
    this.#undo(cycle, node);
    if (this.#ending.signal.aborted) {
      this.#queue.done(cycle.pod.uid);
      return;
    }
    const cause = error instanceof Error ? error.cause : undefined;
    // Gone, or bound by another scheduler: the next change of it decides.
    if (isNotFound(cause) || isConflict(cause)) {
      this.metrics.attempted('error', cycle.framework.profile, cycle.startedAt);
      this.#requeue(cycle, new Set());
      return;
    }
    const rejection = error instanceof RejectedError ? error.rejection : undefined;
    const failure =
      rejection === undefined ? errorFailure(error) : { ...errorFailure(error), reason: 'Unschedulable' as const };
    this.#failed(cycle, rejection === undefined ? new Set() : pluginsOf(rejection), failure);
  }

  /** The pod no longer counts on the node: its room may be what others wait for. */
  #undo({ framework, state, pod }: Cycle, node: string): void {
    framework.unreserve(state, pod, node);
    if (!this.#cache.isAssumed(pod.uid)) return;
    this.#cache.removePod(pod.uid);
    const object = { ...pod.pod, spec: { ...pod.pod.spec, nodeName: node } };
    this.#queue.onEvent({ resource: 'AssignedPod', action: 'delete', object });
  }

  /** The attempt has failed: the pod waits, and the API server knows why. */
  #failed(cycle: Cycle, plugins: ReadonlySet<string>, failure: Failure): void {
    const { pod, framework } = cycle;
    const result = failure.reason === 'SchedulerError' ? 'error' : 'unschedulable';
    this.metrics.attempted(result, framework.profile, cycle.startedAt);
    if (failure.reason === 'SchedulerError') this.#context.log(`scheduler ${pod.key}: ${failure.message}`);
    const current = this.#requeue(cycle, plugins);
    if (current === undefined) return;
    this.#writes
      .failed(current, failure, this.#recorderOf(framework.profile))
      .catch((error: unknown) => this.#context.log(`scheduler ${pod.key}: its status: ${errorMessage(error)}`));
  }

  /** Back into the queue, as the pod is now; undefined when it is gone or needs no node any more. */
  #requeue({ queued, pod }: Cycle, plugins: ReadonlySet<string>): Pod | undefined {
    const current = this.#informers.pods.get(pod.key);
    if (current === undefined || current.metadata.uid !== pod.uid || !this.#isPending(current)) {
      this.#queue.done(pod.uid);
      this.#nominator.delete(pod.uid);
      return undefined;
    }
    const info = current === pod.pod ? pod : podInfo(current);
    this.#queue.failed({ ...queued, info }, plugins);
    return current;
  }

  #evict({ pod, framework }: Cycle, node: string, victims: readonly PodInfo[]): void {
    const recorder = this.#recorderOf(framework.profile);
    const work = async (): Promise<void> => {
      // They may not fit beside the pod any more: they are to look for another node.
      const displaced = this.#nominator.on(node).filter(({ priority }) => priority < pod.priority);
      for (const other of displaced) {
        this.#nominator.delete(other.uid);
        await this.#writes.clearNomination(other.pod);
        this.#queue.activate(other.uid);
      }
      await Promise.all(victims.map((victim) => this.#writes.preempt(victim.pod, pod.pod, node, recorder)));
    };
    this.#preempting.add(pod.uid);
    const evictions = work()
      .catch((error: unknown) => {
        this.#context.log(`scheduler ${pod.key}: preemption on ${node}: ${errorMessage(error)}`);
        this.#preempting.delete(pod.uid);
        this.#queue.activate(pod.uid);
      })
      .finally(() => {
        this.#preempting.delete(pod.uid);
        this.#queue.release(pod.uid);
      });
    this.#follow(evictions);
  }
}

type PermitWait = Extract<PermitResult, { kind: 'wait' }> & { readonly plugin: string };

function permitStatus(result: Rejection | readonly PermitWait[]): string {
  if ('code' in result) return result.code;
  return result.length > 0 ? 'Wait' : 'Success';
}

const pluginsOf = ({ plugin }: Rejection): ReadonlySet<string> => new Set(plugin === undefined ? [] : [plugin]);

function errorFailure(error: unknown): Failure {
  return { reason: 'SchedulerError', message: errorMessage(error), nominatedNode: undefined };
}

/** The error of a step says which plugin failed; its cause stays what it was. */
async function step<T>(point: string, plugin: string, work: () => Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new Error(`running ${point} plugin "${plugin}": ${errorMessage(error)}`, { cause });
  }
}
