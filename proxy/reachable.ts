// Which endpoints of a service this node's traffic may reach: by readiness, by the traffic policies, by topology. Where no
// endpoint is ready, those that are on their way out and still serve take the traffic (KEP-1669). Pure.

import { type Endpoint, isExternallyReachable, type ServicePort } from './service-ports.ts';

/** What of the node matters to topology. */
export interface NodeTopology {
  readonly name: string;
  /** '': it has no zone. */
  readonly zone: string;
}

export interface Reachable {
  /** For traffic with the policy Cluster. */
  readonly cluster: readonly Endpoint[];
  /** For traffic with the policy Local. */
  readonly local: readonly Endpoint[];
  /** Both together. */
  readonly all: readonly Endpoint[];
  /** Whether the service has usable endpoints anywhere. */
  readonly hasAny: boolean;
  /** Of a UDP port: the addresses of all endpoints that serve, reachable or not. Flows to them go on, as TCP's do; of other ports none. */
  readonly serving: readonly string[];
}

export function usesClusterEndpoints(port: ServicePort): boolean {
  // Where only local endpoints are for traffic from outside, pods and the node itself reach all of them.
  return !port.internalLocal || isExternallyReachable(port);
}

export function usesLocalEndpoints(port: ServicePort): boolean {
  return port.internalLocal || (port.externalLocal && isExternallyReachable(port));
}

const isLeaving = ({ serving, terminating }: Endpoint): boolean => serving && terminating;

export function reachableEndpoints(endpoints: readonly Endpoint[], port: ServicePort, node: NodeTopology): Reachable {
  let cluster: readonly Endpoint[] = [];
  if (usesClusterEndpoints(port)) {
    cluster = closest(
      endpoints.filter(({ ready }) => ready),
      node,
    );
    if (cluster.length === 0) cluster = endpoints.filter(isLeaving);
  }
  let local: readonly Endpoint[] = [];
  if (usesLocalEndpoints(port)) {
    const here = endpoints.filter((each) => each.local);
    const ready = here.filter((each) => each.ready);
    local = ready.length > 0 ? ready : here.filter(isLeaving);
  }
  const all = new Map([...cluster, ...local].map((endpoint) => [endpoint.address, endpoint]));
  return {
    cluster,
    local,
    all: [...all.values()].sort((a, b) => (a.address < b.address ? -1 : 1)),
    hasAny: endpoints.some((each) => each.ready || isLeaving(each)),
    serving: port.protocol === 'udp' ? endpoints.filter((each) => each.serving).map(({ address }) => address) : [],
  };
}

/** Hints count only where every endpoint has one and one is for this node, or this zone. */
function closest(ready: readonly Endpoint[], { name, zone }: NodeTopology): readonly Endpoint[] {
  if (ready.length === 0) return ready;
  const ofNode = ready.filter(({ nodes }) => nodes.includes(name));
  if (ready.every(({ nodes }) => nodes.length > 0) && ofNode.length > 0) return ofNode;
  const ofZone = ready.filter(({ zones }) => zones.includes(zone));
  return ready.every(({ zones }) => zones.length > 0) && ofZone.length > 0 ? ofZone : ready;
}
