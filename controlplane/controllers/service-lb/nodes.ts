// Which nodes packets for load balancers may be brought to, as upstream's service controller has it. Pure.

import type { Node } from '../../../client/types.ts';

const EXCLUDED = 'node.kubernetes.io/exclude-from-external-load-balancers';
const LEAVING = 'ToBeDeletedByClusterAutoscaler';

/** By a label, or because the node is about to be removed. Whether it is Ready is no matter: its proxy answers for itself. */
export function isExcludedFromLoadBalancers({ metadata, spec }: Node): boolean {
  return metadata.labels?.[EXCLUDED] !== undefined || (spec?.taints ?? []).some(({ key }) => key === LEAVING);
}

/** Whether a new load balancer finds a node. */
export function takesLoadBalancers(node: Node): boolean {
  const isReady = (node.status?.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True');
  return isReady && !isExcludedFromLoadBalancers(node);
}
