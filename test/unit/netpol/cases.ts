// Pods, namespaces and policies for the tables of network policies, and what the table of a node lets through: the part of nft's language that
// the table uses, evaluated for one packet.

import type { NetworkPolicySpec } from 'kubernetes-types/networking/v1';
import type { NftTable } from '../../../lib/nft-table.ts';
import type { PolicyPod } from '../../../netpol/pods.ts';
import { blockRange } from '../../../netpol/ranges.ts';
import { type Cluster, type Policy, policyTable } from '../../../netpol/table.ts';

export const NODE = 'here';
const LETTERS = ['a', 'b', 'c'];
/** Upstream's pods a, b, c in namespaces x, y, z: each serves 80 and 81. 10.0.<namespace>.<pod>. */
export const NAMESPACES = ['x', 'y', 'z'];

export function makePod(namespace: string, name: string, more: Partial<PolicyPod> = {}): PolicyPod {
  return {
    namespace,
    labels: { pod: name },
    ip: addressOf(`${namespace}/${name}`),
    nodeName: NODE,
    ports: [80, 81].flatMap((number) =>
      ['TCP', 'UDP', 'SCTP'].map((protocol) => ({
        name: `serve-${number}-${protocol.toLowerCase()}`,
        protocol,
        number,
      })),
    ),
    ...more,
  };
}

/** Of "x/a"; an address is its own. */
export function addressOf(pod: string): string {
  const [namespace = '', name = ''] = pod.split('/');
  return name === '' ? pod : `10.0.${NAMESPACES.indexOf(namespace) + 1}.${LETTERS.indexOf(name) + 1}`;
}

export const PODS = NAMESPACES.flatMap((namespace) => LETTERS.map((name) => makePod(namespace, name)));

export function makePolicy(spec: Partial<NetworkPolicySpec>, namespace = 'x', name = 'p'): Policy {
  return { namespace, name, spec: { podSelector: {}, ...spec } };
}

export function makeCluster(policies: readonly Policy[], more: Partial<Cluster> = {}): Cluster {
  return { pods: PODS, namespaces: new Map(NAMESPACES.map((ns) => [ns, { ns }])), policies, ...more };
}

export interface Packet {
  readonly from: string;
  readonly to: string;
  readonly protocol: string;
  readonly port: number;
}

const number = (address: string): number => blockRange(`${address}/32`)?.first ?? -1;

function inTexts(value: number, texts: string, parse: (text: string) => number): boolean {
  return texts
    .replace(/[{}]/g, '')
    .split(',')
    .some((text) => {
      const [first = '', last = first] = text.trim().split('-');
      return value >= parse(first) && value <= parse(last);
    });
}

/** Whether one rule's matches hold. Throws for a form that is not the table's. */
function holds(table: NftTable, rule: string, { from, to, protocol, port }: Packet): boolean {
  const values = { saddr: from, daddr: to };
  const inSet = (set: string, key: string): boolean => table.sets.get(set)?.elements.has(key) === true;
  let rest = rule;
  const take = (pattern: RegExp): readonly string[] | undefined => {
    const found = pattern.exec(rest);
    if (found === null) return undefined;
    rest = rest.slice(found[0].length).trim();
    return found.slice(1);
  };
  while (rest !== '') {
    const concat = take(/^ip saddr \. ip daddr @(\S+)/);
    const named = concat ?? take(/^ip daddr \. meta l4proto \. th dport @(\S+)/);
    const set = named ?? take(/^ip ([sd]addr) @(\S+)/);
    const block = set ?? take(/^ip ([sd]addr) (\{[^}]*\}|[\d.-]+)/);
    const l4 = block ?? take(/^meta l4proto (\w+)/);
    const ports = l4 ?? take(/^(tcp|udp|sctp) dport (\{[^}]*\}|[\d-]+)/);
    const [first = '', second = ''] = ports ?? [];
    if (ports === undefined) throw new Error(`no rule of the table: ${rest}`);
    const side = first === 'saddr' ? values.saddr : values.daddr;
    if (concat !== undefined ? !inSet(first, `${from} . ${to}`) : false) return false;
    if (concat !== undefined) continue;
    if (named !== undefined ? !inSet(first, `${to} . ${protocol} . ${port}`) : false) return false;
    if (named !== undefined) continue;
    if (set !== undefined ? !inSet(second, side) : false) return false;
    if (set !== undefined) continue;
    if (block !== undefined ? !inTexts(number(side), second, number) : false) return false;
    if (block !== undefined) continue;
    if (protocol !== first) return false;
    if (l4 === undefined && !inTexts(port, second, Number)) return false;
  }
  return true;
}

function verdict(table: NftTable, chain: string, packet: Packet): 'accept' | 'drop' | undefined {
  for (const rule of table.chains.get(chain)?.rules ?? []) {
    // Of the first packet of a connection.
    if (rule.startsWith('ct state')) continue;
    const [, before = '', what = ''] = /^(.*?) ?(accept|drop|jump \S+|ip [sd]addr vmap @\S+)$/.exec(rule) ?? [];
    if (!holds(table, before, packet)) continue;
    if (what === 'accept' || what === 'drop') return what;
    const [, side, map] = /^ip ([sd]addr) vmap @(\S+)$/.exec(what) ?? [];
    const key = side === 'saddr' ? packet.from : packet.to;
    const next = map === undefined ? what : table.sets.get(map)?.elements.get(key);
    if (next === undefined) continue;
    const found = verdict(table, next.replace(/^(jump|goto) /, ''), packet);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Whether a connection may be opened. `from`, `to`: "x/a", or an address. */
export function allows(cluster: Cluster, from: string, to: string, port = 80, protocol = 'tcp'): boolean {
  const table = policyTable(NODE, cluster);
  const packet = { from: addressOf(from), to: addressOf(to), protocol, port };
  return verdict(table, 'egress', packet) !== 'drop' && verdict(table, 'ingress', packet) !== 'drop';
}
