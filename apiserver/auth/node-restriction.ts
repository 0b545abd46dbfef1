// The NodeRestriction admission: what a node may write. It runs after the node authorizer, which has no bodies. Only
// decides; the messages of refusals are those of kube-apiserver's plugin (plugin/pkg/admission/noderestriction).

import { getOwn } from '../../lib/own-property.ts';
import { sameJson } from '../../lib/same-json.ts';
import { forbidden, notFound } from '../errors.ts';
import type { KubeObject, ObjectLookup } from '../kinds/resource.ts';
import { podOf } from '../kinds/shapes.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import type { Caller } from '../registry/registry.ts';
import type { Authorizer } from './authorizer.ts';
import { isOn, LEASE_NAMESPACE, nodeNameOf } from './node.ts';
import { forbiddenNodeLabels } from './node-labels.ts';
import { apiObjectReference, isMirrorPod, MIRROR_ANNOTATION } from './pod-references.ts';
import { missingAudience } from './token-audience.ts';

/** One write, the input of admission. */
export interface NodeWrite {
  readonly operation: 'create' | 'update' | 'delete';
  readonly group: string;
  readonly resource: string;
  /** '' for the object itself. */
  readonly subresource: string;
  readonly namespace: string;
  /** Of the URL; on create that of the object. */
  readonly name: string;
  /** What is to be stored, or the body of a subresource. Absent on delete. */
  readonly object?: Readonly<Record<string, unknown>>;
  /** What is stored. On update only. */
  readonly old?: KubeObject;
}

export interface RestrictionParts {
  readonly lookup: ObjectLookup;
  /** Audiences that nodes may request tokens for though no volume of the pod needs them. */
  readonly nodeAudiences: readonly string[];
  /** Allows further audiences: the verb request-serviceaccounts-token-audience. */
  readonly authorizer: Authorizer;
}

/** The reason to refuse a write; undefined to admit it. Throws 404 when an object that the decision needs is missing. */
type WriteCheck = (node: string, write: NodeWrite, parts: CheckParts) => string | undefined;
type CheckParts = RestrictionParts & { readonly caller: Pick<Caller, 'name' | 'groups'> };

const quoted = (text: string): string => JSON.stringify(text);
/** As the plugin's messages name operations: "UPDATE". */
const shown = ({ operation }: NodeWrite): string => quoted(operation.toUpperCase());

function metadataOf(object: NodeWrite['object'] | undefined): JsonObject {
  const metadata = object?.['metadata'];
  return isObject(metadata) ? metadata : {};
}

function part(object: NodeWrite['object'] | undefined, field: string): JsonObject {
  const value = getOwn(object, field);
  return isObject(value) ? value : {};
}

/** null, absent and an empty list or object are the same to the API. */
function sameOrEmpty(a: unknown, b: unknown): boolean {
  const empty = (value: unknown): boolean =>
    value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0);
  return (empty(a) && empty(b)) || sameJson(a, b);
}

function storedPod({ namespace }: NodeWrite, name: string, lookup: ObjectLookup): KubeObject {
  const pod = lookup.get('', 'pods', namespace, name);
  if (pod === undefined) throw notFound({ group: '', plural: 'pods' }, name);
  return pod;
}

const pods: WriteCheck = (node, write, parts) => {
  switch (write.subresource) {
    case '':
      return wholePod(node, write, parts);
    case 'status':
      return podStatus(node, write, parts);
    case 'eviction':
      return podEviction(node, write, parts);
    default:
      return `unexpected pod subresource ${quoted(write.subresource)}, only 'status' and 'eviction' are allowed`;
  }
};

const wholePod: WriteCheck = (node, write, parts) => {
  if (write.operation === 'create') return mirrorPod(node, write, parts);
  if (write.operation === 'update') {
    return `unexpected operation ${shown(write)}, node ${quoted(node)} can only create and delete mirror pods`;
  }
  if (isOn(storedPod(write, write.name, parts.lookup), node)) return undefined;
  return `node ${quoted(node)} can only delete pods with spec.nodeName set to itself`;
};

const mirrorPod: WriteCheck = (node, { object }, { lookup }) => {
  const pod = podOf({ apiVersion: 'v1', kind: 'Pod', ...object, metadata: metadataOf(object) });
  if (!isMirrorPod(pod)) {
    return `pod does not have ${quoted(MIRROR_ANNOTATION)} annotation, node ${quoted(node)} can only create mirror pods`;
  }
  if (!isOn(pod, node)) return `node ${quoted(node)} can only create pods with spec.nodeName set to itself`;
  const owner = ownerOfMirror(node, pod.metadata.ownerReferences ?? [], lookup);
  if (owner !== undefined) return owner;
  const reference = apiObjectReference(pod);
  return reference === undefined ? undefined : `node ${quoted(node)} can not create pods that reference ${reference}`;
};

/** The one owner of a mirror pod is the Node itself, as its controller. */
function ownerOfMirror(node: string, owners: readonly JsonObject[], lookup: ObjectLookup): string | undefined {
  const [owner, ...others] = owners;
  const only = `node ${quoted(node)} can only create pods with`;
  if (others.length > 0) return `${only} a single owner reference set to itself`;
  if (owner === undefined || owner['apiVersion'] !== 'v1' || owner['kind'] !== 'Node' || owner['name'] !== node) {
    return `${only} an owner reference set to itself`;
  }
  if (owner['controller'] !== true) return `${only} a controller owner reference set to itself`;
  if (owner['blockOwnerDeletion'] === true) {
    return `node ${quoted(node)} must not set blockOwnerDeletion on an owner reference`;
  }
  const stored = lookup.get('', 'nodes', '', node);
  if (stored === undefined) throw notFound({ group: '', plural: 'nodes' }, node);
  const { uid = '' } = stored.metadata;
  return owner['uid'] === uid
    ? undefined
    : `node ${node} UID mismatch: expected ${String(owner['uid'] ?? '')} got ${uid}`;
}

/** What resource claims the pod's status names, for comparison. */
function claimStatuses(pod: NodeWrite['object']): unknown {
  const list = part(pod, 'status')['resourceClaimStatuses'];
  return Array.isArray(list)
    ? list.filter(isObject).map(({ name, resourceClaimName }) => ({ name, resourceClaimName }))
    : undefined;
}

const podStatus: WriteCheck = (node, write) => {
  const { operation, object, old } = write;
  if (operation !== 'update') return `unexpected operation ${shown(write)}`;
  if (!isOn(old, node)) {
    return `node ${quoted(node)} can only update pod status for pods with spec.nodeName set to itself`;
  }
  const [now, before] = [metadataOf(object), metadataOf(old)];
  if (!sameOrEmpty(now['labels'], before['labels'])) {
    return `node ${quoted(node)} cannot update labels through pod status`;
  }
  // kube-apiserver leaves these to validation, which lets a node take a finalizer away. Owners are kept by the registry.
  if (!sameOrEmpty(now['finalizers'], before['finalizers'])) {
    return `node ${quoted(node)} cannot update finalizers through pod status`;
  }
  const extended = (pod: NodeWrite['object']): unknown => part(pod, 'status')['extendedResourceClaimStatus'];
  if (!sameOrEmpty(claimStatuses(object), claimStatuses(old)) || !sameOrEmpty(extended(object), extended(old))) {
    return `node ${quoted(node)} cannot update resource claim statuses`;
  }
  return undefined;
};

const podEviction: WriteCheck = (node, write, { lookup }) => {
  if (write.operation !== 'create') return `unexpected operation ${write.operation.toUpperCase()}`;
  const { name: inBody } = metadataOf(write.object);
  const name = write.name === '' && typeof inBody === 'string' ? inBody : write.name;
  if (name === '') return 'could not determine pod from request data';
  if (isOn(storedPod(write, name, lookup), node)) return undefined;
  return `node ${node} can only evict pods with spec.nodeName set to itself`;
};

/** A claim without what a node reports after it has grown the volume. */
function withoutResize(claim: NodeWrite['object']): unknown {
  const { resourceVersion: _version, managedFields: _fields, ...metadata } = metadataOf(claim);
  const {
    capacity: _capacity,
    conditions: _conditions,
    allocatedResources: _resources,
    allocatedResourceStatuses: _statuses,
    ...status
  } = part(claim, 'status');
  return { ...claim, metadata, status };
}

const claims: WriteCheck = (node, write) => {
  if (write.subresource !== 'status') return 'may only update PVC status';
  if (write.operation !== 'update') return `unexpected operation ${shown(write)}`;
  if (sameJson(withoutResize(write.object), withoutResize(write.old))) return undefined;
  return `node ${quoted(node)} is not allowed to update fields other than status.quantity and status.conditions`;
};

function labelsOf(object: NodeWrite['object'] | undefined): Readonly<Record<string, unknown>> {
  const { labels } = metadataOf(object);
  return isObject(labels) ? labels : {};
}

const nodes: WriteCheck = (node, { operation, name, object, old }) => {
  if (name !== node) return `node ${quoted(node)} is not allowed to modify node ${quoted(name)}`;
  if (operation === 'delete') return undefined;
  const [spec, before] = [part(object, 'spec'), part(old, 'spec')];
  const { configSource } = spec;
  const labels = forbiddenNodeLabels(labelsOf(object), labelsOf(old));
  if (operation === 'create') {
    // What a node may read once came from here; its Node must not point at objects of its choice.
    if (configSource !== undefined && configSource !== null) {
      return `node ${quoted(node)} is not allowed to create pods with a non-nil configSource`;
    }
    if (!sameOrEmpty(metadataOf(object)['ownerReferences'], undefined)) {
      return `node ${quoted(node)} is not allowed to modify ownerReferences`;
    }
    if (labels.length === 0) return undefined;
    return `node ${quoted(node)} is not allowed to set the following labels: ${labels.join(', ')}`;
  }
  if (configSource !== undefined && configSource !== null && !sameJson(configSource, before['configSource'])) {
    return `node ${quoted(node)} is not allowed to update configSource to a new non-nil configSource`;
  }
  if (!sameOrEmpty(spec['taints'], before['taints'])) return `node ${quoted(node)} is not allowed to modify taints`;
  // A node that owns itself through another object could have the garbage collector delete it, taints and all.
  if (!sameOrEmpty(metadataOf(object)['ownerReferences'], metadataOf(old)['ownerReferences'])) {
    return `node ${quoted(node)} is not allowed to modify ownerReferences`;
  }
  return labels.length === 0 ? undefined : `is not allowed to modify labels: ${labels.join(', ')}`;
};

const accounts: WriteCheck = (node, write, parts) => {
  if (write.operation !== 'create' || write.subresource !== 'token') return undefined;
  const spec = part(write.object, 'spec');
  const ref = isObject(spec['boundObjectRef']) ? spec['boundObjectRef'] : {};
  const { name, uid } = ref;
  if (ref['apiVersion'] !== 'v1' || ref['kind'] !== 'Pod' || typeof name !== 'string' || name === '') {
    return 'node requested token not bound to a pod';
  }
  if (typeof uid !== 'string' || uid === '') return 'node requested token with a pod binding without a uid';
  const pod = storedPod(write, name, parts.lookup);
  if (uid !== pod.metadata.uid) {
    return `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
  }
  if (!isOn(pod, node)) return 'node requested token bound to a pod scheduled on a different node';
  const { audiences } = spec;
  const { namespace } = write;
  const request = {
    caller: parts.caller,
    namespace,
    account: write.name,
    audiences: Array.isArray(audiences) ? audiences : [],
  };
  return missingAudience(node, request, podOf(pod), parts);
};

const leases: WriteCheck = (node, { namespace, name }) => {
  if (namespace !== LEASE_NAMESPACE) return `can only access leases in the ${quoted(LEASE_NAMESPACE)} system namespace`;
  return name === node ? undefined : 'can only access node lease with the same name as the requesting node';
};

const csiNodes: WriteCheck = (node, { name }) =>
  name === node ? undefined : 'can only access CSINode with the same name as the requesting node';

const slices: WriteCheck = (node, write, { lookup }) => {
  const { operation, name } = write;
  const own = (object: NodeWrite['object'] | undefined): boolean => part(object, 'spec')['nodeName'] === node;
  if (operation === 'create' && !own(write.object)) {
    return 'can only create ResourceSlice with the same NodeName as the requesting node';
  }
  if (operation === 'delete' && !own(lookup.get('resource.k8s.io', 'resourceslices', '', name))) {
    return 'can only delete ResourceSlice with the same NodeName as the requesting node';
  }
  return undefined;
};

const CHECKS = new Map<string, WriteCheck>([
  ['/pods', pods],
  ['/nodes', nodes],
  ['/persistentvolumeclaims', claims],
  ['/serviceaccounts', accounts],
  ['coordination.k8s.io/leases', leases],
  ['storage.k8s.io/csinodes', csiNodes],
  ['resource.k8s.io/resourceslices', slices],
]);

/** Throws 403 for what this node may not write, 404 where the pod or Node that decides is missing. Other callers pass. */
export function restrictNode(caller: Pick<Caller, 'name' | 'groups'>, write: NodeWrite, parts: RestrictionParts): void {
  const node = nodeNameOf(caller);
  if (node === undefined) return;
  const { group, resource, name } = write;
  const why =
    node === ''
      ? `could not determine node from user ${quoted(caller.name)}`
      : CHECKS.get(`${group}/${resource}`)?.(node, write, { ...parts, caller });
  if (why !== undefined) throw forbidden({ group, plural: resource }, name, why);
}
