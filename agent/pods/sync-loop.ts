// Whether the sync loop makes progress: the kubelet's /healthz/syncloop (pkg/kubelet, SyncLoopHealthCheck). The
// kubelet has one loop, and is healthy while that was entered a short while ago. Here every pod has a loop of its own, so
// two things are watched: the periodic resync of all pods (PodManager, every syncFrequency), and each step of a pod's
// loop that has begun and not ended. A step calls nothing but the runtime, with deadlines: one that takes longer than
// those allow will never end. It restarts nothing: the Node reports it, and systemd's watchdog gets no message.

import { type Clock, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { goDuration } from '../../lib/go-duration.ts';

/** The kubelet's least time, ms, before a loop counts as stuck. */
const LEAST_MS = 300_000;
/** Calls to the runtime that a step makes one after the other at most: two lists, a status, a stop or a removal. */
const CALLS_PER_STEP = 4;

export interface SyncLoopLimits {
  /** The round over all pods: twice syncFrequency, five minutes at least. ms. */
  readonly roundMs: number;
  /** One step of one pod's loop. ms. */
  readonly stepMs: number;
}

/** Of syncFrequency and runtimeRequestTimeout, both in ms. */
export function syncLoopLimits(resyncMs: number, requestTimeoutMs: number): SyncLoopLimits {
  const roundMs = Math.max(2 * resyncMs, LEAST_MS);
  return { roundMs, stepMs: Math.max(roundMs, CALLS_PER_STEP * requestTimeoutMs) };
}

export interface SyncLoopState {
  /** When the last round began; undefined before the first. */
  readonly round: MonotonicMs | undefined;
  /** Steps under way: what, and since when. */
  readonly steps: Iterable<readonly [what: string, since: MonotonicMs]>;
}

/** Why the loop counts as stuck, in the kubelet's words and with what is stuck; undefined while it moves. Pure. */
export function syncLoopProblem({ round, steps }: SyncLoopState, limits: SyncLoopLimits, now: MonotonicMs) {
  const problem = (what: string): string => `sync Loop took longer than expected: ${what}`;
  if (round !== undefined && elapsedMs(round, now) > limits.roundMs) {
    return problem(`no round over all pods for ${goDuration(elapsedMs(round, now))}`);
  }
  let [oldest, oldestSince] = ['', now];
  for (const [what, since] of steps) if (since < oldestSince) [oldest, oldestSince] = [what, since];
  const elapsed = elapsedMs(oldestSince, now);
  return elapsed > limits.stepMs ? problem(`${oldest} for ${goDuration(elapsed)}`) : undefined;
}

export class SyncLoop {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #limits: SyncLoopLimits;
  readonly #steps = new Map<object, readonly [what: string, since: MonotonicMs]>();
  #round: MonotonicMs | undefined;

  constructor(clock: Pick<Clock, 'monotonic'>, limits: SyncLoopLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** A round over all pods begins. */
  roundBegins(): void {
    this.#round = this.#clock.monotonic();
  }

  /** Does one step of a loop. `what` names it in messages: "syncPod demo/web". */
  async step<T>(what: string, body: () => Promise<T>): Promise<T> {
    const key = {};
    this.#steps.set(key, [what, this.#clock.monotonic()]);
    try {
      return await body();
    } finally {
      this.#steps.delete(key);
    }
  }

  /** Undefined while the loop moves. */
  problem(): string | undefined {
    return syncLoopProblem({ round: this.#round, steps: this.#steps.values() }, this.#limits, this.#clock.monotonic());
  }
}
