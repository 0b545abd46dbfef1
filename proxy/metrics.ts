// What /metrics shows, with kube-proxy's names and labels. Figures only.

import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Applied } from './backend.ts';

/** kube-proxy's: 1 ms, doubling, 15 times. Seconds. */
const SYNC_BUCKETS = Array.from({ length: 15 }, (_, index) => 0.001 * 2 ** index);
/** kube-proxy's for the time from a pod's change to its rules. Seconds. */
const PROGRAMMING_BUCKETS = [
  0.25,
  0.5,
  ...Array.from({ length: 60 }, (_, index) => index + 1),
  65,
  70,
  75,
  80,
  85,
  90,
  95,
  100,
  105,
  110,
  115,
  120,
  150,
  180,
  210,
  240,
  270,
  300,
];

export class ProxyMetrics {
  readonly #registry = new Registry();
  readonly #sync: Histogram;
  readonly #full: Histogram;
  readonly #partial: Histogram;
  readonly #programming: Histogram;
  readonly #lastSync: Gauge;
  readonly #lastQueued: Gauge;
  readonly #serviceChanges: Counter;
  readonly #endpointChanges: Counter;
  readonly #rules: Gauge;
  readonly #written: Gauge;
  readonly #failures: Counter;
  readonly #partialFailures: Counter;
  readonly #noLocal: Gauge;
  readonly #healthz: Counter;
  readonly #livez: Counter;

  constructor(mode: 'iptables' | 'nftables') {
    const registers = [this.#registry];
    const histogram = (name: string, help: string, buckets = SYNC_BUCKETS): Histogram =>
      new Histogram({ name, help, buckets, registers });
    const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
      new Counter({ name, help, labelNames, registers });
    const gauge = (name: string, help: string, labelNames: string[] = []): Gauge =>
      new Gauge({ name, help, labelNames, registers });
    this.#sync = histogram('kubeproxy_sync_proxy_rules_duration_seconds', 'SyncProxyRules latency in seconds');
    this.#full = histogram(
      'kubeproxy_sync_full_proxy_rules_duration_seconds',
      'SyncProxyRules latency in seconds for full resyncs',
    );
    this.#partial = histogram(
      'kubeproxy_sync_partial_proxy_rules_duration_seconds',
      'SyncProxyRules latency in seconds for partial resyncs',
    );
    this.#programming = histogram(
      'kubeproxy_network_programming_duration_seconds',
      'In Cluster Network Programming Latency in seconds',
      PROGRAMMING_BUCKETS,
    );
    this.#lastSync = gauge(
      'kubeproxy_sync_proxy_rules_last_timestamp_seconds',
      'The last time proxy rules were successfully synced',
    );
    this.#lastQueued = gauge(
      'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds',
      'The last time a sync of proxy rules was queued',
    );
    this.#serviceChanges = counter(
      'kubeproxy_sync_proxy_rules_service_changes_total',
      'Cumulative proxy rules Service changes',
    );
    this.#endpointChanges = counter(
      'kubeproxy_sync_proxy_rules_endpoint_changes_total',
      'Cumulative proxy rules Endpoint changes',
    );
    const rules = mode === 'iptables' ? 'iptables' : 'nftables';
    this.#rules = gauge(
      `kubeproxy_sync_proxy_rules_${rules}_total`,
      `Total number of ${rules} rules owned by kube-proxy`,
      ['table'],
    );
    this.#written = gauge(
      `kubeproxy_sync_proxy_rules_${rules}_last`,
      `Number of ${rules} rules written by kube-proxy in last sync`,
      ['table'],
    );
    const failures = mode === 'iptables' ? 'iptables_restore' : 'nftables_sync';
    this.#failures = counter(
      `kubeproxy_sync_proxy_rules_${failures}_failures_total`,
      'Cumulative failures to write proxy rules',
    );
    this.#partialFailures = counter(
      `kubeproxy_sync_proxy_rules_${rules}_partial_${mode === 'iptables' ? 'restore' : 'sync'}_failures_total`,
      'Cumulative failures to write the changed part of proxy rules',
    );
    this.#noLocal = gauge(
      'kubeproxy_sync_proxy_rules_no_local_endpoints_total',
      'Number of services with a Local traffic policy and no endpoints',
      ['traffic_policy'],
    );
    this.#healthz = counter('kubeproxy_proxy_healthz_total', 'Cumulative proxy healthz HTTP status', ['code']);
    this.#livez = counter('kubeproxy_proxy_livez_total', 'Cumulative proxy livez HTTP status', ['code']);
  }

  queued(nowMs: number): void {
    this.#lastQueued.set(nowMs / 1000);
  }

  changed(kind: 'service' | 'endpoint', count: number): void {
    (kind === 'service' ? this.#serviceChanges : this.#endpointChanges).inc(count);
  }

  synced(applied: Applied, sync: { readonly full: boolean; readonly tookMs: number; readonly nowMs: number }): void {
    const seconds = sync.tookMs / 1000;
    this.#sync.observe(seconds);
    (sync.full ? this.#full : this.#partial).observe(seconds);
    this.#lastSync.set(sync.nowMs / 1000);
    for (const [table, count] of Object.entries(applied.total)) this.#rules.set({ table }, count);
    for (const [table, count] of Object.entries(applied.written)) this.#written.set({ table }, count);
    this.#noLocal.set({ traffic_policy: 'internal' }, applied.withoutLocal.internal);
    this.#noLocal.set({ traffic_policy: 'external' }, applied.withoutLocal.external);
  }

  programmed(ms: number): void {
    this.#programming.observe(Math.max(0, ms) / 1000);
  }

  failed(full: boolean): void {
    this.#failures.inc();
    if (!full) this.#partialFailures.inc();
  }

  probed(path: 'healthz' | 'livez', code: number): void {
    (path === 'healthz' ? this.#healthz : this.#livez).inc({ code: String(code) });
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
