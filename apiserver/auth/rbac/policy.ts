// The roles and bindings of RBAC in memory, indexed by whom they are for, and the decision of a request from them. Knows
// nothing of where they are stored: follow.ts keeps it up to date. A decision looks at the bindings of the caller's name and
// groups alone, however many others there are.

import { aggregate } from '../../../lib/aggregate.ts';
import type { Attributes, Caller } from '../attributes.ts';
import { type PolicyRule, type RoleRef, ruleAllows, ruleAllowsPath } from './rules.ts';

export interface Subject {
  readonly kind: string;
  readonly name: string;
  /** Of a service account; '' means the binding's. */
  readonly namespace: string;
}

/** '' is the namespace of cluster roles and of their bindings. */
export interface Role {
  readonly namespace: string;
  readonly name: string;
  readonly rules: readonly PolicyRule[];
}

export interface Binding {
  readonly namespace: string;
  readonly name: string;
  readonly roleRef: RoleRef;
  readonly subjects: readonly Subject[];
}

const ACCOUNT_PREFIX = 'system:serviceaccount:';

/** Whom a subject means: "User/alice", "Group/devs"; a service account is the user of its name. Undefined: no user and no group. */
function subjectKey({ kind, name, namespace }: Subject, bindingNamespace: string): string | undefined {
  if (kind === 'User' || kind === 'Group') return `${kind}/${name}`;
  const where = namespace === '' ? bindingNamespace : namespace;
  return kind === 'ServiceAccount' && where !== '' ? `User/${ACCOUNT_PREFIX}${where}:${name}` : undefined;
}

/** Name and namespace in the order in which kube-apiserver prints them. */
function describeSubject({ kind, name, namespace }: Subject, bindingNamespace: string): string {
  if (kind !== 'ServiceAccount') return `${kind} ${JSON.stringify(name)}`;
  return `${kind} ${JSON.stringify(`${name}/${namespace === '' ? bindingNamespace : namespace}`)}`;
}

/** `ClusterRoleBinding "x" of ClusterRole "y" to Group "z"`: the first subject that means the caller. */
function describe({ namespace, name, roleRef, subjects }: Binding, caller: Caller): string {
  const subject = subjects.find((one) => isMeant(one, namespace, caller));
  const binding =
    namespace === ''
      ? `ClusterRoleBinding ${JSON.stringify(name)}`
      : `RoleBinding ${JSON.stringify(`${name}/${namespace}`)}`;
  return `${binding} of ${roleRef.kind} ${JSON.stringify(roleRef.name)} to ${subject === undefined ? '' : describeSubject(subject, namespace)}`;
}

const keyOf = (namespace: string, name: string): string => `${namespace}/${name}`;

export class RbacPolicy {
  readonly #roles = new Map<string, Role>();
  readonly #bindings = new Map<string, Binding>();
  /** "<namespace>|<subject>" → its bindings by name. */
  readonly #bySubject = new Map<string, Map<string, Binding>>();

  setRole(role: Role): void {
    this.#roles.set(keyOf(role.namespace, role.name), role);
  }

  removeRole(namespace: string, name: string): void {
    this.#roles.delete(keyOf(namespace, name));
  }

  setBinding(binding: Binding): void {
    this.removeBinding(binding.namespace, binding.name);
    this.#bindings.set(keyOf(binding.namespace, binding.name), binding);
    for (const key of indexKeys(binding)) {
      const list = this.#bySubject.get(key) ?? new Map<string, Binding>();
      this.#bySubject.set(key, list.set(binding.name, binding));
    }
  }

  removeBinding(namespace: string, name: string): void {
    const old = this.#bindings.get(keyOf(namespace, name));
    if (old === undefined) return;
    this.#bindings.delete(keyOf(namespace, name));
    for (const key of indexKeys(old)) {
      const list = this.#bySubject.get(key);
      list?.delete(name);
      if (list?.size === 0) this.#bySubject.delete(key);
    }
  }

  /** The rules of a role; an Error when there is none. `namespace` is the binding's, '' for a ClusterRoleBinding's. */
  rulesOfRole({ kind, name }: RoleRef, namespace: string): readonly PolicyRule[] | { readonly problem: string } {
    if (kind !== 'Role' && kind !== 'ClusterRole') return { problem: `unsupported role reference kind: "${kind}"` };
    const role = this.#roles.get(keyOf(kind === 'Role' ? namespace : '', name));
    const resource = kind === 'Role' ? 'role' : 'clusterrole';
    return role?.rules ?? { problem: `${resource}.rbac.authorization.k8s.io ${JSON.stringify(name)} not found` };
  }

  /** The bindings of the caller at the cluster scope and in the namespace, by their name, then by their groups. */
  #bindingsFor({ name, groups }: Caller, namespace: string): readonly ReadonlyMap<string, Binding>[] {
    const found: ReadonlyMap<string, Binding>[] = [];
    for (const scope of namespace === '' ? [''] : ['', namespace]) {
      const own = this.#bySubject.get(`${scope}|User/${name}`);
      if (own !== undefined) found.push(own);
      for (const group of groups) {
        const theirs = this.#bySubject.get(`${scope}|Group/${group}`);
        if (theirs !== undefined) found.push(theirs);
      }
    }
    return found;
  }

  #decide(caller: Caller, namespace: string, allows: (rule: PolicyRule) => boolean): RbacDecision {
    const problems: string[] = [];
    for (const bindings of this.#bindingsFor(caller, namespace)) {
      for (const binding of bindings.values()) {
        const rules = this.rulesOfRole(binding.roleRef, binding.namespace);
        if ('problem' in rules) problems.push(rules.problem);
        else if (rules.some(allows)) return { allowed: true, reason: `RBAC: allowed by ${describe(binding, caller)}` };
      }
    }
    return { allowed: false, reason: problems.length === 0 ? '' : `RBAC: ${aggregate(problems)}` };
  }

  /** Whether a rule allows the request; the reason names the binding, or the roles that bindings name and that do not exist. */
  authorize(caller: Caller, request: Attributes): RbacDecision {
    return this.#decide(caller, request.namespace, (rule) => ruleAllows(rule, request));
  }

  authorizePath(caller: Caller, verb: string, path: string): RbacDecision {
    return this.#decide(caller, '', (rule) => ruleAllowsPath(rule, verb, path));
  }

  /** Every rule that holds for the caller in the namespace, and what is missing to know them all. */
  rulesFor(caller: Caller, namespace: string): { readonly rules: PolicyRule[]; readonly problems: string[] } {
    const rules: PolicyRule[] = [];
    const problems: string[] = [];
    // A binding may name the caller twice.
    const bindings = new Set(this.#bindingsFor(caller, namespace).flatMap((some) => [...some.values()]));
    for (const { roleRef, namespace: scope } of bindings) {
      const found = this.rulesOfRole(roleRef, scope);
      if ('problem' in found) problems.push(found.problem);
      else for (const rule of found) rules.push(rule);
    }
    return { rules, problems };
  }
}

export interface RbacDecision {
  readonly allowed: boolean;
  readonly reason: string;
}

function isMeant(subject: Subject, scope: string, caller: Caller): boolean {
  const key = subjectKey(subject, scope);
  return key === `User/${caller.name}` || caller.groups.some((group) => key === `Group/${group}`);
}

function indexKeys({ namespace, subjects }: Binding): string[] {
  return subjects.flatMap((subject) => {
    const key = subjectKey(subject, namespace);
    return key === undefined ? [] : [`${namespace}|${key}`];
  });
}
