// What a pod requests and may use as a whole: containers together, init containers one after the other beside the
// sidecars that were started before them, the pod's own figures and its overhead
// (k8s.io/component-helpers/resource, PodRequests and PodLimits). Pure.

import { type Amount, type Amounts, amountsOf, largest, sum } from './amounts.ts';
import type { CountedContainer, CountedPodSpec } from './objects.ts';

type List = 'requests' | 'limits';
const POD_LEVEL = ['cpu', 'memory'];

const listOf = (container: CountedContainer, list: List): Map<string, Amount> => amountsOf(container.resources?.[list]);

function ofContainers(spec: CountedPodSpec, list: List): Amounts {
  const running = sum((spec.containers ?? []).map((container) => listOf(container, list)));
  let sidecars = new Map<string, Amount>();
  let starting: Amounts = new Map();
  for (const container of spec.initContainers ?? []) {
    const own = listOf(container, list);
    if (container.restartPolicy === 'Always') {
      sidecars = sum([sidecars, own]);
      starting = largest(starting, sidecars);
    } else starting = largest(starting, sum([sidecars, own]));
  }
  return largest(sum([running, sidecars]), starting);
}

/** Requests or limits of the pod. Overhead counts for limits only where there is a limit. */
export function podResources(spec: CountedPodSpec, list: List): Map<string, Amount> {
  const result = new Map(ofContainers(spec, list));
  for (const [name, amount] of amountsOf(spec.resources?.[list])) {
    if (POD_LEVEL.includes(name) || name.startsWith('hugepages-')) result.set(name, amount);
  }
  const overhead = amountsOf(spec.overhead);
  if (list === 'limits') for (const name of overhead.keys()) if (!result.has(name)) overhead.delete(name);
  return sum([result, overhead]);
}
