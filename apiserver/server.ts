// The embedded API server: puts the parts together and listens. Composition only: semantics are in registry/,
// HTTP in http/.

import type { Server } from 'node:https';
import { hostname } from 'node:os';
import type { Duplex } from 'node:stream';
import fastify, { type FastifyReply, type FastifyRequest, type RouteGenericInterface } from 'fastify';
import type { Clock } from '../lib/clock.ts';
import { ConnectionGuard } from '../lib/connection-guard.ts';
import { type ConnectionLimits, connectionLimits } from '../lib/connection-limits.ts';
import { openFilesLimit } from '../lib/descriptors.ts';
import { errorMessage, isErrno, UserError } from '../lib/errors.ts';
import {
  continueBody,
  endResponse,
  isBodyUnread,
  LARGE_RESPONSE_BYTES,
  sendParts,
  sendResponse,
} from '../lib/finish-connection.ts';
import type { HealthCheck } from '../lib/health-checks.ts';
import { breakOff, type HttpRequest } from '../lib/http-message.ts';
import { admissionOf } from './admission/create.ts';
import { AdmissionDurations } from './admission/durations.ts';
import { isUnspecified, reachableAddress } from './advertised.ts';
import { AggregationProxy } from './aggregation/proxy.ts';
import { auditIdOf } from './audit/audit.ts';
import { openAudit } from './audit/open.ts';
import { Authenticator } from './auth/authenticate.ts';
import { ChainAuthorizer } from './auth/authorize.ts';
import { ClientCa } from './auth/client-ca.ts';
import { openTokens } from './auth/open-tokens.ts';
import { followPolicy } from './auth/rbac/follow.ts';
import { RbacPolicy } from './auth/rbac/policy.ts';
import { openProxyCa, RequestHeaders } from './auth/request-header.ts';
import { serveComponentStatuses } from './component-status.ts';
import { badRequest, tooLarge } from './errors.ts';
import { dump } from './flowcontrol/dump.ts';
import { FlowControl } from './flowcontrol/flow-control.ts';
import { FlowMetrics } from './flowcontrol/metrics.ts';
import { OverloadError } from './flowcontrol/overload.ts';
import { Widths } from './flowcontrol/widths.ts';
import { acceptsGzip, COMPRESSED_FROM, compressed, compressedHeaders, varyByEncoding } from './http/compress.ts';
import { Converter } from './http/convert-aside.ts';
import type { AdmittedRequest, Reply } from './http/exchange.ts';
import { FlowGate } from './http/gate.ts';
import { Handler } from './http/handler.ts';
import { DEFAULT_LIMITS, InFlight, type RequestLimits } from './http/in-flight.ts';
import { type MeasureParts, measure, measureBody, note } from './http/measure.ts';
import { refuseConnect } from './http/refuse-connect.ts';
import { ResourceHandler } from './http/resources.ts';
import { handleUpgrade } from './http/upgrade.ts';
import type { Visit } from './http/visit.ts';
import { DEFAULT_SERVICE_CIDR, familiesOf, firstServiceAddress } from './kinds/services/ranges.ts';
import { MAX_BODY_BYTES } from './limits.ts';
import { Metrics } from './metrics.ts';
import { serveMetrics } from './metrics-api/serve.ts';
import { objectMetrics } from './object-metrics.ts';
import { openStore } from './open-store.ts';
import type { ApiServerOptions, Http2ServingOptions, RunningApiServer } from './options.ts';
import { ensurePki } from './pki/ensure.ts';
import type { Pki } from './pki/types.ts';
import type { KindParts } from './ports.ts';
import { POST_START_HOOKS, type PostStartHook, runPostStartHooks } from './post-start-hooks.ts';
import { BackendProxy } from './proxy/backend.ts';
import { KubeletClient } from './proxy/kubelet.ts';
import { KubeletProxy } from './proxy/proxy.ts';
import { Proxies, type RequestProxy } from './proxy/types.ts';
import { Registry } from './registry/registry.ts';
import { type ObjectStore, StoreFullError } from './storage/object-store.ts';

const EMPTY = Buffer.alloc(0);
const DEFAULT_HTTP2: Http2ServingOptions = { isDisabled: false, maxStreams: 100, goawayChance: 0 };
/** A response that a kubelet sends ends after this long, as the kubelet's own connections do. ms. */
const LONG_RUNNING_MS = 4 * 3_600_000;

/**
 * Connections of a process that may open so many files; the rest are the store's and the kubelets'. After a restart every
 * watch of an agent comes back at the same moment, a connection each that has not authenticated yet.
 */
export function apiServerLimits(openFiles: number): ConnectionLimits {
  return connectionLimits({ openFiles, reserved: 128, most: 4096, mostUnauthenticated: 512 });
}

/**
 * Starts the server. Rejects with UserError when the address is taken or cannot be listened on, or when the store is
 * in use.
 */
export async function startApiServer(options: ApiServerOptions, kinds: KindParts): Promise<RunningApiServer> {
  const { clock, tracer, address } = options;
  const log = options.log ?? (() => undefined);
  const { serviceCidrs = [DEFAULT_SERVICE_CIDR] } = options;
  const [firstCidr = DEFAULT_SERVICE_CIDR] = serviceCidrs;
  const serviceFamilies = familiesOf(serviceCidrs);
  const publicAddress = reachableAddress(options, firstCidr, serviceFamilies[0] ?? 'IPv4');
  const pki = await pkiOf(options, firstCidr);
  const clientCa = clientCaOf(options, pki, log);
  const proxyCa = openProxyCa(options.auth?.requestHeader, { clock, log });
  const cas = [clientCa, ...(proxyCa === undefined ? [] : [proxyCa.ca])];
  const metrics = new Metrics();
  const opened = await openStore(options, { kinds: kinds.kinds.all, clock, tracer, log, metrics });
  const { store, snapshots } = opened;
  try {
    const { nodeAudiences = [], auth = {} } = options;
    const { kinds: rows, checkBody } = kinds;
    const continueKey = pki.serviceAccount.key;
    const policy = new RbacPolicy();
    const registry = new Registry({
      ...{ store, clock, kinds: rows, checkBody, nodeAudiences, serviceFamilies, continueKey },
      admission: admissionOf(options.admission ?? {}, {
        nodeAudiences,
        log,
        durations: new AdmissionDurations(metrics.registers, clock),
      }),
      authorizer: ({ lookup }) => new ChainAuthorizer(policy, lookup, auth.authorizationMode),
    });
    followPolicy(registry, policy);
    registry.openIndexes();
    const { tokens, bearers, oidc } = openTokens(auth, { pki, lookup: registry.lookup, clock, log });
    const kubelets = new KubeletClient(pki.clients['kubelet-client'], tracer);
    serveComponentStatuses(registry, options.components ?? []);
    const nodeMetrics = serveMetrics(registry, { kubelets, log });
    const proxy = new Proxies([new BackendProxy(registry.lookup, tracer), new KubeletProxy(registry, kubelets)]);
    const converter = new Converter({ clock });
    const trim = (text: string): Promise<string> => converter.convert('without-managed-fields', text);
    const audit = await openAudit(options.audit ?? {}, { clock, log, trim, onEvent: () => metrics.auditEvent() });
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    const flow = flowControlOf(limits, clock, metrics);
    const widths = new Widths();
    const { lookup, authorizer } = registry;
    const reviews = { tokens, bearers, lookup, authorizer, now: () => clock.now() };
    const resources = new ResourceHandler(registry, reviews, converter);
    const authenticator = new Authenticator({
      tokens: bearers,
      cas: clientCa,
      onCertificate: (seconds) => metrics.certificate(seconds),
      requestHeaders: proxyCa && new RequestHeaders(proxyCa.settings, proxyCa.ca),
    });
    const guard = guardOf(options, log);
    const onAuthenticated = (socket: Duplex): void => guard.authenticated(socket);
    const { discovery } = kinds;
    const state = { finished: new Set<PostStartHook>(), closing: false };
    const aggregation = new AggregationProxy(registry, pki.frontProxy.client);
    const parts = {
      ...{
        aggregation,
        metrics,
        audit,
        widths,
        registry,
        resources,
        converter,
        authenticator,
        tokens,
        discovery,
        proxy,
      },
      ...(snapshots === undefined ? {} : { snapshot: () => snapshots.file() }),
      ...gateOf(limits, flow, widths),
      requestTimeoutMs: limits.requestTimeoutMs,
      health: healthChecks(store, state, flow !== undefined),
      log,
      onAuthenticated,
    };
    const handler = new Handler({ ...parts, anonymousAuth: auth.anonymousAuth });
    const http2 = { ...DEFAULT_HTTP2, ...options.http2 };
    const app = buildApp({ metrics, registry, pki, cas, handler, proxy, aggregation, guard, clock, http2 });
    app.server.on('tlsClientError', () => metrics.handshakeFailed());
    objectMetrics(registry, {
      registers: metrics.registers,
      ...(options.etcd === undefined ? { path: options.dbPath } : {}),
    });
    oidc?.start();
    for (const ca of cas) ca.follow(() => app.server.setSecureContext(tlsOf(pki, cas)));
    const port = await listen(app, address, options.port);
    const stopHooks = await runPostStartHooks({
      ...{ registry, store, pki, clientCas: clientCa.bundle, metrics, flow, aggregation, serviceCidrs, clock, log },
      advertised: { address: publicAddress, port },
      onFinished: (...hooks) => {
        for (const hook of hooks) state.finished.add(hook);
      },
    });
    snapshots?.start();
    let closing: Promise<void> | undefined;
    const close = async (): Promise<void> => {
      state.closing = true;
      await stopHooks();
      for (const ca of cas) ca.stop();
      oidc?.stop();
      nodeMetrics?.stop();
      handler.close();
      proxy.close();
      guard.closeAll();
      await app.close();
      opened.stop();
      await snapshots?.stop();
      await audit?.close();
      await converter.close();
      store.close();
    };
    return {
      url: urlOf(options, port),
      port,
      pki,
      close: () => {
        closing ??= close();
        return closing;
      },
    };
  } catch (error) {
    for (const ca of cas) ca.stop();
    opened.stop();
    store.close();
    if (error instanceof StoreFullError) throw new UserError(error.message);
    throw error;
  }
}

/** The certificates of the server, for every name by which it is reached. */
function pkiOf(options: ApiServerOptions, serviceCidr: string): Promise<Pki> {
  const { address, advertiseAddress, hosts, nodeName = hostname().toLowerCase(), clock } = options;
  return ensurePki(options.pkiDir, {
    hosts: [
      ...(isUnspecified(address) ? [] : [address]),
      ...(advertiseAddress === undefined ? [] : [advertiseAddress]),
      firstServiceAddress(serviceCidr),
      ...hosts,
    ],
    nodeName,
    now: clock.now(),
  });
}

/** The lab's own CA counts beside that of --client-ca-file. */
function clientCaOf({ auth = {}, clock }: ApiServerOptions, { ca }: Pki, log: (message: string) => void): ClientCa {
  const { clientCaFile = ca.certPath } = auth;
  const always = clientCaFile === ca.certPath ? undefined : ca.cert;
  return new ClientCa({ path: clientCaFile, always, clock, log });
}

function guardOf({ connections, clock }: ApiServerOptions, log: (message: string) => void): ConnectionGuard {
  return new ConnectionGuard({
    limits: () => connections?.limits ?? apiServerLimits(openFilesLimit()),
    ...(connections?.timeouts === undefined ? {} : { timeouts: connections.timeouts }),
    clock,
    log,
  });
}

function urlOf({ address, advertiseHost }: ApiServerOptions, port: number): string {
  const host = advertiseHost ?? (isUnspecified(address) ? '127.0.0.1' : address);
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Which requests may go on: by priority and fairness, or by plain maxima of requests in flight. */
function gateOf(limits: RequestLimits, flow: FlowControl | undefined, widths: Widths) {
  if (flow === undefined) return { gate: new InFlight(limits) };
  return {
    gate: new FlowGate(flow, widths),
    flowDump: (path: string, query: URLSearchParams) => dump(path, query, flow.levels),
  };
}

/** Undefined without --enable-priority-and-fairness. */
function flowControlOf(limits: RequestLimits, clock: Clock, metrics: Metrics): FlowControl | undefined {
  if (!limits.priorityAndFairness) return undefined;
  const total = limits.maxRequestsInflight + limits.maxMutatingRequestsInflight;
  const observer = new FlowMetrics(metrics.registers);
  const flow = new FlowControl({ clock, total, observer });
  observer.show(flow);
  return flow;
}

interface ServingState {
  readonly finished: ReadonlySet<PostStartHook>;
  readonly closing: boolean;
}

/** With kube-apiserver's names, in its order. */
function healthChecks(store: ObjectStore, state: ServingState, hasFlowControl: boolean): readonly HealthCheck[] {
  const need = (good: boolean, why: string): void => {
    if (!good) throw new Error(why);
  };
  const finished = (hook: PostStartHook) => () => need(state.finished.has(hook), 'not finished');
  const hooks = POST_START_HOOKS.filter((hook) => hasFlowControl || !hook.startsWith('priority-and-fairness'));
  return [
    { name: 'ping', check: () => undefined },
    // Lines are written without a queue that could stand still.
    { name: 'log', check: () => undefined },
    { name: 'etcd', check: () => store.check() },
    { name: 'etcd-readiness', readinessOnly: true, check: () => store.check() },
    { name: 'informer-sync', readinessOnly: true, check: finished('generic-apiserver-start-informers') },
    ...hooks.map((hook) => ({ name: `poststarthook/${hook}`, check: finished(hook) })),
    { name: 'autoregister-completion', check: finished('kube-apiserver-autoregistration') },
    { name: 'shutdown', readinessOnly: true, check: () => need(!state.closing, 'process is shutting down') },
  ];
}

type App = ReturnType<typeof buildApp>;

interface AppParts extends MeasureParts {
  readonly pki: Pki;
  /** Of clients, and of authenticating proxies. */
  readonly cas: readonly ClientCa[];
  readonly handler: Handler;
  readonly proxy: RequestProxy;
  readonly aggregation: AggregationProxy;
  readonly guard: ConnectionGuard;
  readonly http2: Http2ServingOptions;
}

/** Of connections from now on. */
function tlsOf(pki: Pki, cas: readonly ClientCa[]) {
  const { cert, key } = pki.serving;
  return { cert, key, ca: cas.map(({ bundle }) => bundle), minVersion: 'TLSv1.2' as const };
}

function buildApp(parts: AppParts) {
  const { pki, cas, handler, guard, clock, http2 } = parts;
  const tls = {
    ...tlsOf(pki, cas),
    requestCert: true,
    // A client without a certificate may have a token; auth/ checks both.
    rejectUnauthorized: false,
  };
  const app = fastify<Server>({
    serverFactory: (request) =>
      guard.createServer(tls, {
        request: (message, response) => {
          // No route is for it.
          if (message.method === 'CONNECT') void refuseConnect(handler, message, response, clock);
          else request(message, response);
        },
        upgrade: (message, socket, head) => void handleUpgrade(parts, message, socket, head),
        ...(http2.isDisabled ? {} : { http2: { maxStreams: http2.maxStreams } }),
      }),
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    frameworkErrors: (error, request, reply) => {
      void sendFailure(parts, badRequest(error.message), request, reply);
    },
  });
  const admitted = new WeakMap<HttpRequest, AdmittedRequest>();
  // Before any byte of a body is read.
  app.addHook('onRequest', async (request, reply) => {
    measure(parts, request.raw, reply.raw);
    // What is under way on the connection goes on, this request as well.
    if (http2.goawayChance > 0 && Math.random() < http2.goawayChance) guard.goAway(request.raw);
    try {
      const auditId = auditIdOf(request.raw);
      reply.raw.setHeader('Audit-Id', auditId);
      const endWithResponse = (visit: Visit): void => {
        visit.setHeader = (name, value) => reply.raw.setHeader(name, value);
        visit.onWaited = (ms) => note(reply.raw, { waited: ms / 1000 });
        reply.raw.once('close', () => visit.end(reply.raw.headersSent ? reply.raw.statusCode : undefined));
      };
      const received = await handler.receive(request.raw, endWithResponse, auditId);
      admitted.set(request.raw, received);
      if (handler.isLongRunning(received)) guard.allowTime(reply.raw, LONG_RUNNING_MS);
      // A body that is too large is refused by its length, unsent.
      if (Number(request.headers['content-length'] ?? 0) <= MAX_BODY_BYTES) continueBody(request.raw, reply.raw);
    } catch (error) {
      await sendFailure(parts, error, request, reply);
      return reply;
    }
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.all('/*', async (request, reply) => {
    const received = admitted.get(request.raw);
    if (received === undefined) throw new Error('the request was not admitted before its body was read');
    await serve(parts, received, request, reply);
    return reply;
  });
  app.setErrorHandler(async (error, request, reply) => {
    const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
    const status = code === 'FST_ERR_CTP_BODY_TOO_LARGE' ? tooLarge(MAX_BODY_BYTES) : badRequest(errorMessage(error));
    await sendFailure(parts, status, request, reply);
    return reply;
  });
  return app;
}

type Request = FastifyRequest<RouteGenericInterface, Server>;
type Response = FastifyReply<RouteGenericInterface, Server>;

async function serve(parts: AppParts, admitted: AdmittedRequest, request: Request, reply: Response): Promise<void> {
  const body = request.body instanceof Buffer ? request.body : EMPTY;
  measureBody(parts, admitted.parsed, body.length);
  const answer = await parts.handler.handle({
    admitted,
    request: request.raw,
    response: reply.raw,
    body,
    hijack: () => reply.hijack(),
  });
  if (answer !== undefined) send(parts, answer, request, reply);
}

/**
 * Without fastify: to the type of a string it adds a charset, and the first kubectls of 1.27 know discovery by its exact type.
 * A short text goes out as it is: Node puts it behind the head into one TLS record, where bytes would have one of their own.
 */
function send({ clock }: AppParts, answer: Reply, request: Request, reply: Response): void {
  reply.hijack();
  const { code, parts } = answer;
  const isUnread = isBodyUnread(request.raw);
  const whole = (): string | Uint8Array => (parts === undefined ? answer.body : Buffer.concat(parts));
  const length =
    parts === undefined ? Buffer.byteLength(answer.body) : parts.reduce((sum, part) => sum + part.length, 0);
  note(reply.raw, { bytes: length });
  const isLarge = length > COMPRESSED_FROM;
  const headers = {
    'content-type': answer.contentType,
    ...(isLarge ? varyByEncoding(answer.headers) : answer.headers),
  };
  if (isLarge && request.method !== 'HEAD' && acceptsGzip(request.headers['accept-encoding'])) {
    void compressed(bytesOf(whole())).then(
      (bytes) => sendResponse(reply.raw, code, compressedHeaders(headers), bytes, clock),
      () => breakOff(reply.raw),
    );
    return;
  }
  if (parts !== undefined && !isUnread) {
    void sendParts(reply.raw, code, headers, parts);
    return;
  }
  const body = whole();
  if (isUnread || length >= LARGE_RESPONSE_BYTES) {
    sendResponse(reply.raw, code, headers, bytesOf(body), clock);
    return;
  }
  reply.raw.writeHead(code, { ...headers, 'content-length': length });
  endResponse(reply.raw, body);
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

async function sendFailure(parts: AppParts, error: unknown, request: Request, reply: Response): Promise<void> {
  if (error instanceof OverloadError) note(reply.raw, { terminated: true });
  send(parts, await parts.handler.failure(error, request.raw), request, reply);
}

async function listen(app: App, host: string, port: number): Promise<number> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    const where = `${host}:${port}`;
    if (isErrno(error, 'EADDRINUSE'))
      throw new UserError(`port ${port} on ${host} is taken; choose another with --port`);
    if (isErrno(error, 'EACCES', 'EADDRNOTAVAIL', 'ENOTFOUND')) {
      throw new UserError(`cannot listen on ${where}: ${errorMessage(error)}`);
    }
    throw error;
  }
  const bound = app.server.address();
  return typeof bound === 'object' && bound !== null ? bound.port : port;
}
