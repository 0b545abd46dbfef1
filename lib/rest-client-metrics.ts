// Requests to the API server as metrics with client-go's names, counted from their spans.

import { Counter, Histogram, type Metric, type MetricsText } from './metrics.ts';
import type { Span } from './trace.ts';

/** client-go's. Seconds. */
const REQUEST_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

export class RestClientMetrics implements Metric {
  readonly #host: string;
  readonly #requests = new Counter(
    'rest_client_requests_total',
    '[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.',
  );
  readonly #requestSeconds = new Histogram(
    'rest_client_request_duration_seconds',
    '[ALPHA] Request latency in seconds. Broken down by verb, and host.',
    REQUEST_BUCKETS,
  );

  /** `host`: the API server's host and port. */
  constructor(host: string) {
    this.#host = host;
  }

  /** A call has ended. */
  readonly take = ({ kind, durationMs, attributes }: Span): void => {
    const { method, code } = attributes;
    // Events of pod sources are of this kind and no requests.
    if (kind !== 'api' || typeof method !== 'string') return;
    const host = this.#host;
    this.#requests.inc({ code: typeof code === 'number' && code > 0 ? String(code) : '<error>', host, method });
    this.#requestSeconds.observe(durationMs / 1000, { host, verb: method });
  };

  show(page: MetricsText): void {
    this.#requests.show(page);
    this.#requestSeconds.show(page);
  }
}
