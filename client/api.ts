// The client of an API server: verbs on paths, JSON in and out, failures as ApiError or UnreachableError. Every request
// is one trace span. Waits where the server says so (Retry-After); all other retrying is the caller's decision.

import type { IncomingMessage } from 'node:http';
import { type Clock, elapsedMs, type MonotonicMs, plusMs } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { maskedJson } from '../lib/masked-json.ts';
import type { OpenSpan, Tracer } from '../lib/trace.ts';
import { ApiError, UnreachableError } from './errors.ts';
import { parseObject } from './json.ts';
import type { ClusterAccess } from './kubeconfig.ts';
import { type LineStream, lines } from './lines.ts';
import { type Query, queryString, requestInfo } from './paths.ts';
import { TokenSource, Transport, type TransportRequest } from './transport.ts';
import type { ApiObject, Status } from './types.ts';

export interface ApiClientOptions {
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** Sent as User-Agent: "nodelet-agent/0.1". */
  readonly userAgent: string;
}

export interface RequestOptions {
  readonly query?: Query;
  /** Whole request, in ms; default 30 s. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** As PartialObjectMetadata: apiVersion, kind and metadata alone, in a list as in a single object. */
  readonly metadataOnly?: boolean;
  /** Of /api and /apis: everything below them in one response (an APIGroupDiscoveryList), from a server that has that form. */
  readonly aggregatedDiscovery?: boolean;
}

export interface DeleteOptions extends RequestOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground';
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

/** A list as the server sends it. */
export interface ListOf<T> {
  apiVersion: string;
  kind: string;
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
  items: T[];
}

export type WatchEvent<T = ApiObject> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: T }
  | { readonly type: 'ERROR'; readonly object: Status };

const PATCH_TYPES = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;
export type PatchType = keyof typeof PATCH_TYPES;

const DEFAULT_TIMEOUT_MS = 30_000;
/** client-go's limit on following Retry-After. */
const MAX_RETRY_AFTER = 10;

interface Call {
  readonly method: string;
  /** The span's verb where it is not the method: LIST, WATCH. */
  readonly verb?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly options: RequestOptions;
}

export class ApiClient {
  readonly access: ClusterAccess;
  readonly #options: ApiClientOptions;
  readonly #transport: Transport;
  readonly #tokens: TokenSource;

  constructor(access: ClusterAccess, options: ApiClientOptions) {
    this.access = access;
    this.#options = options;
    this.#transport = new Transport(access, options.clock);
    this.#tokens = new TokenSource(access, options.clock);
  }

  get<T>(path: string, query?: Query, options: RequestOptions = {}): Promise<T> {
    return this.#json<T>({ method: 'GET', path, options: { ...options, ...(query === undefined ? {} : { query }) } });
  }

  /** The items have their kind and apiVersion, which an API server leaves out of lists of built-in kinds. */
  async list<T>(path: string, query?: Query, options: RequestOptions = {}): Promise<ListOf<T>> {
    const list = await this.#json<ListOf<T>>({
      method: 'GET',
      verb: 'LIST',
      path,
      options: { ...options, ...(query === undefined ? {} : { query }) },
    });
    const { apiVersion } = list;
    const kind = list.kind.replace(/List$/, '');
    return { ...list, items: list.items.map((item) => Object.assign({ kind, apiVersion }, item)) };
  }

  /** POST: creates an object, or calls a subresource (binding, eviction, token). */
  create<T>(path: string, body: unknown, options: RequestOptions = {}): Promise<T> {
    return this.#json<T>({ method: 'POST', path, body, options });
  }

  /** PUT: replaces the object; its resourceVersion, when set, must be the stored one. */
  replace<T>(path: string, body: unknown, options: RequestOptions = {}): Promise<T> {
    return this.#json<T>({ method: 'PUT', path, body, options });
  }

  patch<T>(path: string, body: unknown, type: PatchType, options: RequestOptions = {}): Promise<T> {
    return this.#json<T>({ method: 'PATCH', path, body, contentType: PATCH_TYPES[type], options });
  }

  /** The object as the server left it (with a deletionTimestamp), or the Status that it is gone. */
  delete<T = unknown>(path: string, options: DeleteOptions = {}): Promise<T> {
    const { gracePeriodSeconds, propagationPolicy, preconditions, ...request } = options;
    const body = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
      ...(preconditions === undefined ? {} : { preconditions }),
    };
    return this.#json<T>({ method: 'DELETE', path, body, options: request });
  }

  /**
   * Events of a collection until the server ends the stream or `signal` aborts. An ERROR event is yielded like any
   * other. Throws ApiError when the watch is refused, UnreachableError when the connection fails or breaks.
   */
  watch<T = ApiObject>(
    path: string,
    query: Query,
    signal: AbortSignal,
    options: Pick<RequestOptions, 'metadataOnly'> = {},
  ): AsyncIterableIterator<WatchEvent<T>> {
    const watched = { ...options, query: { ...query, watch: true }, signal };
    const call: Call = { method: 'GET', verb: 'WATCH', path, options: watched };
    return events<T>(lines(this.#body(call)));
  }

  /** The raw bytes of a response, as they come: logs. Ends as `watch` does. */
  stream(path: string, query: Query, signal: AbortSignal): AsyncGenerator<Buffer> {
    return this.#body({ method: 'GET', path, accept: '*/*', options: { query, signal } });
  }

  /** Text of a path that does not speak JSON: /healthz, /readyz. */
  text(path: string, options: RequestOptions = {}): Promise<string> {
    return this.#call({ method: 'GET', path, accept: '*/*', options }, 'short', readText);
  }

  /** Closes all sockets; what is under way fails. */
  close(): void {
    this.#transport.close();
  }

  #json<T>(call: Call): Promise<T> {
    return this.#call(call, 'short', async (response, span) => {
      const text = await readText(response);
      const object = parseObject<T>(text);
      span.detail(() => ({ response: maskedJson(object) }));
      span.set({ resourceVersion: resourceVersionOf(object) });
      return object;
    });
  }

  async *#body(call: Call): AsyncGenerator<Buffer> {
    const response = await this.#call(call, 'stream', async (opened) => opened);
    const onAbort = (): void => {
      response.destroy();
    };
    call.options.signal?.addEventListener('abort', onAbort, { once: true });
    if (call.options.signal?.aborted) onAbort();
    try {
      for await (const chunk of response) yield chunk as Buffer;
    } catch (error) {
      if (call.options.signal?.aborted) return;
      throw new UnreachableError(
        `the connection to the API server ${this.access.server} broke: ${errorMessage(error)}`,
        'ECONNRESET',
        { cause: error },
      );
    } finally {
      call.options.signal?.removeEventListener('abort', onAbort);
      response.destroy();
    }
  }

  /** One request as one span, following Retry-After; `read` gets a successful response. */
  #call<T>(
    call: Call,
    pool: TransportRequest['pool'],
    read: (response: IncomingMessage, span: OpenSpan) => Promise<T>,
  ): Promise<T> {
    const info = requestInfo(call.path);
    const name = `${call.verb ?? call.method} ${info.resource}`;
    const attributes = { method: call.method, path: call.path, namespace: info.namespace, name: info.name };
    return this.#options.tracer.span('api', name, attributes, async (span) => {
      const deadline = plusMs(this.#options.clock.monotonic(), call.options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
      const { body } = call;
      if (body !== undefined) span.detail(() => ({ request: maskedJson(body) }));
      const response = await this.#follow(call, pool, name, deadline, span);
      if (pool === 'stream') {
        // A stream outlives its span; the port identifies its connection, in ss and for tests that watch its end.
        span.set({ localPort: response.socket.localPort });
        return await read(response, span);
      }
      const timer = this.#options.clock.after(elapsedMs(this.#options.clock.monotonic(), deadline), () => {
        response.destroy(new Error('the response did not end in time'));
      });
      try {
        return await read(response, span);
      } catch (error) {
        if (error instanceof ApiError) throw error;
        const why = error instanceof SyntaxError ? 'not JSON' : errorMessage(error);
        throw new UnreachableError(
          `${name}: the answer of ${this.access.server} cannot be read: ${why}`,
          'BAD_ANSWER',
          {
            cause: error,
          },
        );
      } finally {
        timer.cancel();
      }
    });
  }

  async #follow(
    call: Call,
    pool: TransportRequest['pool'],
    name: string,
    deadline: MonotonicMs,
    span: OpenSpan,
  ): Promise<IncomingMessage> {
    let freshToken = false;
    // Not `retry`: the server says how long to wait.
    for (let attempt = 0; ; attempt++) {
      const response = await this.#open(call, pool, deadline);
      const code = response.statusCode ?? 0;
      span.set({ code });
      if (code >= 200 && code < 300) return response;
      const error = await failure(response, name);
      if (code === 401 && !freshToken && this.#tokens.invalidate()) {
        freshToken = true;
        continue;
      }
      const waitMs = retryAfterMs(code, response.headers['retry-after']);
      if (waitMs === undefined || attempt >= MAX_RETRY_AFTER) throw error;
      if (plusMs(this.#options.clock.monotonic(), waitMs) >= deadline) throw error;
      await this.#options.clock.sleep(waitMs, call.options.signal);
    }
  }

  async #open(call: Call, pool: TransportRequest['pool'], deadline: MonotonicMs): Promise<IncomingMessage> {
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const traceparent = this.#options.tracer.traceparent();
    return await this.#transport.open({
      method: call.method,
      path: `${call.path}${queryString(call.options.query)}`,
      headers: {
        accept: call.accept ?? acceptOf(call),
        'user-agent': this.#options.userAgent,
        ...(body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
        ...(traceparent === undefined ? {} : { traceparent }),
        ...(await this.#tokens.headers()),
      },
      ...(body === undefined ? {} : { body }),
      pool,
      timeoutMs: Math.max(1, elapsedMs(this.#options.clock.monotonic(), deadline)),
      signal: call.options.signal,
    });
  }
}

const AGGREGATED_DISCOVERY = ['v2', 'v2beta1'].map(
  (version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
);

function acceptOf({ verb, options }: Call): string {
  if (options.aggregatedDiscovery === true) return [...AGGREGATED_DISCOVERY, 'application/json'].join(',');
  if (options.metadataOnly !== true) return 'application/json';
  const kind = verb === 'LIST' ? 'PartialObjectMetadataList' : 'PartialObjectMetadata';
  return `application/json;as=${kind};g=meta.k8s.io;v=v1`;
}

/** Of an object or a list; undefined for what has none. */
function resourceVersionOf(object: unknown): string | undefined {
  if (typeof object !== 'object' || object === null || !('metadata' in object)) return undefined;
  const { metadata } = object;
  if (typeof metadata !== 'object' || metadata === null || !('resourceVersion' in metadata)) return undefined;
  return typeof metadata.resourceVersion === 'string' ? metadata.resourceVersion : undefined;
}

/** The events on `stream`, line by line. No generator: like the lines, an event may be big and is not kept. */
function events<T>(stream: LineStream): AsyncIterableIterator<WatchEvent<T>> {
  const iterator: AsyncIterableIterator<WatchEvent<T>> = {
    async next() {
      const { done, value } = await stream.next();
      if (done === true) return { done, value: undefined };
      try {
        return { done: false, value: parseObject<WatchEvent<T>>(value) };
      } catch (error) {
        await stream.return();
        throw error;
      }
    },
    async return() {
      await stream.return();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}

/** The whole body. By its events and not by `for await`, which doubles what a small response costs. */
function readText(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    if (response.closed) {
      reject(response.errored ?? new Error('the connection was closed'));
      return;
    }
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      text += chunk;
    });
    response.on('end', () => resolve(text));
    response.on('error', reject);
    // Comes last, and alone when the response was cut off without an error.
    response.on('close', () => reject(new Error('the connection was closed')));
  });
}

/** The failure in a response; a body that is no Status (a proxy's page, plain text) becomes one. */
async function failure(response: IncomingMessage, name: string): Promise<ApiError> {
  const code = response.statusCode ?? 0;
  const text = await readText(response).catch((error: unknown) => errorMessage(error));
  let status: Status | undefined;
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null && 'kind' in body && body.kind === 'Status') status = body as Status;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const body = text.trim().split('\n', 1)[0] ?? '';
  status ??= {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    message: `${name}: the API server answered ${code}${body === '' ? '' : `: ${body.slice(0, 200)}`}`,
  };
  return new ApiError(status, code, name);
}

/** How long the server asks to wait before the same request, or undefined when it does not ask. */
function retryAfterMs(code: number, header: string | undefined): number | undefined {
  if (code !== 429 && code < 500) return undefined;
  const seconds = Number(header);
  return header === undefined || !Number.isFinite(seconds) || seconds < 0 ? undefined : seconds * 1000;
}
