// The embedded API server: puts the parts together and listens. Composition only: semantics are in registry/,
// HTTP in app.ts and http/.

import { hostname } from 'node:os';
import type { Duplex } from 'node:stream';
import type { Clock } from '../lib/clock.ts';
import { ConnectionGuard } from '../lib/connection-guard.ts';
import { type ConnectionLimits, connectionLimits } from '../lib/connection-limits.ts';
import { openFilesLimit } from '../lib/descriptors.ts';
import { UserError } from '../lib/errors.ts';
import { admissionOf } from './admission/create.ts';
import { AdmissionDurations } from './admission/durations.ts';
import { isUnspecified, reachableAddress } from './advertised.ts';
import { AggregationProxy } from './aggregation/proxy.ts';
import { buildApp, listen, tlsOf } from './app.ts';
import { openAudit } from './audit/open.ts';
import { Authenticator } from './auth/authenticate.ts';
import { ChainAuthorizer } from './auth/authorize.ts';
import { ClientCa } from './auth/client-ca.ts';
import type { AnonymousConfig } from './auth/oidc/configuration.ts';
import { type OpenTokens, openTokens } from './auth/open-tokens.ts';
import { followPolicy } from './auth/rbac/follow.ts';
import { RbacPolicy } from './auth/rbac/policy.ts';
import { openProxyCa, type ProxyCa, RequestHeaders } from './auth/request-header.ts';
import { serveComponentStatuses } from './component-status.ts';
import { dump } from './flowcontrol/dump.ts';
import { FlowControl } from './flowcontrol/flow-control.ts';
import { FlowMetrics } from './flowcontrol/metrics.ts';
import { Widths } from './flowcontrol/widths.ts';
import { Converter } from './http/convert-aside.ts';
import { FlowGate } from './http/gate.ts';
import { Handler } from './http/handler.ts';
import { DEFAULT_LIMITS, InFlight, type RequestLimits } from './http/in-flight.ts';
import { ResourceHandler } from './http/resources.ts';
import { DEFAULT_SERVICE_CIDR, familiesOf, firstServiceAddress } from './kinds/services/ranges.ts';
import { Metrics } from './metrics.ts';
import { serveMetrics } from './metrics-api/serve.ts';
import { objectMetrics } from './object-metrics.ts';
import { type OpenedStore, openStore } from './open-store.ts';
import type { ApiServerOptions, Http2ServingOptions, RunningApiServer } from './options.ts';
import { ensurePki } from './pki/ensure.ts';
import type { Pki } from './pki/types.ts';
import type { KindParts } from './ports.ts';
import { type PostStartHook, runPostStartHooks } from './post-start-hooks.ts';
import { BackendProxy } from './proxy/backend.ts';
import { KubeletClient } from './proxy/kubelet.ts';
import { KubeletProxy } from './proxy/proxy.ts';
import { Proxies } from './proxy/types.ts';
import { Registry } from './registry/registry.ts';
import { healthChecks } from './serving-health.ts';
import { StoreFullError } from './storage/object-store.ts';

const DEFAULT_HTTP2: Http2ServingOptions = { isDisabled: false, maxStreams: 100, goawayChance: 0 };

/**
 * Connections of a process that may open so many files; the rest are the store's and the kubelets'. After a restart every
 * watch of an agent comes back at the same moment, a connection each that has not authenticated yet.
 */
export function apiServerLimits(openFiles: number): ConnectionLimits {
  return connectionLimits({ openFiles, reserved: 128, most: 4096, mostUnauthenticated: 512 });
}

/** What a server is made of before it has any part that answers requests. */
interface Ground {
  readonly options: ApiServerOptions;
  readonly kinds: KindParts;
  readonly network: ServerNetwork;
  readonly pki: Pki;
  readonly clientCa: ClientCa;
  readonly proxyCa: ProxyCa | undefined;
  /** Both of them. */
  readonly cas: readonly ClientCa[];
  readonly metrics: Metrics;
  readonly opened: OpenedStore;
  readonly log: (line: string) => void;
}

/**
 * Starts the server. Rejects with UserError when the address is taken or cannot be listened on, or when the store is
 * in use.
 */
export async function startApiServer(options: ApiServerOptions, kinds: KindParts): Promise<RunningApiServer> {
  const { clock, tracer } = options;
  const log = options.log ?? (() => undefined);
  const network = networkOf(options);
  const pki = await pkiOf(options, network.firstCidr);
  const clientCa = clientCaOf(options, pki, log);
  const proxyCa = openProxyCa(options.auth?.requestHeader, { clock, log });
  const cas = [clientCa, ...(proxyCa === undefined ? [] : [proxyCa.ca])];
  const metrics = new Metrics();
  const opened = await openStore(options, { kinds: kinds.kinds.all, clock, tracer, log, metrics });
  try {
    return await serveStore({ options, kinds, network, pki, clientCa, proxyCa, cas, metrics, opened, log });
  } catch (error) {
    for (const ca of cas) ca.stop();
    opened.stop();
    opened.store.close();
    if (error instanceof StoreFullError) throw new UserError(error.message);
    throw error;
  }
}

async function serveStore(ground: Ground): Promise<RunningApiServer> {
  const { options, network, pki, clientCa, cas, metrics, opened, log } = ground;
  const { clock } = options;
  const { store, snapshots } = opened;
  const registry = registryOf(ground);
  const serving = await servingOf(ground, registry);
  const { app, flow, aggregation, state, opening } = serving;
  app.server.on('tlsClientError', () => metrics.handshakeFailed());
  objectMetrics(registry, {
    registers: metrics.registers,
    ...(options.etcd === undefined ? { path: options.dbPath } : {}),
  });
  const stopTokens = opening.start();
  for (const ca of cas) ca.follow(() => app.server.setSecureContext(tlsOf(pki, cas)));
  const port = await listen(app, options.address, options.port);
  const stopHooks = await runPostStartHooks({
    ...{ registry, store, pki, clientCas: clientCa.bundle, metrics, flow, aggregation, clock, log },
    serviceCidrs: network.serviceCidrs,
    hostname: hostname(),
    advertised: { address: network.publicAddress, port },
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
    stopTokens();
    await serving.close();
    opened.stop();
    await snapshots?.stop();
    await serving.closeLast();
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
}

/** The registry with its admission and its policy, and its indexes open. */
function registryOf({ options, kinds, network, pki, metrics, opened, log }: Ground): Registry {
  const { nodeAudiences = [], auth = {}, clock } = options;
  const { kinds: rows, checkBody } = kinds;
  const policy = new RbacPolicy();
  const registry = new Registry({
    ...{ store: opened.store, clock, kinds: rows, checkBody, nodeAudiences },
    serviceFamilies: network.serviceFamilies,
    continueKey: pki.serviceAccount.key,
    admission: admissionOf(options.admission ?? {}, {
      nodeAudiences,
      log,
      durations: new AdmissionDurations(metrics.registers, clock),
    }),
    authorizer: ({ lookup }) => new ChainAuthorizer(policy, lookup, auth.authorizationMode),
  });
  followPolicy(registry, policy);
  registry.openIndexes();
  return registry;
}

/** Everything between a connection and the registry, not listening yet. */
async function servingOf(ground: Ground, registry: Registry) {
  const { options, kinds, pki, cas, metrics, opened, log } = ground;
  const { clock, tracer } = options;
  const { store, snapshots } = opened;
  const opening = openTokens(options.auth ?? {}, { pki, lookup: registry.lookup, clock, log });
  const { tokens } = opening;
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
  const reviews = { tokens, bearers: opening.bearers, lookup, authorizer, now: () => clock.now() };
  const resources = new ResourceHandler(registry, reviews, converter);
  const authenticator = authenticatorOf(ground, opening);
  const guard = guardOf(options, log);
  const state = { finished: new Set<PostStartHook>(), closing: false };
  const aggregation = new AggregationProxy(registry, pki.frontProxy.client);
  const handler = new Handler({
    ...{ aggregation, metrics, audit, widths, registry, resources, converter, authenticator, tokens, proxy },
    discovery: kinds.discovery,
    ...(snapshots === undefined ? {} : { snapshot: () => snapshots.file() }),
    ...gateOf(limits, flow, widths),
    requestTimeoutMs: limits.requestTimeoutMs,
    health: healthChecks(store, state, flow !== undefined),
    log,
    onAuthenticated: (socket: Duplex) => guard.authenticated(socket),
    anonymous: opening.anonymous ?? anonymousOf(options.auth?.anonymousAuth),
  });
  const http2 = { ...DEFAULT_HTTP2, ...options.http2 };
  const app = buildApp({ metrics, registry, pki, cas, handler, proxy, aggregation, guard, clock, http2 });
  return {
    ...{ app, flow, aggregation, state, opening },
    /** Ends connections. */
    close: async () => {
      nodeMetrics?.stop();
      handler.close();
      proxy.close();
      guard.closeAll();
      await app.close();
    },
    /** Ends what requests that are under way may still need. */
    closeLast: async () => {
      await audit?.close();
      await converter.close();
    },
  };
}

/** By the flag; undefined without it. */
function anonymousOf(flag: boolean | undefined): AnonymousConfig | undefined {
  return flag === undefined ? undefined : { enabled: flag, conditions: [] };
}

function authenticatorOf({ clientCa, proxyCa, metrics }: Ground, { bearers }: OpenTokens): Authenticator {
  return new Authenticator({
    tokens: bearers,
    cas: clientCa,
    onCertificate: (seconds) => metrics.certificate(seconds),
    requestHeaders: proxyCa && new RequestHeaders(proxyCa.settings, proxyCa.ca),
  });
}

interface ServerNetwork {
  readonly serviceCidrs: readonly string[];
  readonly firstCidr: string;
  readonly serviceFamilies: ReturnType<typeof familiesOf>;
  /** Where the cluster reaches this server; undefined where the machine has no address but loopback. */
  readonly publicAddress: string | undefined;
}

function networkOf(options: ApiServerOptions): ServerNetwork {
  const { serviceCidrs = [DEFAULT_SERVICE_CIDR] } = options;
  const [firstCidr = DEFAULT_SERVICE_CIDR] = serviceCidrs;
  const serviceFamilies = familiesOf(serviceCidrs);
  const publicAddress = reachableAddress(options, firstCidr, serviceFamilies[0] ?? 'IPv4');
  return { serviceCidrs, firstCidr, serviceFamilies, publicAddress };
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
