// The order in which clients see groups and versions: the priorities of kube-apiserver's own APIServices. Pure.

import { getOwn } from '../../lib/own-property.ts';

const GROUPS: Readonly<Record<string, number>> = {
  '': 18000,
  apps: 17800,
  'events.k8s.io': 17750,
  'authentication.k8s.io': 17700,
  'authorization.k8s.io': 17600,
  autoscaling: 17500,
  batch: 17400,
  'certificates.k8s.io': 17300,
  'networking.k8s.io': 17200,
  policy: 17100,
  'rbac.authorization.k8s.io': 17000,
  'storage.k8s.io': 16800,
  'apiextensions.k8s.io': 16700,
  'admissionregistration.k8s.io': 16700,
  'scheduling.k8s.io': 16600,
  'coordination.k8s.io': 16500,
  'node.k8s.io': 16300,
  'discovery.k8s.io': 16200,
  'flowcontrol.apiserver.k8s.io': 16100,
  'resource.k8s.io': 16200,
  'metrics.k8s.io': 100,
};
const VERSIONS: Readonly<Record<string, number>> = {
  '/v1': 1,
  'autoscaling/v2': 30,
  'flowcontrol.apiserver.k8s.io/v1': 21,
  'certificates.k8s.io/v1beta1': 9,
  'metrics.k8s.io/v1beta1': 100,
};

export function prioritiesOf(
  group: string,
  version: string,
): { groupPriorityMinimum: number; versionPriority: number } {
  const found = getOwn(GROUPS, group);
  if (found === undefined) return { groupPriorityMinimum: 1000, versionPriority: 100 };
  const key = `${group}/${version}`;
  return { groupPriorityMinimum: found, versionPriority: getOwn(VERSIONS, key) ?? 15 };
}
