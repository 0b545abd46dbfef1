// What NetworkPolicies let in to a pod: which of them isolate it, and whether one of their rules admits a client to a port. As the
// API describes it (networking.k8s.io/v1); whether the cluster's network enforces it is another question. Pure.

import { BlockList, isIPv6 } from 'node:net';
import type { NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer } from 'kubernetes-types/networking/v1';
import { matchesLabelSelector } from '../../client/selectors.ts';
import type { Pod, Stored } from '../../client/types.ts';
import type { Vantage } from './facts.ts';

type Policy = Stored<NetworkPolicy>;

/** The policies that let nothing in to the pod but what some rule admits. */
export function isolating(policies: readonly Policy[], pod: Pod): readonly Policy[] {
  return policies.filter(
    ({ spec }) =>
      (spec?.policyTypes ?? ['Ingress']).includes('Ingress') &&
      matchesLabelSelector(spec?.podSelector ?? {}, pod.metadata.labels ?? {}),
  );
}

export interface Opening {
  readonly pod: Pod;
  readonly protocol: string;
  readonly port: number;
}

function admitsPort({ ports }: NetworkPolicyIngressRule, { pod, protocol, port }: Opening): boolean {
  if ((ports ?? []).length === 0) return true;
  return (ports ?? []).some(({ port: wanted, endPort, protocol: own = 'TCP' }) => {
    if (own !== protocol) return false;
    if (wanted === undefined) return true;
    if (typeof wanted === 'number') return endPort === undefined ? wanted === port : port >= wanted && port <= endPort;
    const named = pod.spec.containers.flatMap((each) => each.ports ?? []);
    return named.some(({ name, containerPort }) => name === wanted && containerPort === port);
  });
}

function isInBlock(address: string, cidr: string): boolean {
  const [net = '', prefix = ''] = cidr.split('/');
  const family = isIPv6(net) ? 'ipv6' : 'ipv4';
  if (isIPv6(address) !== (family === 'ipv6')) return false;
  const list = new BlockList();
  list.addSubnet(net, Number(prefix), family);
  return list.check(address, family);
}

function matchesPeer(
  { podSelector, namespaceSelector, ipBlock }: NetworkPolicyPeer,
  own: string,
  from: Vantage,
): boolean {
  const { metadata, status } = from.pod;
  if (ipBlock !== undefined) {
    const address = status?.podIP;
    if (address === undefined || !isInBlock(address, ipBlock.cidr)) return false;
    return !(ipBlock.except ?? []).some((each) => isInBlock(address, each));
  }
  const isNamespace =
    namespaceSelector === undefined
      ? metadata.namespace === own
      : matchesLabelSelector(namespaceSelector, from.namespaceLabels);
  return isNamespace && (podSelector === undefined || matchesLabelSelector(podSelector, metadata.labels ?? {}));
}

/**
 * `everyone`, `someone` (peers, of which the client is none or not known), or `none` is let in to this opening. A client that a
 * rule admits counts as everyone.
 */
export function admits(
  policies: readonly Policy[],
  opening: Opening,
  client: Vantage | undefined,
): 'everyone' | 'someone' | 'none' {
  const own = opening.pod.metadata.namespace;
  const rules = policies.flatMap(({ spec }) => spec?.ingress ?? []).filter((rule) => admitsPort(rule, opening));
  if (rules.length === 0) return 'none';
  const isOpen = rules.some(({ from }) => {
    const peers = from ?? [];
    return peers.length === 0 || (client !== undefined && peers.some((peer) => matchesPeer(peer, own, client)));
  });
  return isOpen ? 'everyone' : 'someone';
}
