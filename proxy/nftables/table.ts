// The whole table of the nftables mode, as objects: sets, maps, chains. Pure.

import type { NftChains, NftTable } from '../../lib/nft-table.ts';
import type { RuleOptions } from '../options.ts';
import {
  CLUSTER_IPS,
  FIREWALL_IPS,
  MARK,
  NO_ENDPOINT_NODE_PORTS,
  NO_ENDPOINT_SERVICES,
  NODE_PORT_IPS,
  REJECT,
  SERVICE_IPS,
  SERVICE_NODE_PORTS,
} from './names.ts';
import type { ServiceObjects } from './service-objects.ts';

const SERVICE_KEY = 'ip daddr . meta l4proto . th dport';
const PORT_KEY = 'meta l4proto . th dport';
const SERVICE_MAP = 'map: type ipv4_addr . inet_proto . inet_service : verdict;';
const PORT_MAP = 'map: type inet_proto . inet_service : verdict;';

const SHARED: readonly (readonly [string, string])[] = [
  [CLUSTER_IPS, 'set: type ipv4_addr; comment "Active ClusterIPs";'],
  [NODE_PORT_IPS, 'set: type ipv4_addr; comment "IPs that accept NodePort traffic";'],
  [FIREWALL_IPS, `${SERVICE_MAP} comment "destinations that are subject to LoadBalancerSourceRanges";`],
  [NO_ENDPOINT_SERVICES, `${SERVICE_MAP} comment "vmap to drop or reject packets to services with no endpoints";`],
  [
    NO_ENDPOINT_NODE_PORTS,
    `${PORT_MAP} comment "vmap to drop or reject packets to service nodeports with no endpoints";`,
  ],
  [SERVICE_IPS, `${SERVICE_MAP} comment "ClusterIP, ExternalIP and LoadBalancer IP traffic";`],
  [SERVICE_NODE_PORTS, `${PORT_MAP} comment "NodePort traffic";`],
];

/** Chains that are there whatever services there are. */
function baseChains({ masqueradeBit, nodePortIPs, localhostNodePorts }: RuleOptions): NftChains {
  const mark = `0x${(2 ** masqueradeBit).toString(16)}`;
  const first = 'ct state new';
  const localhost = localhostNodePorts ? '' : ' ip daddr != 127.0.0.0/8';
  const nodePort = nodePortIPs === undefined ? `fib daddr type local${localhost}` : `ip daddr @${NODE_PORT_IPS}`;
  return new Map(
    Object.entries({
      'filter-prerouting-pre-dnat': {
        hook: 'type filter hook prerouting priority -110;',
        rules: [`${first} jump firewall-check`],
      },
      'filter-output-pre-dnat': {
        hook: 'type filter hook output priority -110;',
        rules: [`${first} jump firewall-check`],
      },
      'filter-input': {
        hook: 'type filter hook input priority 0;',
        rules: [`${first} jump nodeport-endpoints-check`, `${first} jump service-endpoints-check`],
      },
      'filter-forward': {
        hook: 'type filter hook forward priority 0;',
        rules: [`${first} jump service-endpoints-check`, `${first} jump cluster-ips-check`],
      },
      'filter-output': {
        hook: 'type filter hook output priority 0;',
        rules: [`${first} jump service-endpoints-check`, `${first} jump cluster-ips-check`],
      },
      'nat-prerouting': { hook: 'type nat hook prerouting priority -100;', rules: ['jump services'] },
      'nat-output': { hook: 'type nat hook output priority -100;', rules: ['jump services'] },
      'nat-postrouting': { hook: 'type nat hook postrouting priority 100;', rules: ['jump masquerading'] },
      services: {
        rules: [`${SERVICE_KEY} vmap @${SERVICE_IPS}`, `${nodePort} ${PORT_KEY} vmap @${SERVICE_NODE_PORTS}`],
      },
      'service-endpoints-check': { rules: [`${SERVICE_KEY} vmap @${NO_ENDPOINT_SERVICES}`] },
      'nodeport-endpoints-check': { rules: [`${nodePort} ${PORT_KEY} vmap @${NO_ENDPOINT_NODE_PORTS}`] },
      'firewall-check': { rules: [`${SERVICE_KEY} vmap @${FIREWALL_IPS}`] },
      'cluster-ips-check': {
        rules: [`ip daddr @${CLUSTER_IPS} reject comment "Reject traffic to invalid ports of ClusterIPs"`],
      },
      [MARK]: { rules: [`mark set mark or ${mark}`] },
      masquerading: {
        // Cleared, so that the packet is not masqueraded again where it passes once more.
        rules: [`mark and ${mark} == 0 return`, `mark set mark xor ${mark}`, 'masquerade fully-random'],
      },
      [REJECT]: { rules: ['reject'] },
    }),
  );
}

export function nftTable(services: Iterable<ServiceObjects>, options: RuleOptions): NftTable {
  const sets = new Map(SHARED.map(([name, type]) => [name, { type, elements: new Map<string, string>() }]));
  const parts = [baseChains(options)];
  for (const ip of options.nodePortIPs ?? []) sets.get(NODE_PORT_IPS)?.elements.set(ip, '');
  for (const { elements, chains: own, affinity } of services) {
    for (const [set, key, value] of elements) sets.get(set)?.elements.set(key, value);
    parts.push(own);
    for (const [name, seconds] of affinity) {
      sets.set(name, { type: `set: type ipv4_addr; flags dynamic,timeout; timeout ${seconds}s;`, elements: new Map() });
    }
  }
  return {
    sets,
    parts,
    get chains() {
      return new Map(parts.flatMap((part) => [...part]));
    },
  };
}
