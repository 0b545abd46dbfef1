// The scheduler and the controllers of namespaces and service accounts, each against a client in memory.

import { describe, expect, it } from 'vitest';
import { UnreachableError } from '../../../client/errors.ts';
import type { Pod } from '../../../client/types.ts';
import { deletionConditions, NamespaceController } from '../../../controlplane/controllers/namespace/namespace.ts';
import { RootCaPublisher } from '../../../controlplane/controllers/root-ca-publisher/root-ca-publisher.ts';
import { ServiceAccountController } from '../../../controlplane/controllers/serviceaccount/serviceaccount.ts';
import type { Namespace } from '../../../controlplane/informers.ts';
import { Scheduler } from '../../../controlplane/scheduler/scheduler.ts';
import { apiError } from '../../support/fake-client.ts';
import { settle } from '../../support/virtual-clock.ts';
import { environment, makeNode, makePod, meta, NOW } from './environment.ts';

describe('Scheduler', () => {
  function start() {
    const env = environment();
    const scheduler = new Scheduler(env.context, env.informers);
    env.informers.nodes.replace([makeNode('n', 'True')]);
    env.informers.pods.replace([]);
    return { ...env, ended: scheduler.run(env.stop.signal) };
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

  it('ends when its bindings have: another scheduler may begin then', async () => {
    const { client, informers, stop, ended } = start();
    const answer = Promise.withResolvers<object>();
    client.onWrite = () => answer.promise;
    informers.pods.upsert(makePod('p'));
    await settle();
    let isOver = false;
    const over = ended.then(() => {
      isOver = true;
    });
    stop.abort(new Error('stopped'));
    await settle();
    expect([client.writes.length, isOver]).toEqual([1, false]);
    answer.resolve({});
    await over;
  });

  it('counts bindings under way: two pods that do not both fit are not both bound', async () => {
    const { client, informers } = start();
    const big = { containers: [{ name: 'c', resources: { requests: { cpu: '1500m' } } }] };
    informers.pods.upsert(makePod('a', big));
    informers.pods.upsert(makePod('b', big));
    await settle();
    expect(client.writes.map(({ path }) => path).toSorted()).toEqual([
      '/api/v1/namespaces/demo/pods/a/binding',
      '/api/v1/namespaces/demo/pods/b/status',
    ]);
  });

  it('binds no pod a second time while its binding is under way, or is not seen yet', async () => {
    const { client, events, informers } = start();
    const answer = Promise.withResolvers<void>();
    const started: string[] = [];
    client.onWrite = async (write) => {
      started.push(write.path);
      await answer.promise;
      return write.body;
    };
    const change = async (labels: Record<string, string>, spec: Partial<Pod['spec']>): Promise<void> => {
      const pod = makePod('p', spec);
      informers.pods.upsert({ ...pod, metadata: { ...pod.metadata, labels } });
      await settle();
    };
    await change({}, {});
    // Each of these brings the pod's key back, and the pod in the cache is still without a node.
    await change({ a: 'b' }, {});
    await change({ a: 'b' }, { priority: 5 });
    informers.nodes.upsert(makeNode('m', 'True'));
    await settle();
    answer.resolve();
    await settle();
    await change({ a: 'c' }, { priority: 5 });
    expect(started).toEqual(['/api/v1/namespaces/demo/pods/p/binding']);
    expect(events).toEqual(['p Scheduled: Successfully assigned demo/p to n']);
  });

  it('reports why a pod fits nowhere, once, and binds it when room becomes free', async () => {
    const { client, events, informers } = start();
    const big = { containers: [{ name: 'c', resources: { requests: { cpu: '2' } } }] };
    informers.pods.upsert(makePod('first', { ...big, nodeName: 'n' }));
    informers.pods.upsert(makePod('p', big));
    await settle();
    const message =
      '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.';
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

  it('looks again when a node comes or loses its taint, and after five minutes in any case', async () => {
    const { client, clock, events, informers } = start();
    const taints = [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }];
    informers.nodes.upsert(makeNode('n', 'False', { taints }));
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
    expect(client.writes.map(({ path }) => path)).toEqual(['/api/v1/namespaces/demo/pods/p/status']);
    await clock.advance(1000);
    expect(client.writes.at(-1)?.path).toBe('/api/v1/namespaces/demo/pods/p/binding');
    client.failures.push(apiError(404, 'NotFound'));
    informers.pods.upsert(makePod('q'));
    informers.pods.remove(makePod('q'));
    await clock.advance(60_000);
    expect(client.writes.length).toBe(2);
    expect(events).toEqual([
      'p FailedScheduling: running Bind plugin "DefaultBinder": refused',
      'p Scheduled: Successfully assigned demo/p to n',
    ]);
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

  it('deletes pods first, the rest when they are gone: by collection where it can, one by one where it cannot', async () => {
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
    const deletions = (): string[] => client.writes.filter(({ verb }) => verb === 'delete').map(({ path }) => path);
    expect(deletions()).toEqual(['/api/v1/namespaces/demo/pods']);
    expect(client.writes.at(-1)).toMatchObject({ verb: 'patch', path: '/api/v1/namespaces/demo/status' });
    client.objects.set('/api/v1/namespaces/demo/pods', list());
    await clock.advance(1000);
    expect(deletions()).toEqual(['/api/v1/namespaces/demo/pods', '/api/v1/namespaces/demo/secrets/s']);
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

  it('never finalizes a namespace when a group could not be listed', async () => {
    const { client, informers } = start();
    client.objects.delete('/apis/apps/v1');
    informers.namespaces.upsert(terminating('demo'));
    await settle();
    expect(client.writes.map(({ path }) => path)).toEqual(['/api/v1/namespaces/demo/status']);
  });

  it('says what remains in the words of the real controller', () => {
    const resource = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true, verbs: [] };
    const conditions = deletionConditions([{ resource, count: 2, finalizers: ['a/b', 'a/b'] }], [], []);
    expect(conditions.map(({ type, status, message }) => `${type}=${status} ${message}`)).toEqual([
      'NamespaceDeletionDiscoveryFailure=False All resources successfully discovered',
      'NamespaceDeletionContentFailure=False All content successfully deleted, may be waiting on finalization',
      'NamespaceContentRemaining=True Some resources are remaining: pods. has 2 resource instances',
      'NamespaceFinalizersRemaining=True Some content in the namespace has finalizers remaining: a/b in 2 resource instances',
    ]);
  });
});

describe('what a namespace gets', () => {
  function start({ rootCa }: { readonly rootCa?: string } = { rootCa: 'PEM' }) {
    const env = environment();
    env.run(new ServiceAccountController(env.context, env.informers));
    if (rootCa !== undefined) env.run(new RootCaPublisher(env.context, env.informers, rootCa));
    return env;
  }

  it('is its account and the CA', async () => {
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

  it('is nothing when it is being deleted', async () => {
    const { client, informers } = start();
    informers.namespaces.upsert({ metadata: { ...meta('demo'), deletionTimestamp: NOW } });
    await settle();
    expect(client.writes).toEqual([]);
  });

  it('is made again when it was deleted, and as it was when it was changed', async () => {
    const { client, informers } = start();
    const account = { metadata: meta('default', 'demo') };
    informers.namespaces.upsert({ metadata: meta('demo') });
    informers.serviceAccounts.upsert(account);
    await settle();
    client.writes.length = 0;
    informers.serviceAccounts.remove(account);
    await settle();
    expect(client.writes).toMatchObject([{ verb: 'create', path: '/api/v1/namespaces/demo/serviceaccounts' }]);
    informers.serviceAccounts.upsert({ metadata: meta('default', 'demo') });
    const name = 'kube-root-ca.crt';
    informers.rootCaConfigMaps.upsert({ metadata: meta(name, 'demo'), data: { 'ca.crt': 'PEM' } });
    informers.rootCaConfigMaps.upsert({ metadata: meta(name, 'demo'), data: { 'ca.crt': 'forged', more: 'x' } });
    await settle();
    expect(client.writes.at(-1)).toMatchObject({
      verb: 'patch',
      type: 'merge',
      body: { data: { 'ca.crt': 'PEM', more: null } },
    });
  });

  it('takes "already there" for done', async () => {
    const { client, informers, logs } = start({});
    client.failures.push(apiError(409, 'AlreadyExists'));
    informers.namespaces.upsert({ metadata: meta('demo') });
    await settle();
    expect([client.writes, logs]).toEqual([[], []]);
  });
});
