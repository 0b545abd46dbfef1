// An OpenTelemetry collector for tests: OTLP over gRPC in, a list of spans out.

import { Server, ServerCredentials, type UntypedHandleCall } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

interface Value {
  readonly string_value?: string;
  readonly bool_value?: boolean;
  readonly int_value?: number;
  readonly double_value?: number;
  readonly array_value?: { readonly values: readonly Value[] };
}

interface KeyValue {
  readonly key: string;
  readonly value: Value;
}

interface WireSpan {
  readonly trace_id: Buffer;
  readonly span_id: Buffer;
  readonly parent_span_id: Buffer;
  readonly name: string;
  readonly kind: string;
  readonly start_time_unix_nano: number;
  readonly end_time_unix_nano: number;
  readonly attributes: readonly KeyValue[];
  readonly links: readonly { readonly trace_id: Buffer; readonly span_id: Buffer }[];
  readonly status: { readonly message: string; readonly code: number } | null;
}

interface ExportRequest {
  readonly resource_spans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scope_spans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

export type CollectedValue = string | number | boolean | readonly CollectedValue[] | undefined;

export interface CollectedSpan {
  readonly resource: Readonly<Record<string, CollectedValue>>;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty without one. */
  readonly parentSpanId: string;
  readonly name: string;
  /** "SPAN_KIND_CLIENT" */
  readonly kind: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, CollectedValue>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly error: string | undefined;
}

export interface Collector {
  /** "127.0.0.1:41235" */
  readonly endpoint: string;
  readonly spans: CollectedSpan[];
  close(): void;
}

const SERVICE = 'opentelemetry.proto.collector.trace.v1.TraceService';

function plainValue(value: Value): CollectedValue {
  return (
    value.string_value ??
    value.bool_value ??
    value.int_value ??
    value.double_value ??
    value.array_value?.values.map(plainValue)
  );
}

const attributesOf = (list: readonly KeyValue[]): Readonly<Record<string, CollectedValue>> =>
  Object.fromEntries(list.map(({ key, value }) => [key, plainValue(value)]));

function collected({ resource_spans }: ExportRequest): CollectedSpan[] {
  return resource_spans.flatMap(({ resource, scope_spans }) =>
    scope_spans.flatMap(({ spans }) =>
      spans.map((span) => ({
        resource: attributesOf(resource.attributes),
        traceId: span.trace_id.toString('hex'),
        spanId: span.span_id.toString('hex'),
        parentSpanId: span.parent_span_id.toString('hex'),
        name: span.name,
        kind: span.kind,
        startMs: span.start_time_unix_nano / 1e6,
        endMs: span.end_time_unix_nano / 1e6,
        attributes: attributesOf(span.attributes),
        links: span.links.map((link) => ({
          traceId: link.trace_id.toString('hex'),
          spanId: link.span_id.toString('hex'),
        })),
        error: span.status?.code === 2 ? span.status.message : undefined,
      })),
    ),
  );
}

/** Listens on a free port of loopback, or on `address` ("unix:/path", "127.0.0.1:4317"). */
export async function startCollector(address = '127.0.0.1:0'): Promise<Collector> {
  const loaded = loadSync('trace.proto', {
    keepCase: true,
    longs: Number,
    enums: String,
    defaults: true,
    arrays: true,
    includeDirs: [import.meta.dirname],
  });
  const definition = loaded[SERVICE];
  if (definition === undefined || 'format' in definition) throw new Error(`trace.proto has no service ${SERVICE}`);
  const spans: CollectedSpan[] = [];
  const server = new Server();
  const Export: UntypedHandleCall = (
    call: { readonly request: ExportRequest },
    done: (error: null, response: object) => void,
  ) => {
    spans.push(...collected(call.request));
    done(null, {});
  };
  server.addService(definition, { Export });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return { endpoint: `127.0.0.1:${port}`, spans, close: () => server.forceShutdown() };
}
