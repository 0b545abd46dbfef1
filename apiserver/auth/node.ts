// The node authorizer: what a kubelet may do because of who it is and which pods it runs. A node reads the secrets,
// config maps, claims and volumes of its own pods and no others, its own pods and its own Node. Decides by what
// is stored; what a write may contain is node-restriction.ts. Rules of kube-apiserver's node authorizer with
// AuthorizeNodeWithSelectors.

import { createHash } from 'node:crypto';
import type { KubeObject, ObjectLookup } from '../kinds/resource.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import type { Attributes } from './attributes.ts';
import { nodeSecrets, refersTo } from './pod-references.ts';

const PREFIX = 'system:node:';
export const LEASE_NAMESPACE = 'kube-node-lease';

interface Identity {
  readonly name: string;
  readonly groups: readonly string[];
}

/** The node a user is, '' for one of the group whose name names no node, or undefined for one that is no node. */
export function nodeNameOf(user: Identity): string | undefined {
  return user.groups.includes('system:nodes') && user.name.startsWith(PREFIX)
    ? user.name.slice(PREFIX.length)
    : undefined;
}

/** true, or why not ('' where there is nothing to say). */
type Verdict = true | string;
type Rule = (node: string, request: Attributes, lookup: ObjectLookup) => Verdict;

const noRelation = (node: string): string => `no relationship found between node '${node}' and this object`;

function specOf(object: KubeObject | undefined): JsonObject {
  const spec = object?.['spec'];
  return isObject(spec) ? spec : {};
}

/** Whether the pod is on the node. */
export function isOn(pod: KubeObject | undefined, node: string): boolean {
  return specOf(pod)['nodeName'] === node;
}

/** Whether a pod of the node refers to the object. */
function usedByOwnPod(node: string, request: Attributes, lookup: ObjectLookup): boolean {
  const { group, resource, namespace, name } = request;
  // The first pod usually matches; a node may have a hundred, and sends requests for each of them.
  for (const pod of lookup.having('', 'pods', namespace, 'spec.nodeName', node)) {
    if (isOn(pod, node) && refersTo(pod, group, resource, name)) return true;
  }
  return false;
}

/** Whether a volume is bound to a claim that one of the node's pods uses. */
function usesVolume(node: string, volume: KubeObject, lookup: ObjectLookup): boolean {
  const claim = specOf(volume)['claimRef'];
  if (!isObject(claim)) return false;
  const request = { verb: 'get', group: '', resource: 'persistentvolumeclaims', subresource: '' };
  const [namespace, name] = [String(claim['namespace']), String(claim['name'])];
  return usedByOwnPod(node, { ...request, namespace, name }, lookup);
}

/** A secret that a volume in use on the node names: what stages it, publishes it or grows it there. */
function isVolumeSecret(node: string, { namespace, name }: Attributes, lookup: ObjectLookup): boolean {
  return lookup
    .list('', 'persistentvolumes')
    .some(
      (volume) =>
        nodeSecrets(volume).some((secret) => secret.namespace === namespace && secret.name === name) &&
        usesVolume(node, volume, lookup),
    );
}

/**
 * Grants that depend on pods need an existing Node: with the certificate of a deleted Node a kubelet can register it
 * again, and reads nothing before that.
 */
function related(node: string, lookup: ObjectLookup, found: () => boolean): Verdict {
  return (lookup.get('', 'nodes', '', node) !== undefined && found()) || noRelation(node);
}

const readNamespaced: Rule = (node, request, lookup) => {
  const { verb, subresource, namespace, name, resource } = request;
  if (!['get', 'list', 'watch'].includes(verb)) return 'can only read resources of this type';
  if (subresource !== '') return 'cannot read subresource';
  if (namespace === '') return 'can only read namespaced object of this type';
  if (name === '') return 'No Object name found';
  return related(
    node,
    lookup,
    () => usedByOwnPod(node, request, lookup) || (resource === 'secrets' && isVolumeSecret(node, request, lookup)),
  );
};

/** `verbs` beyond get read no more than get does, as they are of one named object. */
function getRelated(
  found: (node: string, request: Attributes, lookup: ObjectLookup) => boolean,
  verbs = ['get'],
): Rule {
  return (node, request, lookup) => {
    if (!verbs.includes(request.verb)) return 'can only get individual resources of this type';
    if (request.subresource !== '') return 'cannot get subresource';
    if (request.name === '') return 'No Object name found';
    return related(node, lookup, () => found(node, request, lookup));
  };
}

/** kube-apiserver lets a node get its claims and attachments; following the one it waits for spares it the polling. */
const FOLLOWED = ['get', 'list', 'watch'];

const claims: Rule = (node, request, lookup) => {
  if (request.subresource !== 'status') return getRelated(usedByOwnPod, FOLLOWED)(node, request, lookup);
  if (request.verb !== 'update' && request.verb !== 'patch') return 'can only get/update/patch this type';
  return related(node, lookup, () => usedByOwnPod(node, request, lookup));
};

const volumes = getRelated((node, { name }, lookup) => {
  const volume = lookup.get('', 'persistentvolumes', '', name);
  return volume !== undefined && usesVolume(node, volume, lookup);
});

const attachments = getRelated((node, { name }, lookup) => {
  const attachment = lookup.get('storage.k8s.io', 'volumeattachments', '', name);
  if (attachment !== undefined) return isOn(attachment, node);
  // One that does not exist yet: its name contains the volume and the node.
  return lookup
    .list('', 'persistentvolumes')
    .some((volume) => attachmentName(volume, node) === name && usesVolume(node, volume, lookup));
}, FOLLOWED);

/** The name under which the attacher of a CSI volume makes its VolumeAttachment for the node. */
function attachmentName(volume: KubeObject, node: string): string | undefined {
  const { csi } = specOf(volume);
  if (!isObject(csi)) return undefined;
  const hash = createHash('sha256').update(`${String(csi['volumeHandle'])}${String(csi['driver'])}${node}`);
  return `csi-${hash.digest('hex')}`;
}

const accounts: Rule = (node, request, lookup) => {
  // Credential providers that work with tokens read the account's annotations.
  if (request.verb === 'get') return getRelated(usedByOwnPod)(node, request, lookup);
  if (request.verb !== 'create' || request.name === '') return 'can only create tokens for individual service accounts';
  if (request.subresource !== 'token') return 'can only create token subresource of serviceaccount';
  return related(node, lookup, () => usedByOwnPod(node, request, lookup));
};

const OWN_VERBS = ['get', 'create', 'update', 'patch', 'delete'];

const leases: Rule = (node, { verb, namespace, name }) => {
  if (!OWN_VERBS.includes(verb)) return 'can only get, create, update, patch, or delete a node lease';
  if (namespace !== LEASE_NAMESPACE) return `can only access leases in the "${LEASE_NAMESPACE}" system namespace`;
  // The name of what is created is in the body, which admission checks.
  if (verb === 'create' || name === node) return true;
  return 'can only access node lease with the same name as the requesting node';
};

const csiNodes: Rule = (node, { verb, subresource, name }) => {
  if (!OWN_VERBS.includes(verb)) return 'can only get, create, update, patch, or delete a CSINode';
  if (subresource !== '') return 'cannot authorize CSINode subresources';
  if (verb === 'create' || name === node) return true;
  return 'can only access CSINode with the same name as the requesting node';
};

/** Whether the field selector leaves only what belongs to the node. */
function selects({ fields = [] }: Attributes, field: string, node: string): boolean {
  return fields.some((requirement) => requirement.field === field && requirement.equal && requirement.value === node);
}

const slices: Rule = (node, request, lookup) => {
  const { verb, subresource, name } = request;
  if (subresource !== '') return 'cannot authorize ResourceSlice subresources';
  if (verb === 'create') return true;
  if (['list', 'watch', 'deletecollection'].includes(verb)) {
    if (selects(request, 'nodeName', node)) return true;
    return 'can only list/watch/deletecollection resourceslices with nodeName field selector';
  }
  if (name === '') return 'No Object name found';
  return isOn(lookup.get('resource.k8s.io', 'resourceslices', '', name), node) || noRelation(node);
};

const nodes: Rule = (node, { verb, subresource, name }) => {
  if (subresource === 'status') return verb === 'update' || verb === 'patch' || '';
  if (subresource !== '') return '';
  // Admission checks which Node is written.
  if (['create', 'update', 'patch'].includes(verb)) return true;
  if (!['get', 'list', 'watch'].includes(verb)) return '';
  if (name === node) return true;
  return name === ''
    ? `node '${node}' cannot read all nodes, only its own Node object`
    : `node '${node}' cannot read '${name}', only its own Node object`;
};

const pods: Rule = (node, request, lookup) => {
  const { verb, subresource, namespace, name } = request;
  if (subresource === 'status') return verb === 'update' || verb === 'patch' || '';
  if (subresource === 'eviction') return verb === 'create' || '';
  if (subresource !== '') return '';
  if (verb === 'create' || verb === 'delete') return true;
  const lists = verb === 'list' || verb === 'watch';
  if (!lists && verb !== 'get') return '';
  if (lists && selects(request, 'spec.nodeName', node)) return true;
  if (name === '') return lists ? 'can only list/watch pods with spec.nodeName field selector' : 'No Object name found';
  const pod = lookup.get('', 'pods', namespace, name);
  // The registry reports a missing pod as 404: an agent must distinguish it from a pod that it may not read.
  if (pod === undefined && !lists) return true;
  return isOn(pod, node) || noRelation(node);
};

const RULES = new Map<string, Rule>([
  ['/secrets', readNamespaced],
  ['/configmaps', readNamespaced],
  ['/persistentvolumeclaims', claims],
  ['/persistentvolumes', volumes],
  ['resource.k8s.io/resourceclaims', getRelated(usedByOwnPod)],
  ['resource.k8s.io/resourceslices', slices],
  ['storage.k8s.io/volumeattachments', attachments],
  ['storage.k8s.io/csinodes', csiNodes],
  ['coordination.k8s.io/leases', leases],
  ['/serviceaccounts', accounts],
  ['/nodes', nodes],
  ['/pods', pods],
]);

/** Decides a request of a node. undefined: the rules for all nodes decide (rules.ts). */
export function nodeMay(node: string, request: Attributes, lookup: ObjectLookup): Verdict | undefined {
  if (node === '') return `unknown node for user "${PREFIX}"`;
  return RULES.get(`${request.group}/${request.resource}`)?.(node, request, lookup);
}
