// Which DNS questions lead to a Service, from a pod's resolv.conf: what its whole name is, and whose the servers are. Pure.

import { isIPv6 } from 'node:net';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import type { Service } from '../../client/types.ts';

const DNS_PORT = 53;

/** "cluster.local", from the search list of a pod that uses the cluster's DNS; undefined: it does not. */
export function clusterDomain(searches: readonly string[]): string | undefined {
  for (const search of searches) {
    const domain = /^[^.]+\.svc\.(.+?)\.?$/.exec(search)?.[1];
    if (domain !== undefined) return domain;
  }
  return undefined;
}

export function serviceName({ metadata }: Service, domain: string): string {
  return `${metadata.name}.${metadata.namespace ?? 'default'}.svc.${domain}`;
}

/** "10.96.0.10:53". */
export function serverAt(address: string, port = DNS_PORT): string {
  return `${isIPv6(address) ? `[${address}]` : address}:${port}`;
}

/** The Service that has this address. */
export function serviceOf(address: string, services: readonly Service[]): Service | undefined {
  return services.find(({ spec }) => [spec?.clusterIP, ...(spec?.clusterIPs ?? [])].includes(address));
}

/** The servers behind the port of a Service that takes DNS questions, by its ready endpoints. */
export function dnsEndpoints(
  service: Service,
  slices: readonly Pick<EndpointSlice, 'endpoints' | 'ports'>[],
): readonly string[] {
  const port = (service.spec?.ports ?? []).find((each) => each.port === DNS_PORT && each.protocol !== 'TCP');
  return slices.flatMap(({ endpoints, ports }) => {
    const target = (ports ?? []).find(({ name }) => (name ?? '') === (port?.name ?? ''))?.port;
    if (target === undefined) return [];
    const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false);
    return ready.flatMap(({ addresses }) => (addresses ?? []).map((address) => serverAt(address, target)));
  });
}

/** The family in which a Service is asked for: that of its first address. */
export function familyOf({ spec }: Service): 4 | 6 {
  const family = spec?.ipFamilies?.[0] ?? (isIPv6(spec?.clusterIP ?? '') ? 'IPv6' : 'IPv4');
  return family === 'IPv6' ? 6 : 4;
}
