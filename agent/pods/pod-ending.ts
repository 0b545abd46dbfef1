// The end of a pod, in order: containers stopped, sandboxes stopped, volumes and cgroup given back, and when the pod is
// leaving, every trace of it removed from the runtime. What comes next is decided in termination.ts; that the pod is to
// end, and what becomes of its object, is the worker's business.

import type { Pod } from '../../client/types.ts';
import type { ContainerSnapshot, PodRef, PodSnapshot, SandboxId } from '../ports/runtime.ts';
import { podReference } from './events.ts';
import { goQuote, rpcMessage } from './format.ts';
import type { PodActs } from './pod-acts.ts';
import { computeTermination, isAlive } from './termination.ts';
import type { WorkerContext } from './worker-context.ts';

/** The worker, as the end of its pod sees it. */
export interface EndingHost {
  readonly ref: PodRef;
  readonly pod: Pod;
  /** Nothing of the pod is to stay: its object is being deleted, or no source has it any more. */
  readonly leaving: boolean;
  /** `over`: no container runs or can still begin to. */
  reportEnd(snapshot: PodSnapshot, over: boolean): void;
  /** Nothing runs, and all that the node lent the pod is given back. `leaving`: its remains are gone too. */
  released(leaving: boolean): void;
  wake(cause: string): void;
  wakeAt(epochMs: number): void;
}

/** How long a container that was stopped may still be shown alive before it is stopped again. */
const SAME_AGAIN_MS = 1_000;

export class PodEnding {
  readonly #host: EndingHost;
  readonly #acts: PodActs;
  readonly #context: WorkerContext;
  readonly #stoppedSandboxes = new Set<SandboxId>();
  /** When (epoch ms) a stop of an instance last ended well. */
  readonly #stoppedAt = new Map<string, number>();
  #releasing = false;

  constructor(host: EndingHost, acts: PodActs, context: WorkerContext) {
    this.#host = host;
    this.#acts = acts;
    this.#context = context;
  }

  /** The last step is under way; there is nothing to decide until it has ended. */
  get releasing(): boolean {
    return this.#releasing;
  }

  /** Reports, and begins whatever is due. Rejects when a sandbox cannot be stopped. */
  async step(snapshot: PodSnapshot): Promise<void> {
    const acts = this.#acts;
    const step = computeTermination({
      snapshot,
      killing: acts.killer.underWay,
      busy: acts.busy,
      stopped: this.#stoppedSandboxes,
    });
    this.#host.reportEnd(snapshot, !acts.busy && !snapshot.containers.some(isAlive));
    switch (step.kind) {
      case 'kill':
        for (const instance of step.containers) this.#kill(instance);
        return;
      case 'wait':
        return;
      case 'stopSandboxes':
        await Promise.all(step.sandboxes.map(({ id }) => this.#stopSandbox(id)));
        return this.step(snapshot);
      default:
        this.#releasing = true;
        this.#task('#release', async () => {
          try {
            await this.#release(snapshot);
          } finally {
            this.#releasing = false;
          }
        });
    }
  }

  /** Removes what the runtime keeps of the pod. */
  async removeFromRuntime(snapshot: PodSnapshot): Promise<void> {
    const { runtime } = this.#context;
    await Promise.all(snapshot.containers.map(({ id }) => runtime.removeContainer(id)));
    await Promise.all(snapshot.sandboxes.map(({ id }) => runtime.removePodSandbox(id)));
  }

  #kill(instance: ContainerSnapshot): void {
    const { clock } = this.#context;
    // The runtime said that it is dead, and shows it alive: ask again, but not in a circle.
    const notBefore = (this.#stoppedAt.get(instance.id) ?? Number.NEGATIVE_INFINITY) + SAME_AGAIN_MS;
    if (notBefore > clock.now()) {
      this.#host.wakeAt(notBefore);
      return;
    }
    this.#task(`kill ${instance.name}`, async () => {
      await this.#acts.stopContainer(instance, 'podEnds');
      this.#stoppedAt.set(instance.id, clock.now());
    });
  }

  async #stopSandbox(id: SandboxId): Promise<void> {
    const { runtime, recorder } = this.#context;
    try {
      await runtime.stopPodSandbox(id);
      this.#stoppedSandboxes.add(id);
    } catch (error) {
      const { ref, pod } = this.#host;
      const failed = `failed to "KillPodSandbox" for "${ref.uid}" with KillPodSandboxError`;
      const text = `error killing pod: ${failed}: ${goQuote(rpcMessage(error))}`;
      recorder.event(podReference(pod), 'Warning', 'FailedKillPod', text);
      throw error;
    }
  }

  /** Whatever goes wrong is tried again with growing pauses until it is done. */
  #task(name: string, work: () => Promise<void>): void {
    work().then(
      () => {
        this.#acts.settled(name);
        this.#host.wake(`${name} done`);
      },
      (error) => this.#host.wakeAt(this.#acts.postpone(name, error)),
    );
  }

  /** Gives back what the node lent the pod, and if the pod is leaving, removes every trace of it. */
  async #release(snapshot: PodSnapshot): Promise<void> {
    const { volumes, cgroups } = this.#context;
    const { ref, leaving } = this.#host;
    await Promise.all([volumes.unmountAll(ref), leaving ? this.removeFromRuntime(snapshot) : undefined]);
    await cgroups.removePod(ref.uid);
    this.#host.released(leaving);
  }
}
