// The node authorizer: what a kubelet may do because of who it is and which pods it runs. A node sees the secrets and
// config maps of its own pods and no others, and changes its own Node, lease and pods.

import { getOwn } from '../../lib/own-property.ts';
import type { KubeObject, ObjectLookup } from '../kinds/resource.ts';
import { isObject } from '../patch/json-value.ts';
import type { Attributes } from './authorize.ts';

const PREFIX = 'system:node:';

/** The node a user is, or undefined for one that is none. */
export function nodeNameOf(user: { readonly name: string; readonly groups: readonly string[] }): string | undefined {
  return user.groups.includes('system:nodes') && user.name.startsWith(PREFIX)
    ? user.name.slice(PREFIX.length)
    : undefined;
}

const REFERENCED: Readonly<Record<string, (pod: KubeObject, name: string) => boolean>> = {
  secrets: (pod, name) =>
    refers(pod['spec'], name, [
      'secretName',
      'secretRef',
      'secretKeyRef',
      'secret',
      'imagePullSecrets',
      'nodePublishSecretRef',
    ]),
  configmaps: (pod, name) => refers(pod['spec'], name, ['configMap', 'configMapRef', 'configMapKeyRef']),
  persistentvolumeclaims: (pod, name) => refers(pod['spec'], name, ['claimName']) || ephemeralClaim(pod, name),
  serviceaccounts: (pod, name) => isObject(pod['spec']) && pod['spec']['serviceAccountName'] === name,
};

/** Whether a field of one of these names, anywhere inside, is the name or an object or list of objects that has it. */
function refers(value: unknown, name: string, fields: readonly string[]): boolean {
  if (Array.isArray(value)) return value.some((item) => refers(item, name, fields));
  if (!isObject(value)) return false;
  return Object.entries(value).some(([key, inner]) => {
    if (fields.includes(key) && names(inner, name)) return true;
    return refers(inner, name, fields);
  });
}

function names(value: unknown, name: string): boolean {
  if (Array.isArray(value)) return value.some((item) => names(item, name));
  return value === name || (isObject(value) && value['name'] === name);
}

/** A generic ephemeral volume's claim is called <pod>-<volume>. */
function ephemeralClaim(pod: KubeObject, name: string): boolean {
  const volumes = isObject(pod['spec']) ? pod['spec']['volumes'] : undefined;
  if (!Array.isArray(volumes)) return false;
  return volumes.some(
    (v) => isObject(v) && isObject(v['ephemeral']) && name === `${pod.metadata.name}-${String(v['name'])}`,
  );
}

/** The fields of a PersistentVolume that name secrets for the node's share of the work. */
const NODE_SECRETS = ['nodeStageSecretRef', 'nodePublishSecretRef', 'nodeExpandSecretRef', 'secretRef'];

/** Whether a volume is bound to a claim that one of the node's pods uses. */
function usesVolume(node: string, volume: KubeObject, lookup: ObjectLookup): boolean {
  const claim = isObject(volume['spec']) ? volume['spec']['claimRef'] : undefined;
  if (!isObject(claim)) return false;
  return usedByOwnPod(node, 'persistentvolumeclaims', String(claim['namespace']), String(claim['name']), lookup);
}

function usedByOwnPod(node: string, resource: string, namespace: string, name: string, lookup: ObjectLookup): boolean {
  const relates = getOwn(REFERENCED, resource);
  if (relates === undefined) return false;
  // Mostly the first pod will do; a node may have a hundred, and asks for something for each of them.
  for (const pod of lookup.each('', 'pods', namespace)) if (isOn(pod, node) && relates(pod, name)) return true;
  return false;
}

/** A secret that a volume in use on the node names: what stages it, publishes it or grows it there. */
function isVolumeSecret(node: string, namespace: string, name: string, lookup: ObjectLookup): boolean {
  const named = (value: unknown): boolean => {
    if (!isObject(value)) return false;
    return Object.entries(value).some(([field, inner]) => {
      if (!isObject(inner)) return false;
      const secret = NODE_SECRETS.includes(field) && inner['name'] === name && inner['namespace'] === namespace;
      return secret || named(inner);
    });
  };
  return lookup
    .list('', 'persistentvolumes')
    .some((volume) => named(volume['spec']) && usesVolume(node, volume, lookup));
}

function isOn(pod: KubeObject | undefined, node: string): boolean {
  return isObject(pod?.['spec']) && pod['spec']['nodeName'] === node;
}

function isFor(attachment: KubeObject, node: string): boolean {
  return isObject(attachment['spec']) && attachment['spec']['nodeName'] === node;
}

/** undefined is "this has nothing to say about it"; a text is why not. */
export function nodeMay(node: string, request: Attributes, lookup: ObjectLookup): true | string | undefined {
  const { group, resource, subresource, namespace, name, verb } = request;
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  const reads = verb === 'get' || ((verb === 'list' || verb === 'watch') && name !== '');
  const noRelation = `no relationship found between node '${node}' and this object`;
  if (group === '' && (full === 'nodes' || full === 'nodes/status')) {
    if (!['update', 'patch', 'delete'].includes(verb)) return undefined;
    return name === node || `node '${node}' cannot modify node '${name}'`;
  }
  if (group === '' && ['pods', 'pods/status', 'pods/eviction'].includes(full)) {
    if (full === 'pods' ? verb !== 'delete' : !['update', 'patch', 'create'].includes(verb)) return undefined;
    const pod = lookup.get('', 'pods', namespace, name);
    // One that is not there is the registry's to report.
    return pod === undefined || isOn(pod, node) || noRelation;
  }
  if (group === '' && (full === 'serviceaccounts/token' ? verb === 'create' : reads)) {
    if (resource === 'persistentvolumes') {
      const volume = lookup.get('', 'persistentvolumes', '', name);
      return volume === undefined || usesVolume(node, volume, lookup) || noRelation;
    }
    if (!Object.hasOwn(REFERENCED, resource)) return undefined;
    if (usedByOwnPod(node, resource, namespace, name, lookup)) return true;
    return (resource === 'secrets' && isVolumeSecret(node, namespace, name, lookup)) || noRelation;
  }
  if (group === '' && full === 'persistentvolumeclaims/status') {
    if (!['get', 'patch', 'update'].includes(verb)) return undefined;
    return usedByOwnPod(node, resource, namespace, name, lookup) || noRelation;
  }
  if (group === 'coordination.k8s.io' && resource === 'leases') {
    if (namespace !== 'kube-node-lease') return `can only access leases in the "kube-node-lease" system namespace`;
    if (verb === 'create') return true;
    return (
      (name === node && verb !== 'list' && verb !== 'watch') ||
      'can only access node lease with the same name as the requesting node'
    );
  }
  if (group === 'storage.k8s.io' && resource === 'csinodes') {
    if (verb === 'create') return true;
    return (
      (name === node && verb !== 'list' && verb !== 'watch') ||
      'can only access CSINode with the same name as the requesting node'
    );
  }
  if (group === 'storage.k8s.io' && resource === 'volumeattachments') {
    // The real one lets a node get it; following the one that it waits for spares it the polling.
    if (!reads) return undefined;
    const attachment = lookup.get('storage.k8s.io', 'volumeattachments', '', name);
    return attachment === undefined || isFor(attachment, node) || noRelation;
  }
  return undefined;
}
