// Who gets in, over TLS: client CAs that change while the server runs, every kind of token, anonymous callers, and
// impersonation as far as RBAC allows it.

import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Signer } from '../../../../apiserver/pki/keys.ts';
import { at, type Call, type Credentials, TestApiServer } from '../../../support/api-server.ts';

const WHOAMI = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
const NS = '/api/v1/namespaces/default';
let directory: string;
let caFile: string;
let stand: TestApiServer;
let other: Signer;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-auth-'));
  caFile = join(directory, 'client-ca.crt');
  const tokenAuthFile = join(directory, 'tokens.csv');
  await writeFile(tokenAuthFile, 'static-token,carol,3,"devs,system:masters"\n');
  const first = await TestApiServer.start();
  other = await first.otherCa();
  await first.stop();
  await writeFile(caFile, other.cert);
  stand = await TestApiServer.start({ auth: { clientCaFile: caFile, tokenAuthFile, bootstrapTokenAuth: true } });
});
afterAll(async () => {
  await stand.stop();
  await rm(directory, { recursive: true, force: true });
});

async function whoami(as: Credentials, headers: Call['headers'] = {}): Promise<unknown> {
  const answer = await stand.call({ method: 'POST', path: WHOAMI, body: {}, as, headers: headers ?? {} });
  return answer.code === 201 ? at(answer.json, 'status', 'userInfo') : answer.code;
}

describe('a client CA', () => {
  it('that is added or removed counts at once, on connections that are open, too', async () => {
    const theirs = await stand.certificate('dave', 'devs', { ca: other });
    const dave = { username: 'dave', groups: ['devs', 'system:authenticated'] };
    expect(await whoami(theirs)).toEqual(dave);
    expect(await whoami(stand.admin)).toMatchObject({ username: 'kubernetes-admin' });
    const third = await stand.otherCa();
    const changed = (): number => stand.lines.filter((line) => line.includes('certificates from now on')).length;
    writeFileSync(caFile, third.cert);
    await expect.poll(changed).toBe(1);
    // The same connection.
    expect(await whoami(theirs)).toBe(401);
    expect(await whoami(await stand.certificate('erin', 'devs', { ca: third }))).toMatchObject({ username: 'erin' });
    expect(await whoami(stand.admin)).toMatchObject({ username: 'kubernetes-admin' });
    writeFileSync(caFile, 'nothing\n');
    await expect.poll(() => stand.lines.some((line) => line.includes('is not used as it is now'))).toBe(true);
    expect(await whoami(await stand.certificate('erin', 'devs', { ca: third }))).toMatchObject({ username: 'erin' });
    writeFileSync(caFile, `${third.cert}${other.cert}`);
    await expect.poll(changed).toBe(2);
    expect(await whoami(await stand.certificate('dave', 'devs', { ca: other }))).toEqual(dave);
  });

  it('does not keep a good token out', async () => {
    const unknown = await stand.certificate('mallory', 'system:masters', { ca: await stand.otherCa() });
    expect(await whoami(unknown)).toBe(401);
    expect(await whoami({ ...unknown, token: 'static-token' })).toMatchObject({ username: 'carol' });
  });
});

describe('a bearer token', () => {
  const review = async (token: string, audiences: string[] = []) =>
    at(
      await stand.admit('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token, audiences } }),
      'status',
    );

  it('of the file is its user’s', async () => {
    const user = { username: 'carol', uid: '3', groups: ['devs', 'system:masters', 'system:authenticated'] };
    expect(await whoami({ token: 'static-token' })).toEqual(user);
    expect(await whoami({ token: 'static-toke' })).toBe(401);
    const audiences = ['https://kubernetes.default.svc.cluster.local'];
    expect(await review('static-token')).toEqual({ authenticated: true, user, audiences });
    expect(await review('static-token', ['vault'])).toMatchObject({ authenticated: false });
  });

  it('of a bootstrap Secret is a bootstrapper’s until the Secret is gone', async () => {
    const path = '/api/v1/namespaces/kube-system/secrets';
    await stand.admit('POST', path, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'bootstrap-token-abcdef' },
      type: 'bootstrap.kubernetes.io/token',
      stringData: {
        'token-id': 'abcdef',
        'token-secret': '0123456789abcdef',
        'usage-bootstrap-authentication': 'true',
      },
    });
    const as = { token: 'abcdef.0123456789abcdef' };
    const groups = ['system:bootstrappers', 'system:authenticated'];
    expect(await whoami(as)).toEqual({ username: 'system:bootstrap:abcdef', groups });
    expect((await stand.call({ path: `${path}/bootstrap-token-abcdef`, as })).code).toBe(403);
    await stand.admit('DELETE', `${path}/bootstrap-token-abcdef`);
    expect(await whoami(as)).toBe(401);
  });

  it('of a service account dies with what it is bound to, and reads who issues it', async () => {
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
    await stand.admit('POST', `${NS}/serviceaccounts`, account);
    const bound: readonly [string, string, object][] = [
      ['Secret', `${NS}/secrets`, {}],
      ['Node', '/api/v1/nodes', {}],
      ['Pod', `${NS}/pods`, { spec: { serviceAccountName: 'robot', containers: [{ name: 'c', image: 'x:1' }] } }],
    ];
    for (const [kind, path, rest] of bound) {
      await stand.admit('POST', path, { apiVersion: 'v1', kind, metadata: { name: 'anchor' }, ...rest });
      const boundObjectRef = { kind, apiVersion: 'v1', name: 'anchor' };
      const made = await stand.admit('POST', `${NS}/serviceaccounts/robot/token`, { spec: { boundObjectRef } });
      const as = { token: String(at(made, 'status', 'token')) };
      expect(await whoami(as)).toMatchObject({ username: 'system:serviceaccount:default:robot' });
      const configuration = await stand.call({ path: '/.well-known/openid-configuration', as });
      expect(configuration.json).toMatchObject({ response_types_supported: ['id_token'] });
      const keys = await stand.call({ path: '/openid/v1/jwks', as });
      expect(at(keys.json, 'keys', 0)).toMatchObject({ use: 'sig', alg: 'ES256', kty: 'EC' });
      await stand.admit('DELETE', `${path}/anchor`);
      expect(await whoami(as)).toBe(401);
    }
    const alice = await stand.certificate('alice', 'devs');
    expect((await stand.call({ path: '/openid/v1/jwks', as: alice })).code).toBe(403);
  });
});

describe('a caller without credentials', () => {
  const code = async (path: string, from = stand) => (await from.call({ path })).code;

  it('sees health and version alone', async () => {
    for (const path of ['/healthz', '/livez', '/readyz', '/version', '/version/']) expect(await code(path)).toBe(200);
    for (const path of ['/api', '/apis', '/metrics', '/openapi/v2', `${NS}/pods`]) expect(await code(path)).toBe(401);
  });

  it('is system:anonymous everywhere, or nowhere, where that is set', async () => {
    const open = await TestApiServer.start({ auth: { anonymousAuth: true } });
    const closed = await TestApiServer.start({ auth: { anonymousAuth: false, authorizationMode: ['AlwaysAllow'] } });
    try {
      expect((await open.call({ path: `${NS}/pods` })).text).toContain(
        'User \\"system:anonymous\\" cannot list resource',
      );
      expect([await code('/healthz', open), await code('/api', open)]).toEqual([200, 403]);
      expect([await code('/healthz', closed), await code('/api', closed)]).toEqual([401, 401]);
      const anybody = await closed.certificate('anybody');
      expect((await closed.call({ path: '/api/v1/secrets', as: anybody })).code).toBe(200);
    } finally {
      await Promise.all([open.stop(), closed.stop()]);
    }
  });
});

describe('impersonation', () => {
  it('is for the users, groups, uids and extras that RBAC allows', async () => {
    const api = { apiVersion: 'rbac.authorization.k8s.io/v1' };
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const verbs = ['impersonate'];
    const authentication = ['authentication.k8s.io'];
    const rules = [
      { verbs, apiGroups: [''], resources: ['users'], resourceNames: ['bob'] },
      { verbs, apiGroups: [''], resources: ['groups'], resourceNames: ['devs'] },
      { verbs, apiGroups: authentication, resources: ['uids'], resourceNames: ['7'] },
      { verbs, apiGroups: authentication, resources: ['userextras/scopes'], resourceNames: ['view'] },
    ];
    await stand.admit('POST', `${rbac}/clusterroles`, { ...api, kind: 'ClusterRole', metadata: { name: 'as' }, rules });
    await stand.admit('POST', `${rbac}/clusterrolebindings`, {
      ...{ ...api, kind: 'ClusterRoleBinding', metadata: { name: 'as' } },
      roleRef: { kind: 'ClusterRole', name: 'as' },
      subjects: [{ kind: 'User', name: 'alice' }],
    });
    const alice = await stand.certificate('alice');
    const bob = { 'Impersonate-User': 'bob' };
    expect(await whoami(alice, bob)).toEqual({ username: 'bob', groups: ['system:authenticated'] });
    const all = { ...bob, 'Impersonate-Group': 'devs', 'Impersonate-Uid': '7', 'Impersonate-Extra-Scopes': 'view' };
    expect(await whoami(alice, all)).toEqual({
      username: 'bob',
      uid: '7',
      groups: ['devs', 'system:authenticated'],
      extra: { scopes: ['view'] },
    });
    const others: readonly Record<string, string>[] = [
      { 'Impersonate-User': 'root' },
      { ...bob, 'Impersonate-Group': 'system:masters' },
      { ...bob, 'Impersonate-Uid': '8' },
      { ...bob, 'Impersonate-Extra-Scopes': 'edit' },
      { ...bob, 'Impersonate-Extra-Other': 'view' },
    ];
    for (const headers of others) expect(await whoami(alice, headers), JSON.stringify(headers)).toBe(403);
  });
});

describe('a file that cannot be used', () => {
  it('is named, and the server does not start', async () => {
    const bad = join(directory, 'bad');
    await writeFile(bad, 'one column\n');
    const start = (auth: object) => TestApiServer.start({ auth });
    await expect(start({ clientCaFile: bad })).rejects.toThrow(`client CA file ${bad} holds no certificate`);
    await expect(start({ tokenAuthFile: bad })).rejects.toThrow('must have at least 3 columns');
    await expect(start({ tokenAuthFile: `${bad}-none` })).rejects.toThrow('--token-auth-file: ENOENT');
    expect(readFileSync(bad, 'utf8')).toBe('one column\n');
  });
});
