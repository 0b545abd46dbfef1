// The lab's enforcement of network policies: who its processes are to the API server, and the table that they leave.

import { removeTable } from '../../lib/nft-writer.ts';
import { type SystemObject, systemObject } from './system-objects.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
const ACCOUNT = 'nodelet-netpol';
const ROLE = `system:${ACCOUNT}`;
const RULES = [
  { apiGroups: [''], resources: ['pods', 'namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list', 'watch'] },
];

/** Pure. */
export function netpolObjects(): readonly SystemObject[] {
  const binding = {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: ROLE },
    subjects: [{ kind: 'ServiceAccount', name: ACCOUNT, namespace: 'kube-system' }],
  };
  return [
    systemObject('v1', 'ServiceAccount', 'serviceaccounts', ACCOUNT, {}),
    systemObject(RBAC, 'ClusterRole', 'clusterroles', ROLE, { rules: RULES }, false),
    systemObject(RBAC, 'ClusterRoleBinding', 'clusterrolebindings', ROLE, binding, false),
  ];
}

/** Of the family inet. `hash`: the lab's. Pure. */
export function netpolTable(hash: string): string {
  return `nodelet-netpol-${hash}`;
}

/** Idempotent. Tables of several nodes are gone with their network namespaces. */
export async function removeLabPolicies(hash: string): Promise<void> {
  await removeTable(`inet ${netpolTable(hash)}`);
}
