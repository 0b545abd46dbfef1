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

/** The end of the range of all keys that begin with `prefix`. */
export function prefixEnd(prefix: string): Buffer {
  const end = Buffer.from(prefix);
  // Prefixes end in "/": there is always a next byte.
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  return end;
}

/** Which object is stored at a key; undefined for what is no object, as kube-apiserver's own records. `builtIn` are resources. */
export function keyParser(builtIn: readonly string[], prefix = DEFAULT_PREFIX): (key: string) => ObjectKey | undefined {
  const places = new Map(builtIn.map((resource) => [resourceDirectory(resource, ''), resource] as const));
  return (key) => {
    if (!key.startsWith(`${prefix}/`)) return undefined;
    const parts = key.slice(prefix.length + 1).split('/');
    const [first = '', second = '', ...rest] = parts;
    const one = places.get(`/${first}`);
    if (one !== undefined) return named(one, parts.slice(1));
    const resource = places.get(`/${first}/${second}`) ?? (first.includes('.') ? `${first}/${second}` : undefined);
    return resource === undefined ? undefined : named(resource, rest);
  };
}

function named(resource: string, parts: readonly string[]): ObjectKey | undefined {
  const [first = '', second] = parts;
  if (first === '' || second === '' || parts.length > 2) return undefined;
  return second === undefined ? { resource, namespace: '', name: first } : { resource, namespace: first, name: second };
}
