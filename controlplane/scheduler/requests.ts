// A pod's requests and a node's allocatable resources: cpu in millicores, everything else in whole units. Pure.

import type { Container, Pod } from '../../client/types.ts';
import { quantityMilli, quantityValue } from '../../lib/quantity.ts';
import { isSidecar } from '../../lib/sidecar.ts';

/** Resource name → amount. */
export type Amounts = ReadonlyMap<string, number>;

/** Amounts of a ResourceList as the API writes it. */
export function amountsOf(list: Readonly<Record<string, string | number>> | undefined): Amounts {
  const amounts = new Map<string, number>();
  for (const [name, quantity] of Object.entries(list ?? {})) {
    amounts.set(name, name === 'cpu' ? quantityMilli(quantity) : quantityValue(quantity));
  }
  return amounts;
}

export function addAmounts(a: Amounts, b: Amounts): Amounts {
  const sum = new Map(a);
  for (const [name, amount] of b) sum.set(name, (sum.get(name) ?? 0) + amount);
  return sum;
}

function maxAmounts(a: Amounts, b: Amounts): Amounts {
  const max = new Map(a);
  for (const [name, amount] of b) max.set(name, Math.max(max.get(name) ?? 0, amount));
  return max;
}

const NOTHING: Amounts = new Map();

/** A container's requests; a missing one defaults to the limit, as in the API server, or else to what is in `missing`. */
function containerRequests(container: Container, missing: Amounts): Amounts {
  const { requests, limits } = container.resources ?? {};
  const amounts = amountsOf({ ...limits, ...requests });
  return missing.size === 0 ? amounts : new Map([...missing, ...amounts]);
}

/**
 * The pod's effective requests (KEP-753): containers and sidecars run together, init containers one at a time beside
 * the sidecars started before them; overhead on top. Pod-level requests (KEP-2837) win where given.
 */
export function podRequests(pod: Pod, missing: Amounts = NOTHING): Amounts {
  let running = NOTHING;
  for (const container of pod.spec.containers) running = addAmounts(running, containerRequests(container, missing));
  let sidecars = NOTHING;
  let starting = NOTHING;
  for (const container of pod.spec.initContainers ?? []) {
    const requests = containerRequests(container, missing);
    if (isSidecar(container)) {
      sidecars = addAmounts(sidecars, requests);
      starting = maxAmounts(starting, sidecars);
    } else starting = maxAmounts(starting, addAmounts(sidecars, requests));
  }
  let total = maxAmounts(addAmounts(running, sidecars), starting);
  const podLevel = 'resources' in pod.spec ? (pod.spec.resources as Container['resources']) : undefined;
  if (podLevel !== undefined) total = new Map([...total, ...amountsOf({ ...podLevel.limits, ...podLevel.requests })]);
  return addAmounts(total, amountsOf(pod.spec.overhead));
}

/** What kube-scheduler counts for a container that requests neither, when it spreads the load. */
const MISSING: Amounts = new Map([
  ['cpu', 100],
  ['memory', 200 * 1024 * 1024],
]);

/** The requests with cpu and memory for containers that request none. */
export function nonZeroRequests(pod: Pod): Amounts {
  return podRequests(pod, MISSING);
}

export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

export function hostPorts(pod: Pod): readonly HostPort[] {
  return [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter(isSidecar)]
    .flatMap((container) => container.ports ?? [])
    .filter((port) => port.hostPort !== undefined && port.hostPort > 0)
    .map((port) => ({ ip: port.hostIP ?? '0.0.0.0', protocol: port.protocol ?? 'TCP', port: port.hostPort ?? 0 }));
}

/** Two pods cannot have both: the same port and protocol on overlapping addresses. */
export function portsConflict(a: HostPort, b: HostPort): boolean {
  if (a.port !== b.port || a.protocol !== b.protocol) return false;
  const any = (ip: string): boolean => ip === '' || ip === '0.0.0.0' || ip === '::';
  return any(a.ip) || any(b.ip) || a.ip === b.ip;
}
