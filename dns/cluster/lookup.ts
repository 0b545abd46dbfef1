// The records of Services, endpoints and pods: an answer as a function of the question, what the cluster has, and the options of the
// Corefile's kubernetes plugin. What CoreDNS answers is answered here, its SOA and its difference of NXDOMAIN and NODATA too. Pure.

import { matchesLabelSelector } from '../../client/selectors.ts';
import type { KubernetesSettings } from '../corefile/settings.ts';
import { type Question, Rcode, Type } from '../wire/message.ts';
import type { MadeReply, Resource } from '../wire/records.ts';
import { addressKey, addressOfPodName, isReverseZone, nameOfAddress, reverseAddress } from './addresses.ts';
import type { ClusterView, EndpointAddress, NamedPort, ServiceEntry } from './index.ts';
import { type ClusterQuery, isBelow, labelsBelow, matchingZone, parseClusterQuery } from './query.ts';

/** Of the specification that the names follow; the answer to dns-version. */
const SPECIFICATION = '1.1.0';
const VERSION_TTL = 28_800;
/** Of a chain of ExternalName Services inside of the domain. */
const MAX_ALIASES = 10;
/** Where no Service leads to this server, it is called this. */
const OWN_NAME = 'ns.dns';
const FULL_WEIGHT = 100;

export type Lookup =
  /** The name is none of the plugin's, or falls through. */
  | { readonly kind: 'next' }
  | { readonly kind: 'reply'; readonly reply: MadeReply }
  /** Another server has to be asked for `target`, and its answers come after these. */
  | { readonly kind: 'alias'; readonly records: readonly Resource[]; readonly target: string };

export interface LookupContext {
  readonly cluster: ClusterView;
  readonly settings: KubernetesSettings;
  /** Addresses on which this server listens. */
  readonly ownAddresses: readonly string[];
}

/** An address, with the name that a record of its own has. `port` -1: none. */
interface Found {
  readonly host: string;
  readonly port: number;
  readonly name: string;
}

/** What there is at a name. `undefined` stands for a name that does not exist, [] for one without such records. */
type Records = { readonly found: readonly Found[] } | { readonly alias: string } | undefined;

function exposed({ cluster, settings }: LookupContext, namespace: string): boolean {
  const labels = cluster.namespaceLabels(namespace);
  if (labels === undefined) return false;
  if (settings.namespaces.length > 0 && !settings.namespaces.includes(namespace)) return false;
  return settings.namespaceLabels === undefined || matchesLabelSelector(settings.namespaceLabels, labels);
}

function endpointName({ ip, hostname, targetName }: EndpointAddress, { endpointPodNames }: KubernetesSettings): string {
  if (hostname !== undefined) return hostname;
  return endpointPodNames && targetName !== undefined ? targetName : nameOfAddress(ip);
}

function matchesPort({ port, protocol }: ClusterQuery, named: NamedPort): boolean {
  return (port === '' || port === named.name.toLowerCase()) && (protocol === '' || protocol === named.protocol);
}

function serviceOf({ cluster, settings }: LookupContext, namespace: string, name: string): ServiceEntry | undefined {
  const service = cluster.service(namespace, name);
  if (service === undefined) return undefined;
  return settings.labels === undefined || matchesLabelSelector(settings.labels, service.labels) ? service : undefined;
}

function endpointsOf(context: LookupContext, query: ClusterQuery, zone: string): Records {
  const { cluster, settings } = context;
  const { namespace, name, endpoint } = query;
  if (settings.noEndpoints) return undefined;
  const found = cluster.slices(namespace, name).flatMap(({ addresses, ports }) =>
    addresses.flatMap((address) => {
      const own = endpointName(address, settings);
      if (endpoint !== '' && endpoint !== own.toLowerCase()) return [];
      const full = `${own}.${name}.${namespace}.svc.${zone}`;
      return ports
        .filter((port) => matchesPort(query, port))
        .map(({ port }) => ({ host: address.ip, port, name: full }));
    }),
  );
  return found.length === 0 ? undefined : { found };
}

function hasEndpoints({ cluster }: LookupContext, { namespace, name }: ServiceEntry): boolean {
  return cluster.slices(namespace, name).some(({ addresses }) => addresses.length > 0);
}

function recordsOfService(context: LookupContext, query: ClusterQuery, zone: string): Records {
  const service = serviceOf(context, query.namespace, query.name);
  if (service === undefined) return undefined;
  const { externalName, headless, clusterIPs, ports, namespace, name } = service;
  const isPlain = externalName === undefined && !headless;
  if (isPlain && context.settings.ignoreEmptyService && !hasEndpoints(context, service)) return undefined;
  if (externalName !== undefined) {
    const isWhole = query.endpoint === '' && query.port === '' && query.protocol === '';
    // An address is no name that could be an alias.
    return isWhole && addressKey(externalName) === undefined ? { alias: externalName } : undefined;
  }
  if (headless || query.endpoint !== '') return endpointsOf(context, query, zone);
  const matching = ports.filter((port) => matchesPort(query, port));
  if (matching.length === 0) return undefined;
  const full = `${name}.${namespace}.svc.${zone}`;
  return { found: matching.flatMap(({ port }) => clusterIPs.map((host) => ({ host, port, name: full }))) };
}

function recordsOfPod({ cluster, settings }: LookupContext, { namespace, name }: ClusterQuery, zone: string): Records {
  if (settings.pods === 'disabled') return undefined;
  const host = addressOfPodName(name);
  if (host === undefined) return undefined;
  const found = { found: [{ host, port: 0, name: `${name}.${namespace}.pod.${zone}` }] };
  if (settings.pods === 'insecure') return found;
  const pods = cluster.podsAt(addressKey(host) ?? '');
  return pods.some((pod) => pod.namespace === namespace) ? found : undefined;
}

function recordsAt(context: LookupContext, name: string, zone: string): Records {
  const query = parseClusterQuery(name, zone);
  if (query === undefined) return undefined;
  if (query.kind === '') return { found: [] };
  if (isReverseZone(zone) || !exposed(context, query.namespace)) return undefined;
  if (query.name === '') return { found: [] };
  return query.kind === 'pod' ? recordsOfPod(context, query, zone) : recordsOfService(context, query, zone);
}

/** The names by which this server itself is reached, with their addresses. */
function nameServers(context: LookupContext, zone: string): readonly Found[] {
  const { cluster, ownAddresses, settings } = context;
  const found = ownAddresses.flatMap((own) =>
    cluster.slicesAt(addressKey(own) ?? '').flatMap(({ namespace, service, addresses }) => {
      const entry = cluster.service(namespace, service);
      if (entry === undefined) return [];
      const name = `${service}.${namespace}.svc.${zone}`;
      if (!entry.headless) return entry.clusterIPs.map((host) => ({ host, port: 0, name }));
      return addresses.map((each) => ({ host: each.ip, port: 0, name: `${endpointName(each, settings)}.${name}` }));
    }),
  );
  if (found.length > 0) return found;
  return ownAddresses.map((host) => ({ host, port: 0, name: `${OWN_NAME}.${zone}` }));
}

function addressRecord(name: string, ttl: number, address: string): Resource {
  return { type: address.includes(':') ? 'AAAA' : 'A', name, ttl, data: address };
}

function uniqueBy<T>(items: readonly T[], key: (item: T) => string): readonly T[] {
  return [...new Map(items.map((item) => [key(item), item] as const)).values()];
}

/** A or AAAA of what was found; each address once. */
function addressesAt(owner: string, ttl: number, type: number, found: readonly Found[]): readonly Resource[] {
  const wanted = type === Type.A ? 'A' : 'AAAA';
  const hosts = [...new Set(found.map(({ host }) => host))];
  return hosts.map((host) => addressRecord(owner, ttl, host)).filter((record) => record.type === wanted);
}

/** All have the same weight; the addresses of their targets come along. */
function serviceRecords(
  owner: string,
  ttl: number,
  found: readonly Found[],
): Pick<MadeReply, 'answers' | 'additionals'> {
  const weight = Math.max(1, Math.floor(FULL_WEIGHT / Math.max(1, found.length)));
  const withPort = found.filter(({ port }) => port >= 0);
  const targets = uniqueBy(withPort, ({ name, port }) => `${name} ${port}`);
  const addresses = uniqueBy(withPort, ({ name, host }) => `${name} ${host}`);
  return {
    answers: targets.map(({ name, port }) => ({
      type: 'SRV',
      name: owner,
      ttl,
      data: { priority: 0, weight, port, target: name },
    })),
    additionals: addresses.map(({ name, host }) => addressRecord(name, ttl, host)),
  };
}

/** The SOA of a zone. Mirrors CoreDNS: at most 300 s, and negative answers are kept as long as others. */
export function startOfAuthority({ cluster, settings }: LookupContext, zone: string): Resource {
  return {
    type: 'SOA',
    name: zone === '' ? '.' : zone,
    ttl: Math.min(settings.ttl, 300),
    data: {
      mname: `${OWN_NAME}.${zone}`,
      rname: `hostmaster.${zone}`,
      serial: cluster.serial,
      refresh: 7200,
      retry: 1800,
      expire: 86_400,
      minimum: settings.ttl,
    },
  };
}

/** The target of an alias of this type of question, through aliases inside the zone. */
function followAlias(
  context: LookupContext,
  question: Question,
  zone: string,
  alias: string,
): Lookup | readonly Resource[] {
  const records: Resource[] = [];
  let [owner, target] = [question.writtenName, alias];
  for (;;) {
    const isLoop = target === owner.toLowerCase() || records.some(({ data }) => data === target);
    if (isLoop || records.length > MAX_ALIASES) return [];
    records.push({ type: 'CNAME', name: owner, ttl: context.settings.ttl, data: target });
    if (!isBelow(target, zone)) return { kind: 'alias', records, target };
    const next = recordsAt(context, target, zone);
    if (next === undefined) return [];
    if ('found' in next) {
      const addresses = addressesAt(target, context.settings.ttl, question.type, next.found);
      return addresses.length === 0 ? [] : [...records, ...addresses];
    }
    [owner, target] = [target, next.alias];
  }
}

function textAt(
  context: LookupContext,
  { name, writtenName }: Question,
  zone: string,
): readonly Resource[] | undefined {
  const labels = labelsBelow(name, zone);
  if (labels.length === 1 && labels[0] === 'dns-version') {
    return [{ type: 'TXT', name: writtenName, ttl: VERSION_TTL, data: SPECIFICATION }];
  }
  const there = recordsAt(context, name, zone);
  if (there === undefined || ('found' in there && there.found.length === 0)) return undefined;
  return [];
}

function pointersAt(context: LookupContext, question: Question, zone: string): readonly Resource[] | undefined {
  const { cluster, settings } = context;
  const address = reverseAddress(question.name);
  if (address === undefined) return recordsAt(context, question.name, zone) === undefined ? undefined : [];
  const primary = settings.zones.find((each) => !isReverseZone(each)) ?? '';
  const isShown = (namespace: string): boolean => settings.namespaces.length === 0 || exposed(context, namespace);
  const pointer = (target: string): Resource => ({
    type: 'PTR',
    name: question.writtenName,
    ttl: settings.ttl,
    data: target,
  });
  const service = cluster.servicesAt(address).find(({ namespace }) => isShown(namespace));
  if (service !== undefined) return [pointer(`${service.name}.${service.namespace}.svc.${primary}`)];
  const slices = settings.noEndpoints ? [] : cluster.slicesAt(address);
  const names = slices
    .filter(({ namespace }) => isShown(namespace))
    .flatMap(({ namespace, service: owner, addresses }) =>
      addresses
        .filter(({ ip }) => addressKey(ip) === address)
        .map((each) => `${endpointName(each, settings)}.${owner}.${namespace}.svc.${primary}`),
    );
  return names.length === 0 ? undefined : [...new Set(names)].map(pointer);
}

type Partial3 = Partial<Pick<MadeReply, 'answers' | 'additionals'>>;

/** Undefined: there is no such name. */
function recordsFor(context: LookupContext, question: Question, zone: string): Partial3 | Lookup | undefined {
  const { name, writtenName, type } = question;
  const { ttl } = context.settings;
  if (type === Type.TXT) return wrap(textAt(context, question, zone));
  if (type === Type.PTR) return wrap(pointersAt(context, question, zone));
  if (type === Type.SOA && name === zone) return { answers: [startOfAuthority(context, zone)] };
  if (type === Type.NS && name === zone) {
    const servers = nameServers(context, zone);
    const names = [...new Set(servers.map((server) => server.name))];
    return {
      answers: names.map((data) => ({ type: 'NS', name: writtenName, ttl, data })),
      additionals: servers.map((server) => addressRecord(server.name, ttl, server.host)),
    };
  }
  if (name === `${OWN_NAME}.${zone}`) {
    return { answers: addressesAt(writtenName, ttl, type, nameServers(context, zone)) };
  }
  const there = recordsAt(context, name, zone);
  if (there === undefined) return undefined;
  if ('alias' in there) {
    if (type === Type.CNAME) return { answers: [{ type: 'CNAME', name: writtenName, ttl, data: there.alias }] };
    if (type !== Type.A && type !== Type.AAAA) return {};
    const followed = followAlias(context, question, zone, there.alias);
    return 'kind' in followed ? followed : { answers: followed };
  }
  if (type === Type.A || type === Type.AAAA) return { answers: addressesAt(writtenName, ttl, type, there.found) };
  return type === Type.SRV ? serviceRecords(writtenName, ttl, there.found) : {};
}

function wrap(answers: readonly Resource[] | undefined): Partial3 | undefined {
  return answers === undefined ? undefined : { answers };
}

function falls({ settings }: LookupContext, name: string): boolean {
  return settings.fallThrough?.some((zone) => isBelow(name, zone)) === true;
}

/** What the kubernetes plugin answers. */
export function lookUp(question: Question, context: LookupContext): Lookup {
  const zone = matchingZone(question.name, context.settings.zones);
  if (zone === undefined) return { kind: 'next' };
  const none = { authoritative: true, answers: [], authorities: [], additionals: [] };
  if (question.type === Type.AXFR || question.type === Type.IXFR) {
    return { kind: 'reply', reply: { ...none, authoritative: false, rcode: Rcode.REFUSED } };
  }
  const found = recordsFor(context, question, zone);
  const authorities = [startOfAuthority(context, zone)];
  if (found === undefined) {
    if (falls(context, question.name)) return { kind: 'next' };
    const rcode = context.cluster.synced ? Rcode.NXDOMAIN : Rcode.SERVFAIL;
    return { kind: 'reply', reply: { ...none, rcode, authorities } };
  }
  if ('kind' in found) return found;
  const { answers = [], additionals = [] } = found;
  if (answers.length === 0) return { kind: 'reply', reply: { ...none, rcode: Rcode.NOERROR, authorities } };
  return { kind: 'reply', reply: { ...none, rcode: Rcode.NOERROR, answers, additionals } };
}
