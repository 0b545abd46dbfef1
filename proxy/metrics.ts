// What /metrics shows, with the names and labels of kube-proxy 1.34. Figures only.

import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { EpochMs } from '../lib/clock.ts';
import { MetricsText } from '../lib/metrics.ts';
import { showOwnProcess } from '../lib/process-metrics.ts';
import type { RestClientMetrics } from '../lib/rest-client-metrics.ts';
import type { Applied } from './backend.ts';

/** kube-proxy's: 1 ms, doubling, 15 times. Seconds. */
const SYNC_BUCKETS = Array.from({ length: 15 }, (_, index) => 0.001 * 2 ** index);
const counted = (count: number, first: number, step: number): readonly number[] =>
  Array.from({ length: count }, (_, index) => first + step * index);
/** kube-proxy's for the time from a pod's change to its rules. Seconds. */
const PROGRAMMING_BUCKETS = [0.25, 0.5, ...counted(59, 1, 1), ...counted(12, 60, 5), ...counted(7, 120, 30)];
/** The only one that this proxy has rules for. */
const FAMILY = { ip_family: 'IPv4' };
const BY_FAMILY = ['ip_family'];

export class ProxyMetrics {
  readonly #registry = new Registry();
  readonly #client: RestClientMetrics;
  readonly #startedAt: EpochMs;
  readonly #sync = this.#histogram('sync_proxy_rules_duration_seconds', 'SyncProxyRules latency in seconds');
  readonly #full = this.#histogram(
    'sync_full_proxy_rules_duration_seconds',
    'SyncProxyRules latency in seconds for full resyncs',
  );
  readonly #partial = this.#histogram(
    'sync_partial_proxy_rules_duration_seconds',
    'SyncProxyRules latency in seconds for partial resyncs',
  );
  readonly #programming = this.#histogram(
    'network_programming_duration_seconds',
    'In Cluster Network Programming Latency in seconds',
    PROGRAMMING_BUCKETS,
  );
  readonly #lastSync = this.#gauge(
    'sync_proxy_rules_last_timestamp_seconds',
    'The last time proxy rules were successfully synced',
    BY_FAMILY,
  );
  readonly #lastQueued = this.#gauge(
    'sync_proxy_rules_last_queued_timestamp_seconds',
    'The last time a sync of proxy rules was queued',
    BY_FAMILY,
  );
  readonly #changes = {
    service: this.#counter('sync_proxy_rules_service_changes_total', 'Cumulative proxy rules Service changes'),
    endpoint: this.#counter('sync_proxy_rules_endpoint_changes_total', 'Cumulative proxy rules Endpoint changes'),
  };
  readonly #pending = {
    service: this.#gauge('sync_proxy_rules_service_changes_pending', 'Pending proxy rules Service changes'),
    endpoint: this.#gauge('sync_proxy_rules_endpoint_changes_pending', 'Pending proxy rules Endpoint changes'),
  };
  readonly #rules: Gauge | undefined;
  readonly #written: Gauge | undefined;
  readonly #failures: Counter;
  readonly #partialFailures: Counter | undefined;
  readonly #noLocal = this.#gauge(
    'sync_proxy_rules_no_local_endpoints_total',
    'Number of services with a Local traffic policy and no endpoints',
    ['ip_family', 'traffic_policy'],
  );
  readonly #healthz = this.#counter('proxy_healthz_total', 'Cumulative proxy healthz HTTP status', ['code']);
  readonly #livez = this.#counter('proxy_livez_total', 'Cumulative proxy livez HTTP status', ['code']);
  readonly #conntrackSync = this.#histogram(
    'conntrack_reconciler_sync_duration_seconds',
    'ReconcileConntrackFlowsLatency latency in seconds',
  );
  readonly #conntrackDeleted = this.#counter(
    'conntrack_reconciler_deleted_entries_total',
    'Cumulative conntrack flows deleted by conntrack reconciler',
    BY_FAMILY,
  );

  /** `client`: of the requests to the API server. */
  constructor(mode: 'iptables' | 'nftables', client: RestClientMetrics, startedAt: EpochMs) {
    this.#client = client;
    this.#startedAt = startedAt;
    if (mode === 'iptables') {
      const labels = ['ip_family', 'table'];
      this.#rules = this.#gauge(
        'sync_proxy_rules_iptables_total',
        'Total number of iptables rules owned by kube-proxy',
        labels,
      );
      this.#written = this.#gauge(
        'sync_proxy_rules_iptables_last',
        'Number of iptables rules written by kube-proxy in last sync',
        labels,
      );
      this.#partialFailures = this.#counter(
        'sync_proxy_rules_iptables_partial_restore_failures_total',
        'Cumulative proxy iptables partial restore failures',
        BY_FAMILY,
      );
    }
    this.#failures = this.#counter(
      `sync_proxy_rules_${mode === 'iptables' ? 'iptables_restore' : 'nftables_sync'}_failures_total`,
      `Cumulative proxy ${mode === 'iptables' ? 'iptables restore' : 'nftables sync'} failures`,
      BY_FAMILY,
    );
    // Shown as 0 from the beginning, as kube-proxy's are.
    for (const metric of [this.#failures, this.#partialFailures, this.#conntrackDeleted]) metric?.inc(FAMILY, 0);
  }

  #histogram(name: string, help: string, buckets: readonly number[] = SYNC_BUCKETS): Histogram {
    const labelNames = BY_FAMILY;
    return new Histogram({
      name: `kubeproxy_${name}`,
      help,
      labelNames,
      buckets: [...buckets],
      registers: [this.#registry],
    });
  }

  #counter(name: string, help: string, labelNames: string[] = []): Counter {
    return new Counter({ name: `kubeproxy_${name}`, help, labelNames, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, labelNames: string[] = []): Gauge {
    return new Gauge({ name: `kubeproxy_${name}`, help, labelNames, registers: [this.#registry] });
  }

  queued(nowMs: number): void {
    this.#lastQueued.set(FAMILY, nowMs / 1000);
  }

  changed(kind: 'service' | 'endpoint', count: number): void {
    this.#changes[kind].inc(count);
    this.#pending[kind].inc(count);
  }

  /** What has changed is being written. */
  taken(): void {
    this.#pending.service.set(0);
    this.#pending.endpoint.set(0);
  }

  synced(applied: Applied, sync: { readonly full: boolean; readonly tookMs: number; readonly nowMs: number }): void {
    const seconds = sync.tookMs / 1000;
    this.#sync.observe(FAMILY, seconds);
    (sync.full ? this.#full : this.#partial).observe(FAMILY, seconds);
    this.#lastSync.set(FAMILY, sync.nowMs / 1000);
    for (const [table, count] of Object.entries(applied.total)) this.#rules?.set({ ...FAMILY, table }, count);
    for (const [table, count] of Object.entries(applied.written)) this.#written?.set({ ...FAMILY, table }, count);
    this.#noLocal.set({ ...FAMILY, traffic_policy: 'internal' }, applied.withoutLocal.internal);
    this.#noLocal.set({ ...FAMILY, traffic_policy: 'external' }, applied.withoutLocal.external);
  }

  programmed(ms: number): void {
    this.#programming.observe(FAMILY, Math.max(0, ms) / 1000);
  }

  failed(full: boolean): void {
    this.#failures.inc(FAMILY);
    if (!full) this.#partialFailures?.inc(FAMILY);
  }

  flowsCleared(ms: number, deleted: number): void {
    this.#conntrackSync.observe(FAMILY, ms / 1000);
    this.#conntrackDeleted.inc(FAMILY, deleted);
  }

  probed(path: 'healthz' | 'livez', code: number): void {
    (path === 'healthz' ? this.#healthz : this.#livez).inc({ code: String(code) });
  }

  async text(): Promise<string> {
    const page = new MetricsText();
    this.#client.show(page);
    await showOwnProcess(page, this.#startedAt);
    return `${await this.#registry.metrics()}${page}`;
  }
}
