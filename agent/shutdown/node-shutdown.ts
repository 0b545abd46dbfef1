// Graceful node shutdown: takes logind's delay lock, and when a shutdown begins terminates the pods in order before it
// releases the lock. logind.ts talks to logind, plan.ts decides the order. It never shuts anything down itself.

import type { Pod } from '../../client/types.ts';
import { resolvesWithin } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { repeat } from '../../lib/retry.ts';
import { TERMINATION_BY_KUBELET } from '../model/disruption.ts';
import type { EventRecorder } from '../ports/api.ts';
import type { PodEnd } from '../ports/pod-end.ts';
import { type ShutdownGroup, shutdownSteps, wholePeriodMs } from './plan.ts';
import type { NodeShutdownState } from './shutdown-state.ts';

/** What holds the machine's shutdown back, until it is released. */
export interface InhibitLock {
  release(): void;
}

/** The machine's own service that announces its shutdown. Every method rejects with what went wrong. */
export interface Logind {
  /** The longest delay that logind grants, ms. */
  inhibitDelayMs(): Promise<number>;
  /** Has it allow so much. It may not. */
  allowDelay(ms: number): Promise<void>;
  inhibit(): Promise<InhibitLock>;
  /**
   * Calls back with true when a shutdown begins and with false when it is cancelled. Resolves once subscribed, with
   * the end of it: settled when no more signals arrive.
   */
  watch(onShutdown: (begins: boolean) => void, signal: AbortSignal): Promise<{ readonly ended: Promise<void> }>;
}

export interface NodeShutdownOptions {
  readonly logind: Logind;
  readonly groups: readonly ShutdownGroup[];
  readonly pods: {
    activePods(): readonly Pod[];
    endPod(uid: string, end: PodEnd): Promise<void>;
  };
  readonly recorder: EventRecorder;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: (level: 'info' | 'warn', message: string, fields?: Readonly<Record<string, unknown>>) => void;
  /** Updated when a shutdown begins or is called off. */
  readonly state: NodeShutdownState;
}

const MESSAGE = 'Pod was terminated in response to imminent node shutdown.';
/** Pauses between tries to reach logind, ms. */
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;

export class NodeShutdown {
  readonly #options: NodeShutdownOptions;
  #lock: InhibitLock | undefined;

  constructor(options: NodeShutdownOptions) {
    this.#options = options;
  }

  /** Runs until `signal` aborts. Never rejects: without logind pods are ended as hard as the machine is. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    let nextMs = FIRST_RETRY_MS;
    const listen = async (): Promise<number> => {
      try {
        const { ended } = await this.#listen(signal);
        nextMs = FIRST_RETRY_MS;
        await ended;
        if (!signal.aborted) log('warn', 'the connection to logind ended, will subscribe again');
      } catch (error) {
        const fields = { error: errorMessage(error), inMs: nextMs };
        if (!signal.aborted) log('warn', 'a shutdown of this node will not wait for its pods', fields);
      }
      this.#release();
      const pauseMs = nextMs;
      nextMs = Math.min(nextMs * 2, LONGEST_RETRY_MS);
      return pauseMs;
    };
    await repeat(listen, { clock, everyMs: LONGEST_RETRY_MS, signal });
    this.#release();
  }

  async #listen(signal: AbortSignal): Promise<{ readonly ended: Promise<void> }> {
    const { logind, groups, log } = this.#options;
    const wanted = wholePeriodMs(groups);
    const allowed = await logind.inhibitDelayMs();
    if (allowed < wanted) {
      await logind.allowDelay(wanted);
      const current = await logind.inhibitDelayMs();
      if (current < wanted) {
        throw new Error(
          `node shutdown manager was unable to update logind InhibitDelayMaxSec to ${wanted / 1000}s ` +
            `(ShutdownGracePeriod), current value of InhibitDelayMaxSec (${current / 1000}s) is less than requested ` +
            'ShutdownGracePeriod',
        );
      }
    }
    // Subscribed first, so that no shutdown begins between the two.
    const watch = await logind.watch((begins) => this.#announced(begins), signal);
    this.#lock ??= await logind.inhibit();
    log('info', 'a shutdown of this node waits for its pods', { atMostMs: wanted });
    return watch;
  }

  #release(): void {
    this.#lock?.release();
    this.#lock = undefined;
  }

  #announced(begins: boolean): void {
    const { log, recorder, nodeName, state } = this.#options;
    if (begins === state.shuttingDown) return;
    const what = begins ? 'event' : 'cancellation';
    log('warn', `Shutdown manager detected shutdown ${what}`);
    const node = { kind: 'Node', apiVersion: 'v1', metadata: { name: nodeName, uid: nodeName } };
    recorder.event(node, 'Normal', 'Shutdown', `Shutdown manager detected shutdown ${what}`);
    state.update(begins);
    if (begins) void this.#endPods().finally(() => this.#release());
    else void this.#holdAgain();
  }

  async #holdAgain(): Promise<void> {
    try {
      this.#lock ??= await this.#options.logind.inhibit();
    } catch (error) {
      this.#options.log('warn', 'the next shutdown will not wait for pods', { error: errorMessage(error) });
    }
  }

  /** Never rejects: a pod that resists is left to the machine's own end. */
  async #endPods(): Promise<void> {
    const { pods, groups, clock, log } = this.#options;
    for (const { pods: members, limitSeconds } of shutdownSteps(groups, pods.activePods())) {
      const ends = members.map(({ pod, graceSeconds }) =>
        pods
          .endPod(pod.metadata.uid, {
            reason: 'Terminated',
            message: MESSAGE,
            graceSeconds,
            disruption: { reason: TERMINATION_BY_KUBELET, message: MESSAGE },
          })
          .catch((error) => log('warn', 'a pod was not ended', { pod: pod.metadata.name, error: errorMessage(error) })),
      );
      const ended = await resolvesWithin(clock, limitSeconds * 1000, Promise.all(ends));
      if (!ended) log('warn', 'Shutdown manager pod killing time out', { limitSeconds });
    }
    log('info', 'Shutdown manager completed processing shutdown event, node will shutdown shortly');
  }
}
