// What only the server can give a Service: cluster IPs and ports on the nodes, on create and where an update needs more of
// them. Addresses come from one fixed range; nothing here makes traffic flow.

import { createHash } from 'node:crypto';
import { invalid } from '../field-errors.ts';
import type { FieldError, KubeObject, RequestContext } from '../resource.ts';
import { chooseFamilies, keepAllocated, pairClusterIPs } from './families.ts';
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

/** 10.96.0.0/16: the first address is the API server's own service, the first 256 are for hand-picked ones. */
const CIDR_PREFIX = '10.96';
const FIRST_DYNAMIC = 256;
const NODE_PORTS = { first: 30_000, count: 2768 } as const;

/** In place. `stored`: the Service before an update. */
export function allocateService(object: KubeObject, context: RequestContext, stored?: KubeObject): FieldError[] {
  const service = serviceOf(object);
  service.spec ??= {};
  const { spec } = service;
  const old = stored === undefined ? undefined : (serviceOf(stored).spec ?? {});
  if (old !== undefined) keepAllocated(spec, old);
  pairClusterIPs(spec, old);
  const wrong = chooseFamilies(spec, old);
  if (wrong.length > 0) return wrong;
  const others = context.lookup
    .list('', 'services')
    .filter((other) => stored === undefined || !isSame(other, stored))
    .map((other) => serviceOf(other).spec ?? {});
  const errors = allocateAddress(service, others, old);
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
function allocateAddress(
  service: ServiceObject,
  others: readonly ServiceSpec[],
  old: ServiceSpec | undefined,
): FieldError[] {
  const spec = service.spec ?? {};
  const had = old !== undefined && needsClusterIP(old);
  if (!needsClusterIP(spec) || had || spec.clusterIPs?.[0] === 'None') return [];
  const taken = new Set(others.flatMap((other) => other.clusterIPs ?? []));
  const wanted = spec.clusterIPs?.[0] ?? '';
  if (wanted === '') {
    spec.clusterIP = freeAddress(taken, service);
    spec.clusterIPs = [spec.clusterIP];
  } else if (taken.has(wanted)) {
    const why = `failed to allocate IP ${wanted}: provided IP is already allocated`;
    return [invalid('spec.clusterIPs', spec.clusterIPs, why)];
  }
  return [];
}

/** Starts where the service's own name points, so that addresses do not depend on the order of creation. */
function freeAddress(taken: ReadonlySet<string>, service: ServiceObject): string {
  const size = 256 * 256 - 1 - FIRST_DYNAMIC;
  const start = hash(`${service.metadata.namespace ?? ''}/${service.metadata.name ?? ''}`) % size;
  for (let step = 0; step < size; step++) {
    const offset = FIRST_DYNAMIC + ((start + step) % size);
    const address = `${CIDR_PREFIX}.${offset >> 8}.${offset & 255}`;
    if (!taken.has(address)) return address;
  }
  throw new RangeError(`every address of ${CIDR_PREFIX}.0.0/16 is taken by a service`);
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
