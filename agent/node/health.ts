// Checks the health of the runtime and the network, and caches the result. What it means for the Node is decided in
// conditions.ts.

import { resolvesWithin } from '../../lib/abort.ts';
import { type Clock, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { sameJson } from '../../lib/same-json.ts';
import { singleFlight } from '../../lib/single-flight.ts';
import type { PodNetwork } from '../ports/node.ts';
import type { ContainerRuntime, RuntimeConditionSnapshot, RuntimeStatus, RuntimeVersion } from '../ports/runtime.ts';
import { type FailedCheck, type NodeHealth, notReadyBecause } from './conditions.ts';

/** A runtime is down when its last answer is this old: it may be restarting. The kubelet's maxWaitForContainerRuntime. */
const RUNTIME_DOWN_MS = 30_000;

/** A call that takes longer counts as failed. It may go on; no second one is made beside it. */
const CHECK_TIMEOUT_MS = 10_000;

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

export class HealthMonitor {
  readonly #options: HealthOptions;
  readonly #runtimeStatus: () => Promise<RuntimeStatus>;
  readonly #runtimeVersion: () => Promise<RuntimeVersion>;
  readonly #networkStatus: () => Promise<RuntimeConditionSnapshot>;
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
    const { runtime, network } = options;
    this.#options = options;
    this.#runtimeStatus = singleFlight(() => runtime.status());
    this.#runtimeVersion = singleFlight(() => runtime.version());
    this.#networkStatus = singleFlight(() => network.status());
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

  /** The runtime has answered the last check; where it has not, it may be restarting. */
  get answers(): boolean {
    return !this.#versionStale;
  }

  /** Checks both. */
  async check(): Promise<HealthChange> {
    const before = lastingReasons(this.#health);
    const [runtime, network] = await Promise.all([this.#checkRuntime(), this.#checkNetwork()]);
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

  async #checkRuntime(): Promise<
    Pick<NodeHealth, 'runtimeDown' | 'runtime'> & { readonly runtimeNetwork?: RuntimeConditionSnapshot }
  > {
    const { clock } = this.#options;
    try {
      const status = await this.#inTime(this.#runtimeStatus());
      if (this.#versionStale) this.#version = await this.#inTime(this.#runtimeVersion());
      this.#versionStale = false;
      this.#status = status;
      this.#answeredAt = clock.monotonic();
    } catch (error) {
      this.#versionStale = true;
      const mayBeRestarting =
        this.#answeredAt !== undefined && elapsedMs(this.#answeredAt, clock.monotonic()) < RUNTIME_DOWN_MS;
      if (!mayBeRestarting) return { runtimeDown: `container runtime is down: ${errorMessage(error)}` };
    }
    const status = this.#status;
    return status === undefined ? {} : { runtime: status.runtimeReady, runtimeNetwork: status.networkReady };
  }

  async #checkNetwork(): Promise<RuntimeConditionSnapshot> {
    try {
      return await this.#inTime(this.#networkStatus());
    } catch (error) {
      return { ok: false, reason: 'NetworkPluginNotReady', message: errorMessage(error) };
    }
  }

  /** Rejects as the call does, or when it takes too long. */
  async #inTime<T>(call: Promise<T>): Promise<T> {
    const inTime = await resolvesWithin(this.#options.clock, CHECK_TIMEOUT_MS, call);
    if (!inTime) throw new Error(`no answer within ${CHECK_TIMEOUT_MS / 1000} s`);
    return await call;
  }
}
