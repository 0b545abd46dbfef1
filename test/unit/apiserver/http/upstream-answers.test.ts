// Requests that are wrong in some way, beside what kube-apiserver 1.34.2 answered to the same: code, type and message.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at, TestApiServer } from '../../../support/api-server.ts';

let stand: TestApiServer;
beforeAll(async () => {
  stand = await TestApiServer.start();
  await stand.admit('POST', MAPS, { metadata: { name: 'map' }, data: { a: 'b' } });
});
afterAll(() => stand.stop());

const MAPS = '/api/v1/namespaces/default/configmaps';
const PLAIN = 'text/plain; charset=utf-8';
const NOT_ALLOWED = 'the server does not allow this method on the requested resource';
const NO_RESOURCE = 'the server could not find the requested resource';
const NO_BODY = "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)";

describe('a path that there is not', () => {
  it.each([
    ['GET', '/foo'],
    ['PUT', '/foo'],
    ['GET', '/apis/foo/v1'],
    ['GET', '/livez/foo'],
    ['GET', '/openapi/v2/x'],
    ['GET', '//api/v1/pods'],
  ])('%s %s is 404 in plain text', async (method, path) => {
    const { code, text, headers } = await stand.call({ method, path, as: stand.admin });
    expect([code, headers['content-type'], text]).toEqual([404, PLAIN, '404 page not found\n']);
  });

  it.each([
    ['GET', '/apis/apps/v2'],
    ['GET', '/api/v2'],
    ['GET', '/api/v1/foo'],
  ])('%s %s, of a group that is there, is a Status', async (method, path) => {
    const { code, json } = await stand.call({ method, path, as: stand.admin });
    expect([code, at(json, 'message')]).toEqual([404, NO_RESOURCE]);
  });
});

it('the index has every path', async () => {
  const { code, json, text } = await stand.call({ path: '/', as: stand.admin });
  const paths = at(json, 'paths');
  expect([code, text.startsWith('{\n  "paths": [\n    "/.well-known/openid-configuration",\n')]).toEqual([200, true]);
  for (const path of [
    '/api/v1',
    '/apis/',
    '/apis/apps',
    '/apis/apps/v1',
    '/readyz/shutdown',
    '/openapi/v3',
    '/version',
  ]) {
    expect(paths).toContain(path);
  }
  expect(paths).not.toContain('/livez/shutdown');
});

it('health has the checks of kube-apiserver, and each has a path', async () => {
  const lines = async (path: string): Promise<string[]> =>
    (await stand.call({ path, as: stand.admin })).text.trimEnd().split('\n');
  const hooks = [
    ...['start-apiserver-admission-initializer', 'generic-apiserver-start-informers'],
    ...['start-apiextensions-informers', 'start-apiextensions-controllers', 'crd-informer-synced'],
    ...['bootstrap-controller', 'start-system-namespaces-controller', 'start-service-ip-repair-controllers'],
    ...['rbac/bootstrap-roles', 'scheduling/bootstrap-system-priority-classes'],
    ...['start-cluster-authentication-info-controller', 'start-kube-aggregator-informers'],
    ...['start-kube-apiserver-identity-lease-controller'],
    ...['start-kube-apiserver-identity-lease-garbage-collector'],
    ...['apiservice-registration-controller', 'apiservice-status-local-available-controller'],
    ...['apiservice-status-remote-available-controller', 'kube-apiserver-autoregistration'],
    ...['apiservice-openapi-controller', 'apiservice-openapiv3-controller', 'apiservice-discovery-controller'],
  ].map((name) => `poststarthook/${name}`);
  const checks = ['ping', 'log', 'etcd', ...hooks, 'autoregister-completion'];
  for (const root of ['/healthz', '/livez', '/readyz']) {
    const own = root === '/readyz' ? [...checks, 'informer-sync', 'etcd-readiness', 'shutdown'] : checks;
    const found = await lines(`${root}?verbose=1`);
    expect(found.filter((line) => line.startsWith('[+]poststarthook/'))).toHaveLength(24);
    expect(found).toEqual(expect.arrayContaining(own.map((name) => `[+]${name} ok`)));
    expect(found.at(-1)).toBe(`${root.slice(1)} check passed`);
    expect(await lines(`${root}/poststarthook/crd-informer-synced`)).toEqual(['ok']);
  }
});

it('what came of health checks is at /metrics/slis', async () => {
  await stand.call({ path: '/livez', as: stand.admin });
  const { text, headers } = await stand.call({ path: '/metrics/slis', as: stand.admin });
  expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(text).toContain('kubernetes_healthcheck{name="poststarthook/rbac/bootstrap-roles",type="livez"} 1\n');
  expect(text).toMatch(/^kubernetes_healthchecks_total\{name="etcd",status="success",type="livez"\} [1-9]\d*$/m);
});

describe('a request for a resource', () => {
  it.each<[method: string, path: string, code: number, message: string]>([
    ['OPTIONS', MAPS, 405, NOT_ALLOWED],
    ['TRACE', `${MAPS}/map`, 405, NOT_ALLOWED],
    ['PUT', '/api/v1/nodes', 405, NOT_ALLOWED],
    ['PATCH', '/api/v1/nodes', 405, NOT_ALLOWED],
    ['POST', MAPS, 400, `the object provided is unrecognized (must be of type ConfigMap): ${NO_BODY}`],
    ['PUT', `${MAPS}/map`, 400, `the object provided is unrecognized (must be of type ConfigMap): ${NO_BODY}`],
    ['GET', `${MAPS}?limit=x`, 400, 'strconv.ParseInt: parsing "x": invalid syntax'],
    ['GET', `${MAPS}?timeoutSeconds=x`, 400, 'strconv.ParseInt: parsing "x": invalid syntax'],
    [
      'GET',
      `${MAPS}?resourceVersion=x`,
      400,
      'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
    ],
    [
      'GET',
      `${MAPS}?sendInitialEvents=true`,
      422,
      'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list',
    ],
    [
      'GET',
      `${MAPS}?fieldSelector=a%3Db`,
      400,
      '"a" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ],
    ['GET', '/api/v1/pods?fieldSelector=a%3Db', 400, 'field label not supported: a'],
  ])('%s %s: %i %s', async (method, path, code, message) => {
    const answer = await stand.call({ method, path, as: stand.admin });
    expect([answer.code, at(answer.json, 'message')]).toEqual([code, message]);
  });

  it('has all objects where the limit is below zero', async () => {
    const { code, json } = await stand.call({ path: `${MAPS}?limit=-1`, as: stand.admin });
    expect([code, at(json, 'kind')]).toEqual([200, 'ConfigMapList']);
  });

  it('is warned about where its kind is deprecated', async () => {
    const { warnings } = await stand.call({ path: '/api/v1/componentstatuses', as: stand.admin });
    expect(warnings).toEqual(['299 - "v1 ComponentStatus is deprecated in v1.19+"']);
  });
});

describe('a JSON patch', () => {
  const patch = (...operations: readonly object[]) =>
    stand.call({
      ...{ method: 'PATCH', path: `${MAPS}/map?dryRun=All`, as: stand.admin, body: operations },
      headers: { 'content-type': 'application/json-patch+json' },
    });

  it.each([
    ['without a path', { op: 'add' }],
    ['with an operation that there is not', { op: 'foo', path: '/a' }],
    ['that removes what is not there', { op: 'remove', path: '/none' }],
    ['whose test fails', { op: 'test', path: '/data/a', value: 'c' }],
    ['into what is not there', { op: 'add', path: '/data/x/y/z', value: 'c' }],
  ])('%s is 422', async (_name, operation) => {
    const { code, json } = await patch(operation);
    expect([code, at(json, 'message')]).toEqual([
      422,
      'the server rejected our request due to an error in our request',
    ]);
  });

  it('replaces what is not there', async () => {
    const { code, json } = await patch({ op: 'replace', path: '/data/x', value: 'y' });
    expect([code, at(json, 'data')]).toEqual([200, { a: 'b', x: 'y' }]);
  });
});
