// What the containers of a pod request together, as the simulated machine sizes the pod's cgroup. Pure.

import type { Container, Pod } from '../../client/types.ts';
import { quantityMilli, quantityValue } from '../../lib/quantity.ts';
import { isSidecar } from '../../lib/sidecar.ts';

/** A figure of a container's spec, in millicores or bytes; 0 where it has none. */
export function figure(container: Container, part: 'requests' | 'limits', resource: 'cpu' | 'memory'): number {
  const quantity = container.resources?.[part]?.[resource];
  if (quantity === undefined) return 0;
  return resource === 'cpu' ? quantityMilli(quantity) : quantityValue(quantity);
}

export function cpuRequest(container: Container): number {
  return figure(container, 'requests', 'cpu') || figure(container, 'limits', 'cpu');
}

/** What runs together in a pod. */
export function lasting({ spec }: Pod): Container[] {
  return [...spec.containers, ...(spec.initContainers ?? []).filter(isSidecar)];
}

/** Millicores of all that run together, and of the largest init container beside the sidecars that are before it. */
export function cpuOfPod(pod: Pod): number {
  let peak = 0;
  let sidecars = 0;
  for (const init of pod.spec.initContainers ?? []) {
    if (isSidecar(init)) sidecars += cpuRequest(init);
    else peak = Math.max(peak, sidecars + cpuRequest(init));
  }
  return Math.max(
    peak,
    lasting(pod).reduce((sum, container) => sum + cpuRequest(container), 0),
  );
}
