// What one port of a service needs in iptables: lines of the chains that all services share, and chains of its own. Rules and
// comments are kube-proxy's (pkg/proxy/iptables). Pure.

import type { RuleOptions } from '../options.ts';
import { containsAddress } from '../ranges.ts';
import { type Reachable, usesClusterEndpoints, usesLocalEndpoints } from '../reachable.ts';
import { type Endpoint, isExternallyReachable, type ServicePort } from '../service-ports.ts';
import {
  EXTERNAL_SERVICES,
  endpointChain,
  MARK_MASQ,
  NODE_PORTS,
  PROXY_FIREWALL,
  SERVICES,
  type ServiceChains,
  serviceChains,
} from './names.ts';

export interface ServiceRules {
  /** Lines of shared chains: table, chain, rule. */
  readonly shared: readonly (readonly ['filter' | 'nat', string, string])[];
  /** Its own chains, of the table nat. */
  readonly own: ReadonlyMap<string, readonly string[]>;
  /** The names of its own chains. */
  readonly names: readonly string[];
  /** Traffic of a policy Local that is dropped, for the metric. */
  readonly withoutLocal: readonly ('internal' | 'external')[];
}

/** Fewer bytes for the kernel where there are many endpoints: their rules have no comments then. */
export interface Verbosity {
  readonly comments: boolean;
}

const quoted = (text: string): string => `-m comment --comment "${text}"`;

/** What both kinds of traffic find. */
interface Paths {
  readonly port: ServicePort;
  readonly chains: ServiceChains;
  readonly reachable: Reachable;
  readonly hasInternal: boolean;
  readonly hasExternal: boolean;
  readonly usesFirewall: boolean;
}

export function serviceRules(
  port: ServicePort,
  reachable: Reachable,
  options: RuleOptions,
  verbosity: Verbosity = { comments: true },
): ServiceRules {
  const { hasAny, local } = reachable;
  const paths: Paths = {
    port,
    chains: serviceChains(port),
    reachable,
    hasInternal: hasAny && !(port.internalLocal && local.length === 0),
    hasExternal: hasAny && !(port.externalLocal && local.length === 0),
    usesFirewall: hasAny && port.loadBalancerIPs.length > 0 && port.sourceRanges.length > 0,
  };
  const own = new Map<string, string[]>();
  const chain = (name: string): string[] => {
    const rules = own.get(name) ?? [];
    own.set(name, rules);
    return rules;
  };
  const { chains } = paths;
  if (hasAny && isExternallyReachable(port)) chain(chains.external).push(...externalRules(paths, options));
  if (paths.usesFirewall) chain(chains.firewall).push(...firewallRules(paths, options));
  const toEndpoints = (name: string, endpoints: readonly Endpoint[]): void => {
    if (paths.hasInternal && name === (port.internalLocal ? chains.local : chains.cluster)) {
      chain(name).push(...masqueradeRules(port, options));
    }
    chain(name).push(...balance(port, endpoints, verbosity));
  };
  if (reachable.cluster.length > 0 && usesClusterEndpoints(port)) toEndpoints(chains.cluster, reachable.cluster);
  if (local.length > 0 && usesLocalEndpoints(port)) toEndpoints(chains.local, local);
  for (const endpoint of reachable.all)
    chain(endpointChain(port, endpoint.address)).push(...endpointRules(port, endpoint, verbosity));
  const dropped = (has: boolean, kind: 'internal' | 'external', used: boolean): ('internal' | 'external')[] =>
    hasAny && !has && used ? [kind] : [];
  return {
    shared: sharedRules(paths),
    own,
    names: [...own.keys()],
    withoutLocal: [
      ...dropped(paths.hasInternal, 'internal', true),
      ...dropped(paths.hasExternal, 'external', isExternallyReachable(port)),
    ],
  };
}

/** How packets of each of its addresses come to its chains; or that they are refused, in the table filter. */
function sharedRules(paths: Paths): ServiceRules['shared'] {
  const { port, chains, reachable, hasInternal, hasExternal, usesFirewall } = paths;
  const { name, protocol, number } = port;
  const rules: ['filter' | 'nat', string, string][] = [];
  const to = (ip: string): string => `-m ${protocol} -p ${protocol} -d ${ip} --dport ${number}`;
  const [target, reason] = reachable.hasAny ? ['DROP', 'has no local endpoints'] : ['REJECT', 'has no endpoints'];
  const refused = quoted(`${name} ${reason}`);
  if (hasInternal) {
    const chain = port.internalLocal ? chains.local : chains.cluster;
    rules.push(['nat', SERVICES, `${quoted(`${name} cluster IP`)} ${to(port.clusterIP)} -j ${chain}`]);
  } else rules.push(['filter', SERVICES, `${refused} ${to(port.clusterIP)} -j ${target}`]);
  const outside = (kind: string, ip: string, chain: string): void => {
    if (reachable.hasAny) rules.push(['nat', SERVICES, `${quoted(`${name} ${kind} IP`)} ${to(ip)} -j ${chain}`]);
    if (!hasExternal) rules.push(['filter', EXTERNAL_SERVICES, `${refused} ${to(ip)} -j ${target}`]);
  };
  for (const ip of port.externalIPs) outside('external', ip, chains.external);
  for (const ip of port.loadBalancerIPs) {
    outside('loadbalancer', ip, usesFirewall ? chains.firewall : chains.external);
    if (!usesFirewall) continue;
    const comment = quoted(`${name} traffic not accepted by ${chains.firewall}`);
    rules.push(['filter', PROXY_FIREWALL, `${comment} ${to(ip)} -j DROP`]);
  }
  if (port.nodePort !== 0) {
    const at = `-m ${protocol} -p ${protocol} --dport ${port.nodePort}`;
    if (reachable.hasAny) rules.push(['nat', NODE_PORTS, `${quoted(name)} ${at} -j ${chains.external}`]);
    if (!hasExternal) {
      rules.push(['filter', EXTERNAL_SERVICES, `${refused} -m addrtype --dst-type LOCAL ${at} -j ${target}`]);
    }
  }
  if (port.healthCheckNodePort !== 0) {
    const comment = quoted(`${name} health check node port`);
    rules.push(['filter', NODE_PORTS, `${comment} -m tcp -p tcp --dport ${port.healthCheckNodePort} -j ACCEPT`]);
  }
  return rules;
}

/** Traffic to the cluster address that does not come from a pod: its answer has to come back to this node. */
function masqueradeRules(port: ServicePort, { masqueradeAll, clusterCidr }: RuleOptions): string[] {
  const { name, protocol, number, clusterIP } = port;
  if (!masqueradeAll && clusterCidr === undefined) return [];
  const source = masqueradeAll ? '' : `! -s ${clusterCidr} `;
  const to = `-m ${protocol} -p ${protocol} -d ${clusterIP} --dport ${number}`;
  return [`${quoted(`${name} cluster IP`)} ${to} ${source}-j ${MARK_MASQ}`];
}

function externalRules({ port, chains, hasExternal }: Paths, { clusterCidr }: RuleOptions): string[] {
  const about = (what: string): string => quoted(`${what} for ${port.name} external destinations`);
  const last = (chain: string): string[] => (hasExternal ? [`-j ${chain}`] : []);
  // An endpoint may be on another node, which would answer the client directly.
  if (!port.externalLocal) return [`${about('masquerade traffic')} -j ${MARK_MASQ}`, ...last(chains.cluster)];
  // What comes from pods and from the node itself takes the way to all endpoints, as if it came back from a load balancer.
  const local = '-m addrtype --src-type LOCAL';
  return [
    ...(clusterCidr === undefined ? [] : [`${about('pod traffic')} -s ${clusterCidr} -j ${chains.cluster}`]),
    `${about('masquerade LOCAL traffic')} ${local} -j ${MARK_MASQ}`,
    `${about('route LOCAL traffic')} ${local} -j ${chains.cluster}`,
    ...last(chains.local),
  ];
}

function firewallRules({ port, chains }: Paths, { nodeIP }: RuleOptions): string[] {
  const comment = quoted(`${port.name} loadbalancer IP`);
  const from = (source: string): string => `${comment} -s ${source} -j ${chains.external}`;
  // The address may be local here: a packet of this node to it has the address itself as its source.
  const fromNode = nodeIP !== undefined && port.sourceRanges.some((range) => containsAddress(range, nodeIP));
  return [
    ...port.sourceRanges.map(from),
    ...(fromNode ? port.loadBalancerIPs.map(from) : []),
    quoted(`other traffic to ${port.name} will be dropped by KUBE-PROXY-FIREWALL`),
  ];
}

/** To each endpoint with the same probability; to the one that the client had before, where it is to stay. */
function balance(port: ServicePort, endpoints: readonly Endpoint[], { comments }: Verbosity): string[] {
  const about = ({ address }: Endpoint): string => (comments ? `${quoted(`${port.name} -> ${address}`)} ` : '');
  const rules: string[] = [];
  if (port.affinitySeconds !== undefined) {
    for (const endpoint of endpoints) {
      const chain = endpointChain(port, endpoint.address);
      const recent = `-m recent --name ${chain} --rcheck --seconds ${port.affinitySeconds} --reap`;
      rules.push(`${about(endpoint)}${recent} -j ${chain}`);
    }
  }
  for (const [index, endpoint] of endpoints.entries()) {
    const left = endpoints.length - index;
    const chance = left > 1 ? `-m statistic --mode random --probability ${probability(left)} ` : '';
    rules.push(`${about(endpoint)}${chance}-j ${endpointChain(port, endpoint.address)}`);
  }
  return rules;
}

/** "0.3333333333": one of `count`. */
export function probability(count: number): string {
  return (1 / count).toFixed(10);
}

function endpointRules(port: ServicePort, { ip, address }: Endpoint, { comments }: Verbosity): string[] {
  const { name, protocol, affinitySeconds } = port;
  const about = comments ? `${quoted(name)} ` : '';
  const recent = affinitySeconds === undefined ? '' : `-m recent --name ${endpointChain(port, address)} --set `;
  return [
    // A pod that reaches itself by its service.
    `${about}-s ${ip} -j ${MARK_MASQ}`,
    `${about}${recent}-m ${protocol} -p ${protocol} -j DNAT --to-destination ${address}`,
  ];
}
