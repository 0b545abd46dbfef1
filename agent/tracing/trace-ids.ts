// The ids that a span has in OpenTelemetry, and which traces are exported. Both follow from the span's number and a key of this
// run of the agent, so that nothing has to be remembered between a span's begin and its end, but for links to it.
//
// A trace is one outermost span with all that ran inside it, as the kubelet makes one of each syncPod; what caused it without
// containing it is a link.

import { createHash } from 'node:crypto';

/** `samplingRatePerMillion`: so many of a million traces. */
export const MILLION = 1_000_000;

/** How many spans are known by their outermost one. */
const MAX_ROOTS = 8192;

/** The outermost span around each of the newest spans: of a link only the number of the span is known. */
export class SpanRoots {
  readonly #roots = new Map<number, number>();

  add(span: number, root: number): void {
    this.#roots.set(span, root);
    const [oldest] = this.#roots.keys();
    if (this.#roots.size > MAX_ROOTS && oldest !== undefined) this.#roots.delete(oldest);
  }

  /** The span itself where it is inside none, or too old. */
  of(span: number): number {
    return this.#roots.get(span) ?? span;
  }
}

export class TraceIds {
  readonly #key: string;
  readonly #accepted: (traceId: string) => boolean;

  /** `key` is unique for this run of the agent; `accepted` is the sampler. */
  constructor(key: string, accepted: (traceId: string) => boolean) {
    this.#key = key;
    this.#accepted = accepted;
  }

  /** 16 bytes in hexadecimal, of the trace whose outermost span is `root`. */
  traceId(root: number): string {
    return this.#hash(`trace ${root}`, 32);
  }

  /** 8 bytes in hexadecimal. */
  spanId(id: number): string {
    return this.#hash(`span ${id}`, 16);
  }

  isSampled(root: number): boolean {
    return this.#accepted(this.traceId(root));
  }

  /** W3C Trace Context, level 1: "00-<trace>-<span>-<flags>"; the last bit of the flags is `sampled`. */
  traceparent(root: number, span: number): string {
    return `00-${this.traceId(root)}-${this.spanId(span)}-${this.isSampled(root) ? '01' : '00'}`;
  }

  #hash(text: string, digits: number): string {
    return createHash('sha256').update(`${this.#key} ${text}`).digest('hex').slice(0, digits);
  }
}
