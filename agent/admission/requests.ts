// A pod's requests, resource by resource, for admission and preemption. Pure.

import type { Container, Pod } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import { quantityMilli, quantityValue } from '../../lib/quantity.ts';
import { isSidecar } from '../../lib/sidecar.ts';

type Quantities = Readonly<Record<string, string>>;

/** millicores of cpu, whole units (bytes, pieces) of anything else. */
export function amountOf(resource: string, quantity: string | undefined): number {
  if (quantity === undefined) return 0;
  return resource === 'cpu' ? quantityMilli(quantity) : quantityValue(quantity);
}

function requestOf({ resources }: Container, resource: string): number {
  return amountOf(resource, getOwn(resources?.requests, resource) ?? getOwn(resources?.limits, resource));
}

/** Resources of the pod as a whole, where the spec has them (KEP-2837). */
function podLevelRequests(pod: Pod): Quantities | undefined {
  const spec: Pod['spec'] & { resources?: { requests?: Quantities } } = pod.spec;
  return spec.resources?.requests;
}

/**
 * The pod's request of one resource, its overhead included: containers and sidecars run together, each other init
 * container alone with the sidecars before it. A pod requests one of "pods".
 */
export function podRequest(pod: Pod, resource: string): number {
  if (resource === 'pods') return 1;
  const overhead = amountOf(resource, getOwn(pod.spec.overhead, resource));
  const whole = getOwn(podLevelRequests(pod), resource);
  if (whole !== undefined) return amountOf(resource, whole) + overhead;
  let sidecars = 0;
  let peak = 0;
  for (const container of pod.spec.initContainers ?? []) {
    const request = requestOf(container, resource);
    if (isSidecar(container)) sidecars += request;
    peak = Math.max(peak, isSidecar(container) ? sidecars : sidecars + request);
  }
  const together = pod.spec.containers.reduce((sum, container) => sum + requestOf(container, resource), sidecars);
  return Math.max(together, peak) + overhead;
}

/** Names of all resources that the pod requests. */
export function requestedResources(pod: Pod): ReadonlySet<string> {
  const names = new Set([...Object.keys(podLevelRequests(pod) ?? {}), ...Object.keys(pod.spec.overhead ?? {})]);
  for (const { resources } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
    for (const name of Object.keys({ ...resources?.limits, ...resources?.requests })) names.add(name);
  }
  return names;
}
