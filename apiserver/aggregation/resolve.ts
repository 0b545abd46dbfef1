// Where a Service's traffic goes: the address of a ready endpoint, by EndpointSlices or Endpoints. Needs no proxy on this machine.

import type { ObjectLookup } from '../kinds/resource.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Unavailable {
  readonly reason: string;
  readonly message: string;
}

const list = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** The first ready endpoint of `namespace/name` behind `port` of the service, or why there is none. */
export function resolveService(
  lookup: ObjectLookup,
  namespace: string,
  name: string,
  port: number,
): Address | Unavailable {
  const service = lookup.get('', 'services', namespace, name);
  const where = `service/${name} in ${JSON.stringify(namespace)}`;
  if (service === undefined) return { reason: 'ServiceNotFound', message: `${where} is not present` };
  const spec = isObject(service['spec']) ? service['spec'] : {};
  if (spec['type'] === 'ExternalName' && typeof spec['externalName'] === 'string')
    return { host: spec['externalName'], port };
  const found = list(spec['ports']).find((one) => one['port'] === port);
  if (found === undefined) return { reason: 'ServicePortError', message: `${where} is not listening on port ${port}` };
  const portName = typeof found['name'] === 'string' ? found['name'] : '';
  const address = bySlices(lookup, namespace, name, portName) ?? byEndpoints(lookup, namespace, name, portName);
  if (address !== undefined) return address;
  const message = `endpoints for ${where} have no addresses with port name ${JSON.stringify(portName)}`;
  return { reason: 'MissingEndpoints', message };
}

function portOf(ports: unknown, name: string): number | undefined {
  const port = list(ports).find((one) => (one['name'] ?? '') === name)?.['port'];
  return typeof port === 'number' ? port : undefined;
}

function bySlices(lookup: ObjectLookup, namespace: string, name: string, portName: string): Address | undefined {
  for (const slice of lookup.each('discovery.k8s.io', 'endpointslices', namespace)) {
    if (slice.metadata.labels?.['kubernetes.io/service-name'] !== name) continue;
    const port = portOf(slice['ports'], portName);
    if (port === undefined) continue;
    for (const { addresses, conditions } of list(slice['endpoints'])) {
      const [host] = Array.isArray(addresses) ? addresses : [];
      const isReady = !isObject(conditions) || conditions['ready'] !== false;
      if (isReady && typeof host === 'string') return { host, port };
    }
  }
  return undefined;
}

function byEndpoints(lookup: ObjectLookup, namespace: string, name: string, portName: string): Address | undefined {
  const endpoints = lookup.get('', 'endpoints', namespace, name);
  for (const { addresses, ports } of list(endpoints?.['subsets'])) {
    const port = portOf(ports, portName);
    const host = list(addresses)[0]?.['ip'];
    if (port !== undefined && typeof host === 'string') return { host, port };
  }
  return undefined;
}
