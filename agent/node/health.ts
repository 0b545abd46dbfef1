// Checks the health of the runtime and the network, and caches the result. What it means for the Node is decided in
// conditions.ts.

import type { Clock, MonotonicMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { sameJson } from '../../lib/same-json.ts';
import type { PodNetwork } from '../ports/node.ts';
import type { ContainerRuntime, RuntimeConditionSnapshot, RuntimeStatus, RuntimeVersion } from '../ports/runtime.ts';
import { type FailedCheck, type NodeHealth, notReadyBecause } from './conditions.ts';

/**
 * A runtime that has answered before may be silent this long before it counts as down: it is being restarted. (The
 * kubelet waits 30 s.)
 */
const RUNTIME_SILENT_MS = 10_000;

/** A part that takes longer to say how it is counts as not answering. Its call may go on; no second one is made. */
const ANSWER_MS = 10_000;

/** What a check found, compared with the one before. */
export type HealthChange = 'none' | 'reasons' | 'readiness';

export type HealthChecks = Readonly<Record<string, () => string | undefined>>;

export interface HealthOptions {
  readonly runtime: Pick<ContainerRuntime, 'status' | 'version'>;
  readonly network: Pick<PodNetwork, 'status'>;
  readonly clock: Clock;
  /** The agent's own checks, by name: undefined is healthy, else the whole sentence. */
  readonly checks?: HealthChecks | undefined;
  /** Why the node is going, if it is. */
  readonly shutdown?: (() => string | undefined) | undefined;
}

function failedChecks(checks: HealthChecks = {}): readonly FailedCheck[] {
  return Object.entries(checks).flatMap(([name, check]) => {
    const message = check();
    return message === undefined ? [] : [{ name, message }];
  });
}

/** The reasons without what changes from one check to the next: the duration of a failure is no change. */
function lastingReasons(health: NodeHealth): readonly string[] {
  return notReadyBecause({
    ...health,
    failedChecks: (health.failedChecks ?? []).map(({ name }) => ({ name, message: name })),
  });
}

/** One check that may hang; while one is pending, no new one is started. */
class Question<T> {
  readonly #clock: Clock;
  readonly #ask: () => Promise<T>;
  #open: Promise<T> | undefined;

  constructor(clock: Clock, ask: () => Promise<T>) {
    this.#clock = clock;
    this.#ask = ask;
  }

  /** Rejects with what went wrong, or when there is no answer in time. */
  answer(): Promise<T> {
    const open = this.#open ?? this.#ask();
    this.#open = open;
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(ANSWER_MS, () => {
        reject(new Error(`no answer within ${ANSWER_MS / 1000} s`));
      });
      const closed = (): void => {
        timer.cancel();
        if (this.#open === open) this.#open = undefined;
      };
      open.then(
        (answer) => {
          closed();
          resolve(answer);
        },
        (error: unknown) => {
          closed();
          reject(error);
        },
      );
    });
  }
}

export class HealthMonitor {
  readonly #options: HealthOptions;
  readonly #statusQuestion: Question<RuntimeStatus>;
  readonly #versionQuestion: Question<RuntimeVersion>;
  readonly #networkQuestion: Question<RuntimeConditionSnapshot>;
  #health: NodeHealth = {
    runtimeDown: 'container runtime status check may not have completed yet',
    networks: [],
  };
  #version: RuntimeVersion | undefined;
  #status: RuntimeStatus | undefined;
  /** Monotonic ms of the last answer of the runtime. */
  #answeredAt: MonotonicMs | undefined;
  /** The runtime may have been replaced since it last answered: its version has to be read again. */
  #versionStale = true;

  constructor(options: HealthOptions) {
    const { clock, runtime, network } = options;
    this.#options = options;
    this.#statusQuestion = new Question(clock, () => runtime.status());
    this.#versionQuestion = new Question(clock, () => runtime.version());
    this.#networkQuestion = new Question(clock, () => network.status());
  }

  get health(): NodeHealth {
    return this.#health;
  }
  get runtimeVersion(): RuntimeVersion | undefined {
    return this.#version;
  }
  get runtimeStatus(): RuntimeStatus | undefined {
    return this.#status;
  }
  get ready(): boolean {
    return notReadyBecause(this.#health).length === 0;
  }

  /** Checks both. */
  async check(): Promise<HealthChange> {
    const before = lastingReasons(this.#health);
    const [runtime, network] = await Promise.all([this.#askRuntime(), this.#askNetwork()]);
    this.#health = {
      ...runtime,
      failedChecks: failedChecks(this.#options.checks),
      networks: [...(runtime.runtimeNetwork === undefined ? [] : [runtime.runtimeNetwork]), network],
      shutdown: this.#options.shutdown?.(),
    };
    const now = lastingReasons(this.#health);
    if ((now.length === 0) !== (before.length === 0)) return 'readiness';
    return sameJson(now, before) ? 'none' : 'reasons';
  }

  async #askRuntime(): Promise<
    Pick<NodeHealth, 'runtimeDown' | 'runtime'> & { readonly runtimeNetwork?: RuntimeConditionSnapshot }
  > {
    const { clock } = this.#options;
    try {
      const status = await this.#statusQuestion.answer();
      if (this.#versionStale) this.#version = await this.#versionQuestion.answer();
      this.#versionStale = false;
      this.#status = status;
      this.#answeredAt = clock.monotonic();
    } catch (error) {
      this.#versionStale = true;
      const silent = this.#answeredAt !== undefined && clock.monotonic() - this.#answeredAt <= RUNTIME_SILENT_MS;
      if (!silent) return { runtimeDown: `container runtime is down: ${errorMessage(error)}` };
    }
    const status = this.#status;
    return status === undefined ? {} : { runtime: status.runtimeReady, runtimeNetwork: status.networkReady };
  }

  async #askNetwork(): Promise<RuntimeConditionSnapshot> {
    try {
      return await this.#networkQuestion.answer();
    } catch (error) {
      return { ok: false, reason: 'NetworkPluginNotReady', message: errorMessage(error) };
    }
  }
}
