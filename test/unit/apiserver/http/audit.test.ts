// The audit log of a server over TLS: which events a request leaves, and what is in them.

import { readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { at, type Credentials, TestApiServer } from '../../../support/api-server.ts';

const POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: None
  users: [quiet]
- level: Metadata
  resources: [{group: "", resources: [secrets]}]
- level: RequestResponse
  omitStages: [RequestReceived]
  resources: [{group: "", resources: [configmaps]}]
- level: Request
  resources: [{group: "", resources: [pods]}]
- level: Metadata
  nonResourceURLs: [/version]
- level: Metadata
  resources: [{group: "", resources: [namespaces]}]
`;
const base = join(tmpdir(), `nodelet-audit-${process.pid}`);
const [policyFile, logPath] = [`${base}.yaml`, `${base}.log`];
const NS = '/api/v1/namespaces/default';
let stand: TestApiServer;
let alice: Credentials;

beforeAll(async () => {
  await writeFile(policyFile, POLICY);
  stand = await TestApiServer.start({ audit: { policyFile, logPath } });
  alice = await stand.certificate('alice', 'devs');
});
afterAll(async () => {
  await stand.stop();
  await rm(policyFile, { force: true });
  await rm(logPath, { force: true });
});

/** By its id, or its URI. */
async function eventsOf(id: string): Promise<readonly unknown[]> {
  const text = await readFile(logPath, 'utf8');
  const lines = text
    .split('\n')
    .filter((line) => line.includes(`"auditID":"${id}"`) || line.includes(`"requestURI":"${id}"`));
  return lines.map((line): unknown => JSON.parse(line));
}

/** The events of a request, once there are `count`. */
async function events(id: string, count: number): Promise<readonly unknown[]> {
  await vi.waitFor(async () => expect((await eventsOf(id)).length).toBeGreaterThanOrEqual(count));
  const found = await eventsOf(id);
  expect(found).toHaveLength(count);
  return found;
}

const stages = (found: readonly unknown[]): unknown[] => found.map((event) => at(event, 'stage'));

it('a request has its two events, with who, what, from where and how it ended', async () => {
  const headers = { 'audit-id': 'one', 'user-agent': 'test/1', 'x-forwarded-for': '10.1.2.3, nonsense' };
  const { code } = await stand.call({ path: '/version', as: alice, headers });
  expect(code).toBe(200);
  const [first, last] = await events('one', 2);
  const both = {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: 'one',
    requestURI: '/version',
    verb: 'get',
    user: { username: 'alice', groups: ['devs', 'system:authenticated'] },
    sourceIPs: ['10.1.2.3', '127.0.0.1'],
    userAgent: 'test/1',
    requestReceivedTimestamp: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
    stageTimestamp: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
  };
  expect(first).toEqual({ ...both, stage: 'RequestReceived' });
  expect(last).toEqual({
    ...both,
    stage: 'ResponseComplete',
    responseStatus: { metadata: {}, code: 200 },
    annotations: {
      'authorization.k8s.io/decision': 'allow',
      'authorization.k8s.io/reason': expect.stringMatching(/^RBAC: allowed by ClusterRoleBinding "system:/),
    },
  });
});

it('a refusal has its status, and an impersonation both identities', async () => {
  const path = `${NS}/pods/p`;
  expect((await stand.call({ path, as: alice, headers: { 'audit-id': 'no' } })).code).toBe(403);
  const refused = (await events('no', 2))[1];
  expect(at(refused, 'responseStatus')).toMatchObject({ code: 403, status: 'Failure', reason: 'Forbidden' });
  expect(at(refused, 'annotations', 'authorization.k8s.io/decision')).toBe('forbid');
  expect(at(refused, 'objectRef')).toEqual({ resource: 'pods', namespace: 'default', name: 'p', apiVersion: 'v1' });
  const headers = { 'audit-id': 'as', 'impersonate-user': 'alice', 'impersonate-group': 'devs' };
  await stand.call({ path, as: stand.admin, headers });
  const [received, complete] = await events('as', 2);
  expect(at(received, 'impersonatedUser')).toBeUndefined();
  expect(at(complete, 'user', 'groups', 0)).toBe('system:masters');
  expect(at(complete, 'impersonatedUser')).toEqual({ username: 'alice', groups: ['devs', 'system:authenticated'] });
});

it('a request without a valid credential has one event, with what was tried', async () => {
  const headers = { 'audit-id': 'no-credential' };
  expect((await stand.call({ path: `${NS}/pods`, headers })).code).toBe(401);
  const token = { 'audit-id': 'bad-token', authorization: 'Bearer nonsense' };
  expect((await stand.call({ path: `${NS}/pods`, headers: token })).code).toBe(401);
  const [event] = await events('no-credential', 1);
  expect([at(event, 'stage'), at(event, 'user')]).toEqual(['ResponseStarted', {}]);
  const messageOf = (one: unknown): unknown => at(one, 'responseStatus', 'message');
  expect(messageOf(event)).toBe('Authentication failed, no credentials provided');
  expect(messageOf((await events('bad-token', 1))[0])).toBe('Authentication failed, attempted: bearer');
});

it('a secret’s value is nowhere at the level Metadata', async () => {
  const value = Buffer.from('never-to-be-seen').toString('base64');
  const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: { key: value } };
  await stand.admit('POST', `${NS}/secrets`, body, { 'audit-id': 'secret' });
  await stand.admit('GET', `${NS}/secrets/s`, undefined, { 'audit-id': 'secret-get' });
  const patch = { 'content-type': 'application/merge-patch+json', 'audit-id': 'secret-patch' };
  await stand.admit('PATCH', `${NS}/secrets/s`, { data: { other: value } }, patch);
  expect(at((await events('secret', 2))[1], 'objectRef', 'name')).toBe('s');
  await events('secret-get', 2);
  await events('secret-patch', 2);
  const text = await readFile(logPath, 'utf8');
  expect(text).not.toContain(value);
  expect(text).not.toContain('never-to-be-seen');
});

it('request and response are there at the levels that want them, without managed fields', async () => {
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' }, data: { a: 'b' } };
  await stand.admit('POST', `${NS}/configmaps`, map, { 'audit-id': 'map' });
  const [created] = await events('map', 1);
  expect(at(created, 'requestObject')).toEqual(map);
  expect(at(created, 'responseObject', 'metadata', 'uid')).toEqual(expect.any(String));
  expect(at(created, 'responseObject', 'metadata', 'managedFields')).toBeUndefined();
  const type = { 'content-type': 'application/merge-patch+json' };
  await stand.admit('PATCH', `${NS}/configmaps/m`, { data: { c: 'd' } }, { ...type, 'audit-id': 'patch' });
  const [patched] = await events('patch', 1);
  expect(at(patched, 'requestObject')).toEqual({ data: { c: 'd' } });
  expect(at(patched, 'responseObject', 'data')).toEqual({ a: 'b', c: 'd' });
  await stand.admit('DELETE', `${NS}/configmaps/m`, undefined, { 'audit-id': 'gone' });
  const [gone] = await events('gone', 1);
  expect(at(gone, 'responseStatus')).toMatchObject({ code: 200, status: 'Success', details: { name: 'm' } });
});

it('a watch has an event when it begins and one when it ends', async () => {
  const path = `${NS}/configmaps?watch=1&timeoutSeconds=77`;
  const { close } = await stand.watch(path, stand.admin);
  const [started] = await events(path, 1);
  expect(at(started, 'responseStatus', 'code')).toBe(200);
  close();
  expect(stages(await events(path, 2))).toEqual(['ResponseStarted', 'ResponseComplete']);
});

it('plugins annotate', async () => {
  const labels = { 'pod-security.kubernetes.io/enforce': 'baseline' };
  await stand.admit('POST', '/api/v1/namespaces', { metadata: { name: 'strict', labels } });
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  await stand.admit('POST', '/api/v1/namespaces/strict/serviceaccounts', account);
  const spec = { hostNetwork: true, containers: [{ name: 'c', image: 'i' }] };
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec };
  const path = '/api/v1/namespaces/strict/pods';
  await stand.call({ method: 'POST', path, body, as: stand.admin, headers: { 'audit-id': 'plugin' } });
  const annotations = at((await events('plugin', 2))[1], 'annotations');
  expect(annotations).toMatchObject({ 'pod-security.kubernetes.io/enforce-policy': 'baseline:latest' });
});

it('what the policy does not want leaves nothing', async () => {
  const quiet = await stand.certificate('quiet');
  await stand.call({ path: '/version', as: quiet, headers: { 'audit-id': 'quiet' } });
  await stand.call({ path: '/version', as: alice, headers: { 'audit-id': 'after' } });
  await events('after', 2);
  expect(await eventsOf('quiet')).toEqual([]);
});
