// Limits the connections of an HTTPS server: how many are open, and how long each may take for its handshake, its
// request, its response and its authentication. Knows no paths and no callers; the server reports who has authenticated.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket, type TlsOptions } from 'node:tls';
import type { Clock, MonotonicMs, Timer } from './clock.ts';
import { type Admission, admitConnection, type ConnectionLimits } from './connection-limits.ts';
import { errorMessage, isErrno } from './errors.ts';

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
  readonly deadlines: Map<ServerResponse, Timer>;
}

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
    const server = createServer({
      ...tls,
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
    server.on('secureConnection', (socket: TLSSocket) => {
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

  /** Extends the deadline of this request to `ms` from now; Infinity removes it. */
  allowTime(response: ServerResponse, ms: number): void {
    const connection = this.#connectionOf(response.req.socket);
    if (connection === undefined || !connection.deadlines.has(response)) return;
    connection.deadlines.get(response)?.cancel();
    if (ms !== Number.POSITIVE_INFINITY) this.#setDeadline(connection, response, ms);
  }

  #setDeadline(connection: Connection, response: ServerResponse, ms: number): void {
    connection.deadlines.set(
      response,
      this.#options.clock.after(ms, () => connection.socket.destroy()),
    );
  }

  /** False for a request of a connection that has too many under way; the connection is closed. */
  #begin(request: IncomingMessage, response: ServerResponse): boolean {
    const connection = this.#connectionOf(request.socket);
    if (connection === undefined || connection.socket.destroyed) return false;
    const most = connection.authenticated ? MAX_PIPELINED : MAX_PIPELINED_UNAUTHENTICATED;
    if (connection.deadlines.size >= most) {
      connection.socket.destroy();
      return false;
    }
    this.#setDeadline(connection, response, this.#timeouts.responseMs);
    response.once('close', () => {
      connection.deadlines.get(response)?.cancel();
      connection.deadlines.delete(response);
    });
    return true;
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
    const connection: Connection = { ...accepted, authenticated: false, lifetime: undefined, deadlines: new Map() };
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
