// The kubelet's HTTPS API (port 10250): who calls, may they, and which handler serves it. The handlers are in files of
// their own. Nothing is served without authentication and authorization, health checks included.

import { readFile } from 'node:fs/promises';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { Duplex } from 'node:stream';
import type { SecureContextOptions } from 'node:tls';
import { ANONYMOUS } from '../../client/reviews.ts';
import type { Timer } from '../../lib/clock.ts';
import { ConnectionGuard } from '../../lib/connection-guard.ts';
import { type ConnectionLimits, connectionLimits } from '../../lib/connection-limits.ts';
import { openFilesLimit } from '../../lib/descriptors.ts';
import { errnoOf, errorMessage, UserError } from '../../lib/errors.ts';
import { HealthSlis } from '../../lib/health-slis.ts';
import { invariantViolations } from '../../lib/invariant.ts';
import type { ServingCertificate } from '../../lib/made-certificate.ts';
import { METRICS_CONTENT_TYPE } from '../../lib/metrics.ts';
import { getOwn } from '../../lib/own-property.ts';
import { printConfiguration } from '../config/kubelet-configuration.ts';
import { accessAttributes, Callers } from './caller.ts';
import { serveContainerLogs } from './container-logs.ts';
import { healthz } from './health.ts';
import { HttpError, sendJson, sendText } from './http-answer.ts';
import { serveNodeLogs } from './node-logs.ts';
import type { KubeletServer, KubeletServerOptions } from './options.ts';
import { isDebugging, parseRoute, type Route } from './routes.ts';
import { podList, runningPodList } from './served-pods.ts';
import { loadServingCertificate } from './serving-certificate.ts';
import { streamUrl } from './streams.ts';
import { tlsCiphers, tlsVersion } from './tls-settings.ts';
import { refuseUpgrade, tunnel, upgradeProblem } from './tunnel.ts';

/** How often the certificate files and the client CA are read again. ms. */
const RELOAD_MS = 3_600_000;
/** A response that goes on (a log that is followed) ends after this long, as the kubelet's do. ms. */
const LONG_RUNNING_MS = 4 * 3_600_000;

/** Connections of a process that may open so many files; the rest are for mounts, programs, probes and the runtime. */
export function kubeletServerLimits(openFiles: number): ConnectionLimits {
  return connectionLimits({ openFiles, reserved: 192, most: 1024, mostUnauthenticated: 64 });
}

export function createKubeletServer(options: KubeletServerOptions): KubeletServer {
  return new HttpsKubeletServer(options);
}

class HttpsKubeletServer implements KubeletServer {
  readonly #options: KubeletServerOptions;
  readonly #callers: Callers;
  readonly #slis = new HealthSlis();
  readonly #guard: ConnectionGuard;
  /** Connections that were upgraded: the HTTP server no longer tracks them. */
  readonly #upgraded = new Set<Duplex>();
  #server: Server | undefined;
  #certificate: ServingCertificate | undefined;
  #reload: Timer | undefined;
  /** Files are read again now; never rejects. */
  #reloading: Promise<void> | undefined;

  constructor(options: KubeletServerOptions) {
    const { config, nodeName } = options.options;
    if (config.authorization.mode === 'Webhook' && options.reviews === undefined) {
      throw new UserError('authorization.mode Webhook needs an API server: set --kubeconfig or AlwaysAllow');
    }
    this.#options = options;
    this.#callers = new Callers(config, nodeName, options.reviews, options.clock);
    const { clock, log, connections } = options;
    this.#guard = new ConnectionGuard({
      limits: () => connections?.limits ?? kubeletServerLimits(openFilesLimit()),
      ...(connections?.timeouts === undefined ? {} : { timeouts: connections.timeouts }),
      clock,
      log: (line) => log?.('warn', `kubelet API: ${line}`),
    });
  }

  get port(): number {
    const address = this.#server?.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  get certificate(): string {
    return this.#certificate?.cert ?? '';
  }

  async listen(): Promise<void> {
    const { config } = this.#options.options;
    const tls = {
      ...(await this.#secureContext()),
      requestCert: config.authentication.x509.clientCAFile !== '',
      // Callers without a good certificate may still show a token: they are turned away later, in words.
      rejectUnauthorized: false,
    };
    const server = this.#guard.createServer(tls, {
      request: (request, response) => void this.#request(request, response),
      upgrade: (request, socket, head) => void this.#upgrade(request, socket, head),
    });
    // A caller that disconnects during the handshake or sends no HTTP is not reported.
    server.on('clientError', (_error, socket) => socket.destroy());
    await bind(server, config.address, config.port);
    this.#server = server;
    this.#scheduleReload();
  }

  async close(): Promise<void> {
    this.#reload?.cancel();
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#upgraded) socket.destroy();
    // It may be making a certificate, which it would write after the end.
    await this.#reloading;
    if (server === undefined) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }

  async #secureContext(): Promise<SecureContextOptions> {
    const { config, certDir, nodeName, nodeIPs } = this.#options.options;
    const { tlsCertFile, tlsPrivateKeyFile, tlsMinVersion, tlsCipherSuites } = config;
    const { clientCAFile } = config.authentication.x509;
    const now = this.#options.clock.now();
    const pair = await loadServingCertificate({ tlsCertFile, tlsPrivateKeyFile, certDir, nodeName, nodeIPs, now });
    const ciphers = tlsCiphers(tlsCipherSuites);
    this.#certificate = pair;
    return {
      ...pair,
      minVersion: tlsVersion(tlsMinVersion),
      ...(ciphers === undefined ? {} : { ciphers }),
      ...(clientCAFile === '' ? {} : { ca: await readClientCA(clientCAFile) }),
    };
  }

  #scheduleReload(): void {
    const { clock, log } = this.#options;
    this.#reload = clock.after(RELOAD_MS, () => {
      this.#reloading = this.#secureContext()
        .then((context) => this.#server?.setSecureContext(context))
        .catch((error: unknown) => log?.('warn', `the kubelet API keeps its old certificates: ${errorMessage(error)}`))
        .finally(() => {
          if (this.#server !== undefined) this.#scheduleReload();
        });
    });
  }

  async #request(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock } = this.#options;
    try {
      const { route, query } = await this.#admit(request);
      if (route.kind === 'containerLogs' || route.kind === 'nodeLogs') {
        // An authorized caller has no time limit, also an anonymous one.
        this.#guard.authenticated(request.socket);
        this.#guard.allowTime(response, LONG_RUNNING_MS);
      }
      await this.#serve(route, query, request, response);
    } catch (error) {
      const failure = this.#failure(request, error);
      if (response.headersSent) response.destroy();
      else sendText(response, failure.status, failure.message, clock, challenge(failure.status));
    }
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    this.#upgraded.add(socket);
    socket.on('close', () => this.#upgraded.delete(socket));
    const { clock } = this.#options;
    // Until the tunnel takes over, a disconnecting caller must not end the process.
    socket.on('error', () => socket.destroy());
    try {
      const { route, query } = await this.#admit(request);
      if (route.kind !== 'stream') throw new HttpError(400, 'this path does not upgrade');
      const problem = upgradeProblem(request.headers);
      if (problem !== undefined) throw new HttpError(400, problem);
      const { pods, runtime, tracer } = this.#options;
      const { config } = this.#options.options;
      const { verb, namespace, pod: name } = route.target;
      const uid = pods.getPod(namespace, name)?.metadata.uid;
      const context = { ...(uid === undefined ? {} : { pod: { namespace, name, uid } }), cause: `${verb} requested` };
      await tracer.within(context, async () => {
        const url = await streamUrl(route.target, query, pods, runtime);
        this.#guard.authenticated(socket);
        await tunnel(request, socket, head, url, { clock, idleTimeoutMs: config.streamingConnectionIdleTimeout });
      });
    } catch (error) {
      const failure = this.#failure(request, error);
      refuseUpgrade(socket, failure.status, STATUS_WORDS[failure.status] ?? 'Error', failure.message, clock);
    }
  }

  /** Who calls, may they, and what for. Rejects with HttpError. */
  async #admit(request: IncomingMessage): Promise<{ readonly route: Route; readonly query: URLSearchParams }> {
    const url = URL.parse(request.url ?? '/', 'https://kubelet');
    if (url === null) throw new HttpError(400, 'the request has no usable path');
    const method = request.method ?? 'GET';
    let user: Awaited<ReturnType<Callers['authenticate']>>;
    try {
      user = await this.#callers.authenticate(request);
    } catch (error) {
      this.#options.log?.('warn', `a caller of the kubelet API could not be authenticated: ${errorMessage(error)}`);
    }
    if (user === undefined) throw new HttpError(401, 'Unauthorized');
    if (user !== ANONYMOUS) this.#guard.authenticated(request.socket);
    const attributes = accessAttributes(method, url.pathname);
    const what =
      `user=${user.name}, verb=${attributes.verb}, resource=nodes, ` +
      `subresource(s)=[${attributes.subresources.join(' ')}]`;
    let allowed: boolean;
    try {
      allowed = await this.#callers.authorize(user, attributes);
    } catch (error) {
      throw new HttpError(500, `Authorization error (${what}): ${errorMessage(error)}`, { cause: error });
    }
    if (!allowed) throw new HttpError(403, `Forbidden (${what})`);
    const route = parseRoute(url.pathname);
    if (route === undefined) throw new HttpError(404, '404 page not found\n');
    if (isDebugging(route) && !this.#options.options.config.enableDebuggingHandlers) {
      throw new HttpError(405, 'Debug endpoints are disabled.');
    }
    return { route, query: url.searchParams };
  }

  async #serve(
    route: Route,
    query: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { pods, runtime, clock, syncLoopHealth, usage } = this.#options;
    if (route.kind === 'stream') throw new HttpError(400, 'Upgrade request required');
    if (request.method !== 'GET' && request.method !== 'HEAD') throw new HttpError(405, '405: Method Not Allowed');
    switch (route.kind) {
      case 'ping':
        return sendText(response, 200, 'ok', clock);
      case 'healthz': {
        const moves = syncLoopHealth?.() === undefined;
        for (const check of ['ping', 'log']) this.#slis.observe(check, 'healthz', true);
        this.#slis.observe('syncloop', 'healthz', moves);
        const { status, body } = healthz(moves, query.has('verbose'), invariantViolations());
        return sendText(response, status, body, clock);
      }
      case 'metrics':
        return sendText(response, 200, await this.#metrics(route.page), clock, {
          'content-type': METRICS_CONTENT_TYPE,
        });
      case 'syncloop': {
        const problem = syncLoopHealth?.();
        if (problem !== undefined) throw new HttpError(500, `internal server error: ${problem}\n`);
        return sendText(response, 200, 'ok', clock);
      }
      case 'pods':
        return sendJson(response, podList(pods), clock);
      case 'runningPods':
        return sendJson(response, runningPodList(await runtime.listPods()), clock);
      case 'summary':
        return sendJson(response, await usage.summary(query.get('only_cpu_and_memory') === 'true'), clock);
      case 'configz':
        return sendJson(response, { kubeletconfig: printConfiguration(this.#options.options.config) }, clock);
      case 'containerLogs':
        return await serveContainerLogs(route, query, response, this.#options, clock.now());
      case 'nodeLogs':
        return await this.#nodeLogs(route.path, query, request, response);
    }
  }

  async #nodeLogs(
    path: string | undefined,
    query: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { clock, nodeLogs } = this.#options;
    const { enableSystemLogHandler, enableSystemLogQuery: queries } = this.#options.options.config;
    if (!enableSystemLogHandler) throw new HttpError(405, 'logs endpoint is disabled.\n');
    if (path === undefined) return sendText(response, 301, '', clock, { location: 'logs/' });
    await serveNodeLogs({ ...nodeLogs, queries }, path, query, request, response, clock);
  }

  async #metrics(page: Extract<Route, { readonly kind: 'metrics' }>['page']): Promise<string> {
    const { usage, own } = this.#options;
    switch (page) {
      case 'agent':
        return await own.agent();
      case 'probes':
        return await own.probes();
      case 'slis':
        return this.#slis.text();
      default:
        return await usage[page]();
    }
  }

  #failure(request: IncomingMessage, error: unknown): HttpError {
    if (error instanceof HttpError) return error;
    this.#options.log?.('error', `kubelet API: ${request.method} ${request.url}: ${errorMessage(error)}`);
    return new HttpError(500, errorMessage(error), { cause: error });
  }
}

const STATUS_WORDS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  500: 'Internal Server Error',
};

function challenge(status: number): OutgoingHttpHeaders {
  return status === 401 ? { 'www-authenticate': 'Bearer realm="kubelet"' } : {};
}

async function readClientCA(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new UserError(`authentication.x509.clientCAFile: ${file} cannot be read: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}

function bind(server: Server, address: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error): void => {
      const why: Readonly<Record<string, string>> = {
        EADDRINUSE: 'is taken by another program; choose another with --port',
        EADDRNOTAVAIL: 'is not an address of this machine; choose another with --address',
        EACCES: 'may not be used by this user',
      };
      const reason = getOwn(why, errnoOf(error) ?? '');
      reject(reason === undefined ? error : new UserError(`kubelet API: ${address} port ${port} ${reason}`));
    };
    server.once('error', failed);
    server.listen(port, address, () => {
      server.off('error', failed);
      resolve();
    });
  });
}
