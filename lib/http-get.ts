// One HTTP GET as a kubelet sends it to a pod: no certificate is verified, no connection is kept, redirects are followed
// on the same host only, and at most `maxBodyBytes` of the body are read. Status codes are the caller's business.

import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, isIP } from 'node:net';
import type { Clock } from './clock.ts';
import { goDialError, goQuote, goTransportError, joinHostPort } from './go-words.ts';
import { request as httpRequest } from './node-http.ts';

export interface HttpGetRequest {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** Path and query as they go on the wire. */
  readonly target: string;
  readonly headers: ReadonlyMap<string, readonly string[]>;
  /** The Host header, where it is to differ from host and port. */
  readonly hostHeader?: string;
}

export interface HttpGetOptions {
  readonly clock: Pick<Clock, 'after'>;
  /** For the whole exchange, redirects and body included; undefined: until the signal aborts. */
  readonly timeoutMs?: number;
  /** A longer body is cut, and the rest is not read. */
  readonly maxBodyBytes: number;
  readonly signal?: AbortSignal;
}

export interface HttpGetResponse {
  readonly status: number;
  readonly body: Buffer;
}

/** The exchange failed; the message is the one of Go's HTTP client: `Get "http://10.0.0.1:80/": dial tcp …`. */
export class HttpGetError extends Error {
  override name = 'HttpGetError';
  /** The response had begun; reading its body failed. */
  readonly duringBody: boolean;
  /** The server responded to an HTTPS request in plain HTTP. */
  readonly plainAnswer: boolean;
  constructor(message: string, duringBody: boolean, options?: ErrorOptions) {
    super(message, options);
    this.duringBody = duringBody;
    this.plainAnswer = message.endsWith('http: server gave HTTP response to HTTPS client');
  }
}

const MAX_REDIRECTS = 10;
const MAX_HEADER_BYTES = 1024 * 1024;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** What a request is destroyed with. One for all: a new one records its stack. */
const ENDED_EARLY = new Error('the exchange was ended');
const TIMED_OUT = 'Client.Timeout exceeded while awaiting headers';

export function requestUrl(request: HttpGetRequest): string {
  return `${request.scheme}://${joinHostPort(request.host, request.port)}${request.target}`;
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}

type Redirect = { readonly kind: 'last' } | { readonly kind: 'follow'; readonly request: HttpGetRequest };

/** Whether a response is a redirect that is followed: not one to another host. Throws HttpGetError. */
export function redirectOf(from: HttpGetRequest, status: number, location: string | undefined): Redirect {
  if (!REDIRECTS.has(status) || location === undefined || location === '') return { kind: 'last' };
  if (!URL.canParse(location, requestUrl(from))) {
    const why = `failed to parse Location header ${goQuote(location)}`;
    throw new HttpGetError(`Get ${goQuote(requestUrl(from))}: ${why}`, false);
  }
  const url = new URL(location, requestUrl(from));
  if (hostOf(url) !== hostOf(new URL(requestUrl(from)))) return { kind: 'last' };
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== 'http' && scheme !== 'https') {
    throw new HttpGetError(`Get ${goQuote(location)}: unsupported protocol scheme ${goQuote(scheme)}`, false);
  }
  const { hostHeader, ...rest } = from;
  // The caller's Host header is kept where the redirect names no host.
  const relative = !URL.canParse(location);
  const headers = new Map(from.headers);
  if (!(from.scheme === 'https' && scheme === 'http')) headers.set('Referer', [requestUrl(from)]);
  return {
    kind: 'follow',
    request: {
      ...rest,
      ...(relative && hostHeader !== undefined ? { hostHeader } : {}),
      scheme,
      port: url.port === '' ? (scheme === 'https' ? 443 : 80) : Number(url.port),
      target: `${url.pathname}${url.search}`,
      headers,
    },
  };
}

function optionsOf(request: HttpGetRequest): RequestOptions & { rejectUnauthorized: boolean; servername: string } {
  const defaultPort = request.scheme === 'https' ? 443 : 80;
  const host = isIP(request.host) === 6 ? `[${request.host}]` : request.host;
  return {
    host: request.host,
    port: request.port,
    path: request.target,
    headers: {
      Host: request.hostHeader ?? (request.port === defaultPort ? host : `${host}:${request.port}`),
      ...Object.fromEntries([...request.headers].map(([name, values]) => [name, [...values]])),
      Connection: 'close',
    },
    // A connection of its own. Of an agent TLS alone has use; another one would be made and thrown away with each request.
    ...(request.scheme === 'https'
      ? { agent: false }
      : { createConnection: () => connect({ host: request.host, port: request.port, noDelay: true }) }),
    maxHeaderSize: MAX_HEADER_BYTES,
    // No CA that the node trusts signs a pod's certificate.
    rejectUnauthorized: false,
    servername: isIP(request.host) === 0 ? request.host : '',
  };
}

/** Why an exchange ends early, and the request that is under way. */
interface Exchange {
  late: boolean;
  readonly signal: AbortSignal | undefined;
  current: ClientRequest | undefined;
}

/** The head of the response. Rejects with HttpGetError, or with the signal's reason. */
function head(request: HttpGetRequest, exchange: Exchange): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const fail = (why: string, cause: unknown): void =>
      reject(new HttpGetError(`Get ${goQuote(requestUrl(request))}: ${why}`, false, { cause }));
    let connected = false;
    try {
      const outgoing = (request.scheme === 'https' ? httpsRequest : httpRequest)(optionsOf(request), resolve);
      exchange.current = outgoing;
      outgoing.on('socket', (socket) => {
        socket.once('connect', () => {
          connected = true;
        });
      });
      outgoing.on('error', (error) => {
        if (exchange.late) {
          const where = connected
            ? 'context deadline exceeded'
            : 'net/http: request canceled while waiting for connection';
          fail(`${where} (${TIMED_OUT})`, error);
        } else if (exchange.signal?.aborted === true) reject(exchange.signal.reason);
        else fail(connected ? goTransportError(error) : goDialError(error, request.host, request.port), error);
      });
      outgoing.end();
      // Between a redirect and the request that follows it there was none to end.
      if (exchange.late || exchange.signal?.aborted === true) outgoing.destroy(ENDED_EARLY);
    } catch (error) {
      // Node refuses header values and targets that may not go on the wire.
      fail(error instanceof Error ? error.message : String(error), error);
    }
  });
}

/** The body up to `limit` bytes; nothing of the connection is left afterwards. Rejects with HttpGetError. */
function bodyOf(response: IncomingMessage, limit: number, exchange: Exchange): Promise<Buffer> {
  if (limit === 0) {
    response.destroy();
    return Promise.resolve(Buffer.alloc(0));
  }
  // By events: the async iterator of a stream costs more than the rest of a small response.
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const done = (): void => {
      response.destroy();
      resolve(Buffer.concat(chunks).subarray(0, limit));
    };
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= limit) done();
    });
    response.once('end', done);
    response.once('error', (error) => {
      const why = exchange.late
        ? 'context deadline exceeded (Client.Timeout or context cancellation while reading body)'
        : response.complete
          ? goTransportError(error)
          : 'unexpected EOF';
      reject(new HttpGetError(why, true, { cause: error }));
    });
  });
}

/** Sends the request and follows redirects. Rejects with HttpGetError, or with the signal's reason when it aborts. */
export async function httpGet(first: HttpGetRequest, options: HttpGetOptions): Promise<HttpGetResponse> {
  const { signal, timeoutMs } = options;
  signal?.throwIfAborted();
  const exchange: Exchange = { late: false, signal, current: undefined };
  const end = (): void => void exchange.current?.destroy(ENDED_EARLY);
  const timer =
    timeoutMs === undefined
      ? undefined
      : options.clock.after(timeoutMs, () => {
          exchange.late = true;
          end();
        });
  signal?.addEventListener('abort', end);
  try {
    let request = first;
    for (let followed = 0; ; followed++) {
      const response = await head(request, exchange);
      response.on('error', () => {
        // The reader of the body gets the error; an unread body needs no handler.
      });
      const status = response.statusCode ?? 0;
      let next: Redirect;
      try {
        next = redirectOf(request, status, response.headers.location);
      } catch (error) {
        response.destroy();
        throw error;
      }
      if (next.kind === 'last') return { status, body: await bodyOf(response, options.maxBodyBytes, exchange) };
      response.destroy();
      request = next.request;
      if (followed + 1 >= MAX_REDIRECTS) {
        throw new HttpGetError(`Get ${goQuote(requestUrl(request))}: stopped after ${MAX_REDIRECTS} redirects`, false);
      }
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    timer?.cancel();
    signal?.removeEventListener('abort', end);
  }
}
