// The acts of a pod that runs: volumes and cgroup, sandbox, starting and stopping containers. Each is a task beside
// the worker's loop, remembers what went wrong and when to try again, and wakes the loop when it ends. It decides
// nothing: what is to be done comes from actions.ts.

import type { Pod, PodStatus } from '../../client/types.ts';
import { type BackoffEntry, nextBackoff } from '../../lib/backoff.ts';
import type { Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { sortPodIPs } from '../model/pod-ips.ts';
import { VolumeError } from '../ports/node.ts';
import type { ContainerId, ContainerSnapshot, PodRef, PodSnapshot, RuntimeImage } from '../ports/runtime.ts';
import { ContainerKiller } from './container-killer.ts';
import { StartError } from './container-starter.ts';
import type { WaitingReason } from './container-status.ts';
import { podReference } from './events.ts';
import { goQuote, rpcMessage } from './format.ts';
import { hashContainer } from './hash.ts';
import { abortable } from './hooks.ts';
import type { KillAction, PodAction, ResizeAction, StartAction } from './pod-action.ts';
import { newestOf, type RestartWanted } from './pod-facts.ts';
import { actuateResize } from './resize/actuate.ts';
import { type Resources, resourcesOf, sameResources } from './resize/allocation.ts';
import { restartBackoffAfterStart, restartBackoffKey } from './restart-backoff.ts';
import { gracePeriodSeconds, isAlive, stopsAfter } from './termination.ts';
import type { WorkerContext } from './worker-context.ts';

/** The worker, as its acts see it. */
export interface ActsHost {
  readonly ref: PodRef;
  readonly pod: Pod;
  /** The most seconds that a container may take to stop, where the node has little time itself. */
  readonly grantedSeconds: number | undefined;
  previous(): PodStatus | undefined;
  wake(cause: string): void;
  wakeAt(epochMs: number): void;
}

// Names that no container can have: retries of containers are kept under theirs.
const SANDBOX = '#sandbox';
const PREPARE = '#prepare';
const RESIZE = '#resize';

/**
 * How long a sandbox is in the making before its images are asked for, ms: the answer is wanted when the sandbox is
 * there, which takes longer, and the runtime, which has most to do at first, is left alone until its network is made.
 */
const PEEK_AFTER_MS = 25;

export class PodActs {
  readonly #host: ActsHost;
  readonly #context: WorkerContext;
  readonly killer: ContainerKiller;
  /** Aborts whatever serves the pod's running, once it is to end. */
  readonly #runs = new AbortController();
  #prepared: Promise<void> | undefined;
  #sandboxBusy = false;
  #resizing: Promise<void> | undefined;

  // Plain data that the next decision and the next report read.
  readonly starting = new Set<string>();
  /** Containers that were stopped in order to run again. */
  readonly restartWanted = new Map<string, RestartWanted>();
  /** Restart back-off, by restartBackoffKey. */
  readonly restarts = new Map<string, BackoffEntry>();
  /** Why a container's start failed, by name. */
  readonly troubles = new Map<string, WaitingReason>();

  /** Instances whose postStart hook failed, until they are seen dead. */
  readonly #condemned = new Set<ContainerId>();

  /** Not before (epoch ms), and the pauses so far, per thing that failed. */
  readonly #notBefore = new Map<string, number>();
  readonly #pauses = new Map<string, BackoffEntry>();
  readonly #peeked = new Map<string, Promise<RuntimeImage | undefined>>();

  constructor(host: ActsHost, context: WorkerContext) {
    this.#host = host;
    this.#context = context;
    this.killer = new ContainerKiller(context);
  }

  get sandboxBusy(): boolean {
    return this.#sandboxBusy;
  }
  get busy(): boolean {
    return this.#sandboxBusy || this.starting.size > 0;
  }

  /** Ends whatever can be ended of what is under way; what cannot be ended wakes the loop when it is over. */
  abort(reason: string): void {
    this.#runs.abort(new Error(reason));
  }

  /** What runs has no trouble starting any more, whoever started it. */
  noteRunning(snapshot: PodSnapshot): void {
    for (const instance of snapshot.containers) {
      const { id, name, state } = instance;
      if (this.#condemned.has(id)) this.#killCondemned(instance);
      else if (state === 'running' && !this.starting.has(name)) this.troubles.delete(name);
    }
  }

  /** Its postStart hook failed: where it could not be stopped at once, it is stopped now. */
  #killCondemned(instance: ContainerSnapshot): void {
    const { id, name } = instance;
    if (!isAlive(instance)) this.#condemned.delete(id);
    else if (!this.starting.has(name) && !this.killer.underWay.has(id) && this.#isDue(id)) {
      void this.#task('kill', id, () => this.stopContainer(instance, 'postStartHook', 'FailedPostStartHook'));
    }
  }

  /** A container whose resources changed is not held back by how it fared with the old ones. */
  definitionSeen(before: Pod, pod: Pod): void {
    const resources = new Map<string, Resources>();
    for (const container of before.spec.containers) resources.set(container.name, resourcesOf(container));
    for (const container of pod.spec.containers) {
      const old = resources.get(container.name);
      if (old === undefined || sameResources(old, resourcesOf(container))) continue;
      this.restarts.delete(restartBackoffKey(container.name, hashContainer(container)));
    }
  }

  /** These must wait after all: whatever they were stopped for, their own end counts from now on. */
  heldBack(names: Iterable<string>): void {
    for (const name of names) if (this.restartWanted.has(name)) this.restartWanted.set(name, 'waited');
  }

  /** Begins the actions of one decision. */
  perform(actions: readonly PodAction[], snapshot: PodSnapshot): void {
    // Order between containers is promised only where one has a postStart hook for the others to wait for.
    let earlier: Promise<void> = Promise.resolve();
    for (const action of actions) {
      if (action.kind === 'createSandbox' && this.#isDue(SANDBOX)) {
        this.#task('sandbox', SANDBOX, () => this.#createSandbox(action, snapshot));
      } else if (action.kind === 'killContainer' && this.#isDue(action.container.id)) {
        this.#task('kill', action.container.id, () => this.#kill(action));
      } else if (action.kind === 'startContainer' && this.#isDue(action.container.name)) {
        const gate = earlier;
        const started = this.#task('start', action.container.name, () => this.#start(action, snapshot, gate));
        if ('lifecycle' in action.container && action.container.lifecycle?.postStart !== undefined) earlier = started;
      } else if (action.kind === 'resizePod' && this.#resizing === undefined && this.#isDue(RESIZE)) {
        this.#resizing = this.#task('resize', RESIZE, () => this.#resize(action));
      }
    }
  }

  /** Volumes and cgroup of a pod that ran before the agent did are looked after again. */
  adopt(): void {
    if (this.#prepared !== undefined || !this.#isDue(PREPARE)) return;
    this.#prepare().then(
      () => this.settled(PREPARE),
      (error) => {
        if (!this.#runs.signal.aborted) this.#host.wakeAt(this.postpone(PREPARE, error));
      },
    );
  }

  /** Stops an instance; a failure is reported and thrown. */
  async stopContainer(
    instance: ContainerSnapshot,
    reason: KillAction['reason'] | 'podEnds',
    message = `Stopping container ${instance.name}`,
  ): Promise<void> {
    const { pod } = this.#host;
    const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
    const spec = all.find(({ name }) => name === instance.name);
    try {
      await this.killer.kill({
        pod,
        instance,
        spec,
        message,
        graceSeconds: gracePeriodSeconds(pod, spec, reason, this.#host.grantedSeconds),
        after: reason === 'podEnds' ? stopsAfter(pod, instance.name) : new Set(),
        podIP: this.#host.previous()?.podIP,
      });
    } catch (error) {
      const failed = `failed to "KillContainer" for "${instance.name}" with KillContainerError`;
      const text = `error killing pod: ${failed}: ${goQuote(rpcMessage(error))}`;
      this.#context.recorder.event(podReference(pod), 'Warning', 'FailedKillPod', text);
      throw error;
    }
  }

  /** Notes a failure and when to try again (epoch ms, returned); pauses grow until `settled`. */
  postpone(key: string, error: unknown, retryAt?: number): number {
    const { clock, config, log } = this.#context;
    const now = clock.now();
    const pause = nextBackoff(config.syncBackoff, this.#pauses.get(key), now);
    this.#pauses.set(key, pause);
    const at = retryAt ?? now + pause.delayMs;
    this.#notBefore.set(key, at);
    const { namespace, name } = this.#host.ref;
    const fields = { pod: `${namespace}/${name}`, inMs: at - now, error: errorMessage(error) };
    log('warn', `${key}: failed, will try again`, fields);
    return at;
  }

  settled(key: string): void {
    this.#pauses.delete(key);
    this.#notBefore.delete(key);
  }

  /** Whether the time to try has come; if not, the loop is woken when it has. */
  #isDue(key: string): boolean {
    const at = this.#notBefore.get(key);
    const { clock, config } = this.#context;
    const wait = at === undefined ? 0 : at - clock.now();
    // A wait longer than any pause there is means that the clock was set back.
    if (at === undefined || wait <= 0 || wait > Math.max(config.syncBackoff.maxMs, config.imageBackoff.maxMs))
      return true;
    this.#host.wakeAt(at);
    return false;
  }

  /** Runs work beside the loop and wakes it afterwards. */
  async #task(name: string, key: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // What was abandoned because the pod ends has nothing more to say; the loop looks at what is there.
      if (!this.#runs.signal.aborted) {
        this.#host.wakeAt(this.postpone(key, error));
        return;
      }
    }
    this.#host.wake(`${name} done`);
  }

  /** The pod's cgroup and volumes, once. A failure is reported and thrown, and the next call tries again. */
  #prepare(): Promise<void> {
    this.#prepared ??= this.#prepareNow().catch((error) => {
      this.#prepared = undefined;
      throw error;
    });
    return this.#prepared;
  }

  async #prepareNow(): Promise<void> {
    const { cgroups, volumes, recorder } = this.#context;
    const { pod } = this.#host;
    const { signal } = this.#runs;
    const [cgroup, mounts] = await Promise.allSettled([
      cgroups.ensurePod(this.#context.resizes.room(pod)),
      abortable(volumes.mountAll(pod, signal), signal),
    ]);
    signal.throwIfAborted();
    if (cgroup.status === 'rejected') {
      const message = `unable to ensure pod container exists: ${errorMessage(cgroup.reason)}`;
      recorder.event(podReference(pod), 'Warning', 'FailedCreatePodContainer', message);
      throw cgroup.reason;
    }
    if (mounts.status === 'rejected') {
      const said = errorMessage(mounts.reason);
      const message = mounts.reason instanceof VolumeError ? said : `Unable to attach or mount volumes: ${said}`;
      recorder.event(podReference(pod), 'Warning', 'FailedMount', message);
      throw mounts.reason;
    }
  }

  async #createSandbox(action: Extract<PodAction, { kind: 'createSandbox' }>, snapshot: PodSnapshot): Promise<void> {
    const { runtime, recorder, clock } = this.#context;
    const { pod } = this.#host;
    const { signal } = this.#runs;
    this.#sandboxBusy = true;
    let peek: Timer | undefined;
    try {
      if (action.replaces) await this.#dropSandboxes(snapshot);
      try {
        await this.#prepare();
      } catch (error) {
        if (!signal.aborted) this.postpone(SANDBOX, error);
        return;
      }
      signal.throwIfAborted();
      peek = clock.after(PEEK_AFTER_MS, () => this.#peekAtImages());
      try {
        const { runtimeClassName = '' } = pod.spec;
        const runtimeHandler = runtimeClassName === '' ? '' : await this.#runtimeHandler(runtimeClassName);
        await runtime.runPodSandbox({ pod, attempt: action.attempt, runtimeHandler });
        this.settled(SANDBOX);
      } catch (error) {
        const message = `Failed to create pod sandbox: ${rpcMessage(error)}`;
        recorder.event(podReference(pod), 'Warning', 'FailedCreatePodSandBox', message);
        this.postpone(SANDBOX, error);
      }
    } finally {
      peek?.cancel();
      this.#sandboxBusy = false;
    }
  }

  async #runtimeHandler(runtimeClassName: string): Promise<string> {
    const { runtimeHandler } = this.#context;
    if (runtimeHandler === undefined) throw new Error(`runtimeclass.node.k8s.io "${runtimeClassName}" not found`);
    return await runtimeHandler(runtimeClassName);
  }

  /** Whether the first images are there is found out while the sandbox is being made. */
  #peekAtImages(): void {
    const { initContainers = [], containers } = this.#host.pod.spec;
    for (const container of initContainers.length > 0 ? initContainers.slice(0, 1) : containers) {
      const peeked = this.#context.images.peek(container);
      if (peeked === undefined) continue;
      // The start looks at the outcome; until then a failure must not count as unhandled.
      peeked.catch(() => undefined);
      this.#peeked.set(container.name, peeked);
    }
  }

  /** Takes down what is left of the old sandbox; init containers are forgotten, since they must run again. */
  async #dropSandboxes(snapshot: PodSnapshot): Promise<void> {
    const { runtime, recorder } = this.#context;
    const message = 'Pod sandbox changed, it will be killed and re-created.';
    recorder.event(podReference(this.#host.pod), 'Normal', 'SandboxChanged', message);
    const alive = snapshot.containers.filter(isAlive);
    await Promise.all(alive.map((instance) => this.stopContainer(instance, 'podEnds')));
    await Promise.all(snapshot.sandboxes.map((sandbox) => runtime.stopPodSandbox(sandbox.id)));
    const init = snapshot.containers.filter((container) => container.type === 'init');
    await Promise.all(init.map((container) => runtime.removeContainer(container.id)));
  }

  async #start(action: StartAction, snapshot: PodSnapshot, earlier: Promise<void>): Promise<void> {
    const { container } = action;
    const { name } = container;
    const { clock, config, starter, node, resizes } = this.#context;
    const { signal } = this.#runs;
    this.starting.add(name);
    const peeked = this.#peeked.get(name);
    this.#peeked.delete(name);
    try {
      await earlier;
      if (this.#resizing !== undefined) await this.#resizing;
      try {
        await this.#prepare();
      } catch (error) {
        if (!signal.aborted) this.postpone(name, error);
        return;
      }
      await resizes.recorded(this.#host.ref.uid);
      const { hostNetwork } = this.#host.pod.spec;
      const target = 'targetContainerName' in container ? container.targetContainerName : undefined;
      const started = await starter.start({
        pod: this.#host.pod,
        action,
        podIPs: hostNetwork === true ? node.hostIPs() : sortPodIPs(action.sandbox.ips, node.hostIPs()),
        peeked,
        target:
          target === undefined || target === '' ? undefined : { name: target, id: newestOf(snapshot, target)?.id },
        signal,
        onAttempt: () => {
          this.restartWanted.delete(name);
          if (action.previousFinishedAt === undefined) return;
          const key = restartBackoffKey(name, action.hash);
          const { restartBackoff } = config;
          const entry = this.restarts.get(key);
          this.restarts.set(
            key,
            restartBackoffAfterStart(restartBackoff, entry, action.previousFinishedAt, clock.now()),
          );
        },
      });
      resizes.created(this.#host.ref.uid, name, started, resourcesOf(container));
      this.troubles.delete(name);
      this.settled(name);
    } catch (error) {
      if (signal.aborted || !(error instanceof StartError)) throw error;
      this.troubles.set(name, error.waiting);
      this.postpone(name, error, error.retryAt);
      if (error.started !== undefined) {
        this.#condemned.add(error.started);
        await this.#killStarted(error.started);
      }
    } finally {
      this.starting.delete(name);
    }
  }

  async #resize(action: ResizeAction): Promise<void> {
    const { resizes } = this.#context;
    try {
      await actuateResize(this.#host.pod, action, this.#context);
      this.settled(RESIZE);
    } catch (error) {
      resizes.failed(this.#host.ref.uid, rpcMessage(error));
      this.#host.wake('resize failed');
      throw error;
    } finally {
      this.#resizing = undefined;
    }
  }

  async #kill({ container, reason, message, thenStart, endedBefore }: KillAction): Promise<void> {
    // Nothing of that name starts while the kill is under way.
    if (thenStart) this.restartWanted.set(container.name, { endedBefore });
    try {
      await this.stopContainer(container, reason, message);
    } catch (error) {
      this.restartWanted.delete(container.name);
      throw error;
    }
  }

  /** Stops an instance that was started a moment ago, so that no snapshot has it yet. */
  async #killStarted(id: ContainerId): Promise<void> {
    const snapshot = await this.#context.runtime.observePod(this.#host.ref);
    const instance = snapshot.containers.find((container) => container.id === id);
    if (instance === undefined || !isAlive(instance)) return;
    await this.stopContainer(instance, 'postStartHook', 'FailedPostStartHook');
  }
}
