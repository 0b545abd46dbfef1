import { describe, expect, it } from 'vitest';
import type { Attributes } from '../../../../apiserver/auth/attributes.ts';
import { ANONYMOUS } from '../../../../apiserver/auth/authenticate.ts';
import { refusal } from '../../../../apiserver/auth/authorize.ts';
import { BearerTokens } from '../../../../apiserver/auth/bearer-tokens.ts';
import { answerReview } from '../../../../apiserver/auth/reviews.ts';
import { ISSUER, ServiceAccountTokens, TokenError } from '../../../../apiserver/auth/tokens.ts';
import type { KubeObject, ObjectLookup } from '../../../../apiserver/kinds/resource.ts';
import { generateKeyPair } from '../../../../apiserver/pki/keys.ts';
import type { Caller } from '../../../../apiserver/registry/registry.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { authorize, authorizerOf } from './support.ts';

const pod = (name: string, nodeName: string, spec: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'ns', uid: `uid-${name}` },
  spec: { nodeName, serviceAccountName: 'default', ...spec },
});
const volume = (name: string, claim: string, secret: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    claimRef: { namespace: 'ns', name: claim },
    csi: {
      nodeStageSecretRef: { namespace: 'ns', name: secret },
      controllerExpandSecretRef: { namespace: 'ns', name: 'admin-secret' },
    },
  },
});
const attachment = (name: string, nodeName: string): KubeObject => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'VolumeAttachment',
  metadata: { name },
  spec: { nodeName },
});
const objects: Record<string, KubeObject[]> = {
  pods: [
    pod('mine', 'n1', {
      volumes: [
        { name: 'a', secret: { secretName: 'vol-secret' } },
        { name: 'b', projected: { sources: [{ configMap: { name: 'proj-map' } }] } },
        { name: 'c', ephemeral: {} },
      ],
      imagePullSecrets: [{ name: 'pull-secret' }],
      containers: [{ name: 'c', envFrom: [{ configMapRef: { name: 'env-map' } }] }],
    }),
    pod('theirs', 'n2', {
      volumes: [
        { name: 'a', secret: { secretName: 'other-secret' } },
        { name: 'b', persistentVolumeClaim: { claimName: 'their-claim' } },
      ],
    }),
    pod('user', 'n1', { volumes: [{ name: 'a', persistentVolumeClaim: { claimName: 'my-claim' } }] }),
  ],
  persistentvolumes: [
    volume('my-volume', 'my-claim', 'stage-secret'),
    volume('their-volume', 'their-claim', 'their-stage-secret'),
    { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'free' }, spec: {} },
  ],
  volumeattachments: [attachment('at-mine', 'n1'), attachment('at-theirs', 'n2')],
  nodes: [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', uid: 'uid-n1' } }],
  serviceaccounts: [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'ns', uid: 'sa-uid' } },
  ],
};
const lookup: ObjectLookup = {
  get: (_group, plural, _namespace, name) => objects[plural]?.find((o) => o.metadata.name === name),
  list: (_group, plural) => objects[plural] ?? [],
  each: (_group, plural, namespace) => (objects[plural] ?? []).filter((o) => o.metadata.namespace === namespace),
  having: (_group, plural, namespace) => (objects[plural] ?? []).filter((o) => o.metadata.namespace === namespace),
};

const user = (name: string, ...groups: string[]): Caller => ({ name, groups: [...groups, 'system:authenticated'] });
const ADMIN = user('kubernetes-admin', 'system:masters');
const NODE = user('system:node:n1', 'system:nodes');
const SCHEDULER = user('system:kube-scheduler');
const CONTROLLERS = user('system:kube-controller-manager');
const ACCOUNT = user('system:serviceaccount:ns:default', 'system:serviceaccounts', 'system:serviceaccounts:ns');

/** "get secrets/vol-secret", "create pods/mine/binding", "list leases.coordination.k8s.io" */
function ask(text: string, namespace = 'ns'): Attributes {
  const [verb = '', what = ''] = text.split(' ');
  const [full = '', name = '', subresource = ''] = what.split('/');
  const [resource = '', ...group] = full.split('.');
  return { verb, group: group.join('.'), resource, subresource, namespace, name };
}

describe('who may do what', () => {
  const cases: readonly [Caller, string, boolean, string?][] = [
    [ADMIN, 'delete nodes/n1', true],
    [ADMIN, 'create pods/mine/exec', true],
    [NODE, 'watch services', true],
    [NODE, 'create events', true],
    [NODE, 'create nodes', true],
    [NODE, 'patch nodes/n1/status', true],
    [NODE, 'patch pods/mine/status', true],
    [NODE, 'delete pods/mine', true],
    [NODE, 'get secrets/vol-secret', true],
    [NODE, 'watch secrets/pull-secret', true],
    [NODE, 'get secrets/other-secret', false],
    [NODE, 'list secrets', false],
    [NODE, 'get configmaps/env-map', true],
    [NODE, 'get configmaps/proj-map', true],
    [NODE, 'get configmaps/vol-secret', false],
    [NODE, 'update configmaps/env-map', false],
    [NODE, 'get persistentvolumeclaims/mine-c', true],
    [NODE, 'get persistentvolumeclaims/my-claim', true],
    [NODE, 'get persistentvolumeclaims/their-claim', false],
    [NODE, 'patch persistentvolumeclaims/my-claim/status', true],
    [NODE, 'patch persistentvolumeclaims/their-claim/status', false],
    [NODE, 'patch persistentvolumeclaims/my-claim', false],
    [NODE, 'list persistentvolumeclaims', false],
    [NODE, 'get persistentvolumes/my-volume', true],
    [NODE, 'get persistentvolumes/their-volume', false],
    [NODE, 'get persistentvolumes/free', false],
    [NODE, 'list persistentvolumes', false],
    [NODE, 'get secrets/stage-secret', true],
    [NODE, 'get secrets/their-stage-secret', false],
    [NODE, 'get secrets/admin-secret', false],
    [NODE, 'get volumeattachments.storage.k8s.io/at-mine', true],
    [NODE, 'watch volumeattachments.storage.k8s.io/at-mine', true],
    [NODE, 'get volumeattachments.storage.k8s.io/at-theirs', false],
    [NODE, 'list volumeattachments.storage.k8s.io', false],
    [NODE, 'delete volumeattachments.storage.k8s.io/at-mine', false],
    [NODE, 'create csinodes.storage.k8s.io', true],
    [NODE, 'patch csinodes.storage.k8s.io/n1', true],
    [NODE, 'patch csinodes.storage.k8s.io/n2', false],
    [NODE, 'watch csidrivers.storage.k8s.io', true],
    [NODE, 'create csidrivers.storage.k8s.io', false],
    [NODE, 'get storageclasses.storage.k8s.io/fast', false],
    [SCHEDULER, 'patch persistentvolumeclaims/my-claim', true],
    [SCHEDULER, 'create persistentvolumes', false],
    [SCHEDULER, 'watch csistoragecapacities.storage.k8s.io', true],
    [CONTROLLERS, 'create volumeattachments.storage.k8s.io', true],
    [NODE, 'create serviceaccounts/default/token', true],
    [NODE, 'create serviceaccounts/other/token', false],
    [NODE, 'update leases.coordination.k8s.io/n1', true, 'kube-node-lease'],
    [NODE, 'update leases.coordination.k8s.io/n2', false, 'kube-node-lease'],
    [NODE, 'get leases.coordination.k8s.io/n1', false, 'kube-system'],
    [NODE, 'create tokenreviews.authentication.k8s.io', true],
    [NODE, 'create subjectaccessreviews.authorization.k8s.io', true],
    [NODE, 'create pods/mine/binding', false],
    [NODE, 'create pods/mine/exec', false],
    [SCHEDULER, 'create pods/mine/binding', true],
    [SCHEDULER, 'watch nodes', true],
    [SCHEDULER, 'patch pods/mine/status', true],
    [SCHEDULER, 'create pods', false],
    [SCHEDULER, 'get secrets/vol-secret', false],
    [SCHEDULER, 'update leases.coordination.k8s.io/kube-scheduler', true, 'kube-system'],
    [SCHEDULER, 'update leases.coordination.k8s.io/n1', false, 'kube-node-lease'],
    [CONTROLLERS, 'update namespaces/ns/finalize', true],
    [CONTROLLERS, 'deletecollection configmaps', true],
    [CONTROLLERS, 'create pods/mine/exec', false],
    [CONTROLLERS, 'get pods/mine/log', false],
    [CONTROLLERS, 'get nodes/n1/proxy', false],
    [CONTROLLERS, 'get nodes/n1/pods', false],
    [CONTROLLERS, 'get nodes/n1/log', false],
    [CONTROLLERS, 'update nodes/n1/status', true],
    [ACCOUNT, 'list pods', false],
    [ACCOUNT, 'create selfsubjectaccessreviews.authorization.k8s.io', true],
    [ACCOUNT, 'create tokenreviews.authentication.k8s.io', false],
    [user('system:node:n1'), 'list pods', false],
    [user('n1', 'system:nodes'), 'list pods', false],
  ];
  for (const [caller, text, allowed, namespace] of cases) {
    it(`${caller.name} ${allowed ? 'may' : 'may not'} ${text}${namespace === undefined ? '' : ` in ${namespace}`}`, () => {
      expect(authorize(caller, ask(text, namespace), lookup).allowed).toBe(allowed);
    });
  }

  const paths: readonly [Caller | undefined, string, string, boolean][] = [
    [undefined, 'get', '/healthz', true],
    [undefined, 'get', '/version', true],
    [undefined, 'get', '/api', false],
    [ACCOUNT, 'get', '/apis/apps/v1', true],
    [ACCOUNT, 'get', '/openapi/v3', true],
    [ACCOUNT, 'get', '/metrics', false],
    [ACCOUNT, 'post', '/api', false],
    [ADMIN, 'get', '/metrics', true],
  ];
  for (const [caller, verb, path, allowed] of paths) {
    it(`${caller?.name ?? 'anonymous'} ${allowed ? 'may' : 'may not'} ${verb} ${path}`, () => {
      expect(authorizerOf(lookup).authorizePath(caller ?? ANONYMOUS, verb, path).allowed).toBe(allowed);
    });
  }

  it('says no in the real server’s words', () => {
    const words = (text: string, namespace: string): string =>
      refusal(ACCOUNT, ask(text, namespace), { allowed: false, reason: '' }).message;
    const name = ACCOUNT.name;
    expect(words('list pods', 'y')).toBe(
      `pods is forbidden: User "${name}" cannot list resource "pods" in API group "" in the namespace "y"`,
    );
    expect(words('get leases.coordination.k8s.io/l', '')).toBe(
      `leases.coordination.k8s.io "l" is forbidden: User "${name}" cannot get resource "leases" in API group "coordination.k8s.io" at the cluster scope`,
    );
    expect(words('get pods/a/log', 'y')).toContain('cannot get resource "pods/log"');
  });
});

const NOW = epochMs(Date.parse('2026-01-01T00:00:00Z'));
const tokens = new ServiceAccountTokens(generateKeyPair().privateKey);
const request = {
  namespace: 'ns',
  serviceAccount: { name: 'default', uid: 'sa-uid' },
  audiences: [ISSUER],
  expirationSeconds: 3600,
};

describe('a service account token', () => {
  const { token, expiresAt } = tokens.issue({ ...request, bound: { kind: 'Pod', name: 'mine', uid: 'uid-mine' } }, NOW);
  const check = (text: string, now = NOW, look = lookup, audiences = [ISSUER]) =>
    tokens.check(text, audiences, look, epochMs(now));

  it('says who its bearer is', () => {
    expect(expiresAt).toBe(plusMs(NOW, 3_600_000));
    expect(check(token).caller).toMatchObject({
      name: 'system:serviceaccount:ns:default',
      uid: 'sa-uid',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/pod-name': ['mine'] },
    });
  });

  it('carries the real claims', () => {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    expect(claims).toMatchObject({
      iss: ISSUER,
      aud: [ISSUER],
      sub: 'system:serviceaccount:ns:default',
      'kubernetes.io': {
        namespace: 'ns',
        serviceaccount: { name: 'default', uid: 'sa-uid' },
        pod: { name: 'mine', uid: 'uid-mine' },
      },
    });
  });

  const [head = '', payload = '', signature = ''] = token.split('.');
  const forged = Buffer.from(Buffer.from(payload, 'base64url').toString().replace('ns:default', 'ns:admin!!')).toString(
    'base64url',
  );
  const without = (plural: string): ObjectLookup => ({
    ...lookup,
    get: (group, p, ns, name) => (p === plural ? undefined : lookup.get(group, p, ns, name)),
  });
  const refusals: readonly [string, () => unknown][] = [
    ['after its time', () => check(token, plusMs(NOW, 3_600_000))],
    ['for another audience', () => check(token, NOW, lookup, ['vault'])],
    ['that was changed', () => check(`${head}.${forged}.${signature}`)],
    [
      'signed by another key',
      () => new ServiceAccountTokens(generateKeyPair().privateKey).check(token, [ISSUER], lookup, NOW),
    ],
    ['without a signature', () => check(`${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`)],
    ['that is none', () => check('abc')],
    ['whose pod is gone', () => check(token, NOW, without('pods'))],
    ['whose account is gone', () => check(token, NOW, without('serviceaccounts'))],
  ];
  for (const [what, run] of refusals) it(`is no good ${what}`, () => expect(run).toThrow(TokenError));
});

describe('a review', () => {
  const bearers = new BearerTokens({ accounts: tokens, lookup, bootstrap: false });
  const parts = { tokens, bearers, lookup, authorizer: authorizerOf(lookup), now: () => NOW };
  const ask_ = (plural: string, body: object, caller = ADMIN) =>
    answerReview(
      plural === 'tokenreviews' || plural === 'selfsubjectreviews' ? 'authentication.k8s.io' : 'authorization.k8s.io',
      'v1',
      plural,
      body,
      caller,
      parts,
    );

  it('of a good token names its bearer, of a bad one says so', () => {
    const { token } = tokens.issue(request, NOW);
    expect(ask_('tokenreviews', { spec: { token } })['status']).toMatchObject({
      authenticated: true,
      user: { username: 'system:serviceaccount:ns:default' },
      audiences: [ISSUER],
    });
    expect(ask_('tokenreviews', { spec: { token: 'x' } })['status']).toMatchObject({ authenticated: false });
  });

  it('of another’s access asks about them, of one’s own about oneself', () => {
    const fieldSelector = { requirements: [{ key: 'spec.nodeName', operator: 'In', values: ['n1'] }] };
    const resourceAttributes = { verb: 'list', resource: 'pods', namespace: 'ns', fieldSelector };
    const spec = { user: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'], resourceAttributes };
    expect(ask_('subjectaccessreviews', { spec })['status']).toMatchObject({ allowed: true });
    expect(ask_('selfsubjectaccessreviews', { spec: { resourceAttributes } }, ACCOUNT)['status']).toMatchObject({
      allowed: false,
    });
    expect(
      ask_('selfsubjectaccessreviews', { spec: { nonResourceAttributes: { verb: 'get', path: '/healthz' } } }, ACCOUNT)[
        'status'
      ],
    ).toMatchObject({ allowed: true });
  });

  it('that asks about nothing is refused', () => {
    expect(() => ask_('subjectaccessreviews', { spec: { user: 'x' } })).toThrow(/exactly one of/);
    expect(() => ask_('tokenreviews', { spec: {} })).toThrow(/token is required for TokenReview/);
  });

  it('of oneself says who one is', () => {
    expect(ask_('selfsubjectreviews', {}, NODE)['status']).toMatchObject({ userInfo: { username: 'system:node:n1' } });
  });
});
