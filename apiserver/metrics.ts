// What /metrics shows, with kube-apiserver's names and labels, so that its dashboards work. Figures only: where they are
// taken is server.ts's, http/handler.ts's and the etcd client's.

import { Counter, Gauge, Histogram, Registry as PromRegistry } from 'prom-client';
import { getOwn } from '../lib/own-property.ts';

/** A request as the labels show it; `resource` only of what is served, as labels must not come from clients. */
export interface RequestLabels {
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly scope: '' | 'resource' | 'namespace' | 'cluster';
  readonly dry_run: '' | 'All';
}

const VERBS: Readonly<Record<string, string>> = { create: 'POST', update: 'PUT' };
/** kube-apiserver's, in seconds. */
const REQUEST_BUCKETS = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
];
const REQUEST = ['verb', 'group', 'version', 'resource', 'subresource', 'scope', 'component', 'dry_run'] as const;
const MUTATING = new Set(['POST', 'PUT', 'PATCH', 'DELETE', 'DELETECOLLECTION']);

/** "create" is POST, as upstream. Pure. */
export function verbLabel(verb: string): string {
  return getOwn(VERBS, verb) ?? verb.toUpperCase();
}

export class Metrics {
  readonly #registry = new PromRegistry();
  readonly #requests: Counter;
  readonly #durations: Histogram;
  readonly #inFlight: Gauge;
  readonly #longRunning: Gauge;
  readonly #watchEvents: Counter;
  readonly #etcd: Histogram;
  readonly #conversions: ConversionMetrics;

  constructor() {
    const registers = [this.#registry];
    this.#requests = new Counter({
      name: 'apiserver_request_total',
      help: 'Requests that were served, by what they were for and how they ended.',
      labelNames: [...REQUEST, 'code'],
      registers,
    });
    this.#durations = new Histogram({
      name: 'apiserver_request_duration_seconds',
      help: 'Seconds from the head of a request to the end of its response.',
      labelNames: REQUEST,
      buckets: REQUEST_BUCKETS,
      registers,
    });
    this.#inFlight = new Gauge({
      name: 'apiserver_current_inflight_requests',
      help: 'Requests that are being served now, by kind: mutating or readOnly.',
      labelNames: ['request_kind'],
      registers,
    });
    for (const request_kind of ['mutating', 'readOnly']) this.#inFlight.set({ request_kind }, 0);
    this.#longRunning = new Gauge({
      name: 'apiserver_longrunning_requests',
      help: 'Watches, logs and streams that are open now.',
      labelNames: REQUEST.filter((label) => label !== 'dry_run'),
      registers,
    });
    this.#watchEvents = new Counter({
      name: 'apiserver_watch_events_total',
      help: 'Events that were sent to watches.',
      labelNames: ['group', 'version', 'resource'],
      registers,
    });
    this.#etcd = new Histogram({
      name: 'etcd_request_duration_seconds',
      help: 'Seconds of each call of etcd, by operation.',
      labelNames: ['operation'],
      buckets: REQUEST_BUCKETS,
      registers,
    });
    this.#conversions = new ConversionMetrics(registers);
    processMetrics(registers);
  }

  /** For what registers figures of its own. */
  get registers(): PromRegistry[] {
    return [this.#registry];
  }

  /** A request begins; the function that is returned is called once, when its response is over. */
  begin(request: RequestLabels, longRunning: boolean): (code: number, seconds: number) => void {
    const { dry_run: _dryRun, ...place } = request;
    const labels = { ...request, component: 'apiserver' };
    const kind = { request_kind: MUTATING.has(request.verb) ? 'mutating' : 'readOnly' };
    const [gauge, gaugeLabels] = longRunning
      ? [this.#longRunning, { ...place, component: 'apiserver' }]
      : [this.#inFlight, kind];
    gauge.inc(gaugeLabels);
    return (code, seconds) => {
      gauge.dec(gaugeLabels);
      this.#requests.inc({ ...labels, code });
      // Upstream counts how long a watch is open, too.
      this.#durations.observe(labels, seconds);
    };
  }

  watchEvent(group: string, version: string, resource: string): void {
    this.#watchEvents.inc({ group, version, resource });
  }

  etcdRequest(operation: string, seconds: number): void {
    this.#etcd.observe({ operation }, seconds);
  }

  conversion(figures: ConversionFigures): void {
    this.#conversions.observe(figures);
  }

  /** The text of /metrics, and its type. */
  async show(): Promise<{ readonly contentType: string; readonly body: string }> {
    return { contentType: this.#registry.contentType, body: await this.#registry.metrics() };
  }
}

/** Read when they are shown. */
function processMetrics(registers: PromRegistry[]): void {
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Bytes of the process that are in memory.',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Gauge({
    name: 'process_cpu_seconds_total',
    help: 'Seconds of processor time, of user and system.',
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.set((user + system) / 1e6);
    },
  });
  new Gauge({
    name: 'process_uptime_seconds',
    help: 'Seconds since the process began.',
    registers,
    collect() {
      this.set(process.uptime());
    },
  });
}

/** What there is of a call of a conversion webhook. */
interface ConversionFigures {
  readonly definition: string;
  readonly from: string;
  readonly to: string;
  readonly seconds: number;
  /** '' for a success. */
  readonly failure: string;
}

const CONVERSION_BUCKETS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60];

class ConversionMetrics {
  readonly #requests: Counter;
  readonly #durations: Histogram;
  readonly #definitions: Histogram;

  constructor(registers: PromRegistry[]) {
    const labelNames = ['result', 'failure_type'];
    this.#requests = new Counter({
      name: 'apiserver_conversion_webhook_request_total',
      help: 'Calls of conversion webhooks, by how they ended.',
      labelNames,
      registers,
    });
    this.#durations = new Histogram({
      name: 'apiserver_conversion_webhook_duration_seconds',
      help: 'Seconds of each call of a conversion webhook.',
      labelNames,
      buckets: CONVERSION_BUCKETS,
      registers,
    });
    this.#definitions = new Histogram({
      name: 'apiserver_crd_conversion_webhook_duration_seconds',
      help: 'Seconds of each call of a conversion webhook, by definition and versions.',
      labelNames: ['crd_name', 'from_version', 'to_version', 'succeeded'],
      buckets: Array.from({ length: 15 }, (_, index) => 0.001 * 2 ** index),
      registers,
    });
  }

  observe({ definition, from, to, seconds, failure }: ConversionFigures): void {
    const labels = { result: failure === '' ? 'success' : 'failure', failure_type: failure };
    this.#requests.inc(labels);
    this.#durations.observe(labels, seconds);
    const crd = { crd_name: definition, from_version: from, to_version: to, succeeded: String(failure === '') };
    this.#definitions.observe(crd, seconds);
  }
}
