// Does the actions of one pod: each becomes calls to the runtime, the volumes, the cgroups, and its outcome is reported. It
// decides nothing and refuses nothing; all it keeps is what is under way and can be waited for or given up.

import type { Pod } from '../../client/types.ts';
import { abortable } from '../../lib/abort.ts';
import type { ContainerId, PodRef } from '../ports/runtime.ts';
import { ContainerKiller } from './container-killer.ts';
import { type ActionProgress, type ActionResult, StepError } from './outcome.ts';
import { actuateResize } from './resize/actuate.ts';
import { resourcesOf } from './resize/allocation.ts';
import type { LastingAction, ReplacedSandbox } from './sync-action.ts';
import type { WorkerContext } from './worker-context.ts';

/** Called once for each action, when it has ended. */
export type OnActionEnded = (action: LastingAction, result: ActionResult) => void;

type ActionOf<K extends LastingAction['kind']> = Extract<LastingAction, { kind: K }>;
type Progress = { -readonly [K in keyof ActionProgress]: ActionProgress[K] };

/** Actions that serve the pod's running: they are given up when it is to end. */
const GIVEN_UP: ReadonlySet<LastingAction['kind']> = new Set(['preparePod', 'createSandbox', 'startContainer']);

export class ActionExecutor {
  readonly #ref: PodRef;
  readonly #context: WorkerContext;
  readonly #onEnded: OnActionEnded;
  readonly #killer: ContainerKiller;
  readonly #running = new Map<string, Promise<ActionResult>>();
  readonly #abort = new AbortController();

  constructor(ref: PodRef, context: WorkerContext, onEnded: OnActionEnded) {
    this.#ref = ref;
    this.#context = context;
    this.#onEnded = onEnded;
    this.#killer = new ContainerKiller(context);
  }

  /** Begins an action. `pod`: as it was when the action was decided. */
  perform(action: LastingAction, pod: Pod): void {
    const { tracer } = this.#context;
    let spanId = 0;
    const result = this.#outcome(action, pod, (id) => {
      spanId = id;
    });
    this.#running.set(action.id, result);
    void result.then((ended) => {
      this.#running.delete(action.id);
      tracer.causedBy([spanId], { pod: this.#ref }, () => this.#onEnded(action, ended));
    });
  }

  /** How the action under way ends; undefined where none of this id is. */
  result(id: string): Promise<ActionResult> | undefined {
    return this.#running.get(id);
  }

  /** Gives up what serves the pod's running; what cannot be given up ends by itself. */
  abort(reason: string): void {
    this.#abort.abort(new Error(reason));
  }

  /** Grants every kill under way no more than this from now on. */
  shortenGrace(graceSeconds: number): void {
    this.#killer.shortenAll(graceSeconds);
  }

  async #outcome(action: LastingAction, pod: Pod, onSpan: (id: number) => void): Promise<ActionResult> {
    const progress: Progress = {};
    try {
      await this.#context.tracer.span('worker', action.kind, { action: action.id }, (span) => {
        onSpan(span.id);
        return this.#run(action, pod, progress);
      });
      return { ...progress, kind: 'done' };
    } catch (error) {
      const aborted = GIVEN_UP.has(action.kind) && this.#abort.signal.aborted;
      return aborted ? { ...progress, kind: 'aborted' } : { ...progress, kind: 'failed', error };
    }
  }

  async #run(action: LastingAction, pod: Pod, progress: Progress): Promise<void> {
    const { runtime, volumes, cgroups } = this.#context;
    switch (action.kind) {
      case 'preparePod':
        return this.#prepare(pod, progress);
      case 'createSandbox':
        return this.#createSandbox(action, pod, progress);
      case 'startContainer':
        return this.#start(action, pod, progress);
      case 'killContainer':
        return this.#killer.kill({ ...action.kill, pod });
      case 'resizePod':
        return actuateResize(pod, action.resize, this.#context);
      case 'removeContainer':
        return runtime.removeContainer(action.containerId);
      case 'removeSandbox':
        await runtime.stopPodSandbox(action.sandboxId);
        return runtime.removePodSandbox(action.sandboxId);
      case 'stopSandbox':
        return runtime.stopPodSandbox(action.sandboxId);
      case 'releaseResources':
        await volumes.unmountAll(this.#ref, { keepsEnds: action.keepsEnds });
        return cgroups.removePod(this.#ref.uid);
      case 'removeFromRuntime':
        await Promise.all(action.snapshot.containers.map(({ id }) => runtime.removeContainer(id)));
        await Promise.all(action.snapshot.sandboxes.map(({ id }) => runtime.removePodSandbox(id)));
    }
  }

  async #prepare(pod: Pod, progress: Progress): Promise<void> {
    const { cgroups, volumes, resizes } = this.#context;
    const { signal } = this.#abort;
    const [cgroup, mounts] = await Promise.allSettled([
      cgroups.ensurePod(resizes.room(pod)),
      abortable(volumes.mountAll(pod, signal), signal),
    ]);
    signal.throwIfAborted();
    if (cgroup.status === 'rejected') throw new StepError('cgroup', cgroup.reason);
    if (mounts.status === 'rejected') throw new StepError('volumes', mounts.reason);
    progress.prepared = true;
  }

  /**
   * Removing the old sandbox, preparing and creating the new one: one action, since each part begins as soon as the one before
   * it has ended. As actions of their own, each end would take the worker another round (observe and step) before the next
   * part begins, in every start of a pod.
   */
  async #createSandbox(action: ActionOf<'createSandbox'>, pod: Pod, progress: Progress): Promise<void> {
    const { runtime } = this.#context;
    const { attempt, prepared, replaced } = action;
    if (replaced !== undefined) await this.#removeReplaced(replaced, pod);
    if (!prepared) await this.#prepare(pod, progress);
    this.#abort.signal.throwIfAborted();
    try {
      const { runtimeClassName = '' } = pod.spec;
      const runtimeHandler = runtimeClassName === '' ? '' : await this.#runtimeHandler(runtimeClassName);
      await runtime.runPodSandbox({ pod, attempt, runtimeHandler });
    } catch (error) {
      throw new StepError('createSandbox', error);
    }
  }

  async #removeReplaced({ kills, sandboxes, initContainers }: ReplacedSandbox, pod: Pod): Promise<void> {
    const { runtime } = this.#context;
    const kill = (each: ReplacedSandbox['kills'][number]): Promise<void> =>
      this.#killer.kill({ ...each, pod }).catch((error) => {
        throw new StepError('killContainer', error, each.instance.name);
      });
    const stop = (id: ReplacedSandbox['sandboxes'][number]): Promise<void> =>
      runtime.stopPodSandbox(id).catch((error) => {
        throw new StepError('stopSandbox', error);
      });
    await Promise.all(kills.map(kill));
    await Promise.all(sandboxes.map(stop));
    await Promise.all(initContainers.map((id) => runtime.removeContainer(id)));
  }

  async #runtimeHandler(runtimeClassName: string): Promise<string> {
    const { runtimeHandler } = this.#context;
    if (runtimeHandler === undefined) throw new Error(`runtimeclass.node.k8s.io "${runtimeClassName}" not found`);
    return await runtimeHandler(runtimeClassName);
  }

  async #start(action: ActionOf<'startContainer'>, pod: Pod, progress: Progress): Promise<void> {
    const { resizes } = this.#context;
    const { start } = action;
    const { container } = start;
    const { uid } = this.#ref;
    const resources = resourcesOf(container);
    // An instance that is there already is known with what it was made with.
    if (start.created === undefined) resizes.starting(uid, container.name, resources);
    try {
      const started = await this.#startWith(action, pod, progress);
      resizes.created(uid, container.name, started, resources);
    } catch (error) {
      resizes.startFailed(uid, container.name, progress.attemptedAt !== undefined);
      throw error;
    }
  }

  async #startWith(action: ActionOf<'startContainer'>, pod: Pod, progress: Progress): Promise<ContainerId> {
    const { clock, starter, resizes } = this.#context;
    const { start, podIPs, target } = action;
    const { signal } = this.#abort;
    const earlier = action.after.map((id) => this.#running.get(id));
    // Waiting costs a turn, which a start that waits for nothing is spared.
    if (earlier.length > 0) await Promise.all(earlier);
    await resizes.recorded(this.#ref.uid);
    signal.throwIfAborted();
    const onAttempt = (): void => {
      progress.attemptedAt = clock.now();
    };
    return await starter.start({ pod, action: start, podIPs, target, signal, onAttempt });
  }
}
