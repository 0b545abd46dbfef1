// The loop: what changes in pods, namespaces and policies is written at once, what comes during a write is in the next one; what someone
// else changes in the table is repaired. Decides no rules.

import type { Namespace as CoreNamespace } from 'kubernetes-types/core/v1';
import type { NetworkPolicy as CoreNetworkPolicy } from 'kubernetes-types/networking/v1';
import type { ReadableStore } from '../client/store.ts';
import type { Pod, Stored } from '../client/types.ts';
import { WorkQueue } from '../client/workqueue.ts';
import { type Clock, elapsedMs } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import type { NftWriter } from '../lib/nft-writer.ts';
import { repeat } from '../lib/retry.ts';
import type { NetpolMetrics } from './metrics.ts';
import { policyPods } from './pods.ts';
import { type Policy, policyTable } from './table.ts';

export type Namespace = Stored<CoreNamespace>;
export type NetworkPolicy = Stored<CoreNetworkPolicy>;

/** Pauses after a failure, ms; the longest is the time between two looks. */
const FIRST_RETRY_MS = 100;

export interface EnforcerParts {
  readonly pods: ReadableStore<Pod>;
  readonly namespaces: ReadableStore<Namespace>;
  readonly policies: ReadableStore<NetworkPolicy>;
  readonly writer: Pick<NftWriter, 'apply' | 'damage'>;
  readonly metrics: Pick<NetpolMetrics, 'synced' | 'failed' | 'repaired'>;
  readonly clock: Clock;
  readonly log: (message: string) => void;
  readonly nodeName: string;
  /** Between two looks at the kernel's table, ms. */
  readonly syncPeriodMs: number;
  /** Called once all that was there has been written. */
  readonly onFirstSync?: (() => void) | undefined;
}

export class PolicyEnforcer {
  readonly #parts: EnforcerParts;
  /** One at a time: a look during a write would see half of it. */
  readonly #queue: WorkQueue<'sync' | 'check'>;
  #full = true;
  #isRunning = false;
  #isFirst = true;

  constructor(parts: EnforcerParts) {
    this.#parts = parts;
    this.#queue = new WorkQueue({
      clock: parts.clock,
      initialDelayMs: FIRST_RETRY_MS,
      maxDelayMs: parts.syncPeriodMs,
    });
    for (const store of [parts.pods, parts.namespaces, parts.policies]) {
      store.onChange((changes) => {
        // Before all caches are filled the rules would be those of a part of the cluster.
        if (changes.length > 0 && this.#isRunning) this.#queue.add('sync');
      });
    }
  }

  /** To be called once the caches are filled; runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, syncPeriodMs } = this.#parts;
    const stop = (): void => this.#queue.shutDown();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    this.#isRunning = true;
    this.#queue.add('sync');
    const syncing = this.#queue.run(
      1,
      (what) => (what === 'sync' ? this.#sync() : this.#check()),
      (_, error, retryMs) => log(`policies are not written: ${errorMessage(error)}; again in ${retryMs} ms`),
    );
    const check = async (): Promise<undefined> => {
      this.#queue.add('check');
      return undefined;
    };
    const checking = repeat(check, { clock, everyMs: syncPeriodMs, firstMs: syncPeriodMs, signal });
    await Promise.all([syncing, checking]);
  }

  async #check(): Promise<void> {
    // After a failure all is written anyway.
    if (this.#full) return;
    try {
      const damage = await this.#parts.writer.damage();
      if (damage === undefined) return;
      this.#parts.log(`${damage}: all rules are written again`);
      this.#parts.metrics.repaired();
    } catch (error) {
      this.#parts.log(`the rules cannot be read: ${errorMessage(error)}`);
    }
    this.#full = true;
    this.#queue.add('sync');
  }

  async #sync(): Promise<void> {
    const { pods, namespaces, policies, writer, metrics, clock, nodeName, onFirstSync } = this.#parts;
    const begun = clock.monotonic();
    const table = policyTable(nodeName, {
      pods: policyPods(pods.list()),
      namespaces: new Map(namespaces.list().map(({ metadata }) => [metadata.name, metadata.labels ?? {}])),
      policies: policies.list().flatMap(policyOf),
    });
    const full = this.#full;
    this.#full = true;
    try {
      await writer.apply(table, full);
    } catch (error) {
      metrics.failed();
      throw error;
    }
    this.#full = false;
    metrics.synced(table, policies.list().length, elapsedMs(begun, clock.monotonic()), clock.now());
    if (this.#isFirst) onFirstSync?.();
    this.#isFirst = false;
  }
}

function policyOf({ metadata: { namespace = '', name }, spec }: NetworkPolicy): readonly Policy[] {
  return spec === undefined ? [] : [{ namespace, name, spec }];
}
