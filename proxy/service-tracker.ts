// From services and EndpointSlices to the ports that the kernel has to serve. The objects of a service that has not changed stay the
// same ones, so that its rules need not be computed again. Reads no clock and no kernel.

import type { EndpointSlice, Service } from '../client/types.ts';
import { sameJson } from '../lib/same-json.ts';
import type { ServicePortEndpoints, ServicePortMap } from './backend.ts';
import { type NodeTopology, reachableEndpoints } from './reachable.ts';
import { type Endpoint, endpointsByPort, servicePorts } from './service-ports.ts';

interface OfService {
  readonly portMap: ReadonlyMap<string, ServicePortEndpoints>;
  /** Number of ready endpoints on this node, for health checks. */
  readonly localReady: number;
  /** The node port that answers health checks; 0: none. */
  readonly healthCheckNodePort: number;
}

export class ServiceTracker {
  readonly #ofServices = new Map<string, OfService>();
  #all: ServicePortMap = new Map();
  #stale = true;

  /** `service`: undefined once it is deleted. Returns whether anything differs. */
  update(key: string, service: Service | undefined, slices: readonly EndpointSlice[], node: NodeTopology): boolean {
    const known = this.#ofServices.get(key);
    const next = service === undefined ? undefined : ofService(service, slices, node, known);
    if (next === known) return false;
    if (next === undefined || next.portMap.size === 0) this.#ofServices.delete(key);
    else this.#ofServices.set(key, next);
    this.#stale = true;
    return true;
  }

  /** In the order of the names. */
  get all(): ServicePortMap {
    if (this.#stale) {
      const entries = [...this.#ofServices.values()].flatMap(({ portMap }) => [...portMap]);
      this.#all = new Map(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
      this.#stale = false;
    }
    return this.#all;
  }

  get services(): ReadonlyMap<string, { readonly localReady: number; readonly healthCheckNodePort: number }> {
    return this.#ofServices;
  }
}

function ofService(
  service: Service,
  slices: readonly EndpointSlice[],
  node: NodeTopology,
  known: OfService | undefined,
): OfService | undefined {
  const ports = servicePorts(service);
  if (ports.length === 0) return known === undefined || known.portMap.size === 0 ? known : undefined;
  const byPort = endpointsByPort(slices, node.name);
  const portMap = new Map<string, ServicePortEndpoints>();
  let same = known !== undefined && known.portMap.size === ports.length;
  for (const port of ports) {
    const key = `${port.name} ${port.protocol}`;
    const made: ServicePortEndpoints = { port, reachable: reachableEndpoints(byPort.get(port.port) ?? [], port, node) };
    const before = known?.portMap.get(key);
    const unchanged = before !== undefined && sameJson(before, made);
    portMap.set(key, unchanged ? before : made);
    if (!unchanged) same = false;
  }
  const localReady = countLocal([...byPort.values()].flat());
  const healthCheckNodePort = ports[0]?.healthCheckNodePort ?? 0;
  if (same && known?.localReady === localReady) return known;
  return { portMap, localReady, healthCheckNodePort };
}

/** Pods, not ports of pods. */
function countLocal(endpoints: readonly Endpoint[]): number {
  return new Set(endpoints.filter(({ local, ready }) => local && ready).map(({ ip }) => ip)).size;
}
