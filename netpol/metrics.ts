// What /metrics of an enforcer shows: how long writes take, how many failed or were repairs, and what is enforced now. Figures only.

import type { EpochMs } from '../lib/clock.ts';
import { Counter, exponentialBuckets, Histogram, MetricsText } from '../lib/metrics.ts';
import type { NftTable } from '../lib/nft-table.ts';
import { showOwnProcess } from '../lib/process-metrics.ts';
import type { RestClientMetrics } from '../lib/rest-client-metrics.ts';

/** 1 ms, doubling, 15 times, as kube-proxy's. Seconds. */
const SYNC_BUCKETS = exponentialBuckets(0.001, 2, 15);

export class NetpolMetrics {
  readonly #client: RestClientMetrics;
  readonly #startedAt: EpochMs;
  readonly #seconds = new Histogram(
    'nodelet_netpol_sync_duration_seconds',
    'From the first change that is taken in to the table in the kernel.',
    SYNC_BUCKETS,
  );
  readonly #failures = new Counter('nodelet_netpol_sync_failures_total', 'Writes that the kernel refused.');
  readonly #repairs = new Counter('nodelet_netpol_repairs_total', 'Times that another program had changed the table.');
  #policies = 0;
  #lastAt: EpochMs | undefined;
  /** Pods of this node that policies isolate. */
  #isolated: Readonly<Record<'ingress' | 'egress', number>> = { ingress: 0, egress: 0 };

  constructor(client: RestClientMetrics, startedAt: EpochMs) {
    this.#client = client;
    this.#startedAt = startedAt;
    this.#failures.inc({}, 0);
    this.#repairs.inc({}, 0);
  }

  synced(table: NftTable, policies: number, tookMs: number, now: EpochMs): void {
    this.#seconds.observe(tookMs / 1000);
    this.#policies = policies;
    this.#lastAt = now;
    const pods = (direction: string): number => table.sets.get(`${direction}-pods`)?.elements.size ?? 0;
    this.#isolated = { ingress: pods('ingress'), egress: pods('egress') };
  }

  failed(): void {
    this.#failures.inc();
  }

  repaired(): void {
    this.#repairs.inc();
  }

  async text(): Promise<string> {
    const page = new MetricsText();
    for (const metric of [this.#seconds, this.#failures, this.#repairs, this.#client]) metric.show(page);
    page.family('nodelet_netpol_policies', 'gauge', 'Network policies in the cluster.');
    page.sample(this.#policies);
    page.family('nodelet_netpol_isolated_pods', 'gauge', 'Pods of this node that policies isolate.');
    for (const [direction, count] of Object.entries(this.#isolated)) page.sample(count, `direction="${direction}"`);
    page.family('nodelet_netpol_last_sync_timestamp_seconds', 'gauge', 'When the table was last written.');
    if (this.#lastAt !== undefined) page.sample(this.#lastAt / 1000);
    await showOwnProcess(page, this.#startedAt);
    return page.toString();
  }
}
