// Keeps the policy of RBAC what the store says: reads the roles and bindings once, then every change of them. The next
// request after a change is decided by it.

import type { KubeObject } from '../../kinds/resource.ts';
import { isObject, type JsonObject } from '../../patch/json-value.ts';
import type { Registry } from '../../registry/registry.ts';
import { RBAC_GROUP } from './defaults.ts';
import type { Binding, RbacPolicy, Role, Subject } from './policy.ts';
import type { PolicyRule } from './rules.ts';

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
const objects = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

function ruleOf(rule: JsonObject): PolicyRule {
  const lists = ['apiGroups', 'resources', 'resourceNames', 'nonResourceURLs'] as const;
  const given = lists.flatMap((field) => {
    const list = texts(rule[field]);
    return list.length === 0 ? [] : [[field, list] as const];
  });
  return { verbs: texts(rule['verbs']), ...Object.fromEntries(given) };
}

/** The rules of a stored Role or ClusterRole. */
export function rulesOfObject(object: Readonly<KubeObject>): PolicyRule[] {
  return objects(object['rules']).map(ruleOf);
}

export function roleOf(object: Readonly<KubeObject>): Role {
  const { namespace = '', name = '' } = object.metadata;
  return { namespace, name, rules: rulesOfObject(object) };
}

function subjectOf(subject: JsonObject): Subject {
  return { kind: text(subject['kind']), name: text(subject['name']), namespace: text(subject['namespace']) };
}

export function bindingOf(object: Readonly<KubeObject>): Binding {
  const { namespace = '', name = '' } = object.metadata;
  const ref = isObject(object['roleRef']) ? object['roleRef'] : {};
  const roleRef = { kind: text(ref['kind']), name: text(ref['name']) };
  return { namespace, name, roleRef, subjects: objects(object['subjects']).map(subjectOf) };
}

interface Follower {
  readonly set: (object: Readonly<KubeObject>) => void;
  readonly remove: (namespace: string, name: string) => void;
}

/** Fills the policy and follows the store from here on. Returns a function that stops it. */
export function followPolicy(registry: Pick<Registry, 'lookup' | 'store'>, policy: RbacPolicy): () => void {
  const role: Follower = {
    set: (object) => policy.setRole(roleOf(object)),
    remove: (namespace, name) => policy.removeRole(namespace, name),
  };
  const binding: Follower = {
    set: (object) => policy.setBinding(bindingOf(object)),
    remove: (namespace, name) => policy.removeBinding(namespace, name),
  };
  const followers = { clusterroles: role, roles: role, clusterrolebindings: binding, rolebindings: binding };
  const stops = Object.entries(followers).map(([plural, follower]) => {
    for (const object of registry.lookup.list(RBAC_GROUP, plural)) follower.set(object);
    return registry.store.subscribe(`${RBAC_GROUP}/${plural}`, (change) => {
      const { type, namespace, name } = change.record;
      if (type === 'DELETED') follower.remove(namespace, name);
      else follower.set(change.object);
    });
  });
  return () => {
    for (const stop of stops) stop();
  };
}
