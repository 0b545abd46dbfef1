// Pending, because the requests are larger than what any node has.

import type { Pod } from '../../../client/types.ts';
import { quantityMilli } from '../../../lib/quantity.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { findPod, listPods, mainContainer, readyFinding } from '../pods.ts';

/** Pure. */
export function evaluate(pods: readonly Pod[]): readonly Finding[] {
  const requested = new Map(Object.entries(mainContainer(findPod(pods, 'greedy'))?.resources?.requests ?? {})).get(
    'cpu',
  );
  const node = findPod(pods, 'greedy')?.spec.nodeName;
  return [
    finding('node of the pod greedy', node ?? 'none', node !== undefined, 'the scheduler is to find a node for it'),
    finding(
      'CPU that it requests',
      requested ?? 'none',
      requested !== undefined && quantityMilli(requested) > 0,
      'keep a request: without one the pod gets the smallest share of the CPU',
    ),
    readyFinding(pods, 'greedy'),
  ];
}

export const pendingResources: Exercise = {
  name: 'pending-resources',
  title: 'Pending: requests that fit on no node',
  lesson: 'The scheduler adds up requests and compares them with allocatable; what pods really use does not count.',
  minutes: 5,
  hints: [
    'Whose turn is it while a pod has no nodeName: the kubelet’s or the scheduler’s? Read the event FailedScheduling.',
    'Compare `resources.requests.cpu` of the pod with `status.allocatable.cpu` of the node. Mind the units.',
    'Write `cpu: 10m` in world.yaml, `kubectl delete pod greedy`, `kubectl apply -f world.yaml`.',
  ],
  check: async (machine) => evaluate(await listPods(machine)),
};
