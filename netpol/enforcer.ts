// What changes in pods, namespaces and policies becomes the kernel's table, by the loop that the proxy has too. Decides no rules.

import type { Namespace as CoreNamespace } from 'kubernetes-types/core/v1';
import type { NetworkPolicy as CoreNetworkPolicy } from 'kubernetes-types/networking/v1';
import { RulesLoop } from '../client/rules-loop.ts';
import type { ReadableStore } from '../client/store.ts';
import type { Pod, Stored } from '../client/types.ts';
import { type Clock, elapsedMs } from '../lib/clock.ts';
import type { NftWriter } from '../lib/nft-writer.ts';
import type { NetpolMetrics } from './metrics.ts';
import { policyPods } from './pods.ts';
import { type Policy, policyTable } from './table.ts';

export type Namespace = Stored<CoreNamespace>;
export type NetworkPolicy = Stored<CoreNetworkPolicy>;

export interface EnforcerParts {
  readonly pods: ReadableStore<Pod>;
  readonly namespaces: ReadableStore<Namespace>;
  readonly policies: ReadableStore<NetworkPolicy>;
  readonly writer: Pick<NftWriter, 'apply' | 'damage'>;
  readonly metrics: Pick<NetpolMetrics, 'synced' | 'failed' | 'repaired'>;
  readonly clock: Clock;
  readonly log: (message: string) => void;
  readonly nodeName: string;
  /** How often the kernel's table is compared and repaired. ms. */
  readonly syncPeriodMs: number;
  /** Called once all that was there has been written. */
  readonly onFirstSync?: (() => void) | undefined;
}

export class PolicyEnforcer {
  readonly #parts: EnforcerParts;
  readonly #loop: RulesLoop;
  #isRunning = false;
  #isFirst = true;

  constructor(parts: EnforcerParts) {
    this.#parts = parts;
    const { clock, log, syncPeriodMs, writer, metrics } = parts;
    this.#loop = new RulesLoop({
      what: 'policies',
      clock,
      log,
      syncPeriodMs,
      sync: (full) => this.#sync(full),
      damage: () => writer.damage(),
      onRepair: (found) => {
        if (found === 'damage') metrics.repaired();
        this.#loop.changed();
      },
    });
    for (const store of [parts.pods, parts.namespaces, parts.policies]) {
      store.onChange((changes) => {
        // Before all caches are filled the rules would be those of a part of the cluster.
        if (changes.length > 0 && this.#isRunning) this.#loop.changed();
      });
    }
  }

  /** To be called once the caches are filled; runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#isRunning = true;
    this.#loop.changed();
    await this.#loop.run(signal);
  }

  async #sync(full: boolean): Promise<void> {
    const { pods, namespaces, policies, writer, metrics, clock, nodeName, onFirstSync } = this.#parts;
    const begun = clock.monotonic();
    const table = policyTable(nodeName, {
      pods: policyPods(pods.list()),
      namespaces: new Map(namespaces.list().map(({ metadata }) => [metadata.name, metadata.labels ?? {}])),
      policies: policies.list().flatMap(policyOf),
    });
    try {
      await writer.apply(table, full);
    } catch (error) {
      metrics.failed();
      throw error;
    }
    metrics.synced(table, policies.list().length, elapsedMs(begun, clock.monotonic()), clock.now());
    if (this.#isFirst) onFirstSync?.();
    this.#isFirst = false;
  }
}

function policyOf({ metadata: { namespace = '', name }, spec }: NetworkPolicy): readonly Policy[] {
  return spec === undefined ? [] : [{ namespace, name, spec }];
}
