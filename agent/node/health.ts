// Asks the runtime and the network how they are, and remembers the answer. What the answers mean for the Node is
// decided in conditions.ts.

import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { PodNetwork } from '../ports/node.ts';
import type { ContainerRuntime, RuntimeConditionSnapshot, RuntimeStatus, RuntimeVersion } from '../ports/runtime.ts';
import { type NodeHealth, notReadyBecause } from './conditions.ts';

/**
 * A runtime that has answered before may be silent this long before it counts as down: it is being restarted. (The
 * kubelet waits 30 s.)
 */
const RUNTIME_SILENT_MS = 10_000;

export interface HealthOptions {
  readonly runtime: Pick<ContainerRuntime, 'status' | 'version'>;
  readonly network: Pick<PodNetwork, 'status'>;
  readonly clock: Clock;
}

export class HealthMonitor {
  readonly #options: HealthOptions;
  #health: NodeHealth = {
    runtimeDown: 'container runtime status check may not have completed yet',
    networks: [],
  };
  #version: RuntimeVersion | undefined;
  #status: RuntimeStatus | undefined;
  /** Monotonic ms of the last answer of the runtime. */
  #answeredAt: number | undefined;
  /** The runtime may have been replaced since it last answered: its version has to be asked for again. */
  #versionStale = true;

  constructor(options: HealthOptions) {
    this.#options = options;
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

  /** Asks both. True when the answer differs from the one before in anything that the Node tells. */
  async check(): Promise<boolean> {
    const before = JSON.stringify(notReadyBecause(this.#health));
    const [runtime, network] = await Promise.all([this.#askRuntime(), this.#askNetwork()]);
    this.#health = {
      ...runtime,
      networks: [...(runtime.runtimeNetwork === undefined ? [] : [runtime.runtimeNetwork]), network],
    };
    return JSON.stringify(notReadyBecause(this.#health)) !== before;
  }

  async #askRuntime(): Promise<
    Pick<NodeHealth, 'runtimeDown' | 'runtime'> & { readonly runtimeNetwork?: RuntimeConditionSnapshot }
  > {
    const { runtime, clock } = this.#options;
    try {
      const status = await runtime.status();
      if (this.#versionStale) this.#version = await runtime.version();
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
      return await this.#options.network.status();
    } catch (error) {
      return { ok: false, reason: 'NetworkPluginNotReady', message: errorMessage(error) };
    }
  }
}
