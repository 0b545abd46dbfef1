// From pods, namespaces and policies to the whole table of one node. A policy is a chain that accepts what it allows; pods that the same
// policies select share a chain that jumps to each of these and then drops; a map leads from a pod's address to that chain. Pure.

import type { LabelSelector } from 'kubernetes-types/meta/v1';
import type {
  NetworkPolicyEgressRule,
  NetworkPolicyIngressRule,
  NetworkPolicySpec,
} from 'kubernetes-types/networking/v1';
import { matchesLabelSelector } from '../client/selectors.ts';
import type { NftTable } from '../lib/nft-table.ts';
import { shortHash } from '../lib/short-hash.ts';
import { type NamedPort, type PodPeer, peerMatches, portMatches } from './matches.ts';
import type { PolicyPod } from './pods.ts';

export interface Policy {
  readonly namespace: string;
  readonly name: string;
  readonly spec: NetworkPolicySpec;
}

export interface Cluster {
  readonly pods: readonly PolicyPod[];
  /** Labels by name. */
  readonly namespaces: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly policies: readonly Policy[];
}

type Direction = 'ingress' | 'egress';
const DIRECTIONS: readonly Direction[] = ['egress', 'ingress'];
/** 256 bytes with the longest prefix. */
const MAX_LENGTH = 200;
const SELF = 'self';
const SELF_TYPE = 'set: type ipv4_addr . ipv4_addr; comment "A pod may always reach itself, by a Service, too";';
/** After addresses of Services have become those of pods (-100), and egress first: a verdict of one leaves the other to decide. */
const PRIORITY = { egress: -6, ingress: -5 };

/** Ingress unless something else is listed; Egress where there are rules for it, too. */
export function policyTypes({ policyTypes: types = [], egress = [] }: NetworkPolicySpec): readonly Direction[] {
  if (types.length > 0) return DIRECTIONS.filter((each) => types.some((type) => type.toLowerCase() === each));
  return egress.length > 0 ? DIRECTIONS : ['ingress'];
}

function policyChain(direction: Direction, { namespace, name }: Policy): string {
  const full = `${namespace}/${name}`;
  const short = full.length > MAX_LENGTH ? `${full.slice(0, MAX_LENGTH - 20)}-${shortHash(full, 13)}` : full;
  return `${direction}-policy-${short}`;
}

interface Rules {
  readonly rules: readonly string[];
  readonly pods: readonly PodPeer[];
  readonly named: readonly NamedPort[];
}

function rulesOf(direction: Direction, { namespace, spec }: Policy): Rules {
  const side = direction === 'ingress' ? 'saddr' : 'daddr';
  const rules: readonly (NetworkPolicyIngressRule & NetworkPolicyEgressRule)[] = spec[direction] ?? [];
  const parts = rules.map(({ from, to, ports }) => ({
    peers: peerMatches(direction === 'ingress' ? from : to, namespace, side),
    ports: portMatches(ports),
  }));
  return {
    rules: parts.flatMap(({ peers, ports }) =>
      peers.matches.flatMap((peer) =>
        ports.matches.map((port) => [peer, port, 'accept'].filter((each) => each !== '').join(' ')),
      ),
    ),
    pods: parts.flatMap(({ peers }) => peers.pods),
    named: parts.flatMap(({ ports }) => ports.named),
  };
}

/** Pods by namespace: a selector is compared with those alone that it can mean. */
class PodsByNamespace {
  readonly #byNamespace = new Map<string, PolicyPod[]>();
  readonly #namespaces: Cluster['namespaces'];

  constructor({ pods, namespaces }: Cluster) {
    this.#namespaces = namespaces;
    for (const pod of pods) {
      const known = this.#byNamespace.get(pod.namespace);
      if (known === undefined) this.#byNamespace.set(pod.namespace, [pod]);
      else known.push(pod);
    }
  }

  select(namespace: string, selector: LabelSelector): readonly PolicyPod[] {
    return (this.#byNamespace.get(namespace) ?? []).filter(({ labels }) => matchesLabelSelector(selector, labels));
  }

  peers({ namespaces, pods }: PodPeer): readonly PolicyPod[] {
    if (typeof namespaces === 'string') return this.select(namespaces, pods);
    return [...this.#namespaces]
      .filter(([, labels]) => matchesLabelSelector(namespaces, labels))
      .flatMap(([name]) => this.select(name, pods));
  }
}

/** The policies that isolate a pod, by address. */
function isolated(
  direction: Direction,
  nodeName: string,
  policies: readonly Policy[],
  pods: PodsByNamespace,
): ReadonlyMap<string, readonly Policy[]> {
  const found = new Map<string, Policy[]>();
  for (const policy of policies) {
    if (!policyTypes(policy.spec).includes(direction)) continue;
    for (const { ip, nodeName: of } of pods.select(policy.namespace, policy.spec.podSelector ?? {})) {
      if (of !== nodeName) continue;
      const known = found.get(ip);
      if (known === undefined) found.set(ip, [policy]);
      else known.push(policy);
    }
  }
  return found;
}

class TableParts {
  readonly sets = new Map<string, { readonly type: string; readonly elements: Map<string, string> }>();
  readonly chains = new Map<string, { readonly hook?: string; readonly rules: readonly string[] }>();

  set(name: string, type: string): Map<string, string> {
    const known = this.sets.get(name);
    if (known !== undefined) return known.elements;
    const elements = new Map<string, string>();
    this.sets.set(name, { type, elements });
    return elements;
  }
}

/** The policies of pods on other nodes are left out. */
export function policyTable(nodeName: string, cluster: Cluster): NftTable {
  const parts = new TableParts();
  const self = parts.set(SELF, SELF_TYPE);
  const pods = new PodsByNamespace(cluster);
  const policies = [...cluster.policies].sort((a, b) => (policyChain('egress', a) < policyChain('egress', b) ? -1 : 1));
  for (const direction of DIRECTIONS) {
    const ends = parts.set(`${direction}-pods`, 'map: type ipv4_addr : verdict;');
    const key = direction === 'ingress' ? 'daddr' : 'saddr';
    parts.chains.set(direction, {
      hook: `type filter hook forward priority ${PRIORITY[direction]};`,
      rules: [
        'ct state established,related accept',
        `ip saddr . ip daddr @${SELF} accept`,
        `ip ${key} vmap @${direction}-pods`,
      ],
    });
    for (const [ip, selecting] of isolated(direction, nodeName, policies, pods)) {
      self.set(`${ip} . ${ip}`, '');
      const chains = selecting.map((policy) => policyChain(direction, policy));
      const name = `${direction}-${shortHash(chains.join(), 13)}`;
      ends.set(ip, `goto ${name}`);
      if (parts.chains.has(name)) continue;
      parts.chains.set(name, { rules: [...chains.map((chain) => `jump ${chain}`), 'drop'] });
      for (const policy of selecting) addPolicy(parts, direction, policy, cluster.pods, pods);
    }
  }
  return parts;
}

function addPolicy(
  parts: TableParts,
  direction: Direction,
  policy: Policy,
  all: readonly PolicyPod[],
  pods: PodsByNamespace,
): void {
  const chain = policyChain(direction, policy);
  if (parts.chains.has(chain)) return;
  const { rules, pods: peers, named } = rulesOf(direction, policy);
  for (const peer of peers) {
    if (parts.sets.has(peer.set)) continue;
    const elements = parts.set(peer.set, 'set: type ipv4_addr;');
    for (const { ip } of pods.peers(peer)) elements.set(ip, '');
  }
  for (const { set, name, protocol } of named) {
    if (parts.sets.has(set)) continue;
    const elements = parts.set(set, 'set: type ipv4_addr . inet_proto . inet_service;');
    for (const { ip, ports } of all) {
      const port = ports.find((each) => each.name === name && each.protocol === protocol);
      if (port !== undefined) elements.set(`${ip} . ${protocol.toLowerCase()} . ${port.number}`, '');
    }
  }
  parts.chains.set(chain, { rules });
}
