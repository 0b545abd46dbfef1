// Pending, because the node has a taint that the pod does not tolerate.

import { resourcePath } from '../../../client/paths.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { findPod, listPods, readyFinding } from '../pods.ts';

const KEY = 'maintenance';

/** Pure. */
export function evaluate(pods: readonly Pod[], node: Node): readonly Finding[] {
  const taint = node.spec?.taints?.find(({ key }) => key === KEY);
  const tolerates = findPod(pods, 'patient')?.spec.tolerations?.some(
    ({ key, effect }) => (key === KEY || key === undefined) && (effect === undefined || effect === 'NoSchedule'),
  );
  const found = taint === undefined ? `no taint ${KEY}` : `${KEY}=${taint.value ?? ''}:${taint.effect}`;
  return [
    finding(
      `taints of node ${node.metadata.name}`,
      tolerates === true ? `${found}, which the pod tolerates` : found,
      taint === undefined || tolerates === true,
      'the taint is to go, or the pod is to tolerate it',
    ),
    readyFinding(pods, 'patient'),
  ];
}

export const pendingTaint: Exercise = {
  name: 'pending-taint',
  title: 'Pending: a taint that was left on the node',
  lesson:
    'A taint keeps pods off a node that is well; the pod’s event names it, and the scheduler tries again once it is gone.',
  minutes: 5,
  changesNode: true,
  hints: [
    'The node is Ready and has room. What else can keep a scheduler from using it? Read the pod’s event.',
    'Look at `spec.taints` of the node.',
    '`kubectl taint node "$NODE" maintenance-` removes the taint: the minus at the end does it.',
  ],
  setUp: async ({ client, nodeName }) => {
    const path = resourcePath('v1', 'nodes', { name: nodeName });
    const { spec } = await client.get<Node>(path);
    const taints = [...(spec?.taints ?? []), { key: KEY, value: 'disk', effect: 'NoSchedule' }];
    await client.patch(path, { spec: { taints } }, 'merge');
  },
  check: async (machine) => {
    const node = await machine.client.get<Node>(resourcePath('v1', 'nodes', { name: machine.nodeName }));
    return evaluate(await listPods(machine), node);
  },
};
