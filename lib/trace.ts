// Tracing: every outward call (CRI, CNI, CSI, mount, netlink, netfilter, probe, DNS, API) is one span. The pod and the cause travel with
// the asynchronous call chain, so callers name them once. Spans are plain data; a consumer registers a sink.

import { AsyncLocalStorage } from 'node:async_hooks';
import { type EpochMs, elapsedMs, epochMs } from './clock.ts';
import { cutWithMark, MAX_OUTPUT_BYTES } from './cut.ts';
import { errorMessage } from './errors.ts';

export type SpanKind =
  | 'cri'
  | 'docker'
  | 'cni'
  | 'csi'
  | 'mount'
  /** losetup, blkid, mkfs, fallocate and the like. */
  | 'disk'
  | 'volume'
  | 'netlink'
  /** nft, iptables-save, iptables-restore. */
  | 'netfilter'
  | 'probe'
  /** A query to an upstream server. */
  | 'dns'
  | 'api'
  | 'cgroup'
  | 'hook'
  | 'credentials'
  | 'systemd'
  | 'worker';

export type SpanAttribute = string | number | boolean | readonly string[] | undefined;
export type SpanAttributes = Readonly<Record<string, SpanAttribute>>;

/** Texts by what they are; long ones are cut. */
export type SpanDetail = Readonly<Record<string, string>>;

export interface TracePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** One finished call. This object, as one line of JSON, is also the format on the trace socket. */
export interface Span {
  readonly id: number;
  /** The span this one ran inside, if any. */
  readonly parent?: number;
  /** The outermost span that this one ran inside, where that is not `parent`. */
  readonly root?: number;
  /** The spans that caused this one without containing it (OpenTelemetry's links): a watch event, an earlier round. */
  readonly links?: readonly number[];
  readonly kind: SpanKind;
  /** What was called, in the field's words: "RunPodSandbox", "ADD bridge", "PATCH pods/status". */
  readonly name: string;
  readonly pod?: TracePod;
  /** Why: "pod added", "container exited", "liveness probe failed". */
  readonly cause?: string;
  /** Epoch ms, with fraction. */
  readonly start: EpochMs;
  readonly durationMs: number;
  readonly outcome: 'ok' | 'error';
  readonly error?: string;
  readonly attributes: SpanAttributes;
  /** What was sent and what came back (`request`, `response`, `stdin`, `stdout`), for those who ask for it. */
  readonly detail?: SpanDetail;
}

/** A call that has not ended: what its span will be, as far as it is known. */
export type OpenCall = Omit<Span, 'durationMs' | 'outcome' | 'error' | 'detail' | 'links' | 'cause'>;

export interface TraceContext {
  readonly pod?: TracePod | undefined;
  readonly cause?: string | undefined;
}

/** Lets the body of a span add attributes that the call returns (an id, an address). */
export interface OpenSpan {
  readonly id: number;
  set(attributes: SpanAttributes): void;
  /** Adds what was sent or received; `make` is called only where a subscriber asks for it. */
  detail(make: () => SpanDetail): void;
}

type Sink = (span: Span) => void;

/** `span`: the one that is open, inside `root`. Without one, `links` are the causes of the next. */
interface Scope extends TraceContext {
  readonly span?: number | undefined;
  readonly root?: number | undefined;
  readonly links?: readonly number[] | undefined;
}

/** How spans are carried to other processes. */
export interface Propagation {
  /** A span begins inside another one; `root` is the outermost. */
  begins(span: number, root: number): void;
  /** The W3C `traceparent` by which a server relates a call to the span that it is made in. */
  traceparent(root: number, span: number): string;
}

const NO_LINKS: readonly number[] = [];

/** With fraction; it does not jump when the wall clock is set. */
function preciseNow(): EpochMs {
  return epochMs(performance.timeOrigin + performance.now());
}

/** What a span that begins in a scope has from there. */
function placeIn(scope: Scope = {}): Pick<Span, 'parent' | 'root' | 'links' | 'pod' | 'cause'> {
  const { span, root, links = NO_LINKS, pod, cause } = scope;
  return {
    ...(span === undefined ? {} : { parent: span }),
    ...(root === undefined ? {} : { root }),
    ...(span !== undefined || links.length === 0 ? {} : { links }),
    ...(pod === undefined ? {} : { pod }),
    ...(cause === undefined ? {} : { cause }),
  };
}

/** A call from its beginning to its end: one object is what its body gets, what openCalls lists and what its span is made of. */
class CallRecord implements OpenSpan {
  readonly id: number;
  readonly #kind: SpanKind;
  readonly #name: string;
  readonly #scope: Scope | undefined;
  readonly #start: EpochMs;
  /** How many subscribers want details. */
  readonly #wanted: { count: number };
  #attributes: SpanAttributes;
  #detail: SpanDetail | undefined;

  constructor(
    id: number,
    kind: SpanKind,
    name: string,
    scope: Scope | undefined,
    start: EpochMs,
    attributes: SpanAttributes,
    wanted: { count: number },
  ) {
    this.id = id;
    this.#kind = kind;
    this.#name = name;
    this.#scope = scope;
    this.#start = start;
    this.#attributes = attributes;
    this.#wanted = wanted;
  }

  set(attributes: SpanAttributes): void {
    this.#attributes = { ...this.#attributes, ...attributes };
  }

  detail(make: () => SpanDetail): void {
    if (this.#wanted.count > 0) this.#detail = { ...this.#detail, ...make() };
  }

  /** As it is while it has not ended. */
  soFar(): OpenCall {
    const { parent, root, pod } = placeIn(this.#scope);
    return {
      id: this.id,
      ...(parent === undefined ? {} : { parent }),
      ...(root === undefined ? {} : { root }),
      kind: this.#kind,
      name: this.#name,
      ...(pod === undefined ? {} : { pod }),
      start: this.#start,
      attributes: this.#attributes,
    };
  }

  /** `error`: undefined where it has succeeded. */
  ended(at: EpochMs, error: unknown): Span {
    // What is always there comes first: V8 defines each field that follows a spread by a call of its runtime.
    return {
      id: this.id,
      kind: this.#kind,
      name: this.#name,
      start: this.#start,
      durationMs: elapsedMs(this.#start, at),
      outcome: error === undefined ? 'ok' : 'error',
      attributes: this.#attributes,
      ...placeIn(this.#scope),
      ...(error === undefined ? {} : { error: cutWithMark(errorMessage(error), MAX_OUTPUT_BYTES) }),
      ...(this.#detail === undefined ? {} : { detail: this.#detail }),
    };
  }
}

export class Tracer {
  readonly #time: () => EpochMs;
  readonly #storage = new AsyncLocalStorage<Scope>();
  readonly #sinks = new Set<Sink>();
  /** Calls that have not ended. */
  readonly #open = new Set<CallRecord>();
  #propagation: Propagation | undefined;
  readonly #detailed = { count: 0 };
  #lastId = 0;

  /** `time` only grows; the machine's own by default. */
  constructor(time: () => EpochMs = preciseNow) {
    this.#time = time;
  }

  /** Registers a sink and returns the function that removes it. A sink must not throw. */
  subscribe(sink: Sink): () => void {
    this.#sinks.add(sink);
    return () => this.#sinks.delete(sink);
  }

  /** The calls that are under way now, oldest first. */
  openCalls(): readonly OpenCall[] {
    return [...this.#open].map((call) => call.soFar());
  }

  /** From now on spans have their details, until the returned function is called. */
  wantDetail(): () => void {
    this.#detailed.count++;
    let wanted = true;
    return () => {
      if (wanted) this.#detailed.count--;
      wanted = false;
    };
  }

  /** From now on, calls carry the span that they are made in. */
  propagateWith(propagation: Propagation): void {
    this.#propagation = propagation;
  }

  /** What a call that is made now carries as its `traceparent`, if anything. */
  traceparent(): string | undefined {
    if (this.#propagation === undefined) return undefined;
    const scope = this.#storage.getStore();
    return scope?.span === undefined ? undefined : this.#propagation.traceparent(scope.root ?? scope.span, scope.span);
  }

  /** The pod and cause of the call chain that is running. */
  context(): TraceContext {
    return this.#storage.getStore() ?? {};
  }

  /** Runs `body` with `context` laid over the one in force. */
  within<T>(context: TraceContext, body: () => T): T {
    return this.#storage.run({ ...this.#storage.getStore(), ...context }, body);
  }

  /** What the call chain that is running would be the cause of: the open span, or else what caused this chain. */
  origin(): readonly number[] {
    const scope = this.#storage.getStore();
    return scope?.span === undefined ? (scope?.links ?? NO_LINKS) : [scope.span];
  }

  /** Runs `body` with `context` as a chain of its own: its spans are inside none, and `links` caused them. */
  causedBy<T>(links: readonly number[], context: TraceContext, body: () => T): T {
    return this.#storage.run({ pod: context.pod, cause: context.cause, links }, body);
  }

  /** Records something that happened in one moment, as a span without a duration. Returns its id. */
  event(kind: SpanKind, name: string, context: TraceContext, attributes: SpanAttributes): number {
    const id = ++this.#lastId;
    if (this.#sinks.size === 0) return id;
    const start = this.#time();
    const links = this.origin();
    const place = placeIn({ pod: context.pod, cause: context.cause, links });
    const span: Span = { id, kind, name, start, durationMs: 0, outcome: 'ok', attributes, ...place };
    for (const sink of this.#sinks) sink(span);
    return id;
  }

  /** Runs `body` as one span. What it throws is recorded and thrown on. */
  async span<T>(
    kind: SpanKind,
    name: string,
    attributes: SpanAttributes,
    body: (span: OpenSpan) => Promise<T> | T,
  ): Promise<T> {
    const context = this.#storage.getStore();
    const id = ++this.#lastId;
    const call = new CallRecord(id, kind, name, context, this.#time(), attributes, this.#detailed);
    this.#open.add(call);
    try {
      const root = context?.root ?? context?.span;
      if (root !== undefined) this.#propagation?.begins(id, root);
      const inside: Scope = { pod: context?.pod, cause: context?.cause, span: id, root };
      const result = await this.#storage.run(inside, () => body(call));
      this.#finish(call, undefined);
      return result;
    } catch (error) {
      this.#finish(call, error ?? new Error('unknown error'));
      throw error;
    }
  }

  #finish(call: CallRecord, error: unknown): void {
    // A sink that throws would end a call twice.
    if (!this.#open.delete(call) || this.#sinks.size === 0) return;
    const span = call.ended(this.#time(), error);
    for (const sink of this.#sinks) sink(span);
  }
}

/** What a client of the trace socket sends, as a line, to get spans with their details. */
export const DETAIL_REQUEST = 'detail';

/** What a client sends to get the calls that are under way, too: lines without an outcome, after those of the spans. */
export const OPEN_REQUEST = 'open';

/** Keeps the newest spans for clients that connect later. */
export class SpanRing {
  readonly #spans: Span[] = [];
  readonly #capacity: number;
  constructor(capacity: number) {
    this.#capacity = capacity;
  }
  readonly push = (span: Span): void => {
    this.#spans.push(span);
    // Trimming in blocks keeps the cost per span constant.
    if (this.#spans.length > this.#capacity * 1.25) this.#spans.splice(0, this.#spans.length - this.#capacity);
  };
  list(): readonly Span[] {
    return this.#spans.slice(-this.#capacity);
  }
}
