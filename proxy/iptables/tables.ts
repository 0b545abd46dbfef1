// All of the proxy's chains with their rules, as iptables-save would list them, from the rules of each service. Pure.

import type { RuleOptions } from '../options.ts';
import {
  EXTERNAL_SERVICES,
  FIREWALL,
  FORWARD,
  MARK_MASQ,
  NODE_PORTS,
  POSTROUTING,
  PROXY_FIREWALL,
  SERVICES,
} from './names.ts';
import type { ServiceRules } from './service-rules.ts';

export type Chains = ReadonlyMap<string, readonly string[]>;
export interface ProxyTables {
  readonly filter: Chains;
  /** The chains of the table nat that all services share. */
  readonly shared: Chains;
  /** Those of each service. The same object as before means: nothing of it has changed, so that a change costs what it changes. */
  readonly services: readonly ServiceRules[];
  /** All chains of the table nat. */
  readonly nat: Chains;
}

const quoted = (text: string): string => `-m comment --comment "${text}"`;
const LAST = 'kubernetes service nodeports; NOTE: this must be the last rule in this chain';

/** `services`: in the order in which their rules appear. */
export function proxyTables(services: Iterable<ServiceRules>, options: RuleOptions): ProxyTables {
  const filter = new Map<string, string[]>(
    [EXTERNAL_SERVICES, FORWARD, NODE_PORTS, PROXY_FIREWALL, SERVICES].map((name) => [name, []]),
  );
  const shared = new Map<string, readonly string[]>();
  const lists = { filter, nat: new Map<string, string[]>([SERVICES, NODE_PORTS].map((name) => [name, []])) };
  for (const [name, rules] of lists.nat) shared.set(name, rules);
  const mark = `0x${(2 ** options.masqueradeBit).toString(16)}`;
  shared.set(MARK_MASQ, [`-j MARK --or-mark ${mark}`]);
  shared.set(POSTROUTING, [
    `-m mark ! --mark ${mark}/${mark} -j RETURN`,
    // Cleared, so that the packet is not masqueraded again where it passes once more.
    `-j MARK --xor-mark ${mark}`,
    `${quoted('kubernetes service traffic requiring SNAT')} -j MASQUERADE --random-fully`,
  ]);
  const all = [...services];
  for (const service of all) {
    for (const [table, chain, rule] of service.shared) lists[table].get(chain)?.push(rule);
  }
  lists.nat.get(SERVICES)?.push(...nodePortRules(options));
  filter.get(FORWARD)?.push(...forwardRules(mark, options));
  if (options.localhostNodePorts) filter.set(FIREWALL, [LOCALNET]);
  return {
    filter,
    shared,
    services: all,
    get nat() {
      return new Map([...shared, ...all.flatMap(({ own }) => [...own])]);
    },
  };
}

/** What route_localnet would open to the outside. */
const LOCALNET = `${quoted('block incoming localnet connections')} -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP`;

function nodePortRules({ nodePortIPs, localhostNodePorts }: RuleOptions): readonly string[] {
  if (nodePortIPs !== undefined) return nodePortIPs.map((ip) => `${quoted(LAST)} -d ${ip} -j ${NODE_PORTS}`);
  const notLocalhost = localhostNodePorts ? '' : ' ! -d 127.0.0.0/8';
  return [`${quoted(LAST)} -m addrtype --dst-type LOCAL${notLocalhost} -j ${NODE_PORTS}`];
}

function forwardRules(mark: string, { dropInvalid }: RuleOptions): readonly string[] {
  return [
    ...(dropInvalid ? ['-m conntrack --ctstate INVALID -j DROP'] : []),
    // Even where forwarding is forbidden otherwise.
    `${quoted('kubernetes forwarding rules')} -m mark --mark ${mark}/${mark} -j ACCEPT`,
    `${quoted('kubernetes forwarding conntrack rule')} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
  ];
}

/** The rules of the kernel's own chains that lead to the proxy's. */
export interface Jump {
  readonly table: 'filter' | 'nat';
  readonly from: string;
  readonly to: string;
  readonly rule: string;
}

const NEW = '-m conntrack --ctstate NEW ';
const jump = (table: Jump['table'], from: string, to: string, comment: string, match = ''): Jump => ({
  table,
  from,
  to,
  rule: `${match}${comment === '' ? '' : `${quoted(comment)} `}-j ${to}`,
});

/** In the order in which they are put to the front. */
export function jumps({ localhostNodePorts }: Pick<RuleOptions, 'localhostNodePorts'>): readonly Jump[] {
  const visible = 'kubernetes externally-visible service portals';
  const portals = 'kubernetes service portals';
  const firewall = 'kubernetes load balancer firewall';
  return [
    jump('filter', 'INPUT', EXTERNAL_SERVICES, visible, NEW),
    jump('filter', 'FORWARD', EXTERNAL_SERVICES, visible, NEW),
    jump('filter', 'INPUT', NODE_PORTS, 'kubernetes health check service ports'),
    jump('filter', 'FORWARD', SERVICES, portals, NEW),
    jump('filter', 'OUTPUT', SERVICES, portals, NEW),
    jump('filter', 'FORWARD', FORWARD, 'kubernetes forwarding rules'),
    jump('filter', 'INPUT', PROXY_FIREWALL, firewall, NEW),
    jump('filter', 'OUTPUT', PROXY_FIREWALL, firewall, NEW),
    jump('filter', 'FORWARD', PROXY_FIREWALL, firewall, NEW),
    jump('nat', 'OUTPUT', SERVICES, portals),
    jump('nat', 'PREROUTING', SERVICES, portals),
    jump('nat', 'POSTROUTING', POSTROUTING, 'kubernetes postrouting rules'),
    ...(localhostNodePorts ? [jump('filter', 'INPUT', FIREWALL, ''), jump('filter', 'OUTPUT', FIREWALL, '')] : []),
  ];
}
