// Sends the agent's spans to an OpenTelemetry collector (OTLP over gRPC), as the kubelet does with KubeletConfiguration's
// `tracing`: by OpenTelemetry's own packages, which only this file imports. It never makes the agent wait: what a collector does
// not take in time is dropped.

import { type HrTime, type Link, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  type ReadableSpan,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import { resolvesWithin } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { kubeletSpan } from '../../lib/kubelet-span.ts';
import type { Log } from '../../lib/log.ts';
import type { Span, Tracer } from '../../lib/trace.ts';
import { MILLION, SpanRoots, TraceIds } from './trace-ids.ts';

export interface SpanExporterOptions {
  /** "http://host:port" without TLS, or "unix:///path". */
  readonly url: string;
  /** So many of a million traces are exported. */
  readonly samplingRatePerMillion: number;
  readonly nodeName: string;
  /** Of this run of the agent: two runs have the same numbers of spans. */
  readonly key: string;
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly log: Log;
}

export interface SpanExporter {
  /** Sends what is left, for a second at most. */
  close(): Promise<void>;
}

/** At the end of the agent, ms: a collector that is away must not hold it up. */
const CLOSE_LIMIT_MS = 1_000;

/** Seconds and nanoseconds. */
function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}

/** A finished span as the SDK has it; `roots`: for its links. Pure. */
export function readableSpan(span: Span, ids: TraceIds, resource: Resource, roots: SpanRoots): ReadableSpan {
  const { name, isCall, attributes } = kubeletSpan(span);
  const root = span.root ?? span.parent ?? span.id;
  const context = (id: number, outermost: number): Link['context'] => ({
    traceId: ids.traceId(outermost),
    spanId: ids.spanId(id),
    traceFlags: ids.isSampled(outermost) ? TraceFlags.SAMPLED : TraceFlags.NONE,
  });
  const own = context(span.id, root);
  return {
    name,
    kind: isCall ? SpanKind.CLIENT : SpanKind.INTERNAL,
    spanContext: () => own,
    ...(span.parent === undefined ? {} : { parentSpanContext: context(span.parent, root) }),
    startTime: hrTime(span.start),
    endTime: hrTime(span.start + span.durationMs),
    duration: hrTime(span.durationMs),
    status:
      span.outcome === 'error'
        ? { code: SpanStatusCode.ERROR, message: span.error ?? '' }
        : { code: SpanStatusCode.UNSET },
    attributes: Object.fromEntries(
      attributes.map(([key, value]) => [key, typeof value === 'object' ? [...value] : value]),
    ),
    links: (span.links ?? []).map((id) => ({ context: context(id, roots.of(id)) })),
    events: [],
    ended: true,
    resource,
    instrumentationScope: { name: 'nodelet' },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** From now on every span of a sampled trace is exported, and calls carry its `traceparent`. */
export function startSpanExporter(options: SpanExporterOptions): SpanExporter {
  const { url, samplingRatePerMillion, tracer, clock, log } = options;
  const sampler = new TraceIdRatioBasedSampler(samplingRatePerMillion / MILLION);
  const ids = new TraceIds(
    options.key,
    (traceId) => sampler.shouldSample(undefined, traceId).decision === SamplingDecision.RECORD_AND_SAMPLED,
  );
  const resource = resourceFromAttributes({
    'service.name': 'kubelet',
    'service.instance.id': options.nodeName,
    'k8s.node.name': options.nodeName,
  });
  setGlobalErrorHandler((error) =>
    log('warn', 'Spans were not exported', { endpoint: url, error: errorMessage(error) }),
  );
  const processor = new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url }) });
  const roots = new SpanRoots();
  const unsubscribe = tracer.subscribe((span) => {
    if (!ids.isSampled(span.root ?? span.parent ?? span.id)) return;
    processor.onEnd(readableSpan(span, ids, resource, roots));
  });
  tracer.propagateWith({
    begins: (span, root) => roots.add(span, root),
    traceparent: (root, span) => ids.traceparent(root, span),
  });
  return {
    async close() {
      unsubscribe();
      const flushed = processor.shutdown().catch((error: unknown) => {
        log('warn', 'Spans were not exported', { endpoint: url, error: errorMessage(error) });
      });
      await resolvesWithin(clock, CLOSE_LIMIT_MS, flushed);
    },
  };
}
