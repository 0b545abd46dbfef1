// --authentication-config on a server: two issuers whose claims are mapped by expressions, paths that need no credential, and a
// file that changes.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { openAuthentication } from '../../../../apiserver/auth/oidc/load.ts';
import type { AuthOptions } from '../../../../apiserver/auth/options.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { at, TestApiServer } from '../../../support/api-server.ts';
import { TestServer } from '../../../support/https-server.ts';
import { signingKey, TestIssuer } from '../../../support/oidc-issuer.ts';
import { makeCa } from '../../../support/tls.ts';

const WHOAMI = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
const key = signingKey('first');
let directory: string;
let file: string;
let ca: string;
let web: TestServer;
let people: TestIssuer;
let robots: TestIssuer;
let stand: TestApiServer | undefined;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-authn-'));
  file = join(directory, 'authentication.yaml');
  const made = await makeCa();
  ca = made.cert;
  web = await TestServer.start(await made.server(['127.0.0.1']), ca, () => undefined);
});
afterAll(async () => {
  await web[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(() => {
  people = new TestIssuer(web, 'people');
  robots = new TestIssuer(web, 'robots', web.handler);
  for (const issuer of [people, robots]) issuer.keys = [key];
});
afterEach(async () => {
  await stand?.stop();
  stand = undefined;
});

const byExpression = () => ({
  issuer: {
    url: people.url,
    certificateAuthority: ca,
    audiences: ['a', 'kubernetes'],
    audienceMatchPolicy: 'MatchAny',
  },
  claimMappings: {
    username: { expression: "'people:' + claims.sub" },
    groups: { expression: "claims.?roles.orValue([]).map(role, 'role:' + role)" },
    extra: [{ key: 'example.org/team', valueExpression: 'claims.?team' + ".orValue('')" }],
  },
  userValidationRules: [{ expression: "!user.username.endsWith(':root')", message: 'root is nobody' }],
});
/** Its discovery document is elsewhere: at its own URL there is none. */
const byDiscovery = () => ({
  issuer: {
    url: 'https://robots.example',
    discoveryURL: `${web.url}${robots.discoveryPath}`,
    certificateAuthority: ca,
    audiences: ['kubernetes'],
  },
  claimMappings: { username: { claim: 'sub', prefix: 'robot:' } },
});

async function write(jwt: readonly object[], more: object = {}): Promise<void> {
  const head = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration' };
  await writeFile(file, JSON.stringify({ ...head, jwt, ...more }));
}

async function start(auth: AuthOptions = {}): Promise<TestApiServer> {
  stand = await TestApiServer.start({ auth: { authenticationConfig: file, ...auth } });
  return stand;
}

async function whoami(server: TestApiServer, token: string): Promise<unknown> {
  const answer = await server.call({ method: 'POST', path: WHOAMI, body: {}, as: { token } });
  return answer.code === 201 ? at(answer.json, 'status', 'userInfo') : answer.code;
}

it('tokens of each issuer are their users’, and only where the rules hold', async () => {
  robots.issuerName = 'https://robots.example';
  await write([byExpression(), byDiscovery()]);
  const server = await start();
  const mine = people.token(key, { roles: ['dev'], team: 'x' });
  await expect
    .poll(() => whoami(server, mine))
    .toEqual({
      username: 'people:jane',
      groups: ['role:dev', 'system:authenticated'],
      extra: { 'example.org/team': ['x'] },
    });
  await expect
    .poll(() => whoami(server, robots.token(key, { sub: 'r2' })))
    .toMatchObject({ username: 'robot:r2', groups: ['system:authenticated'] });
  expect(await whoami(server, people.token(key, { sub: 'root' }))).toBe(401);
  expect(await whoami(server, people.token(key, { aud: 'b' }))).toBe(401);
  expect(await whoami(server, people.token(key, { iss: 'https://others.example' }))).toBe(401);
  const review = await server.admit('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
    spec: { token: people.token(key, { sub: 'root' }) },
  });
  expect(at(review, 'status', 'error')).toContain('root is nobody');
});

it('a credential is not needed for the paths of the conditions, and is for all others', async () => {
  await write([], { anonymous: { enabled: true, conditions: [{ path: '/livez' }, { path: '/api/v1/namespaces' }] } });
  const server = await start();
  const code = async (path: string): Promise<number> => (await server.call({ path })).code;
  expect(await code('/livez')).toBe(200);
  expect(await code('/livez/ping')).toBe(401);
  expect(await code('/version')).toBe(401);
  // Anonymous, whom RBAC then refuses.
  expect(await code('/api/v1/namespaces')).toBe(403);
  expect(await code('/api/v1/nodes')).toBe(401);
});

it('the file is read again when it changes; one that is not valid changes nothing', async () => {
  await write([byExpression()], { anonymous: { enabled: false } });
  const server = await start();
  await expect.poll(() => whoami(server, people.token(key))).toMatchObject({ username: 'people:jane' });
  const logged = (text: string) => expect.poll(() => server.lines.some((line) => line.includes(text))).toBe(true);
  await writeFile(file, 'kind: Nothing');
  await logged('no kind "Nothing" is registered');
  await write([byExpression()], { anonymous: { enabled: true } });
  await logged('anonymous: Forbidden: changed from initial configuration file');
  await write([{ ...byExpression(), claimMappings: {} }], { anonymous: { enabled: false } });
  await logged('jwt[0].claimMappings.username: Required value: claim or expression is required');
  expect(await whoami(server, people.token(key))).toMatchObject({ username: 'people:jane' });
  // Until all of the new issuers have answered, those from before count.
  robots.issuerName = 'https://robots.example';
  robots.isUp = false;
  await write([byDiscovery()], { anonymous: { enabled: false } });
  await logged('tokens of https://robots.example are refused until it answers');
  expect(await whoami(server, people.token(key))).toMatchObject({ username: 'people:jane' });
  robots.isUp = true;
  server.clock.elapse(10_000);
  await expect.poll(() => whoami(server, robots.token(key))).toMatchObject({ username: 'robot:jane' });
  expect(await whoami(server, people.token(key))).toBe(401);
});

it('a file that cannot be used is named, and the server does not start', async () => {
  const refused = (why: string, auth: AuthOptions) => expect(start(auth)).rejects.toThrow(why);
  await write([]);
  const oidc = { issuerUrl: people.url, clientId: 'kubernetes' };
  await refused('authentication-config file and oidc-* flags are mutually exclusive', { oidc });
  await write([], { anonymous: { enabled: true } });
  const both =
    '--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file';
  await refused(both, { anonymousAuth: true });
  const opened =
    (path = file) =>
    () =>
      openAuthentication(path, [], { clock: systemClock, log: () => undefined });
  await write([{ ...byExpression(), claimMappings: {} }]);
  expect(opened()).toThrow('invalid authentication configuration: jwt[0].claimMappings.username: Required value');
  await writeFile(file, '');
  expect(opened()).toThrow(`failed to load authentication configuration from file "${file}": empty config data`);
  const missing = join(directory, 'missing');
  expect(opened(missing)).toThrow(`failed to load authentication configuration from file "${missing}": ENOENT`);
});
