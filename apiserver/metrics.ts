// What /metrics shows of requests, with kube-apiserver's names and labels, so that its dashboards work. Figures only: where they
// are taken is server.ts's, http/handler.ts's and the stores'. Of the process: process-metrics.ts, of what is stored: object-metrics.ts.

import { Counter, Gauge, Histogram, Registry as PromRegistry } from 'prom-client';
import { getOwn } from '../lib/own-property.ts';
import { CountedHistogram } from './counted-histogram.ts';
import { processMetrics } from './process-metrics.ts';

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
const RESOURCE = ['group', 'version', 'resource'] as const;
const MUTATING = new Set(['POST', 'PUT', 'PATCH', 'DELETE', 'DELETECOLLECTION']);

const SLI = REQUEST.filter((label) => label !== 'dry_run');
const SLI_BUCKETS = REQUEST_BUCKETS.filter((seconds) => seconds >= 0.05);
const SIZES = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/** Upstream measures what it sends of reads alone. */
const READS = new Set(['GET', 'LIST']);
const DAY_S = 86_400;
const LIFE_BUCKETS = [0, 0.5 / 24, 1 / 24, 2 / 24, 6 / 24, 12 / 24, 1, 2, 4, 7, 30, 90, 180, 360].map(
  (days) => days * DAY_S,
);

/** How a request was served. */
export interface ServedRequest {
  readonly code: number;
  /** From its head to the end of its response. */
  readonly seconds: number;
  /** Of these, those in a queue of priority and fairness. */
  readonly waited?: number;
  /** Of the response's body, where that was whole. */
  readonly bytes?: number;
  /** The server ended it to protect itself: its time was over, or there was no place for it. */
  readonly terminated?: boolean;
}

/** "create" is POST, as upstream. Pure. */
export function verbLabel(verb: string): string {
  return getOwn(VERBS, verb) ?? verb.toUpperCase();
}

export class Metrics {
  readonly #registry = new PromRegistry();
  readonly #requests = this.#counter(
    'apiserver_request_total',
    'Requests that were served, by what they were for and how they ended.',
    [...REQUEST, 'code'],
  );
  readonly #durations = this.#histogram(
    'apiserver_request_duration_seconds',
    'Seconds from the head of a request to the end of its response.',
    REQUEST_BUCKETS,
    REQUEST,
  );
  readonly #slis = this.#histogram(
    'apiserver_request_sli_duration_seconds',
    'Seconds from the head of a request to the end of its response, without those in a queue.',
    SLI_BUCKETS,
    SLI,
  );
  readonly #sizes = this.#histogram(
    'apiserver_response_sizes',
    'Bytes of the bodies of responses to reads.',
    SIZES,
    SLI,
  );
  readonly #inFlight = this.#gauge(
    'apiserver_current_inflight_requests',
    'Requests that are being served now, by kind: mutating or readOnly.',
    ['request_kind'],
  );
  readonly #longRunning = this.#gauge(
    'apiserver_longrunning_requests',
    'Watches, logs and streams that are open now.',
    SLI,
  );
  readonly #terminations = this.#counter(
    'apiserver_request_terminations_total',
    'Requests that the server ended to protect itself.',
    [...SLI, 'code'],
  );
  readonly #deprecated = this.#gauge(
    'apiserver_requested_deprecated_apis',
    '1 for each deprecated resource that was requested since the server began.',
    ['group', 'version', 'resource', 'subresource', 'removed_release'],
  );
  readonly #watchEvents = this.#counter('apiserver_watch_events_total', 'Events that were sent to watches.', RESOURCE);
  readonly #watchSizes = new CountedHistogram({
    name: 'apiserver_watch_events_sizes',
    help: 'Bytes of the events that were sent to watches.',
    labelNames: RESOURCE,
    buckets: Array.from({ length: 8 }, (_, index) => 1024 * 2 ** index),
    registers: this.registers,
  });
  readonly #bodies = new CountedHistogram({
    name: 'apiserver_request_body_size_bytes',
    help: 'Bytes of the bodies of requests.',
    labelNames: ['group', 'resource', 'verb'],
    buckets: Array.from({ length: 31 }, (_, index) => 50_000 + 100_000 * index),
    registers: this.registers,
  });
  readonly #etcd = this.#histogram(
    'etcd_request_duration_seconds',
    'Seconds of each call of etcd, or of each write to the file, by operation.',
    REQUEST_BUCKETS,
    ['operation', 'group', 'resource'],
  );
  readonly #authentications = this.#counter('authentication_attempts', 'Requests, by what their credentials were.', [
    'result',
  ]);
  readonly #authorizations = this.#counter('authorization_attempts_total', 'Decisions about requests.', ['result']);
  readonly #handshakes = this.#counter(
    'apiserver_tls_handshake_errors_total',
    'Connections that failed before any request.',
  );
  readonly #auditEvents = this.#counter('apiserver_audit_event_total', 'Audit events, by the stages of requests.');
  readonly #certificates = this.#histogram(
    'apiserver_client_certificate_expiration_seconds',
    'Seconds that the certificate of a request is valid yet.',
    LIFE_BUCKETS,
  );
  readonly #conversions = new ConversionMetrics(this.registers);

  constructor() {
    for (const request_kind of ['mutating', 'readOnly']) this.#inFlight.set({ request_kind }, 0);
    processMetrics(this.registers);
  }

  #counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    return new Counter({ name, help, labelNames, registers: this.registers });
  }

  #gauge(name: string, help: string, labelNames: readonly string[]): Gauge {
    return new Gauge({ name, help, labelNames, registers: this.registers });
  }

  #histogram(name: string, help: string, buckets: number[], labelNames: readonly string[] = []): Histogram {
    return new Histogram({ name, help, buckets, labelNames, registers: this.registers });
  }

  /** For what registers figures of its own. */
  get registers(): PromRegistry[] {
    return [this.#registry];
  }

  /** A request begins; the function that is returned is called once, when its response is over. */
  begin(request: RequestLabels, longRunning: boolean): (served: ServedRequest) => void {
    const { dry_run: _dryRun, ...rest } = request;
    const labels = { ...request, component: 'apiserver' };
    const place = { ...rest, component: 'apiserver' };
    const kind = { request_kind: MUTATING.has(request.verb) ? 'mutating' : 'readOnly' };
    const [gauge, gaugeLabels] = longRunning ? [this.#longRunning, place] : [this.#inFlight, kind];
    gauge.inc(gaugeLabels);
    return ({ code, seconds, waited = 0, bytes, terminated = false }) => {
      gauge.dec(gaugeLabels);
      this.#requests.inc({ ...labels, code });
      // Upstream counts how long a watch is open, too.
      this.#durations.observe(labels, seconds);
      this.#slis.observe(place, seconds - waited);
      if (bytes !== undefined && READS.has(request.verb)) this.#sizes.observe(place, bytes);
      if (terminated) this.#terminations.inc({ ...place, code });
    };
  }

  /** Counts how the credentials of a request were received: `authenticate` returns nothing for a request without any. */
  authentication<T>(authenticate: () => T): T {
    try {
      const caller = authenticate();
      if (caller !== undefined) this.#authentications.inc({ result: 'success' });
      return caller;
    } catch (error) {
      this.#authentications.inc({ result: 'failure' });
      throw error;
    }
  }

  authorization(allowed: boolean): void {
    this.#authorizations.inc({ result: allowed ? 'allowed' : 'denied' });
  }

  /** A request came with a client certificate that is valid for so long yet. */
  certificate(secondsLeft: number): void {
    this.#certificates.observe(secondsLeft);
  }

  deprecated(group: string, version: string, resource: string): void {
    this.#deprecated.set({ group, version, resource, subresource: '', removed_release: '' }, 1);
  }

  handshakeFailed(): void {
    this.#handshakes.inc();
  }

  auditEvent(): void {
    this.#auditEvents.inc();
  }

  /** For the events of a watch: called with the bytes of each. */
  watchEvents(group: string, version: string, resource: string): (bytes: number) => void {
    const labels = { group, version, resource };
    const sizes = this.#watchSizes.place(labels);
    return (bytes) => {
      this.#watchEvents.inc(labels);
      sizes.observe(bytes);
    };
  }

  requestBody(group: string, resource: string, verb: string, bytes: number): void {
    this.#bodies.place({ group, resource, verb }).observe(bytes);
  }

  /** `resource`: "<group>/<plural>" where the call is for one. */
  storeRequest(operation: string, seconds: number, resource = '/'): void {
    const slash = resource.indexOf('/');
    const place = { group: resource.slice(0, slash), resource: resource.slice(slash + 1) };
    this.#etcd.observe({ operation, ...place }, seconds);
  }

  conversion(figures: ConversionFigures): void {
    this.#conversions.observe(figures);
  }

  /** The text of /metrics, and its type. */
  async show(): Promise<{ readonly contentType: string; readonly body: string }> {
    return { contentType: this.#registry.contentType, body: await this.#registry.metrics() };
  }
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
