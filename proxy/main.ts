// A proxy in one process: list-watches of services, slices and its own node, the rules, and the HTTP servers. An ordinary client
// of an API server.

import { setMaxListeners } from 'node:events';
import type { RequestListener, Server } from 'node:http';
import { networkInterfaces } from 'node:os';
import { ApiClient } from '../client/api.ts';
import type { ClusterAccess } from '../client/kubeconfig.ts';
import { type Query, resourcePath } from '../client/paths.ts';
import { EVENT_DELAY_MS, Recorder } from '../client/recorder.ts';
import { Reflector } from '../client/reflector.ts';
import type { Identified } from '../client/store.ts';
import type { EndpointSlice, Node, Service } from '../client/types.ts';
import { logWatch } from '../client/watch-log.ts';
import { readFileIfExists } from '../lib/atomic.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { exec } from '../lib/exec.ts';
import { answerHealth } from '../lib/health-checks.ts';
import { HealthSlis } from '../lib/health-slis.ts';
import { closeServer, listen, respondMetrics } from '../lib/http-listen.ts';
import { RestClientMetrics } from '../lib/rest-client-metrics.ts';
import type { Tracer } from '../lib/trace.ts';
import { tracedExec } from '../lib/traced-exec.ts';
import type { Backend } from './backend.ts';
import { healthzBody, isHealthy, ServiceHealth } from './health.ts';
import { IptablesBackend } from './iptables/iptables.ts';
import { ProxyMetrics } from './metrics.ts';
import type { RuleOptions } from './options.ts';
import { ServiceProxy } from './proxy.ts';
import { containsAddress } from './ranges.ts';

export type ProxyMode = 'iptables' | 'nftables';

export interface ProxyOptions {
  /** Identity of the proxy (system:kube-proxy). */
  readonly access: ClusterAccess;
  readonly nodeName: string;
  readonly mode: ProxyMode;
  readonly clusterCidr?: string;
  readonly masqueradeAll: boolean;
  readonly masqueradeBit: number;
  /** Ranges of the node's addresses that take node ports; empty: all. */
  readonly nodePortAddresses: readonly string[];
  readonly localhostNodePorts: boolean;
  readonly syncPeriodMs: number;
  /** "address:port"; '' for none. */
  readonly healthzAddress: string;
  readonly metricsAddress: string;
  /** Written beside the rules. */
  readonly owner: string;
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly log: (message: string) => void;
  readonly signal: AbortSignal;
  /** Called once all that was there has been written. */
  readonly onReady?: () => void;
}

/** The node's IPv4 addresses. */
function nodeAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((each) =>
    (each ?? []).filter(({ family }) => family === 'IPv4').map(({ address }) => address),
  );
}

/** Whether the kernel lets packets of no known connection pass. */
async function conntrackIsLiberal(): Promise<boolean> {
  return (await readFileIfExists('/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal'))?.trim() === '1';
}

async function backendOf({ mode, owner, tracer }: ProxyOptions): Promise<Backend> {
  const run = tracedExec(tracer, 'netfilter', exec);
  if (mode === 'iptables') return new IptablesBackend(owner, run);
  const { NftablesBackend } = await import('./nftables/nftables.ts');
  return new NftablesBackend(owner, run);
}

/** Runs until the signal aborts; its rules stay, as those of kube-proxy do. Rejects where a port is taken. */
export async function runProxy(options: ProxyOptions): Promise<void> {
  const { clock, log, signal, nodeName } = options;
  setMaxListeners(0, signal);
  const client = new ApiClient(options.access, { tracer: options.tracer, clock, userAgent: 'nodelet-proxy' });
  const watch = <T extends Identified>(what: string, path: string, query: Query = {}): Reflector<T> =>
    new Reflector<T>({
      client,
      path,
      query,
      clock,
      ...logWatch(what, log),
    });
  const mine = { labelSelector: '!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name' };
  const services = watch<Service>('services', resourcePath('v1', 'services'), mine);
  const slices = watch<EndpointSlice>('endpointslices', resourcePath('discovery.k8s.io/v1', 'endpointslices'), mine);
  const nodes = watch<Node>('nodes', resourcePath('v1', 'nodes'), { fieldSelector: `metadata.name=${nodeName}` });
  const requests = new RestClientMetrics(new URL(options.access.server).host);
  options.tracer.subscribe(requests.take);
  const metrics = new ProxyMetrics(options.mode, requests, clock.now());
  const liberal = await conntrackIsLiberal();
  const healthy = (): boolean => isHealthy(proxy.times, clock.now(), 2 * options.syncPeriodMs);
  const health = new ServiceHealth(healthy, log);
  const proxy: ServiceProxy = new ServiceProxy({
    services: services.store,
    slices: slices.store,
    nodes: nodes.store,
    backend: await backendOf(options),
    metrics,
    health,
    tracer: options.tracer,
    clock,
    log,
    nodeName,
    syncPeriodMs: options.syncPeriodMs,
    options: () => ruleOptions(options, liberal, nodes.store.get(nodeName)),
    nodeIPs: () => new Set(nodeAddresses()),
    ...(options.onReady === undefined ? {} : { onFirstSync: options.onReady }),
  });
  const servers = await serve(options, proxy, metrics, healthy);
  const recorder = new Recorder({
    ...{ client, clock, tracer: options.tracer, component: 'kube-proxy', host: nodeName, delayMs: EVENT_DELAY_MS },
    onDropped: (what, error) => log(`event not recorded: ${what}: ${errorMessage(error)}`),
  });
  try {
    // As kube-proxy's: without a message, and with the node's name in the place of its uid.
    const node = { kind: 'Node', apiVersion: 'v1', metadata: { name: nodeName, uid: nodeName } };
    recorder.event(node, 'Normal', 'Starting', '');
    const watching = Promise.all([services.run(signal), slices.run(signal), nodes.run(signal)]);
    const synced = Promise.all([services, slices, nodes].map(({ store }) => store.whenSynced()));
    await Promise.race([synced, watching]);
    await Promise.all([watching, proxy.run(signal)]);
  } finally {
    recorder.close();
    health.close();
    for (const server of servers) closeServer(server);
    client.close();
  }
}

function ruleOptions(options: ProxyOptions, liberal: boolean, node: Node | undefined): RuleOptions {
  const { clusterCidr, masqueradeAll, masqueradeBit, nodePortAddresses, localhostNodePorts } = options;
  return {
    clusterCidr,
    masqueradeAll,
    masqueradeBit,
    nodePortIPs: nodePortAddresses.length === 0 ? undefined : chosenAddresses(nodePortAddresses, localhostNodePorts),
    localhostNodePorts,
    dropInvalid: !liberal,
    nodeIP: node?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address,
  };
}

/** 127.0.0.1 takes none unless it is allowed to: without route_localnet the kernel drops such packets. */
function chosenAddresses(ranges: readonly string[], localhost: boolean): readonly string[] {
  return nodeAddresses().filter(
    (ip) => ranges.some((range) => containsAddress(range, ip)) && (localhost || !ip.startsWith('127.')),
  );
}

/** /healthz and /livez, as load balancers and operators read them. */
function healthHandler(
  { clock }: ProxyOptions,
  proxy: ServiceProxy,
  metrics: ProxyMetrics,
  healthy: () => boolean,
): RequestListener {
  return (request, response) => {
    const path = request.url?.split('?')[0];
    if (path !== '/healthz' && path !== '/livez') {
      response.writeHead(404).end();
      return;
    }
    const name = path === '/healthz' ? 'healthz' : 'livez';
    const eligible = name === 'healthz' ? proxy.nodeEligible : undefined;
    const code = healthy() && eligible !== false ? 200 : 503;
    metrics.probed(name, code);
    response.writeHead(code, { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' });
    response.end(healthzBody(proxy.times, clock.now(), eligible));
  };
}

/** Its /healthz says that the process answers, as kube-proxy's there does; whether rules are written is the other port's. */
function metricsHandler({ mode }: ProxyOptions, metrics: ProxyMetrics): RequestListener {
  const slis = new HealthSlis();
  const answers = async (url: string): Promise<string> => {
    const { pathname, searchParams } = new URL(url, 'http://proxy');
    const health = await answerHealth(pathname, searchParams, [{ name: 'ping', check: () => undefined }], slis);
    return health?.body ?? '';
  };
  return (request, response) => {
    const path = request.url?.split('?')[0];
    if (path === '/proxyMode') response.end(mode);
    else if (path === '/metrics') respondMetrics(response, metrics.text());
    else if (path === '/metrics/slis') respondMetrics(response, Promise.resolve(slis.text()));
    else if (path === '/healthz') void answers(request.url ?? path).then((body) => response.end(body));
    else response.writeHead(404).end();
  };
}

async function serve(
  options: ProxyOptions,
  proxy: ServiceProxy,
  metrics: ProxyMetrics,
  healthy: () => boolean,
): Promise<readonly Server[]> {
  const { healthzAddress, metricsAddress } = options;
  const servers = [];
  if (healthzAddress !== '')
    servers.push(await listen(healthHandler(options, proxy, metrics, healthy), healthzAddress));
  if (metricsAddress !== '') servers.push(await listen(metricsHandler(options, metrics), metricsAddress));
  return servers;
}
