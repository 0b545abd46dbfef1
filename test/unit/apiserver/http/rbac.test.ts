// RBAC over TLS: bindings decide requests from the moment they are written, a caller grants no more than they have, and the
// reviews say the same as the requests.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at, type Credentials, TestApiServer } from '../../../support/api-server.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const NS = `${RBAC}/namespaces/default`;
const REVIEWS = '/apis/authorization.k8s.io/v1';
let stand: TestApiServer;
let alice: Credentials;
let admin: Credentials;

beforeAll(async () => {
  stand = await TestApiServer.start();
  alice = await stand.certificate('alice', 'devs');
  admin = await stand.certificate('namespace-admin', 'admins');
  await stand.admit(
    'POST',
    `${NS}/rolebindings`,
    binding('admins', 'ClusterRole/admin', { kind: 'Group', name: 'admins' }),
  );
});
afterAll(() => stand.stop());

function role(name: string, ...rules: object[]): object {
  return { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name }, rules };
}
function binding(name: string, ref: string, ...subjects: object[]): object {
  const [kind, role] = ref.split('/');
  const api = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding' };
  return { ...api, metadata: { name }, roleRef: { kind, name: role }, subjects };
}
const post = (path: string, body: object, as: Credentials) => stand.call({ method: 'POST', path, body, as });
const READ_PODS = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] };

describe('a role binding', () => {
  it('lets its subjects in with the next request, and keeps them out once it is gone', async () => {
    const path = '/api/v1/namespaces/default/pods';
    const before = await stand.call({ path, as: alice });
    expect(before.code).toBe(403);
    expect(at(before.json, 'message')).toBe(
      'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default"',
    );
    await stand.admit('POST', `${NS}/rolebindings`, binding('r', 'Role/readers', { kind: 'User', name: 'alice' }));
    const missing = await stand.call({ path, as: alice });
    expect(at(missing.json, 'message')).toMatch(/: RBAC: role.rbac.authorization.k8s.io "readers" not found$/);
    await stand.admit('POST', `${NS}/roles`, role('readers', READ_PODS));
    expect((await stand.call({ path, as: alice })).code).toBe(200);
    expect((await stand.call({ path: '/api/v1/pods', as: alice })).code).toBe(403);
    expect((await stand.call({ method: 'DELETE', path: `${path}/x`, as: alice })).code).toBe(403);
    await stand.admit('DELETE', `${NS}/rolebindings/r`);
    expect((await stand.call({ path, as: alice })).code).toBe(403);
  });
});

describe('a caller grants no more than they have', () => {
  const nodes = { verbs: ['list', 'get'], apiGroups: [''], resources: ['nodes'] };
  const HELD =
    'user "namespace-admin" (groups=["admins" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:';

  it('in a role', async () => {
    expect((await post(`${NS}/roles`, role('fine', READ_PODS), admin)).code).toBe(201);
    const refused = await post(`${NS}/roles`, role('more', READ_PODS, nodes), admin);
    expect(refused.code).toBe(403);
    expect(at(refused.json, 'message')).toBe(
      `roles.rbac.authorization.k8s.io "more" is forbidden: ${HELD}\n{APIGroups:[""], Resources:["nodes"], Verbs:["list" "get"]}`,
    );
    const patch = { method: 'PATCH', path: `${NS}/roles/fine`, as: admin };
    const headers = { 'content-type': 'application/merge-patch+json' };
    expect((await stand.call({ ...patch, headers, body: { rules: [nodes] } })).code).toBe(403);
    expect((await stand.call({ ...patch, headers, body: { metadata: { finalizers: ['a/b'] } } })).code).toBe(200);
    expect((await stand.call({ ...patch, headers, body: { metadata: { finalizers: null } } })).code).toBe(200);
  });

  it('by a binding', async () => {
    const subject = { kind: 'User', name: 'namespace-admin' };
    expect((await post(`${NS}/rolebindings`, binding('fine', 'ClusterRole/edit', subject), admin)).code).toBe(201);
    const refused = await post(`${NS}/rolebindings`, binding('all', 'ClusterRole/cluster-admin', subject), admin);
    expect(refused.code).toBe(403);
    expect(at(refused.json, 'message')).toBe(
      `rolebindings.rbac.authorization.k8s.io "all" is forbidden: ${HELD}\n{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}`,
    );
    const unknown = await post(`${NS}/rolebindings`, binding('x', 'ClusterRole/nope', subject), admin);
    expect([unknown.code, at(unknown.json, 'message')]).toEqual([
      404,
      'clusterroles.rbac.authorization.k8s.io "nope" not found',
    ]);
  });

  it('unless they may escalate the role, or bind it', async () => {
    const verbs = [
      { verbs: ['escalate'], apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'] },
      {
        verbs: ['bind'],
        apiGroups: ['rbac.authorization.k8s.io'],
        resources: ['clusterroles'],
        resourceNames: ['cluster-admin'],
      },
    ];
    await stand.admit('POST', `${NS}/roles`, role('granters', ...verbs));
    await stand.admit(
      'POST',
      `${NS}/rolebindings`,
      binding('granters', 'Role/granters', { kind: 'Group', name: 'admins' }),
    );
    expect((await post(`${NS}/roles`, role('escalated', nodes), admin)).code).toBe(201);
    const subject = { kind: 'User', name: 'somebody' };
    expect((await post(`${NS}/rolebindings`, binding('bound', 'ClusterRole/cluster-admin', subject), admin)).code).toBe(
      201,
    );
    expect((await post(`${NS}/rolebindings`, binding('unbound', 'ClusterRole/system:node', subject), admin)).code).toBe(
      403,
    );
    await stand.admit('DELETE', `${NS}/rolebindings/granters`);
  });

  it('nor gathers it by aggregation', async () => {
    const writer = { verbs: ['create', 'update', 'patch'], apiGroups: ['rbac.authorization.k8s.io'], resources: ['*'] };
    const clusterRole = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' };
    await stand.admit('POST', `${RBAC}/clusterroles`, {
      ...clusterRole,
      metadata: { name: 'writers' },
      rules: [writer],
    });
    await stand.admit('POST', `${RBAC}/clusterrolebindings`, {
      ...binding('writers', 'ClusterRole/writers', { kind: 'User', name: 'alice' }),
      kind: 'ClusterRoleBinding',
    });
    const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] };
    const refused = await post(
      `${RBAC}/clusterroles`,
      { ...clusterRole, metadata: { name: 'g' }, aggregationRule },
      alice,
    );
    expect(at(refused.json, 'message')).toBe(
      'clusterroles.rbac.authorization.k8s.io "g" is forbidden: must have cluster-admin privileges to use the aggregationRule',
    );
    await stand.admit('DELETE', `${RBAC}/clusterrolebindings/writers`);
  });
});

describe('an aggregated role', () => {
  it('gains and loses the rules of what its selectors match', async () => {
    const widgets = { verbs: ['get'], apiGroups: ['example.com'], resources: ['widgets'] };
    const labels = { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' };
    const rules = async (name: string) =>
      JSON.stringify(at(await stand.admit('GET', `${RBAC}/clusterroles/${name}`), 'rules'));
    const body = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'widgets', labels },
      rules: [widgets],
    };
    await stand.admit('POST', `${RBAC}/clusterroles`, body);
    for (const name of ['view', 'edit', 'admin']) expect(await rules(name)).toContain('example.com');
    await stand.admit('DELETE', `${RBAC}/clusterroles/widgets`);
    for (const name of ['view', 'edit', 'admin']) expect(await rules(name)).not.toContain('example.com');
  });
});

describe('a review', () => {
  const review = async (plural: string, spec: object, as: Credentials = stand.admin, namespace = '', metadata = {}) => {
    const path = `${REVIEWS}${namespace === '' ? '' : `/namespaces/${namespace}`}/${plural}`;
    return (await post(path, { metadata, spec }, as)).json;
  };
  const pods = { verb: 'list', resource: 'pods', namespace: 'default' };

  it('says whether and why', async () => {
    const spec = { user: 'visitor', groups: ['admins'], resourceAttributes: pods };
    const reason = 'RBAC: allowed by RoleBinding "admins/default" of ClusterRole "admin" to Group "admins"';
    expect(at(await review('subjectaccessreviews', spec), 'status')).toEqual({ allowed: true, reason });
    expect(at(await review('localsubjectaccessreviews', spec, admin, 'default'), 'status')).toEqual({
      allowed: true,
      reason,
    });
    const own = await review('selfsubjectaccessreviews', { resourceAttributes: pods }, alice);
    expect(at(own, 'status')).toEqual({ allowed: false });
  });

  it('that makes no sense is refused as upstream', async () => {
    const message = async (...parts: Parameters<typeof review>) => at(await review(...parts), 'message');
    const spec = { user: 'u', resourceAttributes: pods };
    expect(await message('subjectaccessreviews', { ...spec, user: '' })).toContain(
      'spec.user: Invalid value: "": at least one of user or group must be specified',
    );
    expect(await message('subjectaccessreviews', { ...spec, nonResourceAttributes: {} })).toContain(
      'cannot be specified in combination with resourceAttributes',
    );
    expect(await message('subjectaccessreviews', spec, stand.admin, '', { name: 'x' })).toContain('must be empty');
    expect(await message('localsubjectaccessreviews', spec, stand.admin, 'kube-system')).toContain(
      'spec.resourceAttributes.namespace: Invalid value: "default": must match metadata.namespace',
    );
    const fieldSelector = { rawSelector: '' };
    expect(
      await message('selfsubjectaccessreviews', { resourceAttributes: { ...pods, fieldSelector } }, alice),
    ).toContain('requirements or rawSelector is required');
    expect(await message('selfsubjectrulesreviews', {}, alice)).toBe('no namespace on request');
  });

  it('of one’s rules lists them', async () => {
    const json = JSON.stringify(at(await review('selfsubjectrulesreviews', { namespace: 'default' }, admin), 'status'));
    expect(json).toContain('"resources":["configmaps"');
    expect(json).toContain('selfsubjectaccessreviews');
    expect(json).toContain('"incomplete":false');
    const node = await review('selfsubjectrulesreviews', { namespace: 'default' }, await stand.node('n9'));
    expect(at(node, 'status', 'evaluationError')).toBe('node authorizer does not support user rule resolution');
    expect(at(node, 'status', 'incomplete')).toBe(true);
  });
});

describe('a node', () => {
  it('gets tokens for the audiences that RBAC lets it request', async () => {
    const node = await stand.node('n1');
    const core = (kind: string, metadata: object, more: object = {}) => ({ apiVersion: 'v1', kind, metadata, ...more });
    expect((await post('/api/v1/nodes', core('Node', { name: 'n1' }), node)).code).toBe(201);
    const ns = '/api/v1/namespaces/default';
    await stand.admit('POST', `${ns}/serviceaccounts`, core('ServiceAccount', { name: 'puller' }));
    const spec = { nodeName: 'n1', serviceAccountName: 'puller', containers: [{ name: 'c', image: 'x:1' }] };
    const pod = await stand.admit('POST', `${ns}/pods`, core('Pod', { name: 'p' }, { spec }));
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: at(pod, 'metadata', 'uid') };
    const token = { spec: { audiences: ['registry'], boundObjectRef } };
    const request = () => post(`${ns}/serviceaccounts/puller/token`, token, node);
    expect((await request()).text).toContain('not found in pod spec volume');
    const rule = {
      verbs: ['request-serviceaccounts-token-audience'],
      apiGroups: [''],
      resources: ['registry'],
      resourceNames: ['puller'],
    };
    await stand.admit('POST', `${NS}/roles`, role('pullers', rule));
    await stand.admit(
      'POST',
      `${NS}/rolebindings`,
      binding('p', 'Role/pullers', { kind: 'Group', name: 'system:nodes' }),
    );
    expect((await request()).code).toBe(201);
  });
});
