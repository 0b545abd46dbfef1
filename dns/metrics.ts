// What /metrics shows, with CoreDNS's names and labels. Figures only.

import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { ForwardCounts } from './forward/forward.ts';
import type { UpstreamCounts } from './forward/upstreams.ts';
import type { CacheCounts } from './plugins/cache.ts';
import type { Transport } from './wire/finish.ts';
import { rcodeText } from './wire/names.ts';

/** CoreDNS's: 0.25 ms, doubling, 16 times. Seconds. */
const TIME_BUCKETS = Array.from({ length: 16 }, (_, index) => 0.00025 * 2 ** index);
const SIZE_BUCKETS = [0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16e3, 32e3, 48e3, 64e3];
/** Of a question that no server block is for. */
const DROPPED = 'dropped';

/** One answer, for its figures. */
export interface CountedAnswer {
  /** "dns://address:port". */
  readonly server: string;
  /** The server block's; undefined: it came to none. */
  readonly zone: string | undefined;
  readonly transport: Transport;
  readonly family: '1' | '2';
  readonly type: string;
  /** The most that the client takes, bytes. */
  readonly limit: number;
  readonly dnssecOk: boolean;
  readonly size: number;
  readonly rcode: number;
  readonly plugin: string;
  readonly ms: number;
}

const zoneText = (zone: string): string => `${zone}.`;

export class DnsMetrics {
  readonly #registry = new Registry();
  readonly #requests = this.#counter(
    'dns_requests_total',
    'Counter of DNS requests made per zone, protocol and family.',
    [...['server', 'zone', 'view', 'proto', 'family', 'type']],
  );
  readonly #durations = this.#histogram(
    'dns_request_duration_seconds',
    'Histogram of the time (in seconds) each request took per zone.',
    ['server', 'zone', 'view'],
  );
  readonly #requestSizes = this.#histogram(
    'dns_request_size_bytes',
    'Size of the EDNS0 UDP buffer in bytes (64K for TCP) per zone and protocol.',
    ['server', 'zone', 'view', 'proto'],
    SIZE_BUCKETS,
  );
  readonly #dnssec = this.#counter('dns_do_requests_total', 'Counter of DNS requests with DO bit set per zone.', [
    ...['server', 'zone', 'view'],
  ]);
  readonly #responseSizes = this.#histogram(
    'dns_response_size_bytes',
    'Size of the returned response in bytes.',
    ['server', 'zone', 'view', 'proto'],
    SIZE_BUCKETS,
  );
  readonly #responses = this.#counter('dns_responses_total', 'Counter of response status codes.', [
    ...['server', 'zone', 'view', 'rcode', 'plugin'],
  ]);
  readonly #panics = this.#counter('panics_total', 'A metrics that counts the number of panics.');
  readonly #plugins = this.#gauge(
    'plugin_enabled',
    'A metric that indicates whether a plugin is enabled on per server and zone basis.',
    ['server', 'zone', 'view', 'name'],
  );
  readonly #cacheEntries = this.#gauge('cache_entries', 'The number of elements in the cache.', [
    ...['server', 'type', 'zones', 'view'],
  ]);
  readonly #cacheRequests = this.#counter('cache_requests_total', 'The count of cache requests.', [
    'server',
    'zones',
    'view',
  ]);
  readonly #cacheHits = this.#counter('cache_hits_total', 'The count of cache hits.', [
    'server',
    'type',
    'zones',
    'view',
  ]);
  readonly #cacheMisses = this.#counter(
    'cache_misses_total',
    'The count of cache misses. Deprecated, derive misses from cache hits/requests counters.',
    ['server', 'zones', 'view'],
  );
  readonly #evictions = this.#counter('cache_evictions_total', 'The count of cache evictions.', [
    ...['server', 'type', 'zones', 'view'],
  ]);
  readonly #proxied = this.#histogram('proxy_request_duration_seconds', 'Histogram of the time each request took.', [
    ...['proxy_name', 'to', 'rcode'],
  ]);
  readonly #checkFailures = this.#counter(
    'proxy_healthcheck_failures_total',
    'Counter of the number of failed healthchecks.',
    ['proxy_name', 'to'],
  );
  readonly #reused = this.#counter(
    'proxy_conn_cache_hits_total',
    'Counter of connection cache hits per upstream and protocol.',
    [...['proxy_name', 'to', 'proto']],
  );
  readonly #opened = this.#counter(
    'proxy_conn_cache_misses_total',
    'Counter of connection cache misses per upstream and protocol.',
    ['proxy_name', 'to', 'proto'],
  );
  readonly #allDown = this.#counter(
    'forward_healthcheck_broken_total',
    'Counter of the number of complete failures of the healthchecks.',
  );
  readonly #refused = this.#counter(
    'forward_max_concurrent_rejects_total',
    'Counter of the number of queries rejected because the concurrent queries were at maximum.',
  );
  readonly #hostsEntries = this.#gauge('hosts_entries', 'The combined number of entries in hosts and Corefile.');
  readonly #hostsReload = this.#gauge(
    'hosts_reload_timestamp_seconds',
    'The timestamp of the last reload of hosts file.',
  );
  readonly #reloadFailures = this.#counter('reload_failed_total', 'Counter of the number of failed reload attempts.');
  readonly #version = this.#gauge(
    'reload_version_info',
    'A metric with a constant value of 1 labeled by hash, and value which type of hash generated.',
    ['hash', 'value'],
  );

  #counter(name: string, help: string, labelNames: string[] = []): Counter {
    return new Counter({ name: `coredns_${name}`, help, labelNames, registers: [this.#registry] });
  }
  #gauge(name: string, help: string, labelNames: string[] = []): Gauge {
    return new Gauge({ name: `coredns_${name}`, help, labelNames, registers: [this.#registry] });
  }
  #histogram(name: string, help: string, labelNames: string[], buckets = TIME_BUCKETS): Histogram {
    return new Histogram({ name: `coredns_${name}`, help, labelNames, buckets, registers: [this.#registry] });
  }

  answered(answer: CountedAnswer): void {
    const { server, transport: proto, family, type } = answer;
    const zone = answer.zone === undefined ? DROPPED : zoneText(answer.zone);
    const at = { server, zone, view: '' };
    this.#requests.inc({ ...at, proto, family, type });
    this.#durations.observe(at, answer.ms / 1000);
    this.#requestSizes.observe({ ...at, proto }, answer.limit);
    if (answer.dnssecOk) this.#dnssec.inc(at);
    this.#responseSizes.observe({ ...at, proto }, answer.size);
    this.#responses.inc({ ...at, rcode: rcodeText(answer.rcode), plugin: answer.plugin });
  }

  panicked(): void {
    this.#panics.inc();
  }

  /** The plugins of all server blocks, in place of those before. */
  pluginsEnabled(all: readonly { readonly server: string; readonly zone: string; readonly name: string }[]): void {
    this.#plugins.reset();
    for (const { server, zone, name } of all) this.#plugins.set({ server, zone: zoneText(zone), view: '', name }, 1);
  }

  cache(server: string, zones: readonly string[]): CacheCounts {
    const at = { server, zones: zones.map(zoneText).join(','), view: '' };
    return {
      request: () => this.#cacheRequests.inc(at),
      hit: (type) => this.#cacheHits.inc({ ...at, type }),
      miss: () => this.#cacheMisses.inc(at),
      evicted: (type) => this.#evictions.inc({ ...at, type }),
      entries: (type, count) => this.#cacheEntries.set({ ...at, type }, count),
    };
  }

  upstream(to: string): UpstreamCounts {
    const at = { proxy_name: 'forward', to };
    return {
      pool: {
        reused: (proto) => this.#reused.inc({ ...at, proto }),
        opened: (proto) => this.#opened.inc({ ...at, proto }),
      },
      checkFailed: () => this.#checkFailures.inc(at),
    };
  }

  readonly forward: ForwardCounts = {
    answered: (to, rcode, ms) =>
      this.#proxied.observe({ proxy_name: 'forward', to, rcode: rcodeText(rcode) }, ms / 1000),
    refused: () => this.#refused.inc(),
    allDown: () => this.#allDown.inc(),
  };

  /** `nowMs`: of the wall clock. */
  hosts(entries: number, nowMs: number): void {
    this.#hostsEntries.set(entries);
    this.#hostsReload.set(nowMs / 1000);
  }

  /** `sha512`: of the Corefile. */
  loaded(sha512: string): void {
    this.#version.reset();
    this.#version.set({ hash: 'sha512', value: sha512 }, 1);
  }
  reloadFailed(): void {
    this.#reloadFailures.inc();
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
