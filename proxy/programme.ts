// From the cache's services and slices to what the kernel is to do; of a service in which nothing has changed, the objects stay the
// same ones, so that nothing is worked out again. Reads no clock and no kernel.

import type { EndpointSlice, Service } from '../client/types.ts';
import { sameJson } from '../lib/same-json.ts';
import type { Programme, Programmed } from './backend.ts';
import { type NodeTopology, reachableEndpoints } from './reachable.ts';
import { type Endpoint, endpointsByPort, servicePorts } from './service-ports.ts';

interface OfService {
  readonly programmed: ReadonlyMap<string, Programmed>;
  /** Endpoints of this node that are ready, by uid of nothing: their number, for health checks. */
  readonly localReady: number;
  /** The node port that answers health checks; 0: none. */
  readonly healthCheckNodePort: number;
}

/** Keys are those of services. */
export class Programmes {
  readonly #ofServices = new Map<string, OfService>();
  #all: Programme = new Map();
  #stale = true;

  /** Takes one service in; undefined: it is gone. Returns whether anything differs. */
  update(key: string, service: Service | undefined, slices: readonly EndpointSlice[], node: NodeTopology): boolean {
    const known = this.#ofServices.get(key);
    const next = service === undefined ? undefined : ofService(service, slices, node, known);
    if (next === known) return false;
    if (next === undefined || next.programmed.size === 0) this.#ofServices.delete(key);
    else this.#ofServices.set(key, next);
    this.#stale = true;
    return true;
  }

  /** In the order of the names. */
  get all(): Programme {
    if (this.#stale) {
      const entries = [...this.#ofServices.values()].flatMap(({ programmed }) => [...programmed]);
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
  if (ports.length === 0) return known === undefined || known.programmed.size === 0 ? known : undefined;
  const byPort = endpointsByPort(slices, node.name);
  const programmed = new Map<string, Programmed>();
  let same = known !== undefined && known.programmed.size === ports.length;
  for (const port of ports) {
    const key = `${port.name} ${port.protocol}`;
    const made: Programmed = { port, reachable: reachableEndpoints(byPort.get(port.port) ?? [], port, node) };
    const before = known?.programmed.get(key);
    const unchanged = before !== undefined && sameJson(before, made);
    programmed.set(key, unchanged ? before : made);
    if (!unchanged) same = false;
  }
  const localReady = countLocal([...byPort.values()].flat());
  const healthCheckNodePort = ports[0]?.healthCheckNodePort ?? 0;
  if (same && known?.localReady === localReady) return known;
  return { programmed, localReady, healthCheckNodePort };
}

/** Pods, not ports of pods. */
function countLocal(endpoints: readonly Endpoint[]): number {
  return new Set(endpoints.filter(({ local, ready }) => local && ready).map(({ ip }) => ip)).size;
}
