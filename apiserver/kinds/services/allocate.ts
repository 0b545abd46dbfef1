// What only the server can give a Service: cluster IPs and ports on the nodes, on create and where an update needs more of
// them. Addresses come from the ServiceCIDRs; nothing here makes traffic flow.

import { createHash } from 'node:crypto';
import { internalError } from '../../errors.ts';
import { invalid } from '../field-errors.ts';
import type { FieldError, KubeObject, ObjectLookup, RequestContext } from '../resource.ts';
import { chooseFamilies, isUnchangedPreference, keepAllocated, pairClusterIPs } from './families.ts';
import { NETWORKING } from './ip-addresses.ts';
import {
  cidrsOf,
  DEFAULT_SERVICE_CIDR,
  freeAddress,
  IPV4_ONLY,
  inRange,
  isReady,
  type ServiceRange,
  serviceRange,
} from './ranges.ts';
import {
  givesNodePorts,
  hasNodePorts,
  needsClusterIP,
  needsHealthCheckPort,
  type ServiceObject,
  type ServicePort,
  type ServiceSpec,
  serviceOf,
} from './shape.ts';

const NODE_PORTS = { first: 30_000, count: 2768 } as const;

/** In place. `stored`: the Service before an update. */
export function allocateService(object: KubeObject, context: RequestContext, stored?: KubeObject): FieldError[] {
  const service = serviceOf(object);
  service.spec ??= {};
  const { spec } = service;
  const old = stored === undefined ? undefined : (serviceOf(stored).spec ?? {});
  if (old !== undefined) keepAllocated(spec, old);
  pairClusterIPs(spec, old);
  const wrong = chooseFamilies(spec, context.serviceFamilies ?? IPV4_ONLY, old);
  if (wrong.length > 0) return wrong;
  const others = context.lookup
    .list('', 'services')
    .filter((other) => stored === undefined || !isSame(other, stored))
    .map((other) => serviceOf(other).spec ?? {});
  const errors = allocateAddresses(service, others, old, context.lookup);
  if (errors.length > 0) return errors;
  const ports = new NodePorts(others, old);
  if (hasNodePorts(spec)) errors.push(...allocateNodePorts(spec, ports, old));
  if (needsHealthCheckPort(spec) && (spec.healthCheckNodePort ?? 0) === 0) spec.healthCheckNodePort = ports.next(spec);
  return errors;
}

function isSame(a: KubeObject, b: KubeObject): boolean {
  return a.metadata.namespace === b.metadata.namespace && a.metadata.name === b.metadata.name;
}

/** A Service that had an address keeps it, or is refused later. */
function allocateAddresses(
  service: ServiceObject,
  others: readonly ServiceSpec[],
  old: ServiceSpec | undefined,
  lookup: ObjectLookup,
): FieldError[] {
  const spec = service.spec ?? {};
  const missing = familiesWithoutAddress(spec, old);
  if (missing.length === 0) return [];
  const taken = new Set(others.flatMap((other) => other.clusterIPs ?? []));
  const isTaken = (address: string): boolean =>
    taken.has(address) || lookup.get(NETWORKING, 'ipaddresses', '', address) !== undefined;
  const all = rangesOf(lookup);
  // Where the client leaves an address out, upstream's messages show an empty one.
  const addresses = (spec.ipFamilies ?? []).map((_, index) => spec.clusterIPs?.[index] ?? '');
  for (const { index, family } of missing) {
    const ranges = all.filter((range) => range.family === family);
    const wanted = addresses[index] ?? '';
    if (wanted === '') addresses[index] = nextAddress(ranges, service, isTaken);
    else {
      const why = whyNot(wanted, ranges, isTaken);
      if (why !== undefined) return [invalid('spec.clusterIPs', addresses, `failed to allocate IP ${wanted}: ${why}`)];
    }
  }
  spec.clusterIPs = addresses;
  const [first] = addresses;
  if (first !== undefined) spec.clusterIP = first;
  return [];
}

/** An update gives a second address alone: to a Service that had one family and now has two. */
function familiesWithoutAddress(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
): readonly { readonly index: number; readonly family: 4 | 6 }[] {
  if (!needsClusterIP(spec) || spec.clusterIPs?.[0] === 'None') return [];
  const families = (spec.ipFamilies ?? []).map((family, index) => ({
    index,
    family: family === 'IPv6' ? (6 as const) : (4 as const),
  }));
  if (old === undefined || !needsClusterIP(old)) return families;
  if (isUnchangedPreference(spec, old) || old.clusterIPs?.[0] === 'None') return [];
  return old.ipFamilies?.length === 1 && families.length === 2 ? families.slice(1) : [];
}

function whyNot(
  wanted: string,
  ranges: readonly ServiceRange[],
  isTaken: (address: string) => boolean,
): string | undefined {
  if (!ranges.some((range) => inRange(range, wanted))) return 'the provided network does not match the current range';
  return isTaken(wanted) ? 'provided IP is already allocated' : undefined;
}

function rangesOf(lookup: ObjectLookup): ServiceRange[] {
  const stored = lookup.list(NETWORKING, 'servicecidrs');
  const cidrs = stored.length === 0 ? [DEFAULT_SERVICE_CIDR] : stored.filter(isReady).flatMap(cidrsOf);
  return cidrs.flatMap((cidr) => serviceRange(cidr) ?? []);
}

/** Starts where the service's own name points, so that addresses do not depend on the order of creation. Throws 500. */
function nextAddress(
  ranges: readonly ServiceRange[],
  { metadata }: ServiceObject,
  isTaken: (address: string) => boolean,
): string {
  const seed = hash(`${metadata.namespace ?? ''}/${metadata.name ?? ''}`);
  for (const range of ranges) {
    const address = freeAddress(range, seed, isTaken);
    if (address !== undefined) return address;
  }
  throw internalError('failed to allocate a serviceIP: range is full');
}

/** Ports of all Services, and those that this one asks for; a port that it had is its own. */
class NodePorts {
  readonly #taken: Set<number>;
  readonly #own: ReadonlySet<number>;
  constructor(others: readonly ServiceSpec[], old: ServiceSpec | undefined) {
    this.#taken = new Set(others.flatMap(portsOf));
    this.#own = new Set(old === undefined ? [] : portsOf(old));
  }

  /** Why it cannot be had. */
  take(port: number): string | undefined {
    if (this.#own.has(port)) return undefined;
    const last = NODE_PORTS.first + NODE_PORTS.count - 1;
    if (port < NODE_PORTS.first || port > last) {
      return `provided port is not in the valid range. The range of valid ports is ${NODE_PORTS.first}-${last}`;
    }
    if (this.#taken.has(port)) return 'provided port is already allocated';
    this.#taken.add(port);
    return undefined;
  }

  /** A free one. It depends on what asks for it, not on the order of creation, as far as possible. */
  next(spec: ServiceSpec, port: ServicePort = {}): number {
    const start = hash(`${port.protocol ?? 'TCP'}/${port.port ?? 0}/${spec.clusterIP ?? ''}`) % NODE_PORTS.count;
    for (let step = 0; step < NODE_PORTS.count; step++) {
      const candidate = NODE_PORTS.first + ((start + step) % NODE_PORTS.count);
      if (this.#taken.has(candidate) || this.#own.has(candidate)) continue;
      this.#taken.add(candidate);
      return candidate;
    }
    throw new RangeError('every node port is taken by a service');
  }
}

function portsOf(spec: ServiceSpec): number[] {
  return [...(spec.ports ?? []).map((port) => port.nodePort ?? 0), spec.healthCheckNodePort ?? 0].filter(
    (port) => port !== 0,
  );
}

/** Ports of the same number and different protocols have one port on the nodes, unless the client wants otherwise. */
function allocateNodePorts(spec: ServiceSpec, free: NodePorts, old: ServiceSpec | undefined): FieldError[] {
  const ports = spec.ports ?? [];
  const given = new Map<number, number>();
  for (const [index, port] of ports.entries()) {
    const wanted = port.nodePort ?? 0;
    const number = port.port ?? 0;
    const shared = old === undefined ? (given.get(number) ?? 0) : 0;
    if (wanted === 0) {
      if (!givesNodePorts(spec)) continue;
      const requested = shared !== 0 || old !== undefined ? undefined : requestedFor(ports, number);
      port.nodePort = shared !== 0 ? shared : (requested ?? free.next(spec, port));
      given.set(number, port.nodePort);
      if (requested === undefined) continue;
    } else if (wanted === shared || isGiven(ports.slice(0, index), wanted)) continue;
    else if (shared === 0) given.set(number, wanted);
    const why = free.take(port.nodePort ?? 0);
    if (why !== undefined) return [invalid(`spec.ports[${index}].nodePort`, port.nodePort, why)];
  }
  return [];
}

const isGiven = (before: readonly ServicePort[], nodePort: number): boolean =>
  before.some((port) => port.nodePort === nodePort);

function requestedFor(ports: readonly ServicePort[], number: number): number | undefined {
  return ports.find((port) => port.port === number && (port.nodePort ?? 0) !== 0)?.nodePort;
}

function hash(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0);
}
