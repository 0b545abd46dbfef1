// ID tokens of an OpenID Connect issuer, over TLS: discovery, keys that are fetched and change, and what its tokens may do.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { OidcOptions } from '../../../../apiserver/auth/oidc/options.ts';
import { at, TestApiServer } from '../../../support/api-server.ts';
import { TestServer } from '../../../support/https-server.ts';
import { signingKey, TestIssuer } from '../../../support/oidc-issuer.ts';
import { makeCa } from '../../../support/tls.ts';

const WHOAMI = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
/** How often an issuer that does not answer is tried again. */
const AGAIN_MS = 10_000;

const [first, second] = [signingKey('first'), signingKey('second')];
let directory: string;
let caFile: string;
let web: TestServer;
let issuer: TestIssuer;
let stand: TestApiServer;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-oidc-'));
  caFile = join(directory, 'ca.crt');
  const ca = await makeCa();
  await writeFile(caFile, ca.cert);
  web = await TestServer.start(await ca.server(['127.0.0.1']), ca.cert, () => undefined);
});
afterAll(async () => {
  await web[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(() => {
  web.requests.length = 0;
  issuer = new TestIssuer(web);
  issuer.keys = [first];
});
afterEach(() => stand.stop());

async function start(more: OidcOptions = {}): Promise<void> {
  stand = await TestApiServer.start({
    auth: { oidc: { issuerUrl: issuer.url, clientId: 'kubernetes', caFile, groupsClaim: 'groups', ...more } },
  });
}

const logged = (text: string): boolean => stand.lines.some((line) => line.includes(text));
const ready = (): Promise<void> => expect.poll(() => logged('are accepted')).toBe(true);

async function whoami(token: string): Promise<unknown> {
  const answer = await stand.call({ method: 'POST', path: WHOAMI, body: {}, as: { token } });
  return answer.code === 201 ? at(answer.json, 'status', 'userInfo') : answer.code;
}

async function review(token: string, audiences: string[] = []): Promise<unknown> {
  const path = '/apis/authentication.k8s.io/v1/tokenreviews';
  return at(await stand.admit('POST', path, { spec: { token, audiences } }), 'status');
}

it('a token is its user’s, with the groups that RBAC knows', async () => {
  await start();
  await ready();
  const token = issuer.token(first, { groups: ['devs'], jti: 'x' });
  const user = {
    username: `${issuer.url}#jane`,
    groups: ['devs', 'system:authenticated'],
    extra: { 'authentication.kubernetes.io/credential-id': ['JTI=x'] },
  };
  expect(await whoami(token)).toEqual(user);
  const secrets = { path: '/api/v1/namespaces/default/secrets', as: { token } };
  expect((await stand.call(secrets)).code).toBe(403);
  await stand.admit('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'devs' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'devs' }],
  });
  expect((await stand.call(secrets)).code).toBe(200);
  const audiences = ['https://kubernetes.default.svc.cluster.local'];
  expect(await review(token)).toEqual({ authenticated: true, user, audiences });
  // Such a token is for the API server, whatever audience the issuer gave it.
  expect(await review(token, ['kubernetes'])).toMatchObject({ authenticated: false });
  // A service account's token is not this issuer's.
  await stand.admit('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'robot' } });
  const made = await stand.admit('POST', '/api/v1/namespaces/default/serviceaccounts/robot/token', { spec: {} });
  expect(await whoami(String(at(made, 'status', 'token')))).toMatchObject({
    username: 'system:serviceaccount:default:robot',
  });
});

it('a bad token is 401, and a review says why', async () => {
  await start();
  await ready();
  const why = async (token: string) => String(at(await review(token), 'error'));
  const past = { exp: Math.floor(Date.now() / 1000) - 10 };
  expect(await whoami(issuer.token(first, past))).toBe(401);
  expect(await why(issuer.token(first, past))).toContain('token is expired');
  expect(await why(issuer.token(first, { aud: 'other' }))).toContain('expected audience "kubernetes" got ["other"]');
  expect(issuer.requests(issuer.keysPath)).toBe(0);
  const forged = issuer.token({ ...second, id: 'first' });
  expect(await whoami(forged)).toBe(401);
  expect(await why(forged)).toContain('failed to verify id token signature');
  expect(await whoami(issuer.token(first))).toMatchObject({ username: `${issuer.url}#jane` });
  // A token that was good ends with its time.
  const good = issuer.token(first);
  expect(await whoami(good)).toMatchObject({ username: `${issuer.url}#jane` });
  stand.clock.shift = 3_600_000;
  expect(await whoami(good)).toBe(401);
});

it('keys are fetched when they are needed, and kept while the issuer is away', async () => {
  await start();
  await ready();
  expect(issuer.requests(issuer.keysPath)).toBe(0);
  const tokens = [issuer.token(first, { jti: '1' }), issuer.token(first, { jti: '2' })];
  const known = { username: `${issuer.url}#jane` };
  expect(await Promise.all(tokens.map(whoami))).toEqual(tokens.map(() => expect.objectContaining(known)));
  const fetched = issuer.requests(issuer.keysPath);
  expect(await whoami(issuer.token(first, { jti: '3' }))).toMatchObject(known);
  expect(issuer.requests(issuer.keysPath)).toBe(fetched);
  issuer.keys = [second];
  expect(await whoami(issuer.token(second))).toMatchObject(known);
  expect(issuer.requests(issuer.keysPath)).toBe(fetched + 1);
  // The first key is no longer one of the issuer's, also for a token that was good before.
  expect(await whoami(tokens[0] ?? '')).toBe(401);
  issuer.isUp = false;
  expect(await whoami(issuer.token(second))).toMatchObject(known);
  expect(await whoami(issuer.token(first))).toBe(401);
  expect(await review(issuer.token(first))).toMatchObject({ error: expect.stringContaining('fetching keys') });
});

it('keys that the issuer lets be kept are not fetched for every bad token', async () => {
  issuer.cacheControl = 'public, max-age=600';
  await start();
  await ready();
  expect(await whoami(issuer.token(first))).toMatchObject({ username: `${issuer.url}#jane` });
  const fetched = issuer.requests(issuer.keysPath);
  for (let round = 0; round < 3; round++) expect(await whoami(issuer.token(second))).toBe(401);
  expect(issuer.requests(issuer.keysPath)).toBe(fetched);
  issuer.keys = [second];
  stand.clock.shift = 571_000;
  expect(await whoami(issuer.token(second))).toMatchObject({ username: `${issuer.url}#jane` });
});

it('an issuer that comes later, or is another, is no reason not to start', async () => {
  issuer.isUp = false;
  await start({ usernameClaim: 'email', requiredClaims: new Map([['hd', 'x']]) });
  await expect.poll(() => logged('are refused until it answers')).toBe(true);
  const token = issuer.token(first, { email: 'jane@x', hd: 'x' });
  expect(await whoami(token)).toBe(401);
  expect(await review(token)).toMatchObject({ error: 'invalid bearer token: oidc: authenticator not initialized' });
  expect((await stand.call({ path: '/readyz' })).code).toBe(200);
  issuer.isUp = true;
  stand.clock.elapse(AGAIN_MS);
  await ready();
  expect(await whoami(token)).toMatchObject({ username: 'jane@x' });
  await stand.stop();
  // The document of another issuer: a prefix of the path alone is not it.
  await start({ issuerUrl: `${issuer.url}/` });
  await expect.poll(() => logged('issuer did not match the issuer returned by provider')).toBe(true);
});
