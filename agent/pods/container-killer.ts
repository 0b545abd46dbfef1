// Stops containers: Killing event, preStop hook, its turn in the order, TERM and KILL. The time granted may be
// shortened while it is running out; it is never lengthened.

import type { Pod } from '../../client/types.ts';
import { abortable } from '../../lib/abort.ts';
import { type Clock, elapsedMs, type MonotonicMs, plusMs } from '../../lib/clock.ts';
import type { EventRecorder } from '../ports/api.ts';
import type { ContainerId, ContainerRuntime } from '../ports/runtime.ts';
import { containerReference } from './events.ts';
import type { RunHook } from './hooks.ts';
import type { PodsLog } from './options.ts';
import type { KillSpec } from './sync-action.ts';
import { MINIMUM_GRACE_SECONDS } from './termination.ts';

export interface KillRequest extends KillSpec {
  readonly pod: Pod;
}

export interface ContainerKillerOptions {
  readonly runtime: Pick<ContainerRuntime, 'stopContainer'>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly runHook: RunHook;
  readonly log: PodsLog;
}

interface Kill {
  readonly name: string;
  /** When the granted time is over, monotonic ms. */
  deadline: MonotonicMs;
  /** Aborts when the deadline was moved forward. */
  shortened: AbortController;
  readonly done: Promise<void>;
}

/** The kills of one pod that are under way. */
export class ContainerKiller {
  readonly #options: ContainerKillerOptions;
  readonly #kills = new Map<ContainerId, Kill>();

  constructor(options: ContainerKillerOptions) {
    this.#options = options;
  }

  /** Resolves when the container is dead; rejects when the runtime could not stop it. One call per instance. */
  kill(request: KillRequest): Promise<void> {
    const { instance, graceSeconds } = request;
    const known = this.#kills.get(instance.id);
    if (known !== undefined) {
      this.#shorten(known, graceSeconds);
      return known.done;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const kill: Kill = {
      name: instance.name,
      deadline: plusMs(this.#options.clock.monotonic(), graceSeconds * 1000),
      shortened: new AbortController(),
      done: promise,
    };
    this.#kills.set(instance.id, kill);
    this.#run(request, kill)
      .finally(() => this.#kills.delete(instance.id))
      .then(resolve, reject);
    return promise;
  }

  /** Grants every kill under way no more than `graceSeconds` from now. */
  shortenAll(graceSeconds: number): void {
    for (const kill of this.#kills.values()) this.#shorten(kill, graceSeconds);
  }

  #shorten(kill: Kill, graceSeconds: number): void {
    const deadline = plusMs(this.#options.clock.monotonic(), graceSeconds * 1000);
    if (deadline >= kill.deadline) return;
    kill.deadline = deadline;
    const { shortened } = kill;
    kill.shortened = new AbortController();
    shortened.abort(new Error('the grace period was shortened'));
  }

  #remainingMs(kill: Kill): number {
    return Math.max(0, elapsedMs(this.#options.clock.monotonic(), kill.deadline));
  }

  async #run(request: KillRequest, kill: Kill): Promise<void> {
    const { pod, instance, message } = request;
    const { recorder, log } = this.#options;
    recorder.event(containerReference(pod, instance.name), 'Normal', 'Killing', message);
    log('info', 'Killing container with a grace period', {
      pod: `${pod.metadata.namespace}/${pod.metadata.name}`,
      podUID: pod.metadata.uid,
      containerName: instance.name,
      containerID: instance.id,
      gracePeriod: request.graceSeconds,
    });
    if (request.graceSeconds > 0) {
      await this.#preStop(request, kill);
      await this.#turn(request, kill);
    }
    await this.#stop(instance.id, kill);
  }

  /** Waits for `wait` while time is left; true when it came to its end. */
  async #whileTimeIsLeft(wait: (signal: AbortSignal) => Promise<void>, kill: Kill): Promise<boolean> {
    const over = new AbortController();
    const timedOut = new Error('the grace period is over');
    let timer = this.#options.clock.after(this.#remainingMs(kill), () => over.abort(timedOut));
    const rearm = (): void => {
      timer.cancel();
      timer = this.#options.clock.after(this.#remainingMs(kill), () => over.abort(timedOut));
      kill.shortened.signal.addEventListener('abort', rearm, { once: true });
    };
    kill.shortened.signal.addEventListener('abort', rearm, { once: true });
    try {
      await abortable(wait(over.signal), over.signal);
      return true;
    } catch (error) {
      if (error === timedOut) return false;
      throw error;
    } finally {
      timer.cancel();
      kill.shortened.signal.removeEventListener('abort', rearm);
    }
  }

  async #preStop(request: KillRequest, kill: Kill): Promise<void> {
    const { pod, instance, spec, podIP } = request;
    const handler = spec !== undefined && 'lifecycle' in spec ? spec.lifecycle?.preStop : undefined;
    if (handler === undefined || spec === undefined || instance.state !== 'running') return;
    const target = { pod, container: spec, id: instance.id, podIP };
    try {
      const ended = await this.#whileTimeIsLeft(
        (signal) => this.#options.runHook('preStop', handler, target, this.#remainingMs(kill), signal),
        kill,
      );
      if (ended) return;
    } catch {
      // A failing hook does not save the container: the event below and the hook's span report it, the stop goes on.
    }
    this.#options.recorder.event(
      containerReference(pod, instance.name),
      'Warning',
      'FailedPreStopHook',
      'PreStopHook failed',
    );
  }

  async #turn({ after }: KillRequest, kill: Kill): Promise<void> {
    const others = [...this.#kills.values()].filter((other) => other !== kill && after.has(other.name));
    if (others.length === 0) return;
    await this.#whileTimeIsLeft(async () => {
      await Promise.allSettled(others.map((other) => other.done));
    }, kill);
  }

  /** TERM and KILL by the runtime; when the grace period is shortened during the stop, it is called again with less. */
  async #stop(id: ContainerId, kill: Kill): Promise<void> {
    const calls: Promise<void>[] = [];
    // Not `retry`: each round is a call of its own that the calls before it may still answer for.
    for (;;) {
      // CRI counts whole seconds. Only whole seconds that are over count against the grace period, as in the kubelet.
      const seconds = Math.max(MINIMUM_GRACE_SECONDS, Math.ceil(this.#remainingMs(kill) / 1000));
      const { signal } = kill.shortened;
      calls.push(this.#options.runtime.stopContainer(id, seconds));
      try {
        await abortable(Promise.any(calls), signal);
        return;
      } catch (error) {
        if (!signal.aborted) throw error instanceof AggregateError ? error.errors[0] : error;
      }
    }
  }
}
