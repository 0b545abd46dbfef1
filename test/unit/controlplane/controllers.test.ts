import { describe, expect, it } from 'vitest';
import { UnreachableError } from '../../../client/errors.ts';
import { Store } from '../../../client/store.ts';
import type { ConfigMap, Lease, Node, Pod } from '../../../client/types.ts';
import { deletionConditions, NamespaceController } from '../../../controlplane/namespace/namespace.ts';
import { NodeLifecycleController } from '../../../controlplane/node/lifecycle.ts';
import { nextTaints, unknownConditions } from '../../../controlplane/node/taints.ts';
import { PodGarbageCollector } from '../../../controlplane/podgc/podgc.ts';
import { type Controller, type Namespace, runController, type ServiceAccount } from '../../../controlplane/runtime.ts';
import { Scheduler } from '../../../controlplane/scheduler/scheduler.ts';
import { ServiceAccountController } from '../../../controlplane/serviceaccount/serviceaccount.ts';
import { apiError, FakeClient } from '../../support/fake-client.ts';
import { storageStores } from '../../support/storage-objects.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

const NOW = '2026-01-01T00:00:00Z';
let version = 1;
const meta = (name: string, namespace?: string) => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: String(version++),
  ...(namespace === undefined ? {} : { namespace }),
});

function makePod(name: string, spec: Partial<Pod['spec']> = {}, extra: Partial<Pod> = {}): Pod {
  return { metadata: { ...meta(name), namespace: 'demo' }, spec: { containers: [{ name: 'c' }], ...spec }, ...extra };
}
function makeNode(name: string, ready: string, spec: NonNullable<Node['spec']> = {}): Node {
  return {
    metadata: meta(name),
    spec,
    status: { allocatable: { cpu: '2', memory: '4Gi', pods: '110' }, conditions: [{ type: 'Ready', status: ready }] },
  };
}

function environment() {
  const clock = new VirtualClock();
  const client = new FakeClient();
  const events: string[] = [];
  const logs: string[] = [];
  const informers = {
    pods: new Store<Pod>(),
    nodes: new Store<Node>(),
    namespaces: new Store<Namespace>(),
    defaultServiceAccounts: new Store<ServiceAccount>(),
    rootCaConfigMaps: new Store<ConfigMap>(),
    nodeLeases: new Store<Lease>(),
    ...storageStores(),
  };
  const log = (line: string): void => void logs.push(line);
  const context = {
    client,
    clock,
    log,
    recorder: {
      event: (object: { metadata: { name: string } }, _type: string, reason: string, message: string) =>
        void events.push(`${object.metadata.name} ${reason}: ${message}`),
    },
  };
  const stop = new AbortController();
  const run = (controller: Controller): void => void runController(controller, log, stop.signal);
  return { clock, client, events, logs, informers, context, run, stop };
}

describe('Scheduler', () => {
  function start() {
    const env = environment();
    const scheduler = new Scheduler(env.context, env.informers);
    env.informers.nodes.replace([makeNode('n', 'True')]);
    env.informers.pods.replace([]);
    env.run(scheduler);
    return env;
  }

  it('binds a pod the moment it appears, and says so', async () => {
    const { client, events, informers } = start();
    informers.pods.upsert(makePod('p'));
    await settle();
    expect(client.writes).toEqual([
      {
        verb: 'create',
        path: '/api/v1/namespaces/demo/pods/p/binding',
        body: {
          apiVersion: 'v1',
          kind: 'Binding',
          metadata: { name: 'p', namespace: 'demo', uid: 'uid-p' },
          target: { apiVersion: 'v1', kind: 'Node', name: 'n' },
        },
      },
    ]);
    expect(events).toEqual(['p Scheduled: Successfully assigned demo/p to n']);
  });

  it.each<[string, Pod]>([
    ['bound already', makePod('p', { nodeName: 'n' })],
    ['of another scheduler', makePod('p', { schedulerName: 'mine' })],
    ['with a scheduling gate', makePod('p', { schedulingGates: [{ name: 'wait' }] })],
    ['on its way out', { ...makePod('p'), metadata: { ...meta('p'), namespace: 'demo', deletionTimestamp: NOW } }],
    ['that has finished', makePod('p', {}, { status: { phase: 'Failed' } })],
  ])('leaves a pod alone that is %s', async (_what, pod) => {
    const { client, informers } = start();
    informers.pods.upsert(pod);
    await settle();
    expect(client.writes).toEqual([]);
  });

  it('places a pod when its last gate is taken away', async () => {
    const { client, informers } = start();
    informers.pods.upsert(makePod('p', { schedulingGates: [{ name: 'wait' }] }));
    await settle();
    informers.pods.upsert(makePod('p', { schedulingGates: [] }));
    await settle();
    expect(client.writes.length).toBe(1);
  });

  it('counts bindings under way: two pods that do not both fit are not both bound', async () => {
    const { client, informers } = start();
    const big = { containers: [{ name: 'c', resources: { requests: { cpu: '1500m' } } }] };
    informers.pods.upsert(makePod('a', big));
    informers.pods.upsert(makePod('b', big));
    await settle();
    expect(client.writes.map(({ path }) => path)).toEqual([
      '/api/v1/namespaces/demo/pods/a/binding',
      '/api/v1/namespaces/demo/pods/b/status',
    ]);
  });

  it('tells why a pod fits nowhere, once, and places it when room becomes free', async () => {
    const { client, events, informers } = start();
    const big = { containers: [{ name: 'c', resources: { requests: { cpu: '2' } } }] };
    informers.pods.upsert(makePod('first', { ...big, nodeName: 'n' }));
    informers.pods.upsert(makePod('p', big));
    await settle();
    const message = '0/1 nodes are available: 1 Insufficient cpu.';
    expect(events).toEqual([`p FailedScheduling: ${message}`]);
    const condition = {
      type: 'PodScheduled',
      status: 'False',
      reason: 'Unschedulable',
      message,
      lastTransitionTime: NOW,
    };
    expect(client.writes).toEqual([
      {
        verb: 'patch',
        path: '/api/v1/namespaces/demo/pods/p/status',
        body: { metadata: { uid: 'uid-p' }, status: { conditions: [condition] } },
        type: 'strategic',
      },
    ]);
    // Its own patch coming back is nothing to act on.
    informers.pods.upsert(makePod('p', big, { status: { conditions: [condition] } }));
    // Nor is a heartbeat.
    informers.nodes.upsert(makeNode('n', 'True'));
    await settle();
    expect(client.writes.length).toBe(1);
    informers.pods.upsert(makePod('first', { ...big, nodeName: 'n' }, { status: { phase: 'Succeeded' } }));
    await settle();
    expect(client.writes.at(-1)?.path).toBe('/api/v1/namespaces/demo/pods/p/binding');
  });

  it('looks again when a node comes or becomes ready, and after five minutes in any case', async () => {
    const { client, clock, events, informers } = start();
    informers.nodes.upsert(makeNode('n', 'False'));
    informers.pods.upsert(makePod('p'));
    await settle();
    expect(events.length).toBe(1);
    await clock.advance(300_000);
    expect(events.length).toBe(2);
    informers.nodes.upsert(makeNode('n', 'True'));
    await settle();
    expect(client.writes.at(-1)?.path).toContain('/binding');
  });

  it('tries a binding again when the server is away, and leaves it when the pod is gone', async () => {
    const { client, clock, informers, events } = start();
    client.failures.push(new UnreachableError('refused', 'ECONNREFUSED'));
    informers.pods.upsert(makePod('p'));
    await settle();
    expect(client.writes).toEqual([]);
    await clock.advance(100);
    expect(client.writes.length).toBe(1);
    client.failures.push(apiError(404, 'NotFound'));
    informers.pods.upsert(makePod('q'));
    await clock.advance(60_000);
    expect([client.writes.length, events.length]).toEqual([1, 1]);
  });
});

describe('NamespaceController', () => {
  const terminating = (name: string): Namespace => ({
    metadata: { ...meta(name), deletionTimestamp: NOW },
    spec: { finalizers: ['kubernetes', 'example.com/mine'] },
  });
  const list = (...items: object[]) => ({ items: items.map((item) => ({ metadata: item })) });
  const one = (name: string, extra: object = {}) => ({ ...meta(name, 'demo'), ...extra });

  function start() {
    const env = environment();
    const verbs = ['list', 'delete', 'deletecollection'];
    env.client.objects.set('/apis', { groups: [{ preferredVersion: { groupVersion: 'apps/v1' } }] });
    env.client.objects.set('/api/v1', {
      resources: [
        { name: 'pods', namespaced: true, verbs },
        { name: 'pods/status', namespaced: true, verbs: ['get'] },
        { name: 'secrets', namespaced: true, verbs: ['list', 'delete'] },
        { name: 'nodes', namespaced: false, verbs },
        { name: 'bindings', namespaced: true, verbs: ['create'] },
      ],
    });
    env.client.objects.set('/apis/apps/v1', { resources: [] });
    env.client.objects.set('/api/v1/namespaces/demo/pods', list());
    env.client.objects.set('/api/v1/namespaces/demo/secrets', list());
    env.client.objects.set('/api/v1/namespaces/demo', terminating('demo'));
    env.run(new NamespaceController(env.context, env.informers));
    return env;
  }

  it('lets an empty namespace go by taking off its own finalizer only', async () => {
    const { client, informers } = start();
    informers.namespaces.upsert(terminating('demo'));
    await settle();
    expect(client.writes).toMatchObject([
      {
        verb: 'replace',
        path: '/api/v1/namespaces/demo/finalize',
        body: { kind: 'Namespace', spec: { finalizers: ['example.com/mine'] } },
      },
    ]);
  });

  it('leaves active namespaces alone', async () => {
    const { client, informers } = start();
    informers.namespaces.upsert({ metadata: meta('demo') });
    await settle();
    expect([client.writes, client.reads]).toEqual([[], 0]);
  });

  it('deletes by collection where it can and one by one where it cannot, then waits for what remains', async () => {
    const { client, clock, informers } = start();
    client.objects.set('/api/v1/namespaces/demo/pods', list(one('p')));
    client.objects.set('/api/v1/namespaces/demo/secrets', list(one('s')));
    client.onWrite = ({ verb, path }) => {
      if (verb === 'delete' && path.endsWith('/s')) client.objects.set('/api/v1/namespaces/demo/secrets', list());
      if (verb === 'delete' && path.endsWith('/pods')) {
        client.objects.set(path, list(one('p', { deletionTimestamp: NOW, finalizers: ['a/b'] })));
      }
      return {};
    };
    informers.namespaces.upsert(terminating('demo'));
    await settle();
    const deletions = client.writes.filter(({ verb }) => verb === 'delete').map(({ path }) => path);
    expect(deletions.sort()).toEqual(['/api/v1/namespaces/demo/pods', '/api/v1/namespaces/demo/secrets/s']);
    expect(client.writes.at(-1)).toMatchObject({ verb: 'patch', path: '/api/v1/namespaces/demo/status' });
    client.objects.set('/api/v1/namespaces/demo/pods', list());
    await clock.advance(1000);
    expect(client.writes.at(-1)?.path).toBe('/api/v1/namespaces/demo/finalize');
  });

  it('follows the last pod at once', async () => {
    const { client, informers } = start();
    const pod = makePod('p');
    client.objects.set('/api/v1/namespaces/demo/pods', list(one('p', { deletionTimestamp: NOW })));
    informers.pods.upsert(pod);
    informers.namespaces.upsert(terminating('demo'));
    await settle();
    client.objects.set('/api/v1/namespaces/demo/pods', list());
    informers.pods.remove(pod);
    await settle();
    expect(client.writes.at(-1)?.path).toBe('/api/v1/namespaces/demo/finalize');
  });

  it('never lets a namespace go when a group could not be looked at', async () => {
    const { client, informers } = start();
    client.objects.delete('/apis/apps/v1');
    informers.namespaces.upsert(terminating('demo'));
    await settle();
    expect(client.writes.map(({ path }) => path)).toEqual(['/api/v1/namespaces/demo/status']);
  });

  it('says what remains in the words of the real controller', () => {
    const resource = { apiVersion: 'v1', plural: 'pods', verbs: [] };
    const conditions = deletionConditions([{ resource, count: 2, finalizers: ['a/b', 'a/b'] }], [], []);
    expect(conditions.map(({ type, status, message }) => `${type}=${status} ${message}`)).toEqual([
      'NamespaceDeletionDiscoveryFailure=False All resources successfully discovered',
      'NamespaceDeletionContentFailure=False All content successfully deleted, may be waiting on finalization',
      'NamespaceContentRemaining=True Some resources are remaining: pods. has 2 resource instances',
      'NamespaceFinalizersRemaining=True Some content in the namespace has finalizers remaining: a/b in 2 resource instances',
    ]);
  });
});

describe('ServiceAccountController', () => {
  function start({ rootCa }: { readonly rootCa: string | undefined } = { rootCa: 'PEM' }) {
    const env = environment();
    env.run(new ServiceAccountController(env.context, env.informers, rootCa));
    return env;
  }

  it('gives a new namespace its account and the CA', async () => {
    const { client, informers } = start();
    informers.namespaces.upsert({ metadata: meta('demo') });
    await settle();
    expect(client.writes).toMatchObject([
      { path: '/api/v1/namespaces/demo/serviceaccounts', body: { metadata: { name: 'default' } } },
      {
        path: '/api/v1/namespaces/demo/configmaps',
        body: { metadata: { name: 'kube-root-ca.crt' }, data: { 'ca.crt': 'PEM' } },
      },
    ]);
  });

  it('gives nothing to one that is being deleted', async () => {
    const { client, informers } = start();
    informers.namespaces.upsert({ metadata: { ...meta('demo'), deletionTimestamp: NOW } });
    await settle();
    expect(client.writes).toEqual([]);
  });

  it('makes a deleted account again, and mends a changed CA', async () => {
    const { client, informers } = start();
    const account = { metadata: meta('default', 'demo') };
    informers.namespaces.upsert({ metadata: meta('demo') });
    informers.defaultServiceAccounts.upsert(account);
    informers.rootCaConfigMaps.upsert({ metadata: meta('kube-root-ca.crt', 'demo'), data: { 'ca.crt': 'PEM' } });
    await settle();
    client.writes.length = 0;
    informers.defaultServiceAccounts.remove(account);
    await settle();
    expect(client.writes).toMatchObject([{ verb: 'create', path: '/api/v1/namespaces/demo/serviceaccounts' }]);
    informers.defaultServiceAccounts.upsert({ metadata: meta('default', 'demo') });
    informers.rootCaConfigMaps.upsert({ metadata: meta('kube-root-ca.crt', 'demo'), data: { 'ca.crt': 'forged' } });
    await settle();
    expect(client.writes.at(-1)).toMatchObject({ verb: 'patch', type: 'merge', body: { data: { 'ca.crt': 'PEM' } } });
  });

  it('takes "already there" for done', async () => {
    const { client, informers, logs } = start({ rootCa: undefined });
    client.failures.push(apiError(409, 'AlreadyExists'));
    informers.namespaces.upsert({ metadata: meta('demo') });
    await settle();
    expect([client.writes, logs]).toEqual([[], []]);
  });
});

describe('nextTaints', () => {
  const keys = (node: Node): string[] | undefined =>
    nextTaints(node, NOW)?.map(({ key, effect }) => `${key}:${effect}`);
  const notReady = ['node.kubernetes.io/not-ready:NoSchedule', 'node.kubernetes.io/not-ready:NoExecute'];
  const unreachable = ['node.kubernetes.io/unreachable:NoSchedule', 'node.kubernetes.io/unreachable:NoExecute'];

  it.each<[string, Node, string[] | undefined]>([
    ['a ready node needs none', makeNode('n', 'True'), undefined],
    ['a node that is not ready', makeNode('n', 'False'), notReady],
    ['a silent node', makeNode('n', 'Unknown'), unreachable],
    ['a node that has never reported', { metadata: meta('n') }, ['node.kubernetes.io/not-ready:NoSchedule']],
    [
      'a cordoned node',
      makeNode('n', 'True', { unschedulable: true }),
      ['node.kubernetes.io/unschedulable:NoSchedule'],
    ],
    [
      'pressure',
      {
        metadata: meta('n'),
        status: {
          conditions: [
            { type: 'Ready', status: 'True' },
            { type: 'DiskPressure', status: 'True' },
          ],
        },
      },
      ['node.kubernetes.io/disk-pressure:NoSchedule'],
    ],
    [
      'a node that is ready again loses ours and keeps the others',
      makeNode('n', 'True', {
        taints: [
          { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' },
          { key: 'gpu', effect: 'NoSchedule' },
        ],
      }),
      ['gpu:NoSchedule'],
    ],
    [
      'a node that fell silent while not ready changes taints',
      makeNode('n', 'Unknown', { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] }),
      unreachable,
    ],
  ])('%s', (_what, node, expected) => {
    expect(keys(node)).toEqual(expected);
  });

  it('keeps the time of a taint that stays', () => {
    const taints = [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute', timeAdded: '2025-01-01T00:00:00Z' }];
    expect(nextTaints(makeNode('n', 'False', { taints }), NOW)).toContainEqual(taints[0]);
  });

  it('a silent node has all its conditions Unknown, with the time of its last heartbeat', () => {
    const conditions = unknownConditions(makeNode('n', 'True'), NOW);
    expect(conditions.map(({ type, status, reason }) => [type, status, reason])).toEqual([
      ['Ready', 'Unknown', 'NodeStatusUnknown'],
      ['MemoryPressure', 'Unknown', 'NodeStatusNeverUpdated'],
      ['DiskPressure', 'Unknown', 'NodeStatusNeverUpdated'],
      ['PIDPressure', 'Unknown', 'NodeStatusNeverUpdated'],
    ]);
  });
});

describe('NodeLifecycleController', () => {
  const lease = (renewTime: string): Lease => ({ metadata: meta('n', 'kube-node-lease'), spec: { renewTime } });
  function start() {
    const env = environment();
    env.run(new NodeLifecycleController(env.context, env.informers));
    env.informers.nodeLeases.upsert(lease('1'));
    env.informers.nodes.upsert(makeNode('n', 'True'));
    return env;
  }

  it('declares a node Unknown 40 s after its last renewal, not earlier', async () => {
    const { clock, client, events, informers } = start();
    await clock.advance(30_000);
    informers.nodeLeases.upsert(lease('2'));
    await clock.advance(39_999);
    expect(client.writes).toEqual([]);
    await clock.advance(1);
    expect(client.writes).toMatchObject([
      {
        verb: 'patch',
        path: '/api/v1/nodes/n/status',
        type: 'strategic',
        body: {
          status: {
            conditions: [
              { type: 'Ready', status: 'Unknown', message: 'Kubelet stopped posting node status.' },
              {},
              {},
              {},
            ],
          },
        },
      },
    ]);
    expect(events).toEqual(['n NodeNotReady: Node n status is now: NodeNotReady']);
  });

  it('a lease that is written again without being renewed is no sign of life', async () => {
    const { clock, client, informers } = start();
    await clock.advance(20_000);
    informers.nodeLeases.upsert(lease('1'));
    await clock.advance(20_000);
    expect(client.writes.length).toBe(1);
  });

  it('taints by condition, guarded by the version of the node', async () => {
    const { client, informers } = start();
    const node = makeNode('n', 'False');
    await settle();
    informers.nodes.upsert(node);
    await settle();
    expect(client.writes).toMatchObject([
      {
        path: '/api/v1/nodes/n',
        type: 'merge',
        body: {
          metadata: { resourceVersion: node.metadata.resourceVersion },
          spec: { taints: [{ effect: 'NoSchedule' }, { effect: 'NoExecute', timeAdded: NOW }] },
        },
      },
    ]);
  });

  it('watches a node anew after it has come back', async () => {
    const { clock, client, informers } = start();
    await clock.advance(40_000);
    const beat = (at: string): Node => ({
      ...makeNode('n', 'True'),
      status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: at }] },
    });
    informers.nodes.upsert(beat('later'));
    await settle();
    client.writes.length = 0;
    await clock.advance(39_999);
    expect(client.writes).toEqual([]);
    await clock.advance(1);
    expect(client.writes.length).toBe(1);
  });
});

describe('PodGarbageCollector', () => {
  function start() {
    const env = environment();
    env.run(new PodGarbageCollector(env.context, env.informers));
    return env;
  }

  it('deletes pods of a node that is gone after 40 s', async () => {
    const { clock, client, informers } = start();
    informers.pods.upsert(makePod('p', { nodeName: 'gone' }));
    informers.nodes.replace([makeNode('n', 'True')]);
    await clock.advance(39_999);
    expect(client.writes).toEqual([]);
    await clock.advance(1);
    expect(client.writes).toEqual([
      {
        verb: 'delete',
        path: '/api/v1/namespaces/demo/pods/p',
        body: { gracePeriodSeconds: 0, preconditions: { uid: 'uid-p' } },
      },
    ]);
  });

  it('spares them when the node comes back, or exists on the server after all', async () => {
    const { clock, client, informers } = start();
    informers.nodes.replace([]);
    informers.pods.upsert(makePod('p', { nodeName: 'n' }));
    informers.pods.upsert(makePod('q', { nodeName: 'm' }));
    await clock.advance(20_000);
    informers.nodes.upsert(makeNode('n', 'True'));
    client.objects.set('/api/v1/nodes/m', makeNode('m', 'True'));
    await clock.advance(60_000);
    expect(client.writes).toEqual([]);
  });
});
