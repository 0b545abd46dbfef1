// Where a request through pods/<name>/proxy, services/<name>/proxy or nodes/<name>/proxy goes: the name with its scheme and port, the
// address of the pod, of a ready endpoint or of the node, the path. Pure; backend.ts and proxy.ts connect.

import { randomInt } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { posix } from 'node:path';
import { badRequest, notFound, StatusError } from '../errors.ts';
import type { KubeObject, ObjectLookup } from '../kinds/resource.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { addressOf, type KubeletAddress, kubeletPort } from './node-address.ts';

export interface Location {
  readonly scheme: 'http' | 'https';
  /** An IP address. */
  readonly host: string;
  readonly port: number;
}

interface Named {
  readonly scheme: Location['scheme'];
  readonly name: string;
  readonly port: string;
}

const list = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** "name", "name:port" or "scheme:name:port"; undefined for anything else. */
export function splitName(id: string): Named | undefined {
  const parts = id.split(':');
  const [scheme, name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts];
  if (parts.length > 3 || name === '') return undefined;
  if (scheme !== '' && scheme !== 'http' && scheme !== 'https') return undefined;
  return { scheme: scheme === 'https' ? 'https' : 'http', name, port };
}

/** What is on this machine, on its link alone, or no single host: never the address of a pod that others reach. */
const SPECIAL = new BlockList();
for (const [net, prefix] of [
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 4],
  ['0.0.0.0', 32],
  ['255.255.255.255', 32],
] as const) {
  SPECIAL.addSubnet(net, prefix, 'ipv4');
}
for (const [net, prefix] of [
  ['::1', 128],
  ['::', 128],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  SPECIAL.addSubnet(net, prefix, 'ipv6');
}

/** As Go's net.IP.IsGlobalUnicast: an address that a proxy may connect to. */
export function isGlobalUnicast(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && !SPECIAL.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

function podIPs(pod: KubeObject | undefined): string[] {
  const status = isObject(pod?.['status']) ? pod['status'] : {};
  return list(status['podIPs']).flatMap(({ ip }) => (typeof ip === 'string' ? [ip] : []));
}

function portNumber(port: string, id: string, kind: 'pod' | 'node'): number {
  const number = Number(port);
  if (/^\d+$/.test(port) && number > 0 && number < 65_536) return number;
  throw badRequest(`invalid ${kind} request ${JSON.stringify(id)}`);
}

/** The pod's first address; the port is the named one, else the first of a container. Throws 400 and 404. */
export function podLocation(lookup: ObjectLookup, namespace: string, id: string): Location {
  const named = splitName(id);
  if (named === undefined) throw badRequest(`invalid pod request ${JSON.stringify(id)}`);
  const { scheme, name } = named;
  const pod = lookup.get('', 'pods', namespace, name);
  if (pod === undefined) throw notFound({ group: '', plural: 'pods' }, name);
  const spec = isObject(pod['spec']) ? pod['spec'] : {};
  const first = list(spec['containers']).flatMap(({ ports }) => list(ports).slice(0, 1))[0]?.['containerPort'];
  const [host = ''] = podIPs(pod);
  if (!isGlobalUnicast(host)) throw badRequest('address not allowed');
  const usual = scheme === 'https' ? 443 : 80;
  const port = named.port !== '' ? portNumber(named.port, id, 'pod') : typeof first === 'number' ? first : usual;
  return { scheme, host, port };
}

/** The node of "name", "name:port" or "scheme:name:port". Throws 400 and 404. */
function nodeOf(lookup: ObjectLookup, id: string): { readonly node: KubeObject; readonly named: Named } {
  const named = splitName(id);
  if (named === undefined) throw badRequest(`invalid node request ${JSON.stringify(id)}`);
  const node = lookup.get('', 'nodes', '', named.name);
  if (node === undefined) throw notFound({ group: '', plural: 'nodes' }, named.name);
  return { node, named };
}

/** Whether the port of nodes/<id>/proxy is another than the kubelet's, which is also the one of a name without a port. */
export function isOtherNodePort(lookup: ObjectLookup, id: string): boolean {
  const named = splitName(id);
  if (named === undefined || named.port === '') return false;
  const node = lookup.get('', 'nodes', '', named.name);
  return node !== undefined && named.port !== String(kubeletPort(node));
}

/** The kubelet of nodes/<id>/proxy. Throws 400 and 404. */
export function nodeKubelet(lookup: ObjectLookup, id: string): KubeletAddress {
  return addressOf(nodeOf(lookup, id).node);
}

/** Another port of the node, at its address. Throws 400 and 404. */
export function nodeLocation(lookup: ObjectLookup, id: string): Location {
  const { node, named } = nodeOf(lookup, id);
  const { host } = addressOf(node);
  if (!isGlobalUnicast(host)) throw badRequest('address not allowed');
  return { scheme: named.scheme, host, port: portNumber(named.port, id, 'node') };
}

interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly targetRef: unknown;
}

function portOf(ports: unknown, name: string): number | undefined {
  const port = list(ports).find((one) => (one['name'] ?? '') === name)?.['port'];
  return typeof port === 'number' ? port : undefined;
}

/** The ready endpoints by EndpointSlices; undefined where the service has none. */
function bySlices(lookup: ObjectLookup, namespace: string, name: string, portName: string): Endpoint[] | undefined {
  let found: Endpoint[] | undefined;
  for (const slice of lookup.each('discovery.k8s.io', 'endpointslices', namespace)) {
    if (slice.metadata.labels?.['kubernetes.io/service-name'] !== name) continue;
    found ??= [];
    const port = portOf(slice['ports'], portName);
    if (port === undefined) continue;
    for (const { addresses, conditions, targetRef } of list(slice['endpoints'])) {
      const isReady = !isObject(conditions) || conditions['ready'] !== false;
      const [host] = Array.isArray(addresses) ? addresses : [];
      if (isReady && typeof host === 'string') found.push({ host, port, targetRef });
    }
  }
  return found;
}

function byEndpoints(lookup: ObjectLookup, namespace: string, name: string, portName: string): Endpoint[] {
  const endpoints = lookup.get('', 'endpoints', namespace, name);
  if (endpoints === undefined) throw notFound({ group: '', plural: 'endpoints' }, name);
  return list(endpoints['subsets']).flatMap(({ addresses, ports }) => {
    const port = portOf(ports, portName);
    if (port === undefined) return [];
    return list(addresses).flatMap(({ ip, targetRef }) =>
      typeof ip === 'string' ? [{ host: ip, port, targetRef }] : [],
    );
  });
}

/** Only what is a pod of the namespace, under an address of its own: who may write endpoints names no other hosts. */
function isPodOf(lookup: ObjectLookup, namespace: string, { host, targetRef }: Endpoint): boolean {
  if (!isObject(targetRef) || targetRef['namespace'] !== namespace || typeof targetRef['name'] !== 'string')
    return false;
  return isGlobalUnicast(host) && podIPs(lookup.get('', 'pods', namespace, targetRef['name'])).includes(host);
}

function unavailable(message: string): StatusError {
  return new StatusError(503, 'ServiceUnavailable', message);
}

/**
 * One of the service's ready endpoints, by chance. The port is that of the service, by number or by name. Throws 400, 404 and
 * 503.
 */
export function serviceLocation(
  lookup: ObjectLookup,
  namespace: string,
  id: string,
  choose: (count: number) => number = randomInt,
): Location {
  const named = splitName(id);
  if (named === undefined) throw badRequest(`invalid service request ${JSON.stringify(id)}`);
  const { scheme, name } = named;
  let portName = named.port;
  if (/^[+-]?\d+$/.test(portName)) {
    const service = lookup.get('', 'services', namespace, name);
    if (service === undefined) throw notFound({ group: '', plural: 'services' }, name);
    const spec = isObject(service['spec']) ? service['spec'] : {};
    const number = Number(portName);
    const port = list(spec['ports']).find((one) => one['port'] === number);
    if (port === undefined) {
      throw unavailable(`no service port ${number} found for service ${JSON.stringify(name)}`);
    }
    portName = typeof port['name'] === 'string' ? port['name'] : '';
  }
  const all = bySlices(lookup, namespace, name, portName) ?? byEndpoints(lookup, namespace, name, portName);
  const usable = all.filter((endpoint) => isPodOf(lookup, namespace, endpoint));
  const chosen = usable.length === 0 ? undefined : usable[choose(usable.length)];
  if (chosen === undefined) throw unavailable(`no endpoints available for service ${JSON.stringify(name)}`);
  return { scheme, host: chosen.host, port: chosen.port };
}

/** What Go leaves as it is in a path, beside letters, digits and -_.~ */
const KEPT = /%(?:24|26|2B|2C|3A|3B|3D|40)/g;

/**
 * The path on the backend from what follows "proxy": cleaned of "..", a slash at the end kept; '' where nothing follows.
 * Throws 400 for one that cannot be decoded.
 */
export function backendPath(tail: string): string {
  if (tail === '') return '';
  let decoded: string;
  try {
    decoded = decodeURIComponent(tail);
  } catch (error) {
    if (error instanceof URIError) throw badRequest(`the path cannot be decoded at ${JSON.stringify(tail)}`);
    throw error;
  }
  const clean = posix.normalize(`/${decoded}`).replace(/^\/+/, '/');
  return clean
    .split('/')
    .map((segment) =>
      encodeURIComponent(segment)
        .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
        .replace(KEPT, decodeURIComponent),
    )
    .join('/');
}
