// A node that is NotReady, because its CNI configuration is not where the runtime looks for it.

import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { resourcePath } from '../../../client/paths.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { poll } from '../../../lib/retry.ts';
import { type CniFacts, readCni } from '../cni-files.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { isTainted, nodeFinding, readyCondition } from '../node.ts';
import { listPods, readyFinding } from '../pods.ts';

const CONFLIST = '10-nodelet.conflist';
const NOT_READY = 'node.kubernetes.io/not-ready';
/** For giving up only: an agent looks at its network every few seconds. ms */
const SEEN_MS = 300_000;

export interface Facts {
  readonly pods: readonly Pod[];
  readonly node: Node;
  readonly cni: CniFacts;
}

/** Pure. */
export function evaluate({ pods, node, cni }: Facts): readonly Finding[] {
  const used = cni.chosen === undefined ? 'none can be used' : `${cni.chosen} is used`;
  return [
    finding(
      'CNI configurations of the node',
      `${cni.files.join(', ') || 'no files'}: ${used}`,
      cni.chosen !== undefined,
      'a file with the name of a CNI configuration',
    ),
    nodeFinding(node),
    readyFinding(pods, 'web'),
  ];
}

export const nodeNotReady: Exercise = {
  name: 'node-not-ready',
  title: 'A node that does not become Ready: no network',
  lesson:
    'Ready is the kubelet’s own condition; without a CNI configuration it is False, and the controllers keep pods away by a taint.',
  minutes: 10,
  changesNode: true,
  hints: [
    'The message of the condition Ready says what is missing: runtime or network?',
    'Look at the names of the files in "$CNI_CONF_DIR". Which of them would a runtime read?',
    'Rename the file so that its name ends in `.conflist`.',
  ],
  setUp: async ({ cniConfDir, client, nodeName }) => {
    await rename(join(cniConfDir, CONFLIST), join(cniConfDir, `${CONFLIST}.disabled`));
    const path = resourcePath('v1', 'nodes', { name: nodeName });
    // The controllers' taint comes a moment after the agent's condition: a pod of between would find the node.
    const seen = async (): Promise<boolean> => {
      const node = await client.get<Node>(path);
      return readyCondition(node)?.status === 'False' && isTainted(node, NOT_READY);
    };
    if (!(await poll(seen, { clock: systemClock, everyMs: 100, limitMs: SEEN_MS })))
      throw new Error('the node has not become NotReady, with the taint, though its CNI configuration is gone');
  },
  check: async (machine) =>
    evaluate({
      pods: await listPods(machine),
      node: await machine.client.get<Node>(resourcePath('v1', 'nodes', { name: machine.nodeName })),
      cni: await readCni(machine),
    }),
};
