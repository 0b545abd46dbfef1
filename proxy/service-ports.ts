// What a proxy needs of services, nodes and slices: one entry for each port of a service that has addresses of its own, and its
// endpoints. Pure. Only IPv4: a service that has IPv6 addresses alone is skipped.

import { isIPv4 } from 'node:net';
import { objectKey } from '../client/store.ts';
import type { EndpointSlice, Service } from '../client/types.ts';

/** A service with this label is another proxy's. */
const OTHER_PROXY = 'service.kubernetes.io/service-proxy-name';
const HEADLESS = 'service.kubernetes.io/headless';
const SERVICE_NAME = 'kubernetes.io/service-name';

export interface ServicePort {
  /** "namespace/name", or "namespace/name:port" where the port has a name: part of comments and of the hashes in names. */
  readonly name: string;
  readonly service: string;
  /** The port's name; may be ''. */
  readonly port: string;
  readonly protocol: 'tcp' | 'udp' | 'sctp';
  readonly clusterIP: string;
  readonly number: number;
  /** 0: none. */
  readonly nodePort: number;
  readonly externalIPs: readonly string[];
  readonly loadBalancerIPs: readonly string[];
  readonly sourceRanges: readonly string[];
  /** Seconds that a client stays with an endpoint; undefined: it does not. */
  readonly affinitySeconds: number | undefined;
  readonly internalLocal: boolean;
  readonly externalLocal: boolean;
  /** 0: none. */
  readonly healthCheckNodePort: number;
}

export interface Endpoint {
  /** "10.0.0.1:8080" */
  readonly address: string;
  readonly ip: string;
  readonly port: number;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  /** On this node. */
  readonly local: boolean;
  readonly zones: readonly string[];
  readonly nodes: readonly string[];
}

function protocolOf(text = 'TCP'): ServicePort['protocol'] | undefined {
  const protocol = text.toLowerCase();
  return protocol === 'tcp' || protocol === 'udp' || protocol === 'sctp' ? protocol : undefined;
}

/** IPv4 in front of a slash, or without one. */
function isRange4(range: string): boolean {
  return isIPv4(range.trim().split('/')[0] ?? '');
}

/** The ports of a service that are this proxy's; none of a headless service, an ExternalName, and another proxy's. */
export function servicePorts(service: Service): readonly ServicePort[] {
  const { spec = {}, status, metadata } = service;
  const addresses = spec.clusterIPs ?? [spec.clusterIP ?? ''];
  const clusterIP = addresses.find((ip) => isIPv4(ip));
  if (spec.type === 'ExternalName' || clusterIP === undefined) return [];
  if (metadata.labels?.[OTHER_PROXY] !== undefined || metadata.labels?.[HEADLESS] !== undefined) return [];
  const key = objectKey(service);
  const external = spec.externalTrafficPolicy === 'Local';
  const ingress = status?.loadBalancer?.ingress ?? [];
  const { timeoutSeconds = 10_800 } = spec.sessionAffinityConfig?.clientIP ?? {};
  return (spec.ports ?? []).flatMap((port): ServicePort[] => {
    const protocol = protocolOf(port.protocol);
    if (protocol === undefined) return [];
    const { name = '' } = port;
    return [
      {
        name: name === '' ? key : `${key}:${name}`,
        service: key,
        port: name,
        protocol,
        clusterIP,
        number: port.port,
        nodePort: port.nodePort ?? 0,
        externalIPs: (spec.externalIPs ?? []).filter((ip) => isIPv4(ip)),
        loadBalancerIPs: ingress
          .filter(({ ipMode }) => ipMode !== 'Proxy')
          .flatMap(({ ip = '' }) => (isIPv4(ip) ? [ip] : [])),
        sourceRanges: (spec.loadBalancerSourceRanges ?? []).map((range) => range.trim()).filter(isRange4),
        affinitySeconds: spec.sessionAffinity === 'ClientIP' ? timeoutSeconds : undefined,
        internalLocal: spec.internalTrafficPolicy === 'Local',
        externalLocal: external,
        healthCheckNodePort: external ? (spec.healthCheckNodePort ?? 0) : 0,
      },
    ];
  });
}

/** The service that a slice belongs to; undefined for those that are not this proxy's. */
export function serviceOfSlice({ metadata, addressType }: EndpointSlice): string | undefined {
  const name = metadata.labels?.[SERVICE_NAME] ?? '';
  if (name === '' || addressType !== 'IPv4' || metadata.labels?.[HEADLESS] !== undefined) return undefined;
  return `${metadata.namespace}/${name}`;
}

/**
 * The endpoints of a service by the name of its port, in the order of their addresses. Of one that is in two slices for a
 * moment, the entry that is ready counts.
 */
export function endpointsByPort(
  slices: readonly EndpointSlice[],
  nodeName: string,
): ReadonlyMap<string, readonly Endpoint[]> {
  const byPort = new Map<string, Map<string, Endpoint>>();
  for (const { ports = [], endpoints = [] } of slices) {
    for (const { name = '', port } of ports) {
      if (port === undefined) continue;
      const found = byPort.get(name) ?? new Map<string, Endpoint>();
      byPort.set(name, found);
      for (const each of endpoints) {
        const [ip] = each.addresses;
        if (ip === undefined || !isIPv4(ip)) continue;
        const ready = each.conditions?.ready ?? true;
        const endpoint: Endpoint = {
          address: `${ip}:${port}`,
          ip,
          port,
          ready,
          serving: each.conditions?.serving ?? true,
          terminating: each.conditions?.terminating ?? false,
          local: each.nodeName === nodeName,
          zones: (each.hints?.forZones ?? []).map((zone) => zone.name),
          nodes: (each.hints?.forNodes ?? []).map((node) => node.name),
        };
        if (found.get(endpoint.address)?.ready !== true) found.set(endpoint.address, endpoint);
      }
    }
  }
  const sorted = [...byPort].map(([name, found]): [string, readonly Endpoint[]] => [
    name,
    [...found.values()].sort((a, b) => (a.address < b.address ? -1 : 1)),
  ]);
  return new Map(sorted);
}

export function isExternallyReachable({ nodePort, externalIPs, loadBalancerIPs }: ServicePort): boolean {
  return nodePort !== 0 || externalIPs.length > 0 || loadBalancerIPs.length > 0;
}
