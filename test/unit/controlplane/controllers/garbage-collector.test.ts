// The garbage collector: what becomes of an object, as a table, and the three ways of deleting a tree of objects.

import { describe, expect, it } from 'vitest';
import type { Identified } from '../../../../client/store.ts';
import type { Pod } from '../../../../client/types.ts';
import {
  type Action,
  decideLeaving,
  decideOwned,
  type OwnerState,
} from '../../../../controlplane/controllers/garbage-collector/decide.ts';
import { GarbageCollector } from '../../../../controlplane/controllers/garbage-collector/garbage-collector.ts';
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

  function start(set: ReplicaSet, pod: Pod) {
    const env = environment();
    const collector = new GarbageCollector(env.context, env.informers);
    env.client.objects.set(SET, set);
    env.informers.deployments.replace([]);
    env.informers.replicaSets.replace([set]);
    env.informers.pods.replace([pod]);
    env.run(collector);
    const writes = () => env.client.writes.map(({ verb, path }) => `${verb} ${path}`);
    return { ...env, writes };
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
      { metadata: { ownerReferences: [{ $patch: 'delete', uid: 'uid-web' }] } },
      { metadata: { finalizers: [] } },
    ]);
  });
});
