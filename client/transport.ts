// One HTTP/1.1 request to an API server over node:https: sockets kept alive, TLS and credentials from the access.
// Knows nothing of Kubernetes objects and never retries a request that the server may have acted on.

import { readFile } from 'node:fs/promises';
import type * as http from 'node:http';
import * as https from 'node:https';
import { createSecureContext } from 'node:tls';
import type { Clock, MonotonicMs } from '../lib/clock.ts';
import { errorMessage, isErrno, UserError } from '../lib/errors.ts';
import { Agent as HttpAgent, request as httpRequest } from '../lib/node-http.ts';
import { UnreachableError, unreachable } from './errors.ts';
import type { ClusterAccess } from './kubeconfig.ts';

/** Requests in flight at once; more wait for a free socket. A TLS socket costs some 50 KB, so there are few. */
const MAX_SOCKETS = 8;
/** Idle sockets are closed before the server would close them under a request (Fastify 72 s, kube-apiserver 3 min). */
const IDLE_SOCKET_MS = 55_000;
/** TCP keep-alive probes find a dead peer under a quiet watch. */
const KEEP_ALIVE_PROBE_MS = 30_000;
/** How long a token file's content is used before it is read again (client-go's figure). */
const TOKEN_FILE_MS = 60_000;

export interface TransportRequest {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** 'stream' requests (watch, logs) get sockets of their own, so that they never hold up the short ones. */
  readonly pool: 'short' | 'stream';
  /** Limit until the response headers are there, in ms. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface TlsOptions {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

/** TLS settings of an access, as node:tls and ws take them. */
export function tlsOptions(access: ClusterAccess): TlsOptions {
  return {
    ...(access.ca === undefined ? {} : { ca: access.ca }),
    ...(access.clientCert === undefined ? {} : { cert: access.clientCert }),
    ...(access.clientKey === undefined ? {} : { key: access.clientKey }),
    ...(access.insecureSkipTlsVerify === true ? { rejectUnauthorized: false } : {}),
    ...(access.tlsServerName === undefined ? {} : { servername: access.tlsServerName }),
  };
}

/**
 * The same with certificates and key parsed once. Node's agent otherwise finds the idle sockets of a request by a text that
 * contains all three, which is put together and hashed several times for each request.
 */
function agentTls(access: ClusterAccess): https.AgentOptions {
  const { ca, cert, key, ...rest } = tlsOptions(access);
  try {
    return { ...rest, secureContext: createSecureContext({ ca, cert, key }) };
  } catch (error) {
    const what = 'certificate authority, client certificate or client key';
    throw new UserError(`${what} for the API server ${access.server} cannot be read: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}

/** The bearer token of an access, from its file when it has one; the file is read again every minute. */
export class TokenSource {
  readonly #access: ClusterAccess;
  readonly #clock: Clock;
  #cached: { readonly token: string; readonly readAt: MonotonicMs } | undefined;
  constructor(access: ClusterAccess, clock: Clock) {
    this.#access = access;
    this.#clock = clock;
  }

  /** Drops what was read, after the server refused it. True when another read can make a difference. */
  invalidate(): boolean {
    this.#cached = undefined;
    return this.#access.tokenFile !== undefined;
  }

  async headers(): Promise<Record<string, string>> {
    const token = this.#access.tokenFile === undefined ? this.#access.token : await this.#fromFile();
    return token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` };
  }

  async #fromFile(): Promise<string | undefined> {
    const { tokenFile } = this.#access;
    if (tokenFile === undefined) return undefined;
    const now = this.#clock.monotonic();
    if (this.#cached !== undefined && now - this.#cached.readAt < TOKEN_FILE_MS) return this.#cached.token;
    let token: string;
    try {
      token = (await readFile(tokenFile, 'utf8')).trim();
    } catch (error) {
      // A file that is just being replaced: the token that was there is still our best one.
      if (this.#cached !== undefined) return this.#cached.token;
      const message = `cannot read the token file ${tokenFile}: ${errorMessage(error)}`;
      throw new UnreachableError(message, 'TOKEN_FILE', { cause: error });
    }
    this.#cached = { token, readAt: now };
    return token;
  }
}

export class Transport {
  readonly #access: ClusterAccess;
  readonly #clock: Clock;
  readonly #url: URL;
  readonly #prefix: string;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #agents: Readonly<Record<TransportRequest['pool'], http.Agent>>;

  constructor(access: ClusterAccess, clock: Clock) {
    this.#access = access;
    this.#clock = clock;
    this.#url = new URL(access.server);
    this.#prefix = this.#url.pathname.replace(/\/+$/, '');
    const shared = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_PROBE_MS, scheduling: 'lifo' as const };
    const short = { ...shared, maxSockets: MAX_SOCKETS, maxFreeSockets: MAX_SOCKETS, timeout: IDLE_SOCKET_MS };
    const stream = { ...shared, maxFreeSockets: 1, timeout: IDLE_SOCKET_MS };
    const secure = this.#url.protocol === 'https:';
    const tls = secure ? agentTls(access) : {};
    this.#agents = {
      short: secure ? new https.Agent({ ...short, ...tls }) : new HttpAgent(short),
      stream: secure ? new https.Agent({ ...stream, ...tls }) : new HttpAgent(stream),
    };
    this.#target = {
      host: this.#url.hostname.replace(/^\[|\]$/g, ''),
      port: this.#url.port === '' ? (secure ? 443 : 80) : Number(this.#url.port),
    };
  }

  /**
   * Sends the request and resolves with the response once its headers are there; the caller reads the body.
   * Rejects with UnreachableError, or with the signal's reason.
   */
  async open(request: TransportRequest): Promise<http.IncomingMessage> {
    try {
      return await this.#send(request);
    } catch (error) {
      if (!(error instanceof StaleSocketError)) throw error;
      // The server closed a kept-alive socket just as we took it; it never saw the request.
      return await this.#send(request);
    }
  }

  /** Closes every socket; requests under way fail. */
  close(): void {
    this.#agents.short.destroy();
    this.#agents.stream.destroy();
  }

  #send(request: TransportRequest): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      if (request.signal?.aborted) {
        reject(request.signal.reason);
        return;
      }
      const secure = this.#url.protocol === 'https:';
      const options: https.RequestOptions = {
        ...this.#target,
        method: request.method,
        path: `${this.#prefix}${request.path}`,
        headers: {
          ...request.headers,
          ...(request.body === undefined ? {} : { 'content-length': Buffer.byteLength(request.body) }),
        },
        agent: this.#agents[request.pool],
      };
      const outgoing = secure ? https.request(options) : httpRequest(options);
      let failure: unknown;
      const timer = this.#clock.after(request.timeoutMs, () => {
        failure = new UnreachableError(
          `the API server ${this.#access.server} did not answer within ${request.timeoutMs / 1000} s`,
          'ETIMEDOUT',
        );
        outgoing.destroy();
        // The way to the server may be cut: each of the sockets that wait for a request would take as long to show it.
        destroyIdle(this.#agents[request.pool]);
      });
      const onAbort = (): void => {
        failure = request.signal?.reason;
        outgoing.destroy();
      };
      request.signal?.addEventListener('abort', onAbort, { once: true });
      let answered = false;
      const settle = (): void => {
        timer.cancel();
        request.signal?.removeEventListener('abort', onAbort);
      };
      outgoing.on('response', (response) => {
        settle();
        answered = true;
        resolve(response);
      });
      // 'close' follows 'error', and comes alone when destroy() was called without one.
      outgoing.on('error', (error) => {
        settle();
        if (failure !== undefined) reject(failure);
        else if (outgoing.reusedSocket && safeToResend(request) && isErrno(error, 'ECONNRESET', 'EPIPE')) {
          reject(new StaleSocketError());
        } else reject(unreachable(this.#access.server, error));
      });
      outgoing.on('close', () => {
        if (answered) return;
        settle();
        reject(
          failure ?? new UnreachableError(`the API server ${this.#access.server} closed the connection`, 'CLOSED'),
        );
      });
      outgoing.end(request.body);
    });
  }
}

function destroyIdle({ freeSockets }: http.Agent): void {
  for (const socket of Object.values(freeSockets).flatMap((sockets) => sockets ?? [])) socket.destroy();
}

class StaleSocketError extends Error {}

/** A POST may have created something before the socket broke; the others can be sent twice without harm. */
function safeToResend(request: TransportRequest): boolean {
  return request.method !== 'POST';
}
