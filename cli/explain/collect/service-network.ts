// How a Service is reached from one pod of this machine: the rules of the node's proxy, connections to the Service's addresses, and
// its name, by the pod's own resolv.conf. Connections and DNS questions are made in the pod's network namespace; nothing is changed.

import { constants } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import { parseResolvConf, type ResolvConf } from '../../../agent/runtime/config/dns.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Pod, Service, Stored } from '../../../client/types.ts';
import { isErrno } from '../../../lib/errors.ts';
import { exec } from '../../../lib/exec.ts';
import type { ConnectFact, DnsAnswer, DnsFacts, ProxyFacts } from '../facts.ts';
import { type DnsQuestion, type ProbeRequest, type ProbeResult, probeNetwork } from '../network-probe.ts';
import { iptablesProxy, nftablesProxy } from '../proxy-rules.ts';
import { clusterDomain, dnsEndpoints, familyOf, serverAt, serviceName, serviceOf } from '../service-dns.ts';
import { findAgent } from './agent-of-node.ts';
import { probeIn } from './probe-in.ts';
import type { Gaps, LocalNode, Sources } from './source.ts';

/** For giving up on a program only. ms */
const PROGRAM_MS = 15_000;
/** Of a resolv.conf that is read. Bytes. */
const MAX_RESOLV_CONF = 64 * 1024;
/** Addresses and ports of one Service that are tried. */
const MAX_CONNECTS = 6;
const MAX_SERVERS = 3;
const HIGHEST_PORT = 65_535;

/** A pod of this machine, with one of its processes. */
export interface LocalPod {
  readonly pod: Pod;
  readonly pid: string;
}

/** The program's output in the given network namespace; undefined where the program is not there. */
async function output(namespace: string | undefined, program: string, ...args: string[]): Promise<string | undefined> {
  const [file, ...rest] =
    namespace === undefined ? [program, ...args] : ['nsenter', `--net=${namespace}`, program, ...args];
  if (file === undefined) return undefined;
  try {
    const { code, stdout } = await exec(file, rest, { timeoutMs: PROGRAM_MS });
    return code === 0 ? stdout : undefined;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** `family`: of the Service's addresses. */
export async function collectProxy(
  { networkNamespace }: Pick<LocalNode, 'networkNamespace'>,
  gaps: Gaps,
  family: 4 | 6,
): Promise<ProxyFacts | undefined> {
  const [save, table] = family === 4 ? ['iptables-save', 'ip'] : ['ip6tables-save', 'ip6'];
  const [saved, listed] = await Promise.all([
    output(networkNamespace, save, '-t', 'nat'),
    // Fails where there is no such table.
    output(networkNamespace, 'nft', '-j', 'list', 'table', table, 'kube-proxy'),
  ]);
  const found = iptablesProxy(saved ?? '') ?? nftablesProxy(listed ?? '');
  if (found !== undefined) return found;
  if (saved === undefined) {
    gaps.add('the rules of the node’s proxy', `${save} is not there, or failed`);
    return undefined;
  }
  return { kind: 'none', rules: [] };
}

async function probeFrom(namespace: string | undefined, gaps: Gaps, request: ProbeRequest): Promise<ProbeResult> {
  const nothing = { connects: [], answers: [] };
  if (request.connects.length === 0 && request.questions.length === 0) return nothing;
  if (namespace === undefined) return await probeNetwork(request);
  const probed = await probeIn(namespace, request);
  if (probed.failure === undefined) return probed.result;
  // The pod has ended meanwhile, or there is no such namespace.
  gaps.add('connections and DNS', probed.failure);
  return nothing;
}

/** The pod's own; the last part of its path is no link, and no pipe that would block. */
async function resolvConfOf(pid: string): Promise<ResolvConf> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(`/proc/${pid}/root/etc/resolv.conf`, flags);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_RESOLV_CONF), 0, MAX_RESOLV_CONF, 0);
    return parseResolvConf(buffer.toString('utf8', 0, bytesRead));
  } finally {
    await file.close();
  }
}

/** The resolvers of the node, as the agent and a DNS server with dnsPolicy Default use them. */
async function nodeResolvers(local: LocalNode, gaps: Gaps): Promise<readonly string[]> {
  const agent = await findAgent(local, gaps);
  const configured = agent?.config.get('resolvConf');
  const path = typeof configured === 'string' && configured !== '' ? configured : '/etc/resolv.conf';
  return parseResolvConf(await readFile(path, 'utf8')).servers;
}

interface PlannedHop {
  readonly server: string;
  readonly service: string | undefined;
  readonly endpoints: readonly string[];
}

/** Each server of the resolv.conf, with the Service that has its address and that Service's endpoints. */
async function plan({ client }: Sources, servers: readonly string[]): Promise<readonly PlannedHop[]> {
  const { items: services } = await client.list<Service>(resourcePath('v1', 'services'));
  const hops = servers.slice(0, MAX_SERVERS).map(async (address): Promise<PlannedHop> => {
    const service = serviceOf(address, services);
    if (service === undefined) return { server: serverAt(address), service: undefined, endpoints: [] };
    const { name, namespace = '' } = service.metadata;
    const path = resourcePath('discovery.k8s.io/v1', 'endpointslices', { namespace });
    const query = { labelSelector: `kubernetes.io/service-name=${name}` };
    const { items } = await client.list<Stored<EndpointSlice>>(path, query);
    const endpoints = dnsEndpoints(service, items).slice(0, MAX_SERVERS);
    return { server: serverAt(address), service: `${namespace}/${name}`, endpoints };
  });
  return await Promise.all(hops);
}

export interface Reached {
  readonly connects: readonly ConnectFact[];
  /** Where this one opens as well, something on the way answers for any address: the others prove nothing. */
  readonly unusedPort: ConnectFact | undefined;
  readonly dns: DnsFacts | undefined;
}

interface DnsPlan {
  readonly name: string;
  readonly searches: readonly string[];
  readonly hops: readonly PlannedHop[];
}

async function planDns(sources: Sources, service: Service, pid: string): Promise<DnsPlan | undefined> {
  const { servers, searches } = await resolvConfOf(pid);
  const domain = clusterDomain(searches);
  if (domain === undefined) return undefined;
  return { name: serviceName(service, domain), searches, hops: await plan(sources, servers) };
}

function connectsOf({ spec }: Service): ProbeRequest['connects'] {
  const addresses = (spec?.clusterIPs ?? [spec?.clusterIP ?? '']).filter((each) => each !== '' && each !== 'None');
  const ports = (spec?.ports ?? []).filter(({ protocol }) => protocol === undefined || protocol === 'TCP');
  return addresses.flatMap((address) => ports.map(({ port }) => ({ address, port }))).slice(0, MAX_CONNECTS);
}

/** A port of the first address that the Service does not have. */
function unusedPortOf({ spec }: Service, [first]: ProbeRequest['connects']): ProbeRequest['connects'] {
  const used = new Set((spec?.ports ?? []).map(({ port }) => port));
  let port = HIGHEST_PORT;
  while (used.has(port)) port--;
  return first === undefined ? [] : [{ address: first.address, port }];
}

/** `from`: a pod of this machine; undefined: the node itself, which has no cluster DNS. `hasEndpoints`: else no one could answer. */
export async function collectReached(
  sources: Sources,
  local: LocalNode,
  gaps: Gaps,
  service: Service,
  { from, hasEndpoints }: { readonly from: LocalPod | undefined; readonly hasEndpoints: boolean },
): Promise<Reached> {
  const none: DnsPlan | undefined = undefined;
  const planned =
    from === undefined ? none : await gaps.attempt('the pod’s DNS', none, () => planDns(sources, service, from.pid));
  const family = familyOf(service);
  const question = (server: string, name: string): DnsQuestion => ({ server, name, family });
  const questions = (planned?.hops ?? []).flatMap(({ server, endpoints }) =>
    [server, ...endpoints].map((each) => question(each, planned?.name ?? '')),
  );
  const namespace = from === undefined ? local.networkNamespace : `/proc/${from.pid}/ns/net`;
  const wanted = hasEndpoints ? connectsOf(service) : [];
  const request = { connects: [...wanted, ...unusedPortOf(service, wanted)], questions };
  const { connects: all, answers } = await probeFrom(namespace, gaps, request);
  const tried = { connects: all.slice(0, wanted.length), unusedPort: all[wanted.length] };
  if (planned === undefined) return { ...tried, dns: undefined };
  const left = [...answers];
  const next = (): DnsAnswer => left.shift() ?? { server: '', name: '', addresses: [], error: 'ENODATA' };
  const hops = planned.hops.map(({ service: owner, endpoints }) => ({
    answer: next(),
    service: owner,
    endpoints: endpoints.map(next),
  }));
  const upstream = await collectUpstream(local, gaps, service);
  return { ...tried, dns: { name: planned.name, searches: planned.searches, hops, upstream } };
}

async function collectUpstream(local: LocalNode, gaps: Gaps, { spec }: Service): Promise<readonly DnsAnswer[]> {
  const { type, externalName } = spec ?? {};
  if (type !== 'ExternalName' || externalName === undefined) return [];
  return await gaps.attempt<readonly DnsAnswer[]>('the node’s resolvers', [], async () => {
    const servers = (await nodeResolvers(local, gaps)).slice(0, MAX_SERVERS);
    const questions = servers.map((address) => ({ server: serverAt(address), name: externalName, family: 4 as const }));
    return (await probeFrom(local.networkNamespace, gaps, { connects: [], questions })).answers;
  });
}
