// Limits the connections of an HTTPS server: how many are open, and how long each may take for its handshake, its
// request, its response and its authentication. Knows no paths and no callers; the server reports who has authenticated.
// Where HTTP/2 is wanted, a connection may bring many requests at a time, and one that takes too long is reset alone.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type ServerHttp2Session } from 'node:http2';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket, type TlsOptions } from 'node:tls';
import type { Clock, MonotonicMs, Timer } from './clock.ts';
import { type Admission, admitConnection, type ConnectionLimits } from './connection-limits.ts';
import { errorMessage, isErrno } from './errors.ts';
import { breakOff, type HttpRequest, type HttpResponse, socketOf, streamOf } from './http-message.ts';
import { type Http2Options, startHttp2 } from './http2-connection.ts';

/** All in ms. */
export interface ConnectionTimeouts {
  /** For the TLS handshake. */
  readonly handshakeMs: number;
  /** For the head of a request, from the first byte, or from the connection's beginning. */
  readonly headersMs: number;
  /** For the head and the body. */
  readonly requestMs: number;
  /** From a request's head to the last byte of its response; `allowTime` gives a request more. */
  readonly responseMs: number;
  /** A connection without a request. Longer than Go clients keep theirs (90 s), so that it is they who close them. */
  readonly idleMs: number;
  /** Any connection whose caller has not authenticated, from accept on, whatever it does. */
  readonly unauthenticatedMs: number;
  /** How often `headersMs` and `requestMs` are checked. */
  readonly checkMs: number;
}

export const DEFAULT_TIMEOUTS: ConnectionTimeouts = {
  handshakeMs: 10_000,
  headersMs: 15_000,
  requestMs: 60_000,
  responseMs: 60_000,
  idleMs: 120_000,
  unauthenticatedMs: 30_000,
  checkMs: 2_000,
};

/** Requests of one connection that are under way: more than a client sends that waits for its responses. */
const MAX_PIPELINED = 64;
const MAX_PIPELINED_UNAUTHENTICATED = 8;
/** A client has so long to close its side of a connection whose HTTP/2 is over, ms. */
const CLOSE_MS = 1_000;
/** The shortest interval between two log lines of one kind, ms. */
const LOG_INTERVAL_MS = 60_000;

/** The limits are read again after this long, since the number of free descriptors changes. ms. */
const LIMITS_MAX_AGE_MS = 5_000;

export interface ConnectionGuardOptions {
  /** Called every LIMITS_MAX_AGE_MS at most. When it throws because no descriptor is left, the limits stay as they were. */
  readonly limits: () => ConnectionLimits;
  readonly timeouts?: Partial<ConnectionTimeouts>;
  readonly clock: Clock;
  /** Logs one line; at most one a minute of each kind. */
  readonly log: (line: string) => void;
}

export interface RequestHandlers {
  readonly request: (request: IncomingMessage, response: ServerResponse) => void;
  /** Owns the socket from then on. Without it, connections that ask for an upgrade are closed. */
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Serves HTTP/2 as well, to clients that prefer it (ALPN). Its requests come to `request`, too, as lib/http-message.ts has them. */
  readonly http2?: Http2Options;
}

interface Connection {
  /** Both ends, as `keyOf` writes them. */
  readonly key: string;
  readonly socket: Socket;
  readonly address: string;
  authenticated: boolean;
  /** Ends the connection while it is unauthenticated. */
  lifetime: Timer | undefined;
  /** Of requests under way, by their response. */
  readonly deadlines: Map<HttpResponse, Timer>;
  /** Of a connection with HTTP/2. */
  session: ServerHttp2Session | undefined;
  /** Ends a session that has no request; then the connection, where the client leaves it open. */
  idle: Timer | undefined;
}

const NEW_CONNECTION = { authenticated: false, lifetime: undefined, session: undefined, idle: undefined };

export interface OpenConnections {
  readonly total: number;
  readonly unauthenticated: number;
}

export class ConnectionGuard {
  readonly #options: ConnectionGuardOptions;
  #limits: ConnectionLimits;
  /** Monotonic ms. */
  #limitsAt: MonotonicMs;
  readonly #timeouts: ConnectionTimeouts;
  readonly #connections = new Map<string, Connection>();
  readonly #perAddress = new Map<string, number>();
  /** By address; oldest first. */
  readonly #unauthenticated = new Map<string, Set<Connection>>();
  #unauthenticatedCount = 0;
  readonly #logged = new Map<string, number>();

  constructor(options: ConnectionGuardOptions) {
    this.#options = options;
    this.#limits = options.limits();
    this.#limitsAt = options.clock.monotonic();
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  }

  get open(): OpenConnections {
    return { total: this.#connections.size, unauthenticated: this.#unauthenticatedCount };
  }

  /** Returns an HTTPS server whose connections are limited. It does not listen yet. */
  createServer(tls: TlsOptions, handlers: RequestHandlers): Server {
    const { handshakeMs, headersMs, requestMs, idleMs, checkMs } = this.#timeouts;
    const { http2 } = handlers;
    const server = createServer({
      ...tls,
      ...(http2 === undefined ? {} : { ALPNProtocols: ['h2', 'http/1.1'] }),
      handshakeTimeout: handshakeMs,
      headersTimeout: Math.min(headersMs, requestMs),
      requestTimeout: requestMs,
      keepAliveTimeout: idleMs,
      connectionsCheckingInterval: checkMs,
    });
    const request = (message: IncomingMessage, response: ServerResponse): void => {
      if (this.#begin(message, response)) handlers.request(message, response);
    };
    server.on('request', request);
    // A client that waits for "100 Continue" receives it when the body is read: continueBody.
    server.on('checkContinue', request);
    const { upgrade } = handlers;
    if (upgrade !== undefined) server.on('upgrade', upgrade);
    server.on('connection', (socket: Socket) => this.#accept(socket));
    if (http2 !== undefined) this.#divert(server, http2);
    server.prependListener('secureConnection', (socket: TLSSocket) => {
      if (hasVerifiedCertificate(socket)) this.authenticated(socket);
    });
    server.once('listening', () => {
      // A connection that cannot be accepted (no descriptor left) must not end the process.
      server.on('error', (error) => this.#log('accept', `cannot accept a connection: ${errorMessage(error)}`));
    });
    return server;
  }

  /** Marks the connection as authenticated: unauthenticated limits no longer apply to it. */
  authenticated(socket: Duplex): void {
    const connection = this.#connectionOf(socket);
    if (connection === undefined || connection.authenticated) return;
    this.#forgetUnauthenticated(connection);
    connection.authenticated = true;
  }

  /** Connections of HTTP/2 go to sessions of their own; those of HTTP/1.1 where they go without it. */
  #divert(server: Server, options: Http2Options): void {
    const http1 = server.listeners('secureConnection');
    server.removeAllListeners('secureConnection');
    server.on('secureConnection', (socket: TLSSocket) => {
      if (socket.alpnProtocol === 'h2') this.#startSession(server, socket, options);
      else for (const serve of http1) serve.call(server, socket);
    });
  }

  #startSession(server: Server, socket: TLSSocket, options: Http2Options): void {
    const connection = this.#connectionOf(socket);
    if (connection === undefined || socket.destroyed) return;
    connection.session = startHttp2(socket, options, (request, response) => server.emit('request', request, response));
    this.#nothingUnderWay(connection);
  }

  /** No request is under way on this connection of HTTP/2. */
  #nothingUnderWay(connection: Connection): void {
    const { session } = connection;
    if (session === undefined) return;
    const { clock } = this.#options;
    connection.idle?.cancel();
    if (session.closed) this.#endSession(connection, session);
    else connection.idle = clock.after(this.#timeouts.idleMs, () => this.#endSession(connection, session));
  }

  /** What is under way may finish within CLOSE_MS. */
  #endSession(connection: Connection, session: ServerHttp2Session): void {
    session.close();
    connection.idle?.cancel();
    connection.idle = this.#options.clock.after(CLOSE_MS, () => connection.socket.destroy());
  }

  /** Tells the client of this connection of HTTP/2 to take another one for further requests (GOAWAY); open ones go on. */
  goAway(request: HttpRequest): void {
    this.#connectionOf(socketOf(request))?.session?.close();
  }

  /** Ends every connection, upgraded ones as well. Those of HTTP/2 may finish what is under way within CLOSE_MS. */
  closeAll(): void {
    for (const connection of this.#connections.values()) {
      const { session, socket } = connection;
      if (session === undefined || session.destroyed) socket.destroy();
      else this.#endSession(connection, session);
    }
  }

  /** Extends the deadline of this request to `ms` from now; Infinity removes it. */
  allowTime(response: HttpResponse, ms: number): void {
    const connection = this.#connectionOf(socketOf(response.req));
    if (connection === undefined || !connection.deadlines.has(response)) return;
    connection.deadlines.get(response)?.cancel();
    if (ms !== Number.POSITIVE_INFINITY) this.#setDeadline(connection, response, ms);
  }

  #setDeadline(connection: Connection, response: HttpResponse, ms: number): void {
    // Of HTTP/1.1 the response may have given its connection away already, when another request waits behind it.
    const end = (): void => (streamOf(response) === undefined ? void connection.socket.destroy() : breakOff(response));
    connection.deadlines.set(response, this.#options.clock.after(ms, end));
  }

  /** False for a request of a connection that has too many under way: the connection is closed, of HTTP/2 the stream reset. */
  #begin(request: HttpRequest, response: HttpResponse): boolean {
    const connection = this.#connectionOf(socketOf(request));
    if (connection === undefined || connection.socket.destroyed) return false;
    const stream = streamOf(response);
    // How many streams there are of those who have authenticated, the session limits itself.
    const authenticated = stream === undefined ? MAX_PIPELINED : Number.POSITIVE_INFINITY;
    const most = connection.authenticated ? authenticated : MAX_PIPELINED_UNAUTHENTICATED;
    if (connection.deadlines.size >= most) {
      if (stream === undefined) connection.socket.destroy();
      else stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return false;
    }
    this.#setDeadline(connection, response, this.#timeouts.responseMs);
    connection.idle?.cancel();
    response.once('close', () => this.#over(connection, response));
    return true;
  }

  #over(connection: Connection, response: HttpResponse): void {
    const { deadlines, authenticated, session } = connection;
    deadlines.get(response)?.cancel();
    if (!deadlines.delete(response) || session === undefined) return;
    // As kube-apiserver: HTTP/2 makes floods cheap, and who has not authenticated gets one request of it.
    if (!authenticated) session.close();
    if (deadlines.size === 0) this.#nothingUnderWay(connection);
  }

  #accept(socket: Socket): void {
    const key = keyOf(socket);
    if (key === undefined || socket.remoteAddress === undefined) {
      // The peer has closed it already.
      socket.destroy();
      return;
    }
    const address = socket.remoteAddress;
    const admission = admitConnection(
      {
        total: this.#connections.size,
        unauthenticated: this.#unauthenticatedCount,
        ofAddress: this.#perAddress.get(address) ?? 0,
        unauthenticatedOfAddress: this.#unauthenticated.get(address)?.size ?? 0,
      },
      this.#currentLimits(),
    );
    this.#makeRoom(admission, socket, address);
    if (admission.action !== 'refuse') this.#add({ key, socket, address });
  }

  #currentLimits(): ConnectionLimits {
    const now = this.#options.clock.monotonic();
    if (now - this.#limitsAt < LIMITS_MAX_AGE_MS) return this.#limits;
    this.#limitsAt = now;
    try {
      this.#limits = this.#options.limits();
    } catch (error) {
      if (!isErrno(error, 'EMFILE', 'ENFILE')) throw error;
    }
    return this.#limits;
  }

  #makeRoom(admission: Admission, socket: Socket, address: string): void {
    if (admission.action === 'accept') return;
    if (admission.action === 'refuse') {
      socket.destroy();
      this.#log('refuse', `a connection from ${address} was refused: ${admission.reason}`);
      return;
    }
    const from = admission.from === 'sameAddress' ? address : this.#busiestAddress();
    const [oldest] = this.#unauthenticated.get(from) ?? [];
    if (oldest === undefined) return;
    this.#remove(oldest);
    oldest.socket.destroy();
    const { unauthenticated } = this.#limits;
    this.#log(
      'replace',
      `unauthenticated connections are closed for new ones, the oldest from ${oldest.address} first: there are ` +
        `${this.#connections.size} connections, and at most ${unauthenticated} may be unauthenticated`,
    );
  }

  #add(accepted: Pick<Connection, 'key' | 'socket' | 'address'>): void {
    const { key, socket, address } = accepted;
    const connection: Connection = { ...accepted, ...NEW_CONNECTION, deadlines: new Map() };
    connection.lifetime = this.#options.clock.after(this.#timeouts.unauthenticatedMs, () => socket.destroy());
    this.#connections.set(key, connection);
    this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1);
    const waiting = this.#unauthenticated.get(address) ?? new Set();
    this.#unauthenticated.set(address, waiting.add(connection));
    this.#unauthenticatedCount++;
    socket.once('close', () => this.#remove(connection));
  }

  /** Removes the connection from all counts. Idempotent. */
  #remove(connection: Connection): void {
    if (this.#connections.get(connection.key) !== connection) return;
    this.#forgetUnauthenticated(connection);
    connection.idle?.cancel();
    for (const deadline of connection.deadlines.values()) deadline.cancel();
    connection.deadlines.clear();
    this.#connections.delete(connection.key);
    const left = (this.#perAddress.get(connection.address) ?? 1) - 1;
    if (left === 0) this.#perAddress.delete(connection.address);
    else this.#perAddress.set(connection.address, left);
  }

  #forgetUnauthenticated(connection: Connection): void {
    connection.lifetime?.cancel();
    connection.lifetime = undefined;
    const waiting = this.#unauthenticated.get(connection.address);
    if (waiting?.delete(connection) !== true) return;
    this.#unauthenticatedCount--;
    if (waiting.size === 0) this.#unauthenticated.delete(connection.address);
  }

  #busiestAddress(): string {
    let busiest = '';
    let most = 0;
    for (const [address, { size }] of this.#unauthenticated) {
      if (size <= most) continue;
      busiest = address;
      most = size;
    }
    return busiest;
  }

  #connectionOf(socket: Duplex): Connection | undefined {
    if (!(socket instanceof TLSSocket)) return undefined;
    const key = keyOf(socket);
    return key === undefined ? undefined : this.#connections.get(key);
  }

  #log(kind: string, line: string): void {
    const now = this.#options.clock.monotonic();
    const last = this.#logged.get(kind);
    if (last !== undefined && now - last < LOG_INTERVAL_MS) return;
    this.#logged.set(kind, now);
    this.#options.log(line);
  }
}

/** A TCP connection by its two ends: what the TLS socket and the plain one below it have in common. */
function keyOf({ remoteAddress, remotePort, localAddress }: Socket): string | undefined {
  return remotePort === undefined ? undefined : `${localAddress} ${remoteAddress} ${remotePort}`;
}

/** A resumed session counts as authorized even when there never was a certificate. */
function hasVerifiedCertificate(socket: TLSSocket): boolean {
  const { subject }: { subject?: object } = socket.getPeerCertificate();
  return socket.authorized && subject !== undefined;
}
