// A look-up over a few objects, and callers, for tests of who may do what.

import type { Attributes } from '../../../../apiserver/auth/attributes.ts';
import { ChainAuthorizer } from '../../../../apiserver/auth/authorize.ts';
import type { Authorizer, Decision } from '../../../../apiserver/auth/authorizer.ts';
import { aggregatedRules } from '../../../../apiserver/auth/rbac/aggregate.ts';
import { defaultObjects } from '../../../../apiserver/auth/rbac/defaults.ts';
import { bindingOf, roleOf } from '../../../../apiserver/auth/rbac/follow.ts';
import { RbacPolicy } from '../../../../apiserver/auth/rbac/policy.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import type { KubeObject, KubeObjectMeta, ObjectLookup } from '../../../../apiserver/kinds/resource.ts';
import type { Caller } from '../../../../apiserver/registry/registry.ts';

const API: Readonly<Record<string, { readonly apiVersion: string; readonly kind: string }>> = {
  pods: { apiVersion: 'v1', kind: 'Pod' },
  nodes: { apiVersion: 'v1', kind: 'Node' },
  secrets: { apiVersion: 'v1', kind: 'Secret' },
  serviceaccounts: { apiVersion: 'v1', kind: 'ServiceAccount' },
  persistentvolumes: { apiVersion: 'v1', kind: 'PersistentVolume' },
  persistentvolumeclaims: { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  csidrivers: { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver' },
  volumeattachments: { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment' },
  resourceslices: { apiVersion: 'resource.k8s.io/v1', kind: 'ResourceSlice' },
};

/** An object of a kind by its plural. */
export function thing(plural: string, metadata: KubeObjectMeta, rest: object = {}): KubeObject {
  return { ...(API[plural] ?? { apiVersion: 'v1', kind: plural }), metadata, ...rest };
}

/** Objects by plural. */
export type World = Readonly<Record<string, readonly KubeObject[]>>;

export function lookupOf(world: World): ObjectLookup {
  const all = (plural: string): readonly KubeObject[] => (Object.hasOwn(world, plural) ? (world[plural] ?? []) : []);
  const of = (plural: string, namespace: string): readonly KubeObject[] =>
    all(plural).filter((one) => (one.metadata.namespace ?? '') === namespace);
  return {
    get: (_group, plural, namespace, name) => of(plural, namespace).find((one) => one.metadata.name === name),
    list: (_group, plural) => all(plural),
    each: (_group, plural, namespace) => of(plural, namespace),
    having: (_group, plural, namespace) => of(plural, namespace),
  };
}

export function user(name: string, ...groups: string[]): Caller {
  return { name, groups: [...groups, 'system:authenticated'] };
}

/** The default cluster roles, aggregated ones with their rules. */
function clusterRoles(): readonly KubeObject[] {
  const all = structuredClone(defaultObjects(RESOURCE_KINDS)['clusterroles'] ?? []);
  // edit is part of admin, and view of edit.
  for (let round = 0; round < 3; round++) {
    for (const role of all) role['rules'] = aggregatedRules(role, all) ?? role['rules'];
  }
  return all;
}

/** The default roles and bindings. */
export function defaultPolicy(): RbacPolicy {
  const policy = new RbacPolicy();
  const { roles = [], rolebindings = [], clusterrolebindings = [] } = defaultObjects(RESOURCE_KINDS);
  for (const object of [...roles, ...clusterRoles()]) policy.setRole(roleOf(object));
  for (const object of [...rolebindings, ...clusterrolebindings]) policy.setBinding(bindingOf(object));
  return policy;
}

const policy = defaultPolicy();

/** Node and RBAC with the defaults, over these objects. */
export function authorizerOf(lookup: ObjectLookup): Authorizer {
  return new ChainAuthorizer(policy, lookup);
}

export function authorize(caller: Caller, attributes: Attributes, lookup: ObjectLookup): Decision {
  return authorizerOf(lookup).authorize(caller, attributes);
}

export const nodeUser = (name: string): Caller => user(`system:node:${name}`, 'system:nodes');
