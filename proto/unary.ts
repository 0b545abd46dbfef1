// Calls a unary gRPC method as a promise, with a deadline, as one trace span. Every CRI and CSI call goes through here.

import {
  type CallOptions,
  type Client,
  type ClientUnaryCall,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { plusMs, systemClock } from '../lib/clock.ts';
import { cutWithMark, MAX_OUTPUT_BYTES } from '../lib/cut.ts';
import { maskedJson } from '../lib/masked-json.ts';
import type { SpanAttributes, SpanKind, Tracer } from '../lib/trace.ts';

/**
 * A gRPC failure with the names people know instead of numbers. Its message is cut: a runtime or a driver quotes what
 * others print.
 */
export class GrpcError extends Error {
  override name = 'GrpcError';
  readonly method: string;
  /** The status name: "NOT_FOUND", "UNAVAILABLE", "DEADLINE_EXCEEDED". */
  readonly code: string;
  constructor(method: string, code: string, details: string, options?: ErrorOptions) {
    super(cutWithMark(details, MAX_OUTPUT_BYTES), options);
    this.method = method;
    this.code = code;
  }
}

const CODE_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(status).flatMap(([name, code]) => (typeof code === 'number' ? [[code, name] as const] : [])),
);

/** "NOT_FOUND" for 5; the number itself for a code that gRPC does not have. */
export function codeName(code: number): string {
  return CODE_NAMES.get(code) ?? String(code);
}

/** Overload resolution sees the last signature of a generated method: `(argument, callback)`. */
type Method<Request, Response> = (
  argument: Request,
  callback: (error: ServiceError | null, value?: Response) => void,
) => unknown;
type RequestOf<M> = M extends Method<infer Request, infer _Response> ? Request : never;
type ResponseOf<M> = M extends Method<infer _Request, infer Response> ? Response : never;

export interface UnaryOptions {
  /** Milliseconds until DEADLINE_EXCEEDED; undefined waits as long as the connection lives. */
  readonly deadlineMs?: number;
  /** Aborting it cancels the call, which then rejects with CANCELLED. */
  readonly signal?: AbortSignal;
  readonly attributes?: SpanAttributes;
}

export type UnaryCaller = <C extends Client, M extends keyof C & string>(
  client: C,
  method: M,
  request: RequestOf<C[M]>,
  options?: UnaryOptions,
) => Promise<ResponseOf<C[M]>>;

/**
 * grpc-js makes an Error for every call, to show the caller's stack should it fail: the dearest part of a call. Ours
 * (GrpcError) says what was called, and has a stack of its own.
 */
function withoutStackTrace<T>(body: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return body();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Relates the call to the open span where traces are exported: containerd's own spans are inside the agent's then. */
function metadataOf(tracer: Tracer): Metadata {
  const metadata = new Metadata();
  const traceparent = tracer.traceparent();
  if (traceparent !== undefined) metadata.set('traceparent', traceparent);
  return metadata;
}

/** The same for a client and a method that only the caller can relate to the types of request and response. */
export type UntypedUnaryCaller = (
  client: Client,
  method: string,
  request: object,
  options?: UnaryOptions,
) => Promise<unknown>;

/**
 * Makes the function that calls unary methods with spans of `kind`:
 * `call(client, 'Version', {}, { deadlineMs: 2000 })`. Rejects with GrpcError.
 */
export function unaryCaller(tracer: Tracer, kind: SpanKind): UnaryCaller {
  // The generated types say what each method of a client takes and resolves with.
  return untypedUnaryCaller(tracer, kind) as UnaryCaller;
}

/** `unaryCaller` without the relation between method, request and response. */
export function untypedUnaryCaller(tracer: Tracer, kind: SpanKind): UntypedUnaryCaller {
  return (client, method, request, options = {}) =>
    tracer.span(
      kind,
      method,
      options.attributes ?? {},
      (span) =>
        new Promise<unknown>((resolve, reject) => {
          span.detail(() => ({ request: maskedJson(request) }));
          const callOptions: CallOptions =
            options.deadlineMs === undefined ? {} : { deadline: plusMs(systemClock.now(), options.deadlineMs) };
          const invoke: unknown = Reflect.get(client, method);
          if (typeof invoke !== 'function') throw new TypeError(`the client has no method ${method}`);
          const cancel = (): void => call.cancel();
          const done = (error: ServiceError | null, value?: unknown): void => {
            options.signal?.removeEventListener('abort', cancel);
            if (error !== null) {
              reject(new GrpcError(method, codeName(error.code), error.details || error.message, { cause: error }));
            } else if (value === undefined) {
              reject(new GrpcError(method, 'INTERNAL', 'the call answered with no message'));
            } else {
              span.detail(() => ({ response: maskedJson(value) }));
              resolve(value);
            }
          };
          const call = withoutStackTrace(
            (): ClientUnaryCall => Reflect.apply(invoke, client, [request, metadataOf(tracer), callOptions, done]),
          );
          // One that was aborted before the call began gives no event any more.
          if (options.signal?.aborted === true) call.cancel();
          options.signal?.addEventListener('abort', cancel, { once: true });
        }),
    );
}
