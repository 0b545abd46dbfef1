// The default roles and bindings: what a start makes of those that are there, and what aggregated roles gather.

import { describe, expect, it } from 'vitest';
import { aggregatedRules } from '../../../../../apiserver/auth/rbac/aggregate.ts';
import { AUTO_UPDATE, controllerRules, defaultObjects } from '../../../../../apiserver/auth/rbac/defaults.ts';
import { reconcileBinding, reconcileRole } from '../../../../../apiserver/auth/rbac/reconcile.ts';
import { RESOURCE_KINDS } from '../../../../../apiserver/kinds/index.ts';
import type { KubeObject } from '../../../../../apiserver/kinds/resource.ts';

const API = 'rbac.authorization.k8s.io/v1';
const rule = (verbs: string, resource: string): object => ({
  verbs: verbs.split(','),
  apiGroups: [''],
  resources: [resource],
});
const role = (rules: object[], metadata: object = {}, rest: object = {}): KubeObject => ({
  apiVersion: API,
  kind: 'ClusterRole',
  metadata: { name: 'r', ...metadata },
  rules,
  ...rest,
});
const label = (name: string, ...more: string[]): object => ({
  clusterRoleSelectors: [name, ...more].map((key) => ({ matchLabels: { [key]: 'true' } })),
});

describe('a default role that is there', () => {
  const expected = role([rule('get,list', 'pods')], { labels: { a: 'b' }, annotations: { [AUTO_UPDATE]: 'true' } });

  it('is left alone when it has everything', () => {
    const more = role([rule('*', 'pods'), rule('get', 'nodes')], {
      labels: { a: 'mine', c: 'd' },
      annotations: { [AUTO_UPDATE]: 'true' },
    });
    expect(reconcileRole(expected, expected)).toEqual({ kind: 'none' });
    expect(reconcileRole(more, expected)).toEqual({ kind: 'none' });
  });

  it('gets the rules, labels and annotations that it lacks, and keeps its own', () => {
    const existing = role([rule('get', 'pods'), rule('get', 'nodes')], { labels: { c: 'd' } });
    const rules = [rule('get', 'pods'), rule('get', 'nodes'), rule('list', 'pods')];
    const metadata = { labels: { a: 'b', c: 'd' }, annotations: { [AUTO_UPDATE]: 'true' } };
    expect(reconcileRole(existing, expected)).toEqual({ kind: 'update', object: role(rules, metadata) });
  });

  it('is not touched when it is protected', () => {
    expect(reconcileRole(role([], { annotations: { [AUTO_UPDATE]: 'false' } }), expected)).toEqual({ kind: 'none' });
  });

  it('is aggregated when it should be, and no longer when it should not', () => {
    const aggregated = role([], {}, { aggregationRule: label('x') });
    expect(reconcileRole(role([], {}, { aggregationRule: label('y') }), aggregated)).toEqual({
      kind: 'update',
      object: role([], { labels: {}, annotations: {} }, { aggregationRule: label('y', 'x') }),
    });
    expect(reconcileRole(aggregated, role([]))).toEqual({
      kind: 'update',
      object: role([], { labels: {}, annotations: {} }),
    });
  });
});

describe('a default binding that is there', () => {
  const binding = (roleName: string, ...users: string[]): KubeObject => ({
    apiVersion: API,
    kind: 'ClusterRoleBinding',
    metadata: { name: 'b', labels: {}, annotations: {} },
    roleRef: { kind: 'ClusterRole', name: roleName },
    subjects: users.map((name) => ({ kind: 'User', name })),
  });

  it('gets the subjects that it lacks', () => {
    const object = binding('r', 'mine', 'x', 'y');
    expect(reconcileBinding(binding('r', 'mine', 'x'), binding('r', 'x', 'y'))).toEqual({ kind: 'update', object });
    expect(reconcileBinding(binding('r', 'y', 'x'), binding('r', 'x', 'y'))).toEqual({ kind: 'none' });
  });

  it('of another role is made again', () => {
    expect(reconcileBinding(binding('other', 'x'), binding('r', 'x'))).toEqual({ kind: 'recreate' });
  });
});

describe('an aggregated role', () => {
  const part = (name: string, labels: object, ...rules: object[]): KubeObject => role(rules, { name, labels });
  const parts = [
    part('b', { x: 'true' }, rule('get', 'nodes'), rule('get', 'pods')),
    part('a', { x: 'true', y: 'true' }, rule('get', 'pods')),
    part('c', { x: 'false' }, rule('delete', 'pods')),
  ];

  it('has the rules of the roles that its selectors match, by name, each once', () => {
    const whole = role([], { labels: { x: 'true' } }, { aggregationRule: label('x', 'y') });
    expect(aggregatedRules(whole, [...parts, whole])).toEqual([rule('get', 'pods'), rule('get', 'nodes')]);
  });

  it('selects by expressions, too', () => {
    const by = (operator: string, values?: string[]) => {
      const matchExpressions = [{ key: 'x', operator, ...(values === undefined ? {} : { values }) }];
      return aggregatedRules(
        role([], {}, { aggregationRule: { clusterRoleSelectors: [{ matchExpressions }] } }),
        parts,
      );
    };
    expect(by('In', ['false'])).toEqual([rule('delete', 'pods')]);
    expect(by('NotIn', ['true'])).toEqual([rule('delete', 'pods')]);
    expect(by('Exists')).toHaveLength(3);
    expect(by('DoesNotExist')).toEqual([]);
  });

  it('is only one with selectors', () => {
    expect(aggregatedRules(role([]), parts)).toBeUndefined();
  });
});

describe('the defaults', () => {
  it('bind roles that exist, to subjects of known kinds', () => {
    const {
      roles = [],
      clusterroles = [],
      rolebindings = [],
      clusterrolebindings = [],
    } = defaultObjects(RESOURCE_KINDS);
    const place = ({ kind, metadata }: KubeObject): string => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
    const known = new Set([...roles, ...clusterroles].map(place));
    for (const binding of [...rolebindings, ...clusterrolebindings]) {
      const ref = binding['roleRef'] as { kind: string; name: string };
      const namespace = ref.kind === 'Role' ? (binding.metadata.namespace ?? '') : '';
      expect(known, binding.metadata.name).toContain(`${ref.kind} ${namespace}/${ref.name}`);
    }
    expect(clusterroles.length).toBeGreaterThan(60);
  });

  it('give the lab’s controllers no way into containers or through kubelets', () => {
    const core = controllerRules(RESOURCE_KINDS).filter(({ apiGroups = [] }) => apiGroups.includes(''));
    const resources = core.flatMap((one) => one.resources ?? []);
    expect(resources).toContain('namespaces/finalize');
    expect(resources).not.toContain('*');
    const closed = ['pods/exec', 'pods/attach', 'pods/portforward', 'pods/proxy', 'pods/log', 'nodes/proxy'];
    for (const resource of closed) expect(resources).not.toContain(resource);
  });
});
