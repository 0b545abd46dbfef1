// Where an object is stored, as kube-apiserver lays out etcd: /registry/pods/default/my-pod. Values that are encrypted with
// additional data are bound to this path, in either store. Pure.

import { getOwn } from '../../lib/own-property.ts';
import type { ObjectKey } from './object-store.ts';

/** kube-apiserver's --etcd-prefix. */
export const DEFAULT_PREFIX = '/registry';

/** Resources whose place is not their name (SpecialDefaultResourcePrefixes of pkg/kubeapiserver). */
const SPECIAL: Readonly<Record<string, string>> = {
  '/replicationcontrollers': 'controllers',
  '/endpoints': 'services/endpoints',
  '/nodes': 'minions',
  '/services': 'services/specs',
  'networking.k8s.io/ingresses': 'ingress',
};

/** Groups that kube-apiserver itself serves: stored without their group. All others, and these two, have it in the path. */
const WITH_GROUP = new Set(['apiextensions.k8s.io', 'apiregistration.k8s.io']);
const BUILT_IN = new Set([
  '',
  'admissionregistration.k8s.io',
  'apps',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'autoscaling',
  'batch',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'flowcontrol.apiserver.k8s.io',
  'internal.apiserver.k8s.io',
  'networking.k8s.io',
  'node.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
  'resource.k8s.io',
  'scheduling.k8s.io',
  'storage.k8s.io',
  'storagemigration.k8s.io',
]);

/** "/registry/pods" for "/pods": the directory of a resource ("<group>/<plural>"). */
export function resourceDirectory(resource: string, prefix = DEFAULT_PREFIX): string {
  const [group = '', plural = ''] = resource.split('/');
  const place = getOwn(SPECIAL, resource) ?? (BUILT_IN.has(group) && !WITH_GROUP.has(group) ? plural : resource);
  return `${prefix}/${place}`;
}

/** "/registry/pods/default/my-pod", "/registry/minions/my-node" */
export function storageKey({ resource, namespace, name }: ObjectKey, prefix = DEFAULT_PREFIX): string {
  const directory = resourceDirectory(resource, prefix);
  return namespace === '' ? `${directory}/${name}` : `${directory}/${namespace}/${name}`;
}
