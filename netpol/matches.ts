// What a rule of a policy allows, as matches of nft: its peers and its ports. Pure.

import type { NetworkPolicyPeer, NetworkPolicyPort } from 'kubernetes-types/networking/v1';
import { shortHash } from '../lib/short-hash.ts';
import { addressText, blockRange, isEveryAddress, portText, type Range, subtract, union } from './ranges.ts';

type Selector = NonNullable<NetworkPolicyPeer['podSelector']>;

/** Pods that a peer means. The same for the same selectors, whatever the policy. */
export interface PodPeer {
  readonly set: string;
  readonly pods: Selector;
  /** One namespace by its name, or those of a selector. */
  readonly namespaces: string | Selector;
}

export interface PeerMatches {
  /** '' is everyone. */
  readonly matches: readonly string[];
  readonly pods: readonly PodPeer[];
}

const anyOf = (texts: readonly string[]): string => (texts.length === 1 ? (texts[0] ?? '') : `{ ${texts.join(', ')} }`);

function podPeer({ podSelector = {}, namespaceSelector }: NetworkPolicyPeer, namespace: string): PodPeer {
  const namespaces = namespaceSelector ?? namespace;
  return { set: `pods-${shortHash(JSON.stringify([namespaces, podSelector]), 13)}`, pods: podSelector, namespaces };
}

/** `side`: where the peer's address is in the packet. No peers at all: everyone. A block of IPv6 addresses matches nothing. */
export function peerMatches(
  peers: readonly NetworkPolicyPeer[] | undefined,
  namespace: string,
  side: 'saddr' | 'daddr',
): PeerMatches {
  if (peers === undefined || peers.length === 0) return { matches: [''], pods: [] };
  const pods = peers.filter(({ ipBlock }) => ipBlock === undefined).map((peer) => podPeer(peer, namespace));
  const blocks = union(peers.flatMap(({ ipBlock }) => (ipBlock === undefined ? [] : blockRanges(ipBlock))));
  if (blocks.some(isEveryAddress)) return { matches: [''], pods: [] };
  const addresses = blocks.length === 0 ? [] : [`ip ${side} ${anyOf(blocks.map(addressText))}`];
  const named = [...new Set(pods.map(({ set }) => set))].map((set) => `ip ${side} @${set}`);
  return { matches: [...named, ...addresses], pods };
}

function blockRanges({ cidr, except = [] }: NonNullable<NetworkPolicyPeer['ipBlock']>): readonly Range[] {
  const block = blockRange(cidr);
  if (block === undefined) return [];
  return subtract(
    block,
    except.flatMap((each) => blockRange(each) ?? []),
  );
}

/** A port by its name: each pod that has it under a number of its own. */
export interface NamedPort {
  readonly set: string;
  readonly name: string;
  readonly protocol: string;
}

export interface PortMatches {
  /** '' is every port of every protocol. */
  readonly matches: readonly string[];
  readonly named: readonly NamedPort[];
}

/** No ports at all: all of them, and protocols that have none. */
export function portMatches(ports: readonly NetworkPolicyPort[] | undefined): PortMatches {
  if (ports === undefined || ports.length === 0) return { matches: [''], named: [] };
  const whole = new Set<string>();
  const numbers = new Map<string, Range[]>();
  const named = new Map<string, NamedPort>();
  for (const { port, endPort, protocol = 'TCP' } of ports) {
    const proto = protocol.toLowerCase();
    if (port === undefined) whole.add(proto);
    else if (typeof port === 'number') {
      numbers.set(proto, [...(numbers.get(proto) ?? []), { first: port, last: endPort ?? port }]);
    } else {
      const set = `port-${proto}-${port}`;
      named.set(set, { set, name: port, protocol });
    }
  }
  const matches = [
    ...[...whole].map((proto) => `meta l4proto ${proto}`),
    ...[...numbers].map(([proto, ranges]) => `${proto} dport ${anyOf(union(ranges).map(portText))}`),
    // In both directions the port is the receiver's.
    ...[...named.keys()].map((set) => `ip daddr . meta l4proto . th dport @${set}`),
  ];
  return { matches, named: [...named.values()] };
}
