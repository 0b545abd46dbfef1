// The controller of quotas: what is counted, as tables; and when it counts, with stores in the place of list-watches.

import { describe, expect, it } from 'vitest';
import { type Identified, type ReadableStore, Store } from '../../../../client/store.ts';
import type { Pod, Service } from '../../../../client/types.ts';
import { ResourceQuotaController } from '../../../../controlplane/controllers/resourcequota/resourcequota.ts';
import {
  countedResources,
  countsOtherwise,
  isUncounted,
  quotaStatus,
  type ResourceQuota,
  resourceKey,
  usedBy,
} from '../../../../controlplane/controllers/resourcequota/status.ts';
import type { Counted } from '../../../../lib/quota/objects.ts';
import { apiError } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, makePod, meta } from '../environment.ts';

type Text = Record<string, string>;

function quotaOf(hard: Text, status?: ResourceQuota['status'], spec: object = {}): ResourceQuota {
  return {
    metadata: meta('limits', 'demo'),
    spec: { hard, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}
const podOf = (name: string, cpu: string, extra: Partial<Pod> = {}): Pod =>
  makePod(name, { containers: [{ name: 'c', resources: { requests: { cpu }, limits: { memory: '64Mi' } } }] }, extra);
const pods = (...list: readonly Pod[]) => ({
  resource: { group: '', plural: 'pods' },
  objects: list.map((pod): Counted => ({ kind: 'pod', pod })),
});
const ENDED: Partial<Pod> = { status: { phase: 'Succeeded' } };

describe('what a quota counts', () => {
  it('is named by its limits', () => {
    const hard = {
      'requests.cpu': '1',
      pods: '2',
      'services.nodeports': '1',
      'gold.storageclass.storage.k8s.io/requests.storage': '1Gi',
      secrets: '3',
      'count/deployments.apps': '4',
    };
    expect(countedResources({ hard }).map(resourceKey)).toEqual([
      'pods',
      'services',
      'persistentvolumeclaims',
      'secrets',
      'deployments.apps',
    ]);
  });

  const HARD = { pods: '5', 'count/pods': '9', 'requests.cpu': '2', 'limits.memory': '1Gi' };
  it.each<[string, object, readonly Pod[], Text]>([
    ['nothing', {}, [], { pods: '0', 'count/pods': '0', 'requests.cpu': '0', 'limits.memory': '0' }],
    [
      'two pods',
      {},
      [podOf('a', '250m'), podOf('b', '1')],
      { pods: '2', 'count/pods': '2', 'requests.cpu': '1250m', 'limits.memory': '128Mi' },
    ],
    [
      'one that has ended is an object, and uses nothing',
      {},
      [podOf('a', '250m', ENDED)],
      { pods: '0', 'count/pods': '1', 'requests.cpu': '0', 'limits.memory': '0' },
    ],
    [
      'those in its scopes alone',
      { scopes: ['Terminating'] },
      [podOf('a', '1'), makePod('b', { activeDeadlineSeconds: 5, containers: [] })],
      { pods: '1', 'count/pods': '1', 'requests.cpu': '0', 'limits.memory': '0' },
    ],
    [
      'those of a priority class',
      { scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }] } },
      [podOf('a', '1'), makePod('b', { priorityClassName: 'high' })],
      { pods: '1', 'count/pods': '1', 'requests.cpu': '0', 'limits.memory': '0' },
    ],
  ])('%s', (_what, spec, list, used) => {
    const quota = quotaOf(HARD, undefined, spec);
    const { spec: whole = {} } = quota;
    expect(quotaStatus(quota, usedBy(whole, [pods(...list)]))).toEqual({ hard: HARD, used });
  });
});

describe('a status', () => {
  const used = usedBy({ hard: { 'requests.cpu': '2' } }, [pods(podOf('a', '1'))]);
  it.each<[string, ResourceQuota, Text | undefined]>([
    [
      'that says the same in other words is left alone',
      quotaOf({ 'requests.cpu': '2' }, { hard: { 'requests.cpu': '2000m' }, used: { 'requests.cpu': '1000m' } }),
      undefined,
    ],
    [
      'of another limit is written',
      quotaOf({ 'requests.cpu': '2' }, { hard: { 'requests.cpu': '3' }, used: { 'requests.cpu': '1' } }),
      { 'requests.cpu': '1' },
    ],
    [
      'of another count is written',
      quotaOf({ 'requests.cpu': '2' }, { hard: { 'requests.cpu': '2' }, used: { 'requests.cpu': '2' } }),
      { 'requests.cpu': '1' },
    ],
    [
      'loses what is no longer limited',
      quotaOf(
        { 'requests.cpu': '2' },
        { hard: { 'requests.cpu': '2', pods: '1' }, used: { 'requests.cpu': '1', pods: '1' } },
      ),
      { 'requests.cpu': '1' },
    ],
    [
      'keeps what cannot be counted now',
      quotaOf(
        { 'requests.cpu': '2', 'count/widgets.example.com': '4' },
        { used: { 'count/widgets.example.com': '3' } },
      ),
      { 'requests.cpu': '1', 'count/widgets.example.com': '3' },
    ],
  ])('%s', (_what, quota, expected) => {
    expect(quotaStatus(quota, used)?.used).toEqual(expected);
  });

  it.each<[boolean, string, ResourceQuota]>([
    [true, 'new', quotaOf({ pods: '2' })],
    [true, 'with another limit', quotaOf({ pods: '2' }, { hard: { pods: '3' }, used: { pods: '1' } })],
    [true, 'with a limit without a count', quotaOf({ pods: '2' }, { hard: { pods: '2' }, used: {} })],
    [false, 'counted', quotaOf({ pods: '2' }, { hard: { pods: '2' }, used: { pods: '1' } })],
  ])('%s comes first: %s', (expected, _what, quota) => {
    expect(isUncounted(quota)).toBe(expected);
  });
});

describe('a change', () => {
  const service = (type: string): Counted => ({
    kind: 'service',
    service: { spec: { type, ports: [{ nodePort: 30_000 }] } },
  });
  const claim = (storage: string): Counted => ({
    kind: 'claim',
    claim: { spec: { resources: { requests: { storage } } } },
  });
  const pod = (each: Pod): Counted => ({ kind: 'pod', pod: each });
  it.each<[boolean, string, string, Counted, Counted]>([
    [
      false,
      'a condition of a pod',
      'pods',
      pod(podOf('a', '1')),
      pod(podOf('a', '1', { status: { phase: 'Running' } })),
    ],
    [true, 'a pod that ends', 'pods', pod(podOf('a', '1')), pod(podOf('a', '1', ENDED))],
    [true, 'a pod that is resized', 'pods', pod(podOf('a', '1')), pod(podOf('a', '500m'))],
    [true, 'a pod with a deadline', 'pods', pod(makePod('a')), pod(makePod('a', { activeDeadlineSeconds: 1 }))],
    [true, 'a service of another type', 'services', service('NodePort'), service('ClusterIP')],
    [true, 'a claim that grows', 'persistentvolumeclaims', claim('1Gi'), claim('2Gi')],
    [false, 'the same size in other words', 'persistentvolumeclaims', claim('1Gi'), claim('1024Mi')],
    [false, 'anything else', 'secrets', { kind: 'other' }, { kind: 'other' }],
  ])('%s: %s', (expected, _what, plural, before, now) => {
    expect(countsOtherwise({ group: '', plural }, before, now)).toBe(expected);
  });
});

describe('the controller', () => {
  const STATUS = '/api/v1/namespaces/demo/resourcequotas/limits/status';
  const VERBS = ['delete', 'list', 'watch'];
  const secret = (name: string): Identified => ({ metadata: meta(name, 'demo') });

  function start() {
    const world = environment();
    const { client, context, run, informers } = world;
    const metadata = new Map<string, Store<Identified>>();
    const watched: string[] = [];
    const more = {
      whole: () => undefined,
      watchMetadata: (_what: string, path: string): ReadableStore<Identified> => {
        watched.push(path);
        const store = metadata.get(path) ?? new Store<Identified>();
        metadata.set(path, store);
        return store;
      },
    };
    const secrets = new Store<Identified>();
    metadata.set('/api/v1/secrets', secrets);
    client.objects.set('/apis', { groups: [] });
    client.objects.set('/api/v1', {
      resources: [{ name: 'secrets', kind: 'Secret', namespaced: true, verbs: VERBS }],
    });
    for (const store of [informers.pods, informers.services, informers.persistentVolumeClaims]) store.replace([]);
    run(new ResourceQuotaController(context, { ...informers, ...more }));
    const used = () =>
      client.writes.map(({ path, body }) => [path, (body as { status: { used: Text } }).status.used] as const);
    /** As the server: what is written comes back on the watch. */
    client.onWrite = ({ body }) => {
      const quota = body as ResourceQuota;
      informers.resourceQuotas.upsert({ ...quota, metadata: { ...meta('limits', 'demo') } });
      return quota;
    };
    return { ...world, metadata, watched, secrets, used };
  }

  it('counts a quota that is new, when a pod goes or ends, and not for a pod that comes', async () => {
    const { informers, used } = start();
    const [a, b] = [podOf('a', '1'), podOf('b', '500m')];
    informers.pods.replace([a, b]);
    informers.resourceQuotas.replace([quotaOf({ 'requests.cpu': '4' })]);
    await settle();
    expect(used()).toEqual([[STATUS, { 'requests.cpu': '1500m' }]]);
    informers.pods.upsert(podOf('c', '2'));
    await settle();
    expect(used()).toHaveLength(1);
    informers.pods.remove(a);
    await settle();
    expect(used().at(-1)).toEqual([STATUS, { 'requests.cpu': '2500m' }]);
    informers.pods.upsert(podOf('b', '500m', ENDED));
    await settle();
    expect(used().at(-1)).toEqual([STATUS, { 'requests.cpu': '2' }]);
  });

  it('is not interested in other namespaces, and in what no quota limits', async () => {
    const { informers, used } = start();
    informers.resourceQuotas.replace([quotaOf({ pods: '4' })]);
    await settle();
    const other = podOf('other', '1');
    const elsewhere = { ...other, metadata: { ...other.metadata, namespace: 'elsewhere' } };
    informers.pods.upsert(elsewhere);
    informers.pods.remove(elsewhere);
    const service: Service = { metadata: meta('web', 'demo'), spec: {} };
    informers.services.upsert(service);
    informers.services.remove(service);
    await settle();
    expect(used()).toHaveLength(1);
  });

  it('counts again a second after a write, for what admission has counted meanwhile', async () => {
    const { informers, clock, used } = start();
    informers.resourceQuotas.replace([quotaOf({ pods: '4' })]);
    await settle();
    informers.pods.upsert(podOf('a', '1'));
    await clock.advance(1000);
    await settle();
    expect(used().at(-1)).toEqual([STATUS, { pods: '1' }]);
    const writes = used().length;
    await clock.advance(10_000);
    await settle();
    expect(used()).toHaveLength(writes);
  });

  it('counts everything every five minutes', async () => {
    const { informers, clock, used } = start();
    informers.resourceQuotas.replace([quotaOf({ pods: '4' }, { hard: { pods: '4' }, used: { pods: '0' } })]);
    await settle();
    informers.pods.upsert(podOf('a', '1'));
    await settle();
    expect(used()).toEqual([]);
    await clock.advance(300_000);
    await settle();
    expect(used()).toEqual([[STATUS, { pods: '1' }]]);
  });

  it('counts objects of any kind by their metadata, with one list-watch for each', async () => {
    const { informers, secrets, watched, used } = start();
    secrets.replace([secret('a'), secret('b')]);
    informers.resourceQuotas.replace([quotaOf({ secrets: '4', 'count/secrets': '4' })]);
    await settle();
    expect(watched).toEqual(['/api/v1/secrets']);
    expect(used()).toEqual([[STATUS, { secrets: '2', 'count/secrets': '2' }]]);
    secrets.remove(secret('a'));
    await settle();
    expect(used().at(-1)).toEqual([STATUS, { secrets: '1', 'count/secrets': '1' }]);
  });

  it('leaves out a kind that the server does not have, until it has it', async () => {
    const { client, informers, clock, metadata, used } = start();
    informers.resourceQuotas.replace([quotaOf({ pods: '4', 'count/widgets.example.com': '2' })]);
    await settle();
    expect(used()).toEqual([[STATUS, { pods: '0' }]]);
    const version = { groupVersion: 'example.com/v1' };
    client.objects.set('/apis', { groups: [{ preferredVersion: version, versions: [version] }] });
    client.objects.set('/apis/example.com/v1', {
      resources: [{ name: 'widgets', kind: 'Widget', namespaced: true, verbs: VERBS }],
    });
    const widgets = new Store<Identified>();
    widgets.replace([{ metadata: meta('w', 'demo') }]);
    metadata.set('/apis/example.com/v1/widgets', widgets);
    await clock.advance(30_000);
    await settle();
    expect(used().at(-1)).toEqual([STATUS, { pods: '0', 'count/widgets.example.com': '1' }]);
  });

  it('takes a conflict for a reason to try again', async () => {
    const { client, informers, clock, used, logs } = start();
    client.failures.push(apiError(409, 'Conflict'));
    informers.resourceQuotas.replace([quotaOf({ pods: '4' })]);
    await settle();
    await clock.advance(5);
    await settle();
    expect(used()).toEqual([[STATUS, { pods: '0' }]]);
    expect(logs).toEqual([]);
  });
});
