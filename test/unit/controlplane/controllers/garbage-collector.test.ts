// The garbage collector: what becomes of an object, as a table, and the three ways of deleting a tree of objects.

import { describe, expect, it } from 'vitest';
import { type Identified, type ReadableStore, Store } from '../../../../client/store.ts';
import type { Pod } from '../../../../client/types.ts';
import {
  type Action,
  decideLeaving,
  decideOwned,
  type OwnerState,
} from '../../../../controlplane/controllers/garbage-collector/decide.ts';
import {
  GarbageCollector,
  UNSEEN_MS,
} from '../../../../controlplane/controllers/garbage-collector/garbage-collector.ts';
import type { ReplicaSet } from '../../../../controlplane/controllers/shared/objects.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, makePod, meta, NOW } from '../environment.ts';

const reference = (name: string, blocks = true) => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  name,
  uid: `uid-${name}`,
  controller: true,
  blockOwnerDeletion: blocks,
});
const leaving = (name: string, ...finalizers: string[]): Identified => ({
  metadata: { ...meta(name, 'demo'), deletionTimestamp: NOW, finalizers },
});
const dependent = (name: string, owner: string, blocks = true): Pod => {
  const pod = makePod(name);
  return { ...pod, metadata: { ...pod.metadata, ownerReferences: [reference(owner, blocks)] } };
};

describe('an object with owners', () => {
  it.each<[string, readonly OwnerState[], Action['kind'], string?]>([
    ['that are there stays', ['there'], 'keep'],
    ['of an unknown kind stays', ['unknown'], 'keep'],
    ['that are gone goes', ['gone', 'gone'], 'delete', 'Background'],
    ['of which one is there loses the others', ['gone', 'there', 'waiting'], 'drop-owners'],
    ['that wait for it goes', ['waiting'], 'delete', 'Background'],
  ])('%s', (_what, states, kind, policy) => {
    const owners = states.map((state, index) => ({ reference: reference(`o${index}`), state }));
    const action = decideOwned(makePod('p'), owners, []);
    expect(action).toMatchObject({ kind, ...(policy === undefined ? {} : { policy }) });
  });

  it('and dependents goes after them, and does not block its owners where they form a circle', () => {
    const owners = [{ reference: reference('o'), state: 'waiting' as const }];
    const policy = { kind: 'delete', policy: 'Foreground' };
    expect(decideOwned(makePod('p'), owners, [makePod('d')])).toEqual({ ...policy, unblock: false });
    expect(decideOwned(makePod('p'), owners, [leaving('d', 'foregroundDeletion')])).toEqual({
      ...policy,
      unblock: true,
    });
  });
});

describe('an object on its way out', () => {
  it.each<[string, Identified, readonly Identified[], Action['kind']]>([
    ['for another reason is left alone', leaving('o', 'example.com/x'), [dependent('d', 'o')], 'keep'],
    ['in the foreground waits', leaving('o', 'foregroundDeletion'), [dependent('d', 'o')], 'wait'],
    ['only for what blocks it', leaving('o', 'foregroundDeletion'), [dependent('d', 'o', false)], 'remove-finalizer'],
    ['that orphans', leaving('o', 'orphan'), [dependent('d', 'o')], 'orphan-dependents'],
  ])('%s', (_what, object, dependents, kind) => {
    expect(decideLeaving(object, dependents).kind).toBe(kind);
  });
});

describe('the collector', () => {
  const setOf = (name: string, extra: Partial<ReplicaSet['metadata']> = {}): ReplicaSet => ({
    metadata: { ...meta(name), namespace: 'demo', ...extra },
    spec: { selector: {} },
  });
  const SET = '/apis/apps/v1/namespaces/demo/replicasets/web';
  const POD = '/api/v1/namespaces/demo/pods/p';

  const VERBS = ['delete', 'list', 'watch'];
  const DISCOVERED: readonly (readonly [string, object])[] = [
    ['/apis', { groups: [{ preferredVersion: { groupVersion: 'apps/v1' }, versions: [{ groupVersion: 'apps/v1' }] }] }],
    [
      '/api/v1',
      {
        resources: [
          { name: 'pods', kind: 'Pod', namespaced: true, verbs: VERBS },
          { name: 'pods/log', kind: 'Pod', namespaced: true, verbs: ['get'] },
          { name: 'nodes', kind: 'Node', namespaced: false, verbs: VERBS },
          { name: 'events', kind: 'Event', namespaced: true, verbs: VERBS },
        ],
      },
    ],
    ['/apis/apps/v1', { resources: [{ name: 'replicasets', kind: 'ReplicaSet', namespaced: true, verbs: VERBS }] }],
  ];

  function start(set: ReplicaSet, pod: Pod, isListed = true) {
    const env = environment();
    const shared = new Map<string, ReadableStore<Identified>>([
      ['/api/v1/pods', env.informers.pods],
      ['/apis/apps/v1/replicasets', env.informers.replicaSets],
    ]);
    const metadata = new Map<string, Store<Identified>>();
    const collector = new GarbageCollector(env.context, {
      whole: (path) => shared.get(path),
      watchMetadata: (_what, path) => {
        const store = new Store<Identified>();
        if (isListed) store.replace([]);
        metadata.set(path, store);
        return store;
      },
    });
    for (const [path, object] of DISCOVERED) env.client.objects.set(path, object);
    env.client.objects.set(SET, set);
    env.client.objects.set(POD, pod);
    env.informers.replicaSets.replace([set]);
    env.informers.pods.replace([pod]);
    env.run(collector);
    const writes = () => env.client.writes.map(({ verb, path }) => `${verb} ${path}`);
    return { ...env, metadata, writes };
  }

  it('deletes what its owner has left behind, once the server says that the owner is gone', async () => {
    const set = setOf('web');
    const { client, informers, writes } = start(set, dependent('p', 'web'));
    await settle();
    expect(writes()).toEqual([]);
    client.objects.delete(SET);
    informers.replicaSets.remove(set);
    await settle();
    expect(writes()).toEqual([`delete ${POD}`]);
  });

  it('keeps a dependent when only its cache lags behind', async () => {
    const set = setOf('web');
    const { informers, writes } = start(set, dependent('p', 'web'));
    informers.replicaSets.remove(set);
    await settle();
    expect(writes()).toEqual([]);
  });

  it('deletes what was left behind by an owner that went before any list showed it', async () => {
    const set = setOf('web');
    const { clock, client, informers, writes } = start(set, makePod('other'));
    informers.replicaSets.remove(set);
    informers.pods.upsert(dependent('p', 'web'));
    await settle();
    // The server has it: its watch is late, or broken.
    expect(writes()).toEqual([]);
    client.objects.delete(SET);
    await clock.advance(UNSEEN_MS);
    expect(writes()).toEqual([`delete ${POD}`]);
  });

  it('looks no more once the owner has been seen', async () => {
    const set = setOf('web');
    const { clock, client, informers, writes } = start(set, makePod('other'));
    informers.replicaSets.remove(set);
    informers.pods.upsert(dependent('p', 'web'));
    await settle();
    informers.replicaSets.upsert(set);
    await clock.advance(UNSEEN_MS);
    const { reads } = client;
    await clock.advance(4 * UNSEEN_MS);
    expect([writes(), client.reads]).toEqual([[], reads]);
  });

  it('sets no timer that outlives it, when lists have not come by its end', async () => {
    const { clock, stop } = start(setOf('web'), makePod('other'), false);
    await settle();
    expect(clock.timers).toBeGreaterThan(0);
    stop.abort();
    await settle();
    expect(clock.timers).toBe(0);
  });

  it('in the foreground deletes the dependents, then lets the owner go', async () => {
    const set = setOf('web');
    const pod = dependent('p', 'web');
    const { client, informers, writes } = start(set, pod);
    await settle();
    const marked = setOf('web', { deletionTimestamp: NOW, finalizers: ['foregroundDeletion'] });
    client.objects.set(SET, marked);
    informers.replicaSets.upsert(marked);
    await settle();
    expect(writes()).toEqual([`delete ${POD}`]);
    informers.pods.remove(pod);
    await settle();
    expect(client.writes.at(-1)).toMatchObject({ verb: 'patch', path: SET, body: { metadata: { finalizers: [] } } });
  });

  it('orphans: the dependents lose their reference before the owner goes', async () => {
    const { client, informers, writes } = start(setOf('web'), dependent('p', 'web'));
    await settle();
    const marked = setOf('web', { deletionTimestamp: NOW, finalizers: ['orphan'] });
    client.objects.set(SET, marked);
    informers.replicaSets.upsert(marked);
    await settle();
    expect(writes()).toEqual([`patch ${POD}`, `patch ${SET}`]);
    expect(client.writes.map(({ body }) => body)).toMatchObject([
      { metadata: { ownerReferences: [] } },
      { metadata: { finalizers: [] } },
    ]);
  });

  const owned = (owner: object, name = 'p'): Pod => {
    const pod = makePod(name);
    return { ...pod, metadata: { ...pod.metadata, ownerReferences: [{ ...reference('x'), ...owner }] } };
  };

  it('watches the metadata of kinds that no other controller watches, without events', async () => {
    const { metadata } = start(setOf('web'), makePod('p'));
    await settle();
    expect([...metadata.keys()]).toEqual(['/api/v1/nodes']);
  });

  it('finds owners of no namespace', async () => {
    const { client, metadata, writes } = start(
      setOf('web'),
      owned({ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' }),
    );
    client.objects.set('/api/v1/nodes/n', { metadata: { ...meta('n'), uid: 'u' } });
    await settle();
    expect(writes()).toEqual([]);
    expect(metadata.size).toBe(1);
  });

  it('learns a kind that is defined later, and decides then', async () => {
    const pod = owned({ apiVersion: 'example.com/v1', kind: 'Widget', name: 'w', uid: 'u' });
    const { client, clock, writes } = start(setOf('web'), pod);
    await settle();
    expect(writes()).toEqual([]);
    client.objects.set('/apis', { groups: [{ versions: [{ groupVersion: 'example.com/v1' }] }] });
    const resources = [{ name: 'widgets', kind: 'Widget', namespaced: true, verbs: VERBS }];
    client.objects.set('/apis/example.com/v1', { resources });
    await clock.advance(30_000);
    await settle();
    expect(writes()).toEqual([`delete ${POD}`]);
  });

  it('reports an owner that is in another namespace, and does not count it', async () => {
    const set = { ...setOf('web'), metadata: { ...setOf('web').metadata, namespace: 'other' } };
    const { client, events, writes } = start(set, dependent('p', 'web'));
    client.objects.delete(SET);
    await settle();
    expect(events[0]).toBe(
      'p OwnerRefInvalidNamespace: ownerRef [apps/v1/ReplicaSet, namespace: demo, name: web, uid: uid-web] does not exist in namespace "demo"',
    );
    expect(writes()).toEqual([`delete ${POD}`]);
  });
});
