// A timeline's evidence as OTLP/JSON (opentelemetry-proto's ExportTraceServiceRequest in its JSON encoding): ids in hexadecimal, times
// in nanoseconds as texts. Names and attributes are those of the kubelet's spans. Pure.

import { createHash } from 'node:crypto';
import { type KubeletSpan, kubeletSpan } from '../../lib/kubelet-span.ts';
import type { Span, SpanAttribute } from '../../lib/trace.ts';
import type { Causes } from './causes.ts';
import { attributeText } from './lanes.ts';

interface Value {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  /** 64-bit integers are texts in JSON. */
  readonly intValue?: string;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values: readonly Value[] };
}

interface KeyValue {
  readonly key: string;
  readonly value: Value;
}

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** SPAN_KIND_INTERNAL 1, SPAN_KIND_CLIENT 3. */
  readonly kind: 1 | 3;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly KeyValue[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** STATUS_CODE_OK is for the application to say; an error is 2. */
  readonly status: { readonly code: 0 | 2; readonly message?: string };
}

export interface OtlpFile {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly scope: { readonly name: string }; readonly spans: readonly OtlpSpan[] }[];
  }[];
}

const hash = (text: string, bytes: number): string =>
  createHash('sha256')
    .update(text)
    .digest('hex')
    .slice(0, bytes * 2);

/** A trace is one pod's life; what belongs to no pod is a trace together. */
const traceId = (source: string, { pod }: Span): string => hash(`${source} ${pod?.uid ?? ''}`, 16);

const spanId = (source: string, id: number): string => hash(`${source} ${id}`, 8);

/** Nanoseconds; a double has microseconds at this size. */
function nanos(epochMs: number): string {
  const whole = Math.floor(epochMs);
  return String(BigInt(whole) * 1_000_000n + BigInt(Math.round((epochMs - whole) * 1_000_000)));
}

function otlpValue(value: SpanAttribute): Value | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((each) => ({ stringValue: each })) } };
}

function attributesOf({ attributes }: KubeletSpan): KeyValue[] {
  return attributes.flatMap(([key, attribute]) => {
    const value = otlpValue(attribute);
    return value === undefined || attributeText(attribute) === '' ? [] : [{ key, value }];
  });
}

export function toOtlp(spans: readonly Span[], { parents, links }: Causes, source: string): OtlpFile {
  const byId = new Map(spans.map((span) => [span.id, span]));
  const converted = spans.map((span): OtlpSpan => {
    const { id, start, durationMs, outcome, error } = span;
    const own = traceId(source, span);
    const parent = byId.get(parents.get(id) ?? -1);
    // A parent of another trace is a link: OTLP knows parents only within one.
    const foreign = parent !== undefined && traceId(source, parent) !== own;
    const named = kubeletSpan(span);
    const linked = [...(links.get(id) ?? []), ...(foreign ? [parent.id] : [])].flatMap((each) => byId.get(each) ?? []);
    return {
      traceId: own,
      spanId: spanId(source, id),
      ...(parent === undefined || foreign ? {} : { parentSpanId: spanId(source, parent.id) }),
      name: named.name,
      kind: named.isCall ? 3 : 1,
      startTimeUnixNano: nanos(start),
      endTimeUnixNano: nanos(start + durationMs),
      attributes: attributesOf(named),
      links: linked.map((each) => ({ traceId: traceId(source, each), spanId: spanId(source, each.id) })),
      status: outcome === 'error' ? { code: 2, message: error ?? '' } : { code: 0 },
    };
  });
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'kubelet' } }] };
  return { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'nodelet' }, spans: converted }] }] };
}
