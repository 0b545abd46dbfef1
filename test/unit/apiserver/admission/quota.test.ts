// LimitRanges and ResourceQuotas against a server: what is filled in, what is refused and with which words, and that
// figures stay right under concurrency, deletion and a restart of the count.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at, TestApiServer } from '../../../support/api-server.ts';

let stand: TestApiServer;
beforeAll(async () => {
  stand = await TestApiServer.start();
});
afterAll(() => stand.stop());

let bounds = 0;
const meta = (name: string): object => ({ metadata: { name } });

async function namespace(name: string): Promise<string> {
  await stand.admit('POST', '/api/v1/namespaces', { kind: 'Namespace', apiVersion: 'v1', ...meta(name) });
  const path = `/api/v1/namespaces/${name}`;
  await stand.admit('POST', `${path}/serviceaccounts`, {
    kind: 'ServiceAccount',
    apiVersion: 'v1',
    ...meta('default'),
  });
  return path;
}

const quota = (name: string, hard: object, more: object = {}): object => ({
  kind: 'ResourceQuota',
  apiVersion: 'v1',
  ...meta(name),
  spec: { hard, ...more },
});

const pod = (name: string, resources: object = {}, more: object = {}): object => ({
  kind: 'Pod',
  apiVersion: 'v1',
  ...meta(name),
  spec: { containers: [{ name: 'c', image: 'x:1', resources }], ...more },
});

const post = async (path: string, body: object): Promise<string> => {
  const { code, json, text } = await stand.call({ method: 'POST', path, body, as: stand.admin });
  return code < 300 ? 'created' : `${code} ${String(at(json, 'message') ?? text)}`;
};

const used = async (ns: string, name: string): Promise<unknown> =>
  at(await stand.admit('GET', `${ns}/resourcequotas/${name}`), 'status', 'used');

describe('a ResourceQuota', () => {
  it('refuses what goes beyond it, in the words of kube-apiserver', async () => {
    const ns = await namespace('words');
    await stand.admit('POST', `${ns}/resourcequotas`, quota('q', { pods: '2', 'requests.cpu': '1' }));
    expect(await used(ns, 'q')).toEqual({ pods: '0', 'requests.cpu': '0' });
    const cpu = (amount: string): object => ({ requests: { cpu: amount } });
    expect(await post(`${ns}/pods`, pod('a', cpu('600m')))).toBe('created');
    expect(await post(`${ns}/pods`, pod('b', cpu('500m')))).toBe(
      '403 pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1',
    );
    expect(await post(`${ns}/pods`, pod('b'))).toBe(
      '403 pods "b" is forbidden: failed quota: q: must specify requests.cpu for: c',
    );
    expect(await post(`${ns}/pods`, pod('b', cpu('400m')))).toBe('created');
    expect(await post(`${ns}/pods`, pod('c', cpu('0')))).toBe(
      '403 pods "c" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2',
    );
    expect(await used(ns, 'q')).toEqual({ pods: '2', 'requests.cpu': '1' });
    await stand.admit('DELETE', `${ns}/pods/a`);
    expect(await used(ns, 'q')).toEqual({ pods: '1', 'requests.cpu': '400m' });
    await stand.admit(
      'PATCH',
      `${ns}/resourcequotas/q`,
      { spec: { hard: { pods: '5', 'count/pods': '9' } } },
      {
        'content-type': 'application/merge-patch+json',
      },
    );
    expect(await used(ns, 'q')).toEqual({ pods: '1', 'requests.cpu': '400m', 'count/pods': '1' });
  });

  it('is not overrun by requests at the same time', async () => {
    const ns = await namespace('rush');
    await stand.admit('POST', `${ns}/resourcequotas`, quota('q', { pods: '5' }));
    const results = await Promise.all(Array.from({ length: 20 }, (_, i) => post(`${ns}/pods`, pod(`p${i}`))));
    expect(results.filter((result) => result === 'created')).toHaveLength(5);
    expect(await used(ns, 'q')).toEqual({ pods: '5' });
  });

  it('counts objects, services, storage by class, and only once what a dry run shows', async () => {
    const ns = await namespace('kinds');
    const hard = {
      'count/secrets': '1',
      configmaps: '1',
      'services.nodeports': '1',
      'services.loadbalancers': '0',
      'requests.storage': '10Gi',
      'gold.storageclass.storage.k8s.io/requests.storage': '5Gi',
      'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '1',
    };
    await stand.admit('POST', `${ns}/resourcequotas`, quota('q', hard));
    const secret = (name: string): object => ({ kind: 'Secret', apiVersion: 'v1', ...meta(name) });
    expect(await post(`${ns}/secrets?dryRun=All`, secret('a'))).toBe('created');
    expect(await used(ns, 'q')).toMatchObject({ 'count/secrets': '0' });
    expect(await post(`${ns}/secrets`, secret('a'))).toBe('created');
    expect(await post(`${ns}/secrets`, secret('b'))).toContain(
      'exceeded quota: q, requested: count/secrets=1, used: count/secrets=1, limited: count/secrets=1',
    );
    expect(await post(`${ns}/configmaps`, { kind: 'ConfigMap', apiVersion: 'v1', ...meta('a') })).toBe('created');
    const service = (name: string, type: string): object => ({
      kind: 'Service',
      apiVersion: 'v1',
      ...meta(name),
      spec: { type, ports: [{ port: 80 }] },
    });
    expect(await post(`${ns}/services`, service('np', 'NodePort'))).toBe('created');
    expect(await post(`${ns}/services`, service('lb', 'LoadBalancer'))).toContain(
      'requested: services.loadbalancers=1,services.nodeports=1, used: services.loadbalancers=0,services.nodeports=1, limited: services.loadbalancers=0,services.nodeports=1',
    );
    const claim = (name: string, storage: string): object => ({
      kind: 'PersistentVolumeClaim',
      apiVersion: 'v1',
      ...meta(name),
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'gold', resources: { requests: { storage } } },
    });
    expect(await post(`${ns}/persistentvolumeclaims`, claim('big', '6Gi'))).toContain(
      'requested: gold.storageclass.storage.k8s.io/requests.storage=6Gi, used: gold.storageclass.storage.k8s.io/requests.storage=0, limited: gold.storageclass.storage.k8s.io/requests.storage=5Gi',
    );
    expect(await post(`${ns}/persistentvolumeclaims`, claim('small', '4Gi'))).toBe('created');
    expect(await used(ns, 'q')).toEqual({
      'count/secrets': '1',
      configmaps: '1',
      'services.nodeports': '1',
      'services.loadbalancers': '0',
      'requests.storage': '4Gi',
      'gold.storageclass.storage.k8s.io/requests.storage': '4Gi',
      'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '1',
    });
  });

  it('counts by scope, and a pod that has ended no more', async () => {
    const ns = await namespace('scopes');
    await stand.admit('POST', `${ns}/resourcequotas`, quota('best', { pods: '1' }, { scopes: ['BestEffort'] }));
    await stand.admit('POST', `${ns}/resourcequotas`, quota('short', { pods: '1' }, { scopes: ['Terminating'] }));
    const critical = { scopeName: 'PriorityClass', operator: 'In', values: ['system-node-critical'] };
    const selector = { scopeSelector: { matchExpressions: [critical] } };
    await stand.admit('POST', `${ns}/resourcequotas`, quota('critical', { pods: '0' }, selector));
    expect(await post(`${ns}/pods`, pod('a'))).toBe('created');
    expect(await post(`${ns}/pods`, pod('b'))).toContain('exceeded quota: best, requested: pods=1');
    expect(await post(`${ns}/pods`, pod('b', { requests: { cpu: '1m' } }, { activeDeadlineSeconds: 5 }))).toBe(
      'created',
    );
    expect(await post(`${ns}/pods`, pod('c', {}, { priorityClassName: 'system-node-critical' }))).toContain(
      'exceeded quota: best',
    );
    expect(
      await post(`${ns}/pods`, pod('c', { requests: { cpu: '1m' } }, { priorityClassName: 'system-node-critical' })),
    ).toContain('exceeded quota: critical, requested: pods=1, used: pods=0, limited: pods=0');
    expect([await used(ns, 'best'), await used(ns, 'short')]).toEqual([{ pods: '1' }, { pods: '1' }]);
    await stand.admit(
      'PATCH',
      `${ns}/pods/a/status`,
      { status: { phase: 'Succeeded' } },
      {
        'content-type': 'application/merge-patch+json',
      },
    );
    expect(await used(ns, 'best')).toEqual({ pods: '0' });
  });

  it('that comes later counts what is there', async () => {
    const ns = await namespace('later');
    for (const name of ['a', 'b']) expect(await post(`${ns}/pods`, pod(name))).toBe('created');
    await stand.admit('POST', `${ns}/resourcequotas`, quota('q', { pods: '2' }));
    expect(await post(`${ns}/pods`, pod('c'))).toContain('used: pods=2');
    expect(await used(ns, 'q')).toEqual({ pods: '2' });
  });

  it.each([
    [
      { hard: { nonsense: '1' } },
      'spec.hard[nonsense]: Invalid value: "nonsense": must be a standard resource for quota',
    ],
    [{ hard: { pods: '1500m' } }, 'spec.hard[pods]: Invalid value: "1500m": must be an integer'],
    [{ hard: { cpu: '-1' } }, 'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    [{ hard: {}, scopes: ['Nowhere'] }, 'spec.scopes: Invalid value: ["Nowhere"]: unsupported scope'],
    [
      { hard: { cpu: '1' }, scopes: ['BestEffort'] },
      'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource',
    ],
    [
      { hard: {}, scopes: ['Terminating', 'NotTerminating'] },
      'spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes',
    ],
    [
      { hard: {}, scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In' }] } },
      "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
    ],
  ])('with %j is refused', async (spec, message) => {
    const body = { kind: 'ResourceQuota', apiVersion: 'v1', ...meta('bad'), spec };
    expect(await post('/api/v1/namespaces/default/resourcequotas', body)).toBe(
      `422 ResourceQuota "bad" is invalid: ${message}`,
    );
  });
});

describe('a LimitRange', () => {
  const range = (name: string, ...limits: object[]): object => ({
    kind: 'LimitRange',
    apiVersion: 'v1',
    ...meta(name),
    spec: { limits },
  });

  it('gives its defaults to containers, and says so', async () => {
    const ns = await namespace('defaults');
    const limit = { type: 'Container', default: { memory: '512Mi' }, max: { cpu: '2' }, min: { cpu: '1m' } };
    const stored = await stand.admit('POST', `${ns}/limitranges`, range('r', limit));
    expect(at(stored, 'spec', 'limits', 0)).toMatchObject({
      default: { memory: '512Mi', cpu: '2' },
      defaultRequest: { memory: '512Mi', cpu: '2' },
    });
    const made = await stand.admit('POST', `${ns}/pods`, pod('p', { requests: { cpu: '1' } }));
    expect(at(made, 'spec', 'containers', 0, 'resources')).toEqual({
      requests: { cpu: '1', memory: '512Mi' },
      limits: { memory: '512Mi', cpu: '2' },
    });
    expect(at(made, 'metadata', 'annotations', 'kubernetes.io/limit-ranger')).toBe(
      'LimitRanger plugin set: memory request for container c; cpu, memory limit for container c',
    );
  });

  it.each([
    [
      { type: 'Container', max: { memory: '1Gi' } },
      { limits: { memory: '1536Mi' } },
      'maximum memory usage per Container is 1Gi, but limit is 1536Mi',
    ],
    [
      { type: 'Container', min: { memory: '500Mi' } },
      { requests: { memory: '100Mi' } },
      'minimum memory usage per Container is 500Mi, but request is 100Mi',
    ],
    [{ type: 'Pod', max: { cpu: '1' } }, {}, 'maximum cpu usage per Pod is 1.  No limit is specified'],
    [{ type: 'Pod', min: { cpu: '1' } }, {}, 'minimum cpu usage per Pod is 1.  No request is specified'],
    [
      { type: 'Container', maxLimitRequestRatio: { cpu: '2' } },
      { requests: { cpu: '100m' }, limits: { cpu: '500m' } },
      'cpu max limit to request ratio per Container is 2, but provided ratio is 5.000000',
    ],
  ])('%j refuses %j', async (limit, resources, message) => {
    const ns = await namespace(`bounds-${bounds++}`);
    await stand.admit('POST', `${ns}/limitranges`, range('r', limit));
    expect(await post(`${ns}/pods`, pod('p', resources))).toBe(`403 pods "p" is forbidden: ${message}`);
  });

  it('bounds claims', async () => {
    const ns = await namespace('claims');
    const limit = { type: 'PersistentVolumeClaim', max: { storage: '2Gi' }, min: { storage: '1Gi' } };
    await stand.admit('POST', `${ns}/limitranges`, range('r', limit));
    const claim = (storage: string): object => ({
      kind: 'PersistentVolumeClaim',
      apiVersion: 'v1',
      ...meta('c'),
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
    });
    expect(await post(`${ns}/persistentvolumeclaims`, claim('3Gi'))).toContain(
      'is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi',
    );
    expect(await post(`${ns}/persistentvolumeclaims`, claim('512Mi'))).toContain('but request is 512Mi');
    expect(await post(`${ns}/persistentvolumeclaims`, claim('1Gi'))).toBe('created');
  });

  it.each([
    [
      { type: 'Nothing' },
      'spec.limits[0].type: Invalid value: "Nothing": must be a standard limit type or fully qualified',
    ],
    [
      { type: 'Pod', default: { cpu: '1' } },
      "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
    ],
    [
      { type: 'Pod', min: { cpu: '2' }, max: { cpu: '1' } },
      'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
    ],
    [
      { type: 'PersistentVolumeClaim' },
      'spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided',
    ],
    [
      { type: 'Container', max: { nonsense: '1' } },
      'spec.limits[0].max[nonsense]: Invalid value: "nonsense": must be a standard resource for containers',
    ],
  ])('with %j is refused', async (limit, message) => {
    const answer = await post('/api/v1/namespaces/default/limitranges', range('bad', limit));
    expect(answer).toContain('422 LimitRange "bad" is invalid: ');
    expect(answer).toContain(message);
  });
});
