// What the StatefulSet controller writes, against a cluster in memory: the order, events, revisions, claims; and what it does not write
// while its caches lag.

import { describe, expect, it } from 'vitest';
import type { ControllerRevision, StatefulSet } from '../../../../controlplane/controllers/shared/objects.ts';
import { StatefulSetController } from '../../../../controlplane/controllers/statefulset/statefulset.ts';
import type { PersistentVolumeClaim } from '../../../../controlplane/storage/objects.ts';
import { apiError } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { liveEnvironment } from './live.ts';
import { setOf, template } from './stateful-cases.ts';

const SET = '/apis/apps/v1/namespaces/demo/statefulsets/web';
const CLAIMS = { volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }] };

async function start(spec: Partial<StatefulSet['spec']> = {}) {
  const env = liveEnvironment();
  env.run(new StatefulSetController(env.context, env.informers));
  env.put(SET, setOf(spec));
  await settle();
  const change = async (next: Partial<StatefulSet['spec']>): Promise<void> => {
    const known = env.informers.statefulSets.get('demo/web') ?? setOf();
    env.put(SET, { ...known, spec: { ...known.spec, ...next } });
    await settle();
  };
  /** All pods run, in order, and those that were deleted end, until nothing changes. */
  const converge = async (): Promise<void> => {
    for (let before = ''; before !== state(); ) {
      before = state();
      for (const name of env.podNames()) {
        const pod = env.informers.pods.get(`demo/${name}`);
        if (pod?.metadata.deletionTimestamp !== undefined) await env.end(name);
        else if (pod?.status?.phase === 'Pending') await env.report(name);
      }
    }
  };
  const state = (): string => JSON.stringify(env.informers.pods.list());
  const revisions = (): readonly ControllerRevision[] =>
    env.informers.controllerRevisions.list().toSorted((a, b) => a.revision - b.revision);
  const status = () => env.informers.statefulSets.get('demo/web')?.status;
  const writes = (verb: string, part: string): readonly string[] =>
    env.client.writes.filter((write) => write.verb === verb && write.path.includes(part)).map(({ path }) => path);
  return { ...env, change, converge, revisions, status, writes };
}

describe('pods', () => {
  it('come in order and go in the reverse one, each with an event', async () => {
    const { events, change, converge, report, podNames, status } = await start();
    expect(podNames()).toEqual(['web-0']);
    await report('web-0');
    expect(podNames()).toEqual(['web-0', 'web-1']);
    await converge();
    expect(status()).toMatchObject({ replicas: 3, readyReplicas: 3, currentReplicas: 3, updatedReplicas: 3 });
    await change({ replicas: 1 });
    await converge();
    expect(podNames()).toEqual(['web-0']);
    expect(events).toEqual([
      'web SuccessfulCreate: create Pod web-0 in StatefulSet web successful',
      'web SuccessfulCreate: create Pod web-1 in StatefulSet web successful',
      'web SuccessfulCreate: create Pod web-2 in StatefulSet web successful',
      'web SuccessfulDelete: delete Pod web-2 in StatefulSet web successful',
      'web SuccessfulDelete: delete Pod web-1 in StatefulSet web successful',
    ]);
  });

  it('of a name are never two: while one is Terminating on a node that is lost there is no other', async () => {
    const { client, clock, converge, end, podNames, writes } = await start({ replicas: 2 });
    await converge();
    await client.delete('/api/v1/namespaces/demo/pods/web-0');
    await settle();
    await clock.advance(3_600_000);
    expect(writes('create', '/pods')).toHaveLength(2);
    await end('web-0');
    expect(podNames().toSorted()).toEqual(['web-0', 'web-1']);
    expect(writes('create', '/pods')).toHaveLength(3);
  });

  it('are not made twice while the cache lags, and nothing is reported of it', async () => {
    const { clock, change, stall, catchUp, events, podNames, writes } = await start({ replicas: 0 });
    stall('pods');
    await change({ replicas: 1 });
    await change({ minReadySeconds: 1 });
    await clock.advance(100);
    expect(writes('create', '/pods').length).toBeGreaterThan(1);
    await catchUp();
    expect(podNames()).toEqual(['web-0']);
    expect(events).toEqual(['web SuccessfulCreate: create Pod web-0 in StatefulSet web successful']);
  });

  it('of another owner that have their name are left alone', async () => {
    const { client, clock, change, events, writes } = await start({ replicas: 0 });
    const ownerReferences = [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'uid-x', controller: true }];
    await client.create('/api/v1/namespaces/demo/pods', {
      metadata: { namespace: 'demo', name: 'web-0', labels: { app: 'web' }, ownerReferences },
      spec: {},
    });
    await change({ replicas: 1 });
    await clock.advance(1000);
    expect([events, writes('delete', '/pods/'), writes('patch', '/pods/')]).toEqual([[], [], []]);
  });

  it('carry the uid of the pod that was decided on when they are deleted', async () => {
    const { client, change, converge } = await start({ replicas: 1 });
    await converge();
    await change({ replicas: 0 });
    const deletion = client.writes.find(({ verb }) => verb === 'delete');
    expect(deletion?.body).toEqual({ preconditions: { uid: expect.stringContaining('uid-web-0-') } });
  });

  it('that are refused are reported, and tried again', async () => {
    const { client, clock, events, change, podNames } = await start({ replicas: 0 });
    client.failures.push(apiError(403, 'exceeded quota'));
    await change({ replicas: 1 });
    expect(events).toEqual(['web FailedCreate: create Pod web-0 in StatefulSet web failed error: exceeded quota']);
    await clock.advance(10);
    expect(podNames()).toEqual(['web-0']);
  });

  it('with minReadySeconds are waited for without an event', async () => {
    const { clock, report, podNames } = await start({ minReadySeconds: 30 });
    await report('web-0');
    await clock.advance(29_000);
    expect(podNames()).toEqual(['web-0']);
    await clock.advance(1_000);
    expect(podNames()).toEqual(['web-0', 'web-1']);
  });

  it('that ended are made again when they are gone', async () => {
    const { report, converge, podNames, writes } = await start({ replicas: 2 });
    await converge();
    await report('web-0', { phase: 'Failed' });
    expect(writes('delete', '/pods/')).toEqual(['/api/v1/namespaces/demo/pods/web-0']);
    await converge();
    expect([podNames().length, writes('create', '/pods').length]).toEqual([2, 3]);
  });

  it('of a set without controller are adopted by name, and released', async () => {
    const { client } = await start({ replicas: 0 });
    const metadata = { namespace: 'demo', labels: { app: 'web' } };
    await client.create('/api/v1/namespaces/demo/pods', { metadata: { ...metadata, name: 'web-7' }, spec: {} });
    await client.create('/api/v1/namespaces/demo/pods', { metadata: { ...metadata, name: 'web-x' }, spec: {} });
    await settle();
    const patched = client.writes.filter(({ verb }) => verb === 'patch').map(({ path }) => path);
    expect(patched).toEqual(['/api/v1/namespaces/demo/pods/web-7']);
  });
});

describe('revisions', () => {
  it('are a patch that makes the template what it was', async () => {
    const { revisions, status } = await start();
    const [revision, ...others] = revisions();
    expect(others).toEqual([]);
    expect(revision?.data).toEqual({ spec: { template: { ...template('v2'), $patch: 'replace' } } });
    expect(revision?.metadata.labels).toMatchObject({
      app: 'web',
      'controller.kubernetes.io/hash': expect.any(String),
    });
    expect(status()).toMatchObject({
      currentRevision: revision?.metadata.name,
      updateRevision: revision?.metadata.name,
      collisionCount: 0,
    });
  });

  it('follow an update, of which the top comes first; an older template becomes the newest again', async () => {
    const { change, converge, events, revisions, status } = await start({ replicas: 2 });
    await converge();
    const [first] = revisions();
    await change({ template: template('v3') });
    expect(status()).toMatchObject({ currentReplicas: 1, currentRevision: first?.metadata.name });
    await converge();
    expect(revisions().map(({ revision }) => revision)).toEqual([1, 2]);
    expect(status()?.currentRevision).toBe(revisions()[1]?.metadata.name);
    expect(events.slice(2)).toEqual([
      'web SuccessfulDelete: delete Pod web-1 in StatefulSet web successful',
      'web SuccessfulCreate: create Pod web-1 in StatefulSet web successful',
      'web SuccessfulDelete: delete Pod web-0 in StatefulSet web successful',
      'web SuccessfulCreate: create Pod web-0 in StatefulSet web successful',
    ]);
    await change({ template: template('v2') });
    await converge();
    expect(revisions().map(({ metadata, revision }) => [metadata.name === first?.metadata.name, revision])).toEqual([
      [false, 2],
      [true, 3],
    ]);
  });

  it('below a partition keep their pods, which are made of them again', async () => {
    const partition = { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } } };
    const { change, converge, client, informers } = await start({ replicas: 2, ...partition });
    await converge();
    await change({ template: template('v3') });
    await converge();
    await client.delete('/api/v1/namespaces/demo/pods/web-0');
    await settle();
    await converge();
    const images = informers.pods.list().map(({ metadata, spec }) => [metadata.name, spec.containers[0]?.image]);
    expect(Object.fromEntries(images)).toEqual({ 'web-0': 'v2', 'web-1': 'v3' });
  });

  it('beyond the limit go, the oldest first', async () => {
    const { change, converge, revisions } = await start({ replicas: 1, revisionHistoryLimit: 1 });
    for (const image of ['v3', 'v4', 'v5']) {
      await converge();
      await change({ template: template(image) });
    }
    await converge();
    expect(revisions().map(({ revision }) => revision)).toEqual([3, 4]);
  });

  it('whose name is taken by another template count the collision', async () => {
    const env = await start({ replicas: 0 });
    const [own] = env.revisions();
    const other = await start({ replicas: 0, template: template('other') });
    const name = other.revisions()[0]?.metadata.name ?? '';
    // The name that the other template would have is that of a revision with this one.
    env.put(`/apis/apps/v1/namespaces/demo/controllerrevisions/${name}`, {
      ...(own ?? other.revisions()[0]),
      metadata: { name, namespace: 'demo', uid: 'uid-other', resourceVersion: '1' },
    });
    await env.change({ template: template('other') });
    expect(env.status()?.collisionCount).toBe(1);
    expect(env.status()?.updateRevision).not.toBe(name);
  });
});

describe('claims', () => {
  const claimsOf = (env: { informers: { persistentVolumeClaims: { list(): readonly PersistentVolumeClaim[] } } }) =>
    env.informers.persistentVolumeClaims.list();

  it('are made before their pod, with an event', async () => {
    const env = await start({ replicas: 1, ...CLAIMS });
    const made = env.client.writes.filter(({ verb }) => verb === 'create').map(({ path }) => path.split('/').at(-1));
    expect(made).toEqual(['controllerrevisions', 'persistentvolumeclaims', 'pods']);
    expect(env.events).toEqual([
      'web SuccessfulCreate: create Claim data-web-0 Pod web-0 in StatefulSet web success',
      'web SuccessfulCreate: create Pod web-0 in StatefulSet web successful',
    ]);
  });

  it('stay when their pods go, and are used again', async () => {
    const env = await start({ replicas: 1, ...CLAIMS });
    await env.converge();
    await env.change({ replicas: 0 });
    await env.converge();
    expect(claimsOf(env).map(({ metadata }) => [metadata.name, metadata.ownerReferences])).toEqual([
      ['data-web-0', undefined],
    ]);
    await env.change({ replicas: 1 });
    expect(env.writes('create', '/persistentvolumeclaims')).toHaveLength(1);
  });

  it('that go with their pods are made anew, once the old ones are gone', async () => {
    const persistentVolumeClaimRetentionPolicy = { whenDeleted: 'Retain', whenScaled: 'Delete' };
    const env = await start({ replicas: 1, ...CLAIMS, persistentVolumeClaimRetentionPolicy });
    await env.converge();
    await env.change({ replicas: 0 });
    expect(claimsOf(env)[0]?.metadata.ownerReferences).toMatchObject([
      { kind: 'Pod', name: 'web-0', controller: true },
    ]);
    await env.converge();
    await env.change({ replicas: 1 });
    expect(env.podNames()).toEqual([]);
    await env.removeClaim('data-web-0');
    expect(env.podNames()).toEqual(['web-0']);
    expect(env.writes('create', '/persistentvolumeclaims')).toHaveLength(2);
  });

  it('that are refused keep the pod from being made', async () => {
    const env = await start({ replicas: 0, ...CLAIMS });
    env.client.failures.push(apiError(403, 'exceeded quota'));
    await env.change({ replicas: 1 });
    expect(env.podNames()).toEqual([]);
    expect(env.events).toEqual([
      'web FailedCreate: create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: exceeded quota',
      'web FailedCreate: create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: exceeded quota',
    ]);
  });
});
