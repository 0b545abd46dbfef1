// The addresses that a lab has for Services of type LoadBalancer, and which node is to answer for each of them on the lab's bridge. Pure.

import { createHash } from 'node:crypto';
import type { EndpointSlice, Node, Service } from '../../client/types.ts';
import { addressPool, inPool } from '../../controlplane/controllers/service-lb/addresses.ts';
import { isExcludedFromLoadBalancers } from '../../controlplane/controllers/service-lb/nodes.ts';
import { planRange } from './node/plan.ts';
import type { LabState } from './state.ts';

/** The end of the /24 that the bridge has: CNI gives pods addresses below it, and nodes have the first ones. */
export function loadBalancerRange({ subnet, nodes }: Pick<LabState, 'subnet' | 'nodes'>): string {
  if (nodes === undefined) return `${firstThree(subnet)}.240/28`;
  return `${firstThree(planRange(nodes.range).nodes)}.224/27`;
}

/** How many addresses of a /24 pods may have: the first one is the bridge's. */
export const POD_ADDRESSES = 238;

/** The last address of a /24 that a pod may have, where pods may have `count` of them. */
export function lastPodAddress(subnet: string, count = POD_ADDRESSES): string {
  return `${firstThree(subnet)}.${1 + count}`;
}

const firstThree = (range: string): string => range.split('.').slice(0, 3).join('.');

export interface Announcement {
  readonly ip: string;
  /** "namespace/name" */
  readonly service: string;
  readonly node: string;
}

export interface AnnouncementFacts {
  readonly range: string;
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
  readonly nodes: readonly Node[];
  /** Names of the nodes that can answer at all: the lab has them up and connected. */
  readonly up: ReadonlySet<string>;
}

/**
 * One node for each address, always the same one of the same nodes, so that addresses are spread and few of them move. With
 * externalTrafficPolicy Local it is one that has endpoints; an address for which there is none is not announced.
 */
export function announcements({ range, services, slices, nodes, up }: AnnouncementFacts): readonly Announcement[] {
  const pool = addressPool(range);
  const able = nodes.filter((node) => up.has(node.metadata.name) && !isExcludedFromLoadBalancers(node));
  const names = able.map(({ metadata }) => metadata.name);
  const found = new Map<string, Announcement>();
  for (const { metadata, spec, status } of services) {
    if (spec?.type !== 'LoadBalancer') continue;
    const service = `${metadata.namespace}/${metadata.name}`;
    const local = spec.externalTrafficPolicy === 'Local';
    const candidates = local ? withEndpoints(names, service, slices) : names;
    for (const { ip = '' } of status?.loadBalancer?.ingress ?? []) {
      const node = first(candidates, ip);
      if (inPool(pool, ip) && node !== undefined && !found.has(ip)) found.set(ip, { ip, service, node });
    }
  }
  return [...found.values()].sort((a, b) => (a.ip < b.ip ? -1 : 1));
}

/** Those with ready endpoints; where there are none, those whose endpoints still serve on their way out. */
function withEndpoints(names: readonly string[], service: string, slices: readonly EndpointSlice[]): readonly string[] {
  const endpoints = slices
    .filter(({ metadata }) => `${metadata.namespace}/${metadata.labels?.['kubernetes.io/service-name']}` === service)
    .flatMap((slice) => slice.endpoints ?? []);
  const having = (isUsable: (each: (typeof endpoints)[number]) => boolean): readonly string[] => {
    const nodes = new Set(endpoints.filter(isUsable).map(({ nodeName }) => nodeName));
    return names.filter((name) => nodes.has(name));
  };
  const ready = having(({ conditions }) => conditions?.ready !== false);
  return ready.length > 0
    ? ready
    : having(({ conditions }) => conditions?.serving === true && conditions.terminating === true);
}

function first(names: readonly string[], ip: string): string | undefined {
  const rank = (name: string): string => createHash('sha256').update(`${name}#${ip}`).digest('hex');
  return names.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1))[0];
}

/** What is to change at a node, for `ip -batch`; '' for nothing. `has`: all IPv4 addresses of the device. */
export function addressCommands(
  range: string,
  device: string,
  has: readonly string[],
  wanted: readonly string[],
): string {
  const pool = addressPool(range);
  return [
    ...has.filter((ip) => inPool(pool, ip) && !wanted.includes(ip)).map((ip) => `address del ${ip}/32 dev ${device}\n`),
    ...wanted.filter((ip) => !has.includes(ip)).map((ip) => `address add ${ip}/32 dev ${device}\n`),
  ].join('');
}
