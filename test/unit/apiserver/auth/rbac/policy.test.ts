// Decisions of RBAC from roles and bindings, with their reasons, and that changes count at once.

import { describe, expect, it } from 'vitest';
import type { Attributes } from '../../../../../apiserver/auth/attributes.ts';
import { type Binding, RbacPolicy, type Subject } from '../../../../../apiserver/auth/rbac/policy.ts';
import type { Caller } from '../../../../../apiserver/registry/registry.ts';

const READ_PODS = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] };
const READ_NODES = { verbs: ['get'], apiGroups: [''], resources: ['nodes'] };
const METRICS = { verbs: ['get'], nonResourceURLs: ['/metrics'] };

const subject = (kind: string, name: string, namespace = ''): Subject => ({ kind, name, namespace });
function binding(namespace: string, name: string, role: string, ...subjects: Subject[]): Binding {
  const [kind = '', roleName = ''] = role.split('/');
  return { namespace, name, roleRef: { kind, name: roleName }, subjects };
}
const list = (resource: string, namespace: string, verb = 'list'): Attributes => ({
  verb,
  group: '',
  resource,
  subresource: '',
  namespace,
  name: '',
});
const ALICE: Caller = { name: 'alice', groups: ['devs', 'system:authenticated'] };
const BOT: Caller = { name: 'system:serviceaccount:ns:bot', groups: ['system:serviceaccounts'] };

function policyOf(...bindings: Binding[]): RbacPolicy {
  const policy = new RbacPolicy();
  policy.setRole({ namespace: '', name: 'reader', rules: [READ_PODS, METRICS] });
  policy.setRole({ namespace: '', name: 'nodes', rules: [READ_NODES] });
  policy.setRole({ namespace: 'ns', name: 'reader', rules: [READ_PODS] });
  for (const one of bindings) policy.setBinding(one);
  return policy;
}

describe('a request', () => {
  it('is allowed by a cluster role binding everywhere, and the reason names it', () => {
    const policy = policyOf(binding('', 'b', 'ClusterRole/reader', subject('User', 'bob'), subject('Group', 'devs')));
    const reason = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to Group "devs"';
    expect(policy.authorize(ALICE, list('pods', 'ns'))).toEqual({ allowed: true, reason });
    expect(policy.authorize(ALICE, list('pods', ''))).toEqual({ allowed: true, reason });
    expect(policy.authorizePath(ALICE, 'get', '/metrics')).toEqual({ allowed: true, reason });
    expect(policy.authorize(BOT, list('pods', 'ns'))).toEqual({ allowed: false, reason: '' });
  });

  it('is allowed by a role binding in its namespace alone, with a Role or a ClusterRole', () => {
    for (const role of ['Role/reader', 'ClusterRole/reader']) {
      const policy = policyOf(binding('ns', 'b', role, subject('User', 'alice')));
      const [kind] = role.split('/');
      expect(policy.authorize(ALICE, list('pods', 'ns'))).toEqual({
        allowed: true,
        reason: `RBAC: allowed by RoleBinding "b/ns" of ${kind} "reader" to User "alice"`,
      });
      expect(policy.authorize(ALICE, list('pods', 'other')).allowed).toBe(false);
      expect(policy.authorize(ALICE, list('pods', '')).allowed).toBe(false);
      expect(policy.authorizePath(ALICE, 'get', '/metrics').allowed).toBe(false);
    }
  });

  it('of a service account is allowed by its name, in the namespace of the binding where the subject has none', () => {
    const own = policyOf(binding('ns', 'b', 'Role/reader', subject('ServiceAccount', 'bot')));
    expect(own.authorize(BOT, list('pods', 'ns'))).toEqual({
      allowed: true,
      reason: 'RBAC: allowed by RoleBinding "b/ns" of Role "reader" to ServiceAccount "bot/ns"',
    });
    const nowhere = policyOf(binding('', 'b', 'ClusterRole/reader', subject('ServiceAccount', 'bot')));
    expect(nowhere.authorize(BOT, list('pods', 'ns')).allowed).toBe(false);
    const user = policyOf(binding('', 'b', 'ClusterRole/reader', subject('User', BOT.name)));
    expect(user.authorize(BOT, list('pods', 'ns')).allowed).toBe(true);
  });

  it('is refused with what is missing, each once, and allowed by another binding all the same', () => {
    const policy = policyOf(
      binding('', 'a', 'ClusterRole/gone', subject('User', 'alice')),
      binding('', 'b', 'ClusterRole/gone', subject('Group', 'devs')),
      binding('ns', 'c', 'Role/lost', subject('User', 'alice')),
      binding('ns', 'd', 'Role/reader', subject('User', 'alice')),
    );
    const [gone, lost] = [
      'clusterrole.rbac.authorization.k8s.io "gone" not found',
      'role.rbac.authorization.k8s.io "lost" not found',
    ];
    expect(policy.authorize(ALICE, list('nodes', ''))).toEqual({ allowed: false, reason: `RBAC: ${gone}` });
    expect(policy.authorize(ALICE, list('nodes', 'ns'))).toEqual({
      allowed: false,
      reason: `RBAC: [${gone}, ${lost}]`,
    });
    expect(policy.authorize(ALICE, list('pods', 'ns')).allowed).toBe(true);
    expect(policy.rulesFor(ALICE, 'ns')).toEqual({ rules: [READ_PODS], problems: [gone, gone, lost] });
  });

  it('is decided by what the roles and bindings are now', () => {
    const policy = policyOf(binding('', 'b', 'ClusterRole/reader', subject('User', 'alice'), subject('Group', 'devs')));
    const may = (resource: string, verb = 'list') => policy.authorize(ALICE, list(resource, '', verb)).allowed;
    expect([may('pods'), may('nodes', 'get')]).toEqual([true, false]);
    policy.setRole({ namespace: '', name: 'reader', rules: [READ_NODES] });
    expect([may('pods'), may('nodes', 'get')]).toEqual([false, true]);
    policy.setBinding(binding('', 'b', 'ClusterRole/nodes', subject('Group', 'others')));
    expect(may('nodes', 'get')).toBe(false);
    policy.setBinding(binding('', 'b', 'ClusterRole/nodes', subject('Group', 'devs')));
    expect(may('nodes', 'get')).toBe(true);
    policy.removeRole('', 'nodes');
    expect(may('nodes', 'get')).toBe(false);
    policy.removeBinding('', 'b');
    expect(policy.rulesFor(ALICE, '')).toEqual({ rules: [], problems: [] });
  });

  it('that several bindings allow is explained by one of their own name first', () => {
    const policy = policyOf(
      binding('', 'z', 'ClusterRole/reader', subject('User', 'alice')),
      binding('', 'y', 'ClusterRole/reader', subject('Group', 'devs')),
    );
    expect(policy.authorize(ALICE, list('pods', '')).reason).toContain('ClusterRoleBinding "z"');
  });
});
