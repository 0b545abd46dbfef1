// Quotas and limit ranges as upstream's conformance tests use them: what a namespace uses is counted at once, released at
// once, and never exceeded.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../support/api-server.ts';
import { Client, type Fields } from './client.ts';

let client: Client;
beforeAll(async () => {
  client = await Client.start();
});
afterAll(() => client.stop());

const pathOf = (namespace: string, plural: string, root = '/api/v1'): string =>
  `${root}/namespaces/${namespace}/${plural}`;
const object = (kind: string, name: string, fields: Fields = {}, apiVersion = 'v1'): object => ({
  ...{ apiVersion, kind, metadata: { name, labels: { test: 'quota' } } },
  ...fields,
});
const quota = (name: string, hard: Fields, more: Fields = {}): object =>
  object('ResourceQuota', name, { spec: { hard, ...more } });
const pod = (name: string, resources: Fields = {}, more: Fields = {}): object =>
  object('Pod', name, { spec: { containers: [{ name: 'c', image: 'image', resources }], ...more } });

/** A namespace with quotas; what they say is used, by quota. */
async function namespaceWith(name: string, ...quotas: object[]) {
  await client.namespace(name);
  for (const each of quotas) await client.create(pathOf(name, 'resourcequotas'), each);
  return async (which: string): Promise<unknown> =>
    at(await client.get(pathOf(name, `resourcequotas/${which}`)), 'status', 'used');
}

const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'image' }] } };

describe('a ResourceQuota', () => {
  it('has its status at once, with itself counted', async () => {
    const used = await namespaceWith('quota-status', quota('all', { resourcequotas: '1', pods: '5', cpu: '1' }));
    expect(await used('all')).toEqual({ resourcequotas: '1', pods: '0', cpu: '0' });
  });

  it.each<[string, string, Fields, string, string]>([
    ['configmaps', 'ConfigMap', { data: { a: 'b' } }, 'v1', 'configmaps'],
    ['secrets', 'Secret', { stringData: { a: 'b' } }, 'v1', 'secrets'],
    ['services', 'Service', { spec: { type: 'ClusterIP', ports: [{ port: 80 }] } }, 'v1', 'services'],
    [
      'replicationcontrollers',
      'ReplicationController',
      { spec: { replicas: 0, template } },
      'v1',
      'replicationcontrollers',
    ],
    [
      ...(['replicasets', 'ReplicaSet'] as const),
      { spec: { replicas: 0, selector: { matchLabels: { a: 'b' } }, template } },
      ...(['apps/v1', 'count/replicasets.apps'] as const),
    ],
  ])('captures the life of %s', async (plural, kind, fields, apiVersion, resource) => {
    const namespace = `quota-${plural}`;
    const used = await namespaceWith(namespace, quota('life', { [resource]: '1' }));
    const place = pathOf(namespace, plural, apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`);
    await client.create(place, object(kind, 'one', fields, apiVersion));
    expect(await used('life')).toEqual({ [resource]: '1' });
    expect(await client.refusal('POST', place, object(kind, 'two', fields, apiVersion))).toEqual([403, 'Forbidden']);
    await client.delete(`${place}/one?propagationPolicy=Background`);
    expect(await used('life')).toEqual({ [resource]: '0' });
  });

  it('captures the life of a pod, its requests and extended resources, and refuses what goes beyond', async () => {
    const hard = {
      pods: '5',
      cpu: '1',
      memory: '500Mi',
      'ephemeral-storage': '50Gi',
      'requests.example.com/dongle': '3',
    };
    const used = await namespaceWith('quota-pod', quota('life', hard));
    const resources = { cpu: '500m', memory: '252Mi', 'ephemeral-storage': '30Gi' };
    const dongles = (count: string): Fields => ({
      requests: { ...resources, 'example.com/dongle': count },
      limits: { 'example.com/dongle': count },
    });
    const pods = pathOf('quota-pod', 'pods');
    await client.create(pods, pod('one', dongles('2')));
    const one = {
      pods: '1',
      cpu: '500m',
      memory: '252Mi',
      'ephemeral-storage': '30Gi',
      'requests.example.com/dongle': '2',
    };
    expect(await used('life')).toEqual(one);
    expect(await client.refusal('POST', pods, pod('cpu', { requests: { ...resources, cpu: '600m' } }))).toEqual([
      403,
      'Forbidden',
    ]);
    expect(await client.refusal('POST', pods, pod('dongles', dongles('2')))).toEqual([403, 'Forbidden']);
    const more = [{ op: 'replace', path: '/spec/containers/0/resources/requests/cpu', value: '600m' }];
    expect(await client.refusal('PATCH', `${pods}/one`, more, 'json')).toEqual([422, 'Invalid']);
    expect(await used('life')).toEqual(one);
    await client.delete(`${pods}/one?gracePeriodSeconds=0`);
    const none = { pods: '0', cpu: '0', memory: '0', 'ephemeral-storage': '0', 'requests.example.com/dongle': '0' };
    expect(await used('life')).toEqual(none);
  });

  it('counts what its scope names: best effort or not, terminating or not', async () => {
    const hard = { pods: '5' };
    const used = await namespaceWith(
      'quota-scopes',
      ...['BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating'].map((scope) =>
        quota(scope.toLowerCase(), hard, { scopes: [scope] }),
      ),
    );
    const counts = async (): Promise<unknown[]> => {
      const names = ['besteffort', 'notbesteffort', 'terminating', 'notterminating'];
      return Promise.all(names.map(async (name) => at(await used(name), 'pods')));
    };
    const pods = pathOf('quota-scopes', 'pods');
    expect(await counts()).toEqual(['0', '0', '0', '0']);
    await client.create(pods, pod('best-effort'));
    expect(await counts()).toEqual(['1', '0', '0', '1']);
    await client.delete(`${pods}/best-effort?gracePeriodSeconds=0`);
    expect(await counts()).toEqual(['0', '0', '0', '0']);
    await client.create(pods, pod('burstable', { requests: { cpu: '100m' } }, { activeDeadlineSeconds: 3600 }));
    expect(await counts()).toEqual(['0', '1', '1', '0']);
    await client.delete(`${pods}/burstable?gracePeriodSeconds=0`);
    expect(await counts()).toEqual(['0', '0', '0', '0']);
  });

  it('is updated, its status through the subresource alone, and is gone when deleted', async () => {
    await namespaceWith('quota-update', quota('own', { cpu: '1', memory: '500Mi' }));
    const path = pathOf('quota-update', 'resourcequotas/own');
    const stored = await client.get(path);
    await client.update(path, { ...Object(stored), spec: { hard: { cpu: '2', memory: '1Gi' } } });
    expect(at(await client.get(path), 'spec', 'hard')).toEqual({ cpu: '2', memory: '1Gi' });
    await expect.poll(async () => at(await client.get(path), 'status', 'hard')).toEqual({ cpu: '2', memory: '1Gi' });
    const patched = await client.patch(`${path}/status`, {
      spec: { hard: { cpu: '9' } },
      status: { hard: { cpu: '3' } },
    });
    expect([at(patched, 'spec', 'hard', 'cpu'), at(patched, 'status', 'hard', 'cpu')]).toEqual(['2', '3']);
    await client.delete(path);
    expect(await client.refusal('GET', path)).toEqual([404, 'NotFound']);
  });

  it('surfaces in the refusal of a pod what is exceeded', async () => {
    await namespaceWith('quota-message', quota('condition-test', { pods: '2' }));
    const pods = pathOf('quota-message', 'pods');
    for (const name of ['one', 'two']) await client.create(pods, pod(name));
    const { code, json } = await client.send('POST', pods, pod('three'));
    expect([code, at(json, 'message')]).toEqual([
      403,
      'pods "three" is forbidden: exceeded quota: condition-test, requested: pods=1, used: pods=2, limited: pods=2',
    ]);
  });
});

describe('a LimitRange', () => {
  it('gives defaults to pods, bounds them, and holds as it is now', async () => {
    await client.namespace('limits');
    const sizes = { cpu: '100m', memory: '200Mi', 'ephemeral-storage': '200Gi' };
    const limit = {
      type: 'Container',
      ...{
        min: { ...sizes, cpu: '50m', memory: '100Mi' },
        max: { cpu: '500m', memory: '500Mi', 'ephemeral-storage': '500Gi' },
      },
      ...{ default: { cpu: '500m', memory: '500Mi', 'ephemeral-storage': '500Gi' }, defaultRequest: sizes },
    };
    const ranges = pathOf('limits', 'limitranges');
    await client.create(ranges, object('LimitRange', 'sizes', { spec: { limits: [limit] } }));
    const pods = pathOf('limits', 'pods');
    const resourcesOf = async (name: string): Promise<unknown> =>
      at(await client.get(`${pods}/${name}`), 'spec', 'containers', 0, 'resources');
    await client.create(pods, pod('defaults'));
    expect(await resourcesOf('defaults')).toEqual({ requests: sizes, limits: limit.default });
    await client.create(pods, pod('partial', { requests: { cpu: '300m' }, limits: { memory: '300Mi' } }));
    expect(await resourcesOf('partial')).toEqual({
      // A request that is not made is what the limit is.
      requests: { ...sizes, cpu: '300m', memory: '300Mi' },
      limits: { ...limit.default, memory: '300Mi' },
    });
    const small = pod('small', { requests: { cpu: '10m' } });
    expect(await client.refusal('POST', pods, small)).toEqual([403, 'Forbidden']);
    expect(await client.refusal('POST', pods, pod('large', { limits: { cpu: '600m' } }))).toEqual([403, 'Forbidden']);
    await client.patch(`${ranges}/sizes`, [{ op: 'replace', path: '/spec/limits/0/min/cpu', value: '9m' }], 'json');
    await client.create(pods, small);
    await client.delete(`${ranges}/sizes`);
    await client.create(pods, pod('large', { limits: { cpu: '600m' } }));
    expect(await resourcesOf('large')).toEqual({ requests: { cpu: '600m' }, limits: { cpu: '600m' } });
  });

  it('is listed over all namespaces, patched, and deleted as a collection of its own namespace', async () => {
    for (const namespace of ['limits-a', 'limits-b']) {
      await client.namespace(namespace);
      const range = { spec: { limits: [{ type: 'Container', max: { cpu: '500m' } }] } };
      await client.create(pathOf(namespace, 'limitranges'), object('LimitRange', `of-${namespace}`, range));
    }
    const all = '/api/v1/limitranges?labelSelector=test%3Dquota';
    expect(await client.names(all)).toEqual(expect.arrayContaining(['of-limits-a', 'of-limits-b']));
    const path = pathOf('limits-a', 'limitranges');
    const patched = await client.patch(
      `${path}/of-limits-a`,
      { spec: { limits: [{ type: 'Container', max: { cpu: '40m' } }] } },
      'strategic',
    );
    expect(at(patched, 'spec', 'limits', 0, 'max', 'cpu')).toBe('40m');
    await client.delete(`${path}?labelSelector=test%3Dquota`);
    expect(await client.names(all)).not.toContain('of-limits-a');
    expect(await client.names(all)).toContain('of-limits-b');
  });
});
