// What exercises ask about the Node. Pure.

import type { NodeCondition } from 'kubernetes-types/core/v1';
import type { Node } from '../../client/types.ts';
import { type Finding, finding } from './model.ts';

export function readyCondition(node: Node): NodeCondition | undefined {
  return node.status?.conditions?.find(({ type }) => type === 'Ready');
}

/** Whether the scheduler gives the node no pod that does not tolerate `key`. */
export function isTainted(node: Node, key: string): boolean {
  return node.spec?.taints?.some((taint) => taint.key === key && taint.effect === 'NoSchedule') === true;
}

export function nodeFinding(node: Node): Finding {
  const ready = readyCondition(node);
  return finding(
    `condition Ready of node ${node.metadata.name}`,
    ready === undefined ? 'none' : `${ready.status}: ${ready.message ?? ready.reason ?? ''}`,
    ready?.status === 'True',
    'it is to become True',
  );
}
