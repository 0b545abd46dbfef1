// Pending, because no node has the label that the pod selects.

import { resourcePath } from '../../../client/paths.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { findPod, listPods, readyFinding } from '../pods.ts';

/** Pure. */
export function evaluate(pods: readonly Pod[], node: Node): readonly Finding[] {
  const wanted = new Map(Object.entries(findPod(pods, 'fast')?.spec.nodeSelector ?? {})).get('disk');
  const label = new Map(Object.entries(node.metadata.labels ?? {})).get('disk');
  return [
    finding(
      'nodeSelector of the pod fast',
      wanted === undefined ? 'no disk' : `disk=${wanted}`,
      wanted === 'ssd',
      'the pod is to keep it',
    ),
    finding(
      `labels of node ${node.metadata.name}`,
      label === undefined ? 'no label disk' : `disk=${label}`,
      label === 'ssd',
      'the node is to have the label disk=ssd',
    ),
    readyFinding(pods, 'fast'),
  ];
}

export const pendingSelector: Exercise = {
  name: 'pending-selector',
  title: 'Pending: a label that no node has',
  lesson: 'nodeSelector compares labels, nothing else; a change of a Node makes the scheduler try the pod again.',
  minutes: 5,
  changesNode: true,
  hints: [
    'FailedScheduling says which filter turned the node down. What does the pod select?',
    '`kubectl get nodes --show-labels`: is there a label `disk`?',
    '`kubectl label node "$NODE" disk=ssd`',
  ],
  check: async (machine) => {
    const node = await machine.client.get<Node>(resourcePath('v1', 'nodes', { name: machine.nodeName }));
    return evaluate(await listPods(machine), node);
  },
};
