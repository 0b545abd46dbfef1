// What one port of a service needs in nftables: elements of the maps that all services share, and chains and sets of its own. As
// kube-proxy's mode nftables has them. Pure.

import type { NftChains } from '../../lib/nft-table.ts';
import type { RuleOptions } from '../options.ts';
import { containsAddress } from '../ranges.ts';
import { type Reachable, usesClusterEndpoints, usesLocalEndpoints } from '../reachable.ts';
import { type Endpoint, isExternallyReachable, type ServicePort } from '../service-ports.ts';
import {
  CLUSTER_IPS,
  endpointName,
  FIREWALL_IPS,
  MARK,
  NO_ENDPOINT_NODE_PORTS,
  NO_ENDPOINT_SERVICES,
  REJECT,
  SERVICE_IPS,
  SERVICE_NODE_PORTS,
  serviceChains,
} from './names.ts';

export interface ServiceObjects {
  /** Map or set, key, and what it leads to; '' for a set's. */
  readonly elements: readonly (readonly [string, string, string])[];
  readonly chains: NftChains;
  /** Clients that stay with an endpoint: seconds by the name of the set. */
  readonly affinity: ReadonlyMap<string, number>;
  readonly withoutLocal: readonly ('internal' | 'external')[];
}

export function serviceObjects(port: ServicePort, reachable: Reachable, options: RuleOptions): ServiceObjects {
  const { hasAny, cluster, local } = reachable;
  const chains = new Map<string, { readonly rules: readonly string[] }>();
  const names = serviceChains(port);
  const hasInternal = hasAny && !(port.internalLocal && local.length === 0);
  const hasExternal = hasAny && !(port.externalLocal && local.length === 0);
  const outside = isExternallyReachable(port);
  if (hasAny && outside) chains.set(names.external, { rules: externalRules(port, hasExternal, options) });
  if (port.loadBalancerIPs.length > 0 && port.sourceRanges.length > 0 && hasAny) {
    chains.set(names.firewall, { rules: firewallRules(port, options) });
  }
  const internal = port.internalLocal ? names.local : names.cluster;
  const toEndpoints = (name: string, endpoints: readonly Endpoint[]): void => {
    const masquerade = hasInternal && name === internal ? masqueradeRules(port, options) : [];
    chains.set(name, { rules: [...masquerade, ...balance(port, endpoints)] });
  };
  if (cluster.length > 0 && usesClusterEndpoints(port)) toEndpoints(names.cluster, cluster);
  if (local.length > 0 && usesLocalEndpoints(port)) toEndpoints(names.local, local);
  const affinity = new Map<string, number>();
  for (const { ip, address } of reachable.all) {
    const name = endpointName(port, address);
    const sticks = port.affinitySeconds === undefined ? [] : [`update @affinity-${name} { ip saddr }`];
    if (port.affinitySeconds !== undefined) affinity.set(`affinity-${name}`, port.affinitySeconds);
    const dnat = `meta l4proto ${port.protocol} dnat to ${address}`;
    chains.set(`endpoint-${name}`, { rules: [`ip saddr ${ip} jump ${MARK}`, ...sticks, dnat] });
  }
  const dropped = (has: boolean, kind: 'internal' | 'external', used: boolean): ('internal' | 'external')[] =>
    hasAny && !has && used ? [kind] : [];
  return {
    elements: elementsOf(port, { hasAny, hasInternal, hasExternal, hasFirewall: chains.has(names.firewall) }),
    chains,
    affinity,
    withoutLocal: [...dropped(hasInternal, 'internal', true), ...dropped(hasExternal, 'external', outside)],
  };
}

interface Has {
  readonly hasAny: boolean;
  readonly hasInternal: boolean;
  readonly hasExternal: boolean;
  readonly hasFirewall: boolean;
}

function elementsOf(
  port: ServicePort,
  { hasAny, hasInternal, hasExternal, hasFirewall }: Has,
): ServiceObjects['elements'] {
  const names = serviceChains(port);
  const { protocol, number, nodePort } = port;
  const elements: [string, string, string][] = [[CLUSTER_IPS, port.clusterIP, '']];
  const key = (ip: string): string => `${ip} . ${protocol} . ${number}`;
  const refused = hasAny ? 'drop' : `goto ${REJECT}`;
  if (hasInternal) {
    elements.push([SERVICE_IPS, key(port.clusterIP), `goto ${port.internalLocal ? names.local : names.cluster}`]);
  } else elements.push([NO_ENDPOINT_SERVICES, key(port.clusterIP), refused]);
  for (const ip of [...port.externalIPs, ...port.loadBalancerIPs]) {
    if (hasAny) elements.push([SERVICE_IPS, key(ip), `goto ${names.external}`]);
    if (!hasExternal) elements.push([NO_ENDPOINT_SERVICES, key(ip), refused]);
  }
  if (hasFirewall)
    for (const ip of port.loadBalancerIPs) elements.push([FIREWALL_IPS, key(ip), `goto ${names.firewall}`]);
  if (nodePort !== 0) {
    const at = `${protocol} . ${nodePort}`;
    if (hasAny) elements.push([SERVICE_NODE_PORTS, at, `goto ${names.external}`]);
    if (!hasExternal) elements.push([NO_ENDPOINT_NODE_PORTS, at, refused]);
  }
  return elements;
}

/** Traffic to the cluster address that does not come from a pod: its answer has to come back to this node. */
function masqueradeRules(port: ServicePort, { masqueradeAll, clusterCidr }: RuleOptions): readonly string[] {
  if (!masqueradeAll && clusterCidr === undefined) return [];
  const source = masqueradeAll ? '' : `ip saddr != ${clusterCidr} `;
  return [`ip daddr ${port.clusterIP} ${port.protocol} dport ${port.number} ${source}jump ${MARK}`];
}

function externalRules(port: ServicePort, hasExternal: boolean, { clusterCidr }: RuleOptions): readonly string[] {
  const names = serviceChains(port);
  if (!port.externalLocal) return [`jump ${MARK}`, ...(hasExternal ? [`goto ${names.cluster}`] : [])];
  // What comes from pods and from the node itself takes the way to all endpoints, as if it came back from a load balancer.
  return [
    ...(clusterCidr === undefined ? [] : [`ip saddr ${clusterCidr} goto ${names.cluster}`]),
    `fib saddr type local jump ${MARK}`,
    `fib saddr type local goto ${names.cluster}`,
    ...(hasExternal ? [`goto ${names.local}`] : []),
  ];
}

function firewallRules({ sourceRanges, loadBalancerIPs }: ServicePort, { nodeIP }: RuleOptions): readonly string[] {
  // A packet of this node to the address may have the address itself as its source.
  const fromNode = nodeIP !== undefined && sourceRanges.some((range) => containsAddress(range, nodeIP));
  const sources = fromNode ? [...sourceRanges, ...loadBalancerIPs] : sourceRanges;
  return [`ip saddr != { ${sources.join(', ')} } drop`];
}

/** To each endpoint with the same probability; to the one that the client had before, where it is to stay. */
function balance(port: ServicePort, endpoints: readonly Endpoint[]): readonly string[] {
  const names = endpoints.map(({ address }) => endpointName(port, address));
  const sticks =
    port.affinitySeconds === undefined ? [] : names.map((name) => `ip saddr @affinity-${name} goto endpoint-${name}`);
  const choices = names.map((name, index) => `${index} : goto endpoint-${name}`);
  return [...sticks, `numgen random mod ${names.length} vmap { ${choices.join(', ')} }`];
}
