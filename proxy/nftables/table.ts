// The whole table, as objects: sets, maps, chains. And the commands for nft that make it, or that change one state of it to another.
// Pure.

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
  TABLE,
} from './names.ts';
import type { ServiceObjects } from './service-objects.ts';

export interface NftTable {
  /** Sets and maps: how they are declared, and what is in them; '' is the value in a set. */
  readonly sets: ReadonlyMap<string, { readonly type: string; readonly elements: ReadonlyMap<string, string> }>;
  /** How a chain hangs in the kernel, where it does, and its rules. */
  readonly chains: ReadonlyMap<string, { readonly hook?: string; readonly rules: readonly string[] }>;
}

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
function baseChains({ masqueradeBit, nodePortIPs, localhostNodePorts }: RuleOptions): NftTable['chains'] {
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
  const chains = new Map(baseChains(options));
  for (const ip of options.nodePortIPs ?? []) sets.get(NODE_PORT_IPS)?.elements.set(ip, '');
  for (const { elements, chains: own, affinity } of services) {
    for (const [set, key, value] of elements) sets.get(set)?.elements.set(key, value);
    for (const [name, rules] of own) chains.set(name, { rules });
    for (const [name, seconds] of affinity) {
      sets.set(name, { type: `set: type ipv4_addr; flags dynamic,timeout; timeout ${seconds}s;`, elements: new Map() });
    }
  }
  return { sets, chains };
}

const declare = (name: string, type: string): string => {
  const [, kind = 'set', body = ''] = /^(\w+): (.*)$/.exec(type) ?? [];
  return `add ${kind} ${TABLE} ${name} { ${body} }`;
};
const kindOf = (type: string): string => type.split(':')[0] ?? 'set';

/** Elements in one command each of not too many: nft takes long to parse one that is very long. */
const ELEMENTS_IN_COMMAND = 200;

function elementCommands(verb: 'add' | 'delete', name: string, elements: readonly string[]): readonly string[] {
  const commands: string[] = [];
  for (let start = 0; start < elements.length; start += ELEMENTS_IN_COMMAND) {
    const some = elements.slice(start, start + ELEMENTS_IN_COMMAND);
    commands.push(`${verb} element ${TABLE} ${name} { ${some.join(', ')} }`);
  }
  return commands;
}

const element = ([key, value]: readonly [string, string]): string => (value === '' ? key : `${key} : ${value}`);
const ruleCommands = (name: string, rules: readonly string[]): readonly string[] =>
  rules.map((rule) => `add rule ${TABLE} ${name} ${rule}`);

/** The whole table anew, in one transaction: what was there is gone. `owner`: shown as its comment. */
export function fullCommands(table: NftTable, owner: string): string {
  const lines = [
    `add table ${TABLE}`,
    `delete table ${TABLE}`,
    `add table ${TABLE} { comment "rules for kube-proxy of ${owner}"; }`,
    ...[...table.sets].map(([name, { type }]) => declare(name, type)),
    ...[...table.chains].map(
      ([name, { hook }]) => `add chain ${TABLE} ${name}${hook === undefined ? '' : ` { ${hook} }`}`,
    ),
    ...[...table.chains].flatMap(([name, { rules }]) => ruleCommands(name, rules)),
    ...[...table.sets].flatMap(([name, { elements }]) => elementCommands('add', name, [...elements].map(element))),
  ];
  return `${lines.join('\n')}\n`;
}

/** What differs; '' where nothing does. What nothing leads to any longer stays for `removalCommands`, as it takes time. */
export function changeCommands(before: NftTable, now: NftTable): string {
  const lines: string[] = [];
  const changed: string[] = [];
  for (const [name, { type }] of now.sets) if (!before.sets.has(name)) lines.push(declare(name, type));
  for (const [name, { rules }] of now.chains) {
    const old = before.chains.get(name);
    if (old !== undefined && (old.rules === rules || old.rules.join('\n') === rules.join('\n'))) continue;
    // One that is about to be removed may be there still.
    if (old === undefined) lines.push(`add chain ${TABLE} ${name}`);
    lines.push(`flush chain ${TABLE} ${name}`);
    changed.push(name);
  }
  for (const name of changed) lines.push(...ruleCommands(name, now.chains.get(name)?.rules ?? []));
  for (const [name, { elements }] of now.sets) {
    const old = before.sets.get(name)?.elements ?? new Map<string, string>();
    const gone = [...old].filter(([key, value]) => elements.get(key) !== value).map(([key]) => key);
    const added = [...elements].filter(([key, value]) => old.get(key) !== value).map(element);
    lines.push(...elementCommands('delete', name, gone), ...elementCommands('add', name, added));
  }
  return text(lines);
}

const text = (commands: readonly string[]): string => (commands.length === 0 ? '' : `${commands.join('\n')}\n`);

/** Chains and sets that `before` has and `now` has not. */
export function leftBehind(
  before: NftTable,
  now: NftTable,
): { readonly chains: readonly string[]; readonly sets: readonly string[] } {
  return {
    chains: [...before.chains.keys()].filter((name) => !now.chains.has(name)),
    sets: [...before.sets.keys()].filter((name) => !now.sets.has(name)),
  };
}

/** Takes away what `now` does not have. Those sets are all of clients that stay with an endpoint. */
export function removalCommands(now: NftTable, chains: Iterable<string>, sets: Iterable<string>): string {
  const gone = [...chains].filter((name) => !now.chains.has(name));
  return text([
    // They lead to each other: all of them are emptied before the first is deleted.
    ...gone.map((name) => `flush chain ${TABLE} ${name}`),
    ...gone.map((name) => `delete chain ${TABLE} ${name}`),
    ...[...sets].filter((name) => !now.sets.has(name)).map((name) => `delete set ${TABLE} ${name}`),
  ]);
}

/** Of what nft lists in JSON: rules by chain, elements by map or set. Undefined: it is no such list. */
export function countListed(listed: string): {
  readonly chains: Map<string, number>;
  readonly sets: Map<string, number>;
} {
  const found = { chains: new Map<string, number>(), sets: new Map<string, number>() };
  const { nftables = [] } = JSON.parse(listed) as { nftables?: readonly NftEntry[] };
  for (const { chain, rule, map, set } of nftables) {
    if (chain !== undefined) found.chains.set(chain.name, found.chains.get(chain.name) ?? 0);
    if (rule !== undefined) found.chains.set(rule.chain, (found.chains.get(rule.chain) ?? 0) + 1);
    const named = map ?? set;
    if (named !== undefined) found.sets.set(named.name, (named.elem ?? []).length);
  }
  return found;
}

interface NftEntry {
  readonly chain?: { readonly name: string };
  readonly rule?: { readonly chain: string };
  readonly map?: { readonly name: string; readonly elem?: readonly unknown[] };
  readonly set?: { readonly name: string; readonly elem?: readonly unknown[] };
}

/** What is not as it was written, in words; undefined where everything is. */
export function firstDamage(table: NftTable, listed: string): string | undefined {
  const { chains, sets } = countListed(listed);
  for (const [name, { rules }] of table.chains) {
    const count = chains.get(name);
    if (count === undefined) return `chain ${name} is gone`;
    if (count !== rules.length) return `chain ${name} has other rules`;
  }
  for (const [name, { elements, type }] of table.sets) {
    const count = sets.get(name);
    if (count === undefined) return `${kindOf(type)} ${name} is gone`;
    // What clients are remembered changes by itself.
    if (!type.includes('dynamic') && count !== elements.size) return `${kindOf(type)} ${name} has other elements`;
  }
  return undefined;
}
