// A caller grants no more than they have: what one who writes a role or a binding must be allowed already, unless they may
// "escalate" the role or "bind" it. Pure but for the authorizer; rules and texts of kube-apiserver (pkg/registry/rbac).

import { sameJson } from '../../../lib/same-json.ts';
import type { KubeObject } from '../../kinds/resource.ts';
import type { Caller } from '../attributes.ts';
import { type Authorizer, MASTERS } from '../authorizer.ts';
import { compact, type PolicyRule, printRule, quotedList, type RoleRef, uncovered } from './rules.ts';

const GROUP = 'rbac.authorization.k8s.io';
const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

export interface Granting {
  readonly caller: Pick<Caller, 'name' | 'groups'>;
  readonly authorizer: Authorizer;
  /** Where the role or binding is; '' at the cluster scope. */
  readonly namespace: string;
}

/** Why the caller may not grant the rules; undefined when they have them all. */
function missingRights({ caller, authorizer, namespace }: Granting, rules: readonly PolicyRule[]): string | undefined {
  const own = authorizer.rulesFor(caller, namespace);
  const missing = uncovered(own.rules, rules);
  if (missing.length === 0) return undefined;
  const lines = [...new Set(compact(missing).map(printRule))].sort();
  const { problems } = own;
  const errors = problems.length === 0 ? '' : `; resolution errors: [${problems.join(' ')}]`;
  return `user ${JSON.stringify(caller.name)} (groups=${quotedList(caller.groups)}) is attempting to grant RBAC permissions not currently held:\n${lines.join('\n')}${errors}`;
}

function isMaster({ caller }: Granting): boolean {
  return caller.groups.includes(MASTERS);
}

export interface RoleWrite {
  readonly plural: 'roles' | 'clusterroles';
  /** Of the URL: '' on create. */
  readonly name: string;
  readonly rules: readonly PolicyRule[];
  /** Whether the role is aggregated, or was. */
  readonly aggregated: boolean;
}

/** Why the caller may not write the role. */
export function roleEscalation(granting: Granting, role: RoleWrite): string | undefined {
  if (isMaster(granting)) return undefined;
  const { caller, authorizer, namespace } = granting;
  const request = {
    verb: 'escalate',
    group: GROUP,
    resource: role.plural,
    subresource: '',
    namespace,
    name: role.name,
  };
  if (authorizer.authorize(caller, request).allowed) return undefined;
  const why = missingRights(granting, role.rules);
  if (why !== undefined) return why;
  // It may gather anything.
  return role.aggregated && missingRights(granting, EVERYTHING) !== undefined
    ? 'must have cluster-admin privileges to use the aggregationRule'
    : undefined;
}

/** Why the caller may not bind the role; `missing` when there is no such role and they may not bind it unseen. */
export function bindingEscalation(
  granting: Granting,
  ref: RoleRef,
): string | { readonly missing: RoleRef } | undefined {
  if (isMaster(granting)) return undefined;
  const { caller, authorizer, namespace } = granting;
  if (ref.kind === 'ClusterRole' || ref.kind === 'Role') {
    const resource = ref.kind === 'Role' ? 'roles' : 'clusterroles';
    const request = { verb: 'bind', group: GROUP, resource, subresource: '', namespace, name: ref.name };
    if (authorizer.authorize(caller, request).allowed) return undefined;
  }
  const rules = authorizer.rulesOfRole(ref, namespace);
  return rules === undefined ? { missing: ref } : missingRights(granting, rules);
}

/** Whether an update changes only what the garbage collector does: owners and finalizers. */
export function onlyGarbageFields(object: KubeObject, old: KubeObject): boolean {
  const bare = ({ metadata, ...rest }: KubeObject): unknown => {
    const { ownerReferences: _owners, finalizers: _finalizers, managedFields: _fields, ...others } = metadata;
    return { ...rest, metadata: others };
  };
  return sameJson(bare(object), bare(old));
}
