// Roles and bindings: what their validation refuses, in kube-apiserver's words, and their defaults.

import { describe, expect, it } from 'vitest';
import { create, object, row, update } from './support.ts';

const GROUP = 'rbac.authorization.k8s.io';
const [roles, clusterroles, rolebindings, clusterrolebindings] = [
  row('roles', GROUP),
  row('clusterroles', GROUP),
  row('rolebindings', GROUP),
  row('clusterrolebindings', GROUP),
];
const texts = (errors: readonly { field: string; detail: string }[]): string[] =>
  errors.map(({ field, detail }) => `${field}: ${detail}`);
const RULE = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };

describe('a role', () => {
  const cases: readonly [string, typeof roles, object, readonly string[]][] = [
    ['with a rule', roles, RULE, []],
    [
      'without verbs',
      roles,
      { ...RULE, verbs: [] },
      ['rules[0].verbs: Required value: verbs must contain at least one value'],
    ],
    [
      'without groups and resources',
      clusterroles,
      { verbs: ['get'] },
      [
        'rules[0].apiGroups: Required value: resource rules must supply at least one api group',
        'rules[0].resources: Required value: resource rules must supply at least one resource',
      ],
    ],
    ['of paths', clusterroles, { verbs: ['get'], nonResourceURLs: ['/x'] }, []],
    [
      'of paths in a namespace',
      roles,
      { verbs: ['get'], nonResourceURLs: ['/x'] },
      ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
    ],
    [
      'of both',
      clusterroles,
      { ...RULE, nonResourceURLs: ['/x'] },
      [
        'rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs',
      ],
    ],
  ];
  for (const [what, kind, rule, expected] of cases) {
    it(what, () => expect(texts(create(kind, { rules: [rule] }).errors)).toEqual(expected));
  }

  it('may have any name that can stand in a path', () => {
    expect(create(clusterroles, { metadata: { name: 'system:x:Y_z' } }).errors).toEqual([]);
    expect(texts(create(clusterroles, { metadata: { name: 'a/b' } }).errors)).toEqual([
      `metadata.name: Invalid value: "a/b": may not contain '/'`,
    ]);
  });

  it('that is aggregated selects something', () => {
    const aggregated = (clusterRoleSelectors: object[]) =>
      texts(create(clusterroles, { aggregationRule: { clusterRoleSelectors } }).errors);
    expect(aggregated([{ matchLabels: { a: 'b' } }])).toEqual([]);
    expect(aggregated([])).toEqual([
      'aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil',
    ]);
    expect(aggregated([{ matchExpressions: [{ key: 'a', operator: 'Is' }] }])).toEqual([
      'aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
    ]);
  });
});

describe('a binding', () => {
  const roleRef = { apiGroup: GROUP, kind: 'ClusterRole', name: 'r' };
  const cases: readonly [string, typeof roles, object, readonly string[]][] = [
    ['of a cluster role', rolebindings, { roleRef }, []],
    [
      'of nothing',
      rolebindings,
      { roleRef: { apiGroup: 'x', kind: 'Pod', name: '' } },
      [
        `roleRef.apiGroup: Unsupported value: "x": supported values: "${GROUP}"`,
        'roleRef.kind: Unsupported value: "Pod": supported values: "Role", "ClusterRole"',
        'roleRef.name: Required value',
      ],
    ],
    [
      'of a role, for the cluster',
      clusterrolebindings,
      { roleRef: { ...roleRef, kind: 'Role', name: 'a%b' } },
      [
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        `roleRef.name: Invalid value: "a%b": may not contain '%'`,
      ],
    ],
    [
      'to subjects of no kind',
      rolebindings,
      { roleRef, subjects: [{ kind: 'Robot', name: '' }] },
      [
        'subjects[0].name: Required value',
        'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
      ],
    ],
    [
      'to a user of another group of the API',
      rolebindings,
      { roleRef, subjects: [{ kind: 'User', name: 'u', apiGroup: 'x' }] },
      [`subjects[0].apiGroup: Unsupported value: "x": supported values: "${GROUP}"`],
    ],
    [
      'to a service account of no namespace, for the cluster',
      clusterrolebindings,
      { roleRef, subjects: [{ kind: 'ServiceAccount', name: 's', apiGroup: GROUP }] },
      [
        `subjects[0].apiGroup: Unsupported value: "${GROUP}": supported values: ""`,
        'subjects[0].namespace: Required value',
      ],
    ],
    [
      'to a service account of its own namespace',
      rolebindings,
      { roleRef, subjects: [{ kind: 'ServiceAccount', name: 's' }] },
      [],
    ],
  ];
  for (const [what, kind, fields, expected] of cases) {
    it(what, () => expect(texts(create(kind, { ...fields }).errors)).toEqual(expected));
  }

  it('has the group of the API filled in', () => {
    const subjects = [
      { kind: 'User', name: 'u' },
      { kind: 'Group', name: 'g' },
      { kind: 'ServiceAccount', name: 's', apiGroup: '' },
    ];
    const made = create(rolebindings, { roleRef: { kind: 'Role', name: 'r' }, subjects });
    expect(made.errors).toEqual([]);
    expect(made.object['roleRef']).toEqual({ apiGroup: GROUP, kind: 'Role', name: 'r' });
    expect(made.object['subjects']).toEqual([
      { apiGroup: GROUP, kind: 'User', name: 'u' },
      { apiGroup: GROUP, kind: 'Group', name: 'g' },
      { kind: 'ServiceAccount', name: 's' },
    ]);
  });

  it('keeps its role', () => {
    const stored = object(rolebindings, { roleRef });
    const changed = update(rolebindings, stored, (draft) => {
      draft['roleRef'] = { ...roleRef, name: 'other' };
    });
    expect(texts(changed.errors)).toEqual([
      `roleRef: Invalid value: {"APIGroup":"${GROUP}","Kind":"ClusterRole","Name":"other"}: cannot change roleRef`,
    ]);
  });
});
