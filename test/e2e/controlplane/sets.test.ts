// Stateful sets, daemon sets and replication controllers with stock kubectl, against an API server and the control plane. There is no
// kubelet: the test has pods run as a node would, and ends those that are deleted, but for pods of the image "bad".

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../../../client/api.ts';
import { isConflict, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { Reflector } from '../../../client/reflector.ts';
import type { ReadableStore } from '../../../client/store.ts';
import type { Event, Pod } from '../../../client/types.ts';
import type { ControllerRevision, DaemonSet, StatefulSet } from '../../../controlplane/controllers/shared/objects.ts';
import { isReady } from '../../../controlplane/controllers/shared/pods.ts';
import type { PersistentVolumeClaim } from '../../../controlplane/storage/objects.ts';
import { systemClock } from '../../../lib/clock.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import { type Kubectl, kubectlFor } from '../kubectl/support.ts';
import { kubectls } from '../support/kubectls.ts';
import { Cluster, eventually } from './cluster.ts';

const versions = (await kubectls()).filter(({ full }) => full);
const NODES = ['worker-1', 'worker-2', 'worker-3'];

let cluster: Cluster;
let admin: ApiClient;
let pods: ReadableStore<Pod>;
const stop = new AbortController();
let watching: Promise<unknown>;
const calls: Promise<void>[] = [];
const failures: unknown[] = [];

/** What a node does with a pod: it runs, or has ended. */
async function live(pod: Pod): Promise<void> {
  const { namespace, name, uid, deletionTimestamp } = pod.metadata;
  if (deletionTimestamp !== undefined) {
    const path = resourcePath('v1', 'pods', { namespace, name });
    await admin.delete(path, { gracePeriodSeconds: 0, preconditions: { uid } });
    return;
  }
  const bad = pod.spec.containers.some(({ image }) => image === 'bad');
  if (bad || pod.status?.phase === 'Running') return;
  const lastTransitionTime = rfc3339(systemClock.now());
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime }] };
  const path = resourcePath('v1', 'pods', { namespace, name, subresource: 'status' });
  await admin.patch(path, { metadata: { uid }, status }, 'strategic');
}

async function makeNode(name: string): Promise<void> {
  const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }];
  const status = { conditions, allocatable: { cpu: '4', memory: '8Gi', pods: '110' } };
  const body = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'kubernetes.io/hostname': name } } };
  await admin.create(resourcePath('v1', 'nodes'), { ...body, status });
  await admin.patch(resourcePath('v1', 'nodes', { name, subresource: 'status' }), { status }, 'merge');
  // A new node is tainted until a controller has seen that it is ready.
  await admin.patch(resourcePath('v1', 'nodes', { name }), { spec: { taints: null } }, 'merge');
}

beforeAll(async () => {
  cluster = await Cluster.start();
  admin = await cluster.client();
  // The nodes report nothing after their creation, and stay ready all the same.
  await cluster.startControlPlane([], undefined, ['*', '-node-lifecycle-controller']);
  for (const name of NODES) await makeNode(name);
  const reflector = new Reflector<Pod>({ client: admin, path: '/api/v1/pods', clock: systemClock });
  pods = reflector.store;
  pods.onChange((changes) => {
    for (const { type, object } of changes) {
      if (type === 'removed') continue;
      const call = live(object).catch((error: unknown) => {
        if (!isNotFound(error) && !isConflict(error)) failures.push(error);
      });
      calls.push(call);
    }
  });
  watching = reflector.run(stop.signal);
});
afterAll(async () => {
  stop.abort(new Error('the test has ended'));
  await watching;
  await Promise.all(calls);
  await cluster[Symbol.asyncDispose]();
  expect(failures).toEqual([]);
});

/** Of a class that has no volumes: the pods with such claims are on no node, and the test has them run. */
const CLAIM = {
  accessModes: ['ReadWriteOnce'],
  storageClassName: 'none',
  resources: { requests: { storage: '1Mi' } },
};
const statefulSet = JSON.stringify({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'web' },
  spec: {
    serviceName: 'peers',
    replicas: 3,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'web:1' }] } },
    volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: CLAIM }],
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Retain' },
  },
});
const daemonSet = JSON.stringify({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'log' },
  spec: {
    selector: { matchLabels: { app: 'log' } },
    template: { metadata: { labels: { app: 'log' } }, spec: { containers: [{ name: 'log', image: 'log:1' }] } },
  },
});
const replicationController = JSON.stringify({
  apiVersion: 'v1',
  kind: 'ReplicationController',
  metadata: { name: 'old' },
  spec: {
    replicas: 2,
    template: { metadata: { labels: { app: 'old' } }, spec: { containers: [{ name: 'old', image: 'old:1' }] } },
  },
});

describe.each(versions)('kubectl $version', ({ command, version }) => {
  const namespace = `sets-${version.replace('.', '-')}`;
  let kubectl: Kubectl;
  const podsOf = (app: string): readonly Pod[] =>
    pods
      .list()
      .filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.['app'] === app)
      .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const names = (app: string): readonly string[] => podsOf(app).map(({ metadata }) => metadata.name);
  const images = (app: string): readonly (string | undefined)[] =>
    podsOf(app).map(({ spec }) => spec.containers[0]?.image);
  const web = (): Promise<StatefulSet> =>
    admin.get(resourcePath('apps/v1', 'statefulsets', { namespace, name: 'web' }));
  const claims = async (): Promise<readonly PersistentVolumeClaim[]> =>
    (await admin.list<PersistentVolumeClaim>(resourcePath('v1', 'persistentvolumeclaims', { namespace }))).items;
  const messages = async (reason: string, object: string): Promise<readonly string[]> => {
    const { items } = await admin.list<Event>(resourcePath('v1', 'events', { namespace }));
    return items
      .filter((event) => event.reason === reason && event.involvedObject.name === object)
      .map(({ message = '' }) => message);
  };
  /** Calls `check` until it is true. */
  const become = (what: string, check: () => boolean | Promise<boolean>): Promise<true> =>
    eventually(what, async () => ((await check()) ? true : undefined));
  const observed = async (): Promise<boolean> => {
    const { metadata, status } = await web();
    return status?.observedGeneration === metadata.generation;
  };

  beforeAll(async () => {
    const home = join(cluster.root, namespace);
    await mkdir(home);
    const plain = kubectlFor(command, cluster.kubeconfig, home);
    await plain.ok('create', 'namespace', namespace);
    await plain.ok('config', 'set-context', '--current', `--namespace=${namespace}`);
    await eventually('the service account', () =>
      admin.get(resourcePath('v1', 'serviceaccounts', { namespace, name: 'default' })).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      }),
    );
    kubectl = plain;
  });

  it('makes a stateful set’s pods in order, with names, host names and claims', async () => {
    const order: string[] = [];
    const unwatch = pods.onChange((changes) => {
      for (const { type, object } of changes) {
        if (object.metadata.namespace !== namespace || type === 'modified') continue;
        order.push(`${type === 'added' ? '+' : '-'}${object.metadata.name}`);
      }
    });
    await kubectl.feed(statefulSet, 'apply', '-f', '-');
    expect(await kubectl.ok('rollout', 'status', 'statefulset/web', '--timeout=240s')).toContain('complete');
    await kubectl.ok('scale', 'statefulset/web', '--replicas=1');
    await become('one pod', () => names('web').length === 1);
    unwatch();
    expect(order).toEqual(['+web-0', '+web-1', '+web-2', '-web-2', '-web-1']);
    const [first] = podsOf('web');
    expect(first?.spec).toMatchObject({ hostname: 'web-0', subdomain: 'peers' });
    expect(first?.metadata.labels).toMatchObject({
      'statefulset.kubernetes.io/pod-name': 'web-0',
      'apps.kubernetes.io/pod-index': '0',
      'controller-revision-hash': (await web()).status?.currentRevision,
    });
    // A claim gets its owner in a sync after the one that made it.
    const owners = async () =>
      (await claims()).map(({ metadata }) => [metadata.name, metadata.ownerReferences?.[0]?.kind]);
    await expect.poll(owners).toEqual(['data-web-0', 'data-web-1', 'data-web-2'].map((name) => [name, 'StatefulSet']));
    await become('the events', async () => (await messages('SuccessfulDelete', 'web')).length === 2);
    expect((await messages('SuccessfulCreate', 'web')).toSorted()).toEqual([
      ...[0, 1, 2].map((n) => `create Claim data-web-${n} Pod web-${n} in StatefulSet web success`),
      ...[0, 1, 2].map((n) => `create Pod web-${n} in StatefulSet web successful`),
    ]);
  });

  it('updates it from the top down to the partition, and goes back', async () => {
    await kubectl.ok('scale', 'statefulset/web', '--replicas=3');
    await kubectl.ok('rollout', 'status', 'statefulset/web', '--timeout=240s');
    const patch = JSON.stringify({ spec: { updateStrategy: { rollingUpdate: { partition: 2 } } } });
    await kubectl.ok('patch', 'statefulset/web', '--patch', patch);
    await kubectl.ok('set', 'image', 'statefulset/web', 'web=web:2');
    const partitioned = await kubectl.ok('rollout', 'status', 'statefulset/web', '--timeout=240s');
    expect(partitioned).toContain('partitioned roll out complete: 1 new pods have been updated');
    expect(images('web')).toEqual(['web:1', 'web:1', 'web:2']);
    expect((await web()).status).toMatchObject({ currentReplicas: 2, updatedReplicas: 1 });
    const all = JSON.stringify({ spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } });
    await kubectl.ok('patch', 'statefulset/web', '--patch', all);
    await kubectl.ok('rollout', 'status', 'statefulset/web', '--timeout=240s');
    expect(images('web')).toEqual(['web:2', 'web:2', 'web:2']);
    expect(await kubectl.ok('rollout', 'history', 'statefulset/web')).toMatch(/^1 .*\n2 /m);
    await kubectl.ok('rollout', 'undo', 'statefulset/web');
    await kubectl.ok('rollout', 'status', 'statefulset/web', '--timeout=240s');
    expect(images('web')).toEqual(['web:1', 'web:1', 'web:1']);
    expect(await kubectl.ok('rollout', 'history', 'statefulset/web')).toMatch(/^2 .*\n3 /m);
  });

  it('stops an update at a pod that does not run', async () => {
    await kubectl.ok('set', 'image', 'statefulset/web', 'web=bad');
    await become('the bad pod', () => images('web')[2] === 'bad');
    await become('the change to be observed', observed);
    expect(images('web')).toEqual(['web:1', 'web:1', 'bad']);
    // As with upstream's controller it is the user who deletes the pod once the template is good again.
    await kubectl.ok('rollout', 'undo', 'statefulset/web');
    await become('the good template to be observed', observed);
    await kubectl.ok('delete', 'pod', 'web-2', '--wait=false');
    await kubectl.ok('rollout', 'status', 'statefulset/web', '--timeout=240s');
    expect(images('web')).toEqual(['web:1', 'web:1', 'web:1']);
  });

  it('makes no second pod of a name while one is Terminating, as on a node that is lost', async () => {
    const path = resourcePath('v1', 'pods', { namespace, name: 'web-1' });
    await admin.patch(path, { metadata: { finalizers: ['example.com/lost'] } }, 'merge');
    const [, before] = podsOf('web');
    await kubectl.ok('delete', 'pod', 'web-1', '--wait=false');
    await kubectl.ok('scale', 'statefulset/web', '--replicas=4');
    await become('the change to be observed', observed);
    await become('the deletion to be counted', async () => (await web()).status?.updatedReplicas === 2);
    expect([names('web'), podsOf('web')[1]?.metadata.uid]).toEqual([['web-0', 'web-1', 'web-2'], before?.metadata.uid]);
    await admin.patch(path, { metadata: { finalizers: null } }, 'merge');
    await kubectl.ok('rollout', 'status', 'statefulset/web', '--timeout=240s');
    expect(names('web')).toEqual(['web-0', 'web-1', 'web-2', 'web-3']);
    expect(podsOf('web')[1]?.metadata.uid).not.toBe(before?.metadata.uid);
    await kubectl.ok('scale', 'statefulset/web', '--replicas=3');
    await become('three pods', () => names('web').length === 3);
  });

  it('leaves its pods and claims with --cascade=orphan, and a new one adopts them', async () => {
    const before = podsOf('web').map(({ metadata }) => metadata.uid);
    await kubectl.ok('delete', 'statefulset', 'web', '--cascade=orphan');
    const revisions = await admin.list<ControllerRevision>(
      resourcePath('apps/v1', 'controllerrevisions', { namespace }),
    );
    expect(revisions.items.flatMap(({ metadata }) => metadata.ownerReferences ?? [])).toEqual([]);
    await become('orphans', () => podsOf('web').every(({ metadata }) => (metadata.ownerReferences ?? []).length === 0));
    const orphans = await claims();
    expect([orphans.length, orphans.flatMap(({ metadata }) => metadata.ownerReferences ?? [])]).toEqual([4, []]);
    await kubectl.feed(statefulSet, 'apply', '-f', '-');
    await become('three pods of the new set', async () => (await web()).status?.readyReplicas === 3);
    expect(podsOf('web').map(({ metadata }) => metadata.uid)).toEqual(before);
    const owned = ({ metadata }: PersistentVolumeClaim): boolean => metadata.ownerReferences?.length === 1;
    await become('the claims’ owner', async () => (await claims()).filter(owned).length === 3);
    await kubectl.ok('delete', 'statefulset', 'web', '--cascade=foreground');
    // That of web-3 has no owner: there was no pod with it any more for which the new set could have seen to it.
    const left = async () => [names('web'), (await claims()).map(({ metadata }) => metadata.name)];
    await expect.poll(left).toEqual([[], ['data-web-3']]);
  });

  it('runs a daemon set on every node, updates it and goes back', async () => {
    await kubectl.feed(daemonSet, 'apply', '-f', '-');
    expect(await kubectl.ok('rollout', 'status', 'daemonset/log', '--timeout=240s')).toContain(
      'successfully rolled out',
    );
    // They run here before the scheduler has bound them.
    await expect
      .poll(() =>
        podsOf('log')
          .map(({ spec }) => spec.nodeName)
          .toSorted(),
      )
      .toEqual(NODES);
    const created = names('log').map((name) => `Created pod: ${name}`);
    await become('the events', async () => (await messages('SuccessfulCreate', 'log')).length === 3);
    expect((await messages('SuccessfulCreate', 'log')).toSorted()).toEqual(created);
    await kubectl.ok('set', 'image', 'daemonset/log', 'log=log:2');
    await kubectl.ok('rollout', 'status', 'daemonset/log', '--timeout=240s');
    expect(images('log')).toEqual(['log:2', 'log:2', 'log:2']);
    expect(await kubectl.ok('rollout', 'history', 'daemonset/log')).toMatch(/^1 .*\n2 /m);
    await kubectl.ok('rollout', 'undo', 'daemonset/log');
    await kubectl.ok('rollout', 'status', 'daemonset/log', '--timeout=240s');
    expect(images('log')).toEqual(['log:1', 'log:1', 'log:1']);
    const before = podsOf('log').map(({ metadata }) => metadata.uid);
    await kubectl.ok('rollout', 'restart', 'daemonset/log');
    await kubectl.ok('rollout', 'status', 'daemonset/log', '--timeout=240s');
    expect(podsOf('log').filter(({ metadata }) => before.includes(metadata.uid))).toEqual([]);
    await kubectl.ok('taint', 'node', 'worker-2', 'dedicated=x:NoExecute');
    await become('two pods', () => podsOf('log').length === 2);
    await kubectl.ok('taint', 'node', 'worker-2', 'dedicated-');
    await become('three pods', () => podsOf('log').filter(isReady).length === 3);
    const path = resourcePath('apps/v1', 'daemonsets', { namespace, name: 'log' });
    await become('the status', async () => (await admin.get<DaemonSet>(path)).status?.numberAvailable === 3);
    await kubectl.ok('delete', 'daemonset', 'log', '--cascade=foreground');
    await expect.poll(() => names('log')).toEqual([]);
  });

  it('keeps a replication controller’s pods, and deletes them with it or leaves them', async () => {
    await kubectl.feed(replicationController, 'apply', '-f', '-');
    await become('two pods', () => podsOf('old').filter(isReady).length === 2);
    await kubectl.ok('scale', 'rc/old', '--replicas=3');
    await become('three pods', () => podsOf('old').filter(isReady).length === 3);
    const [pod = ''] = names('old');
    await kubectl.ok('delete', 'pod', pod);
    await become('another one', () => podsOf('old').filter(isReady).length === 3 && !names('old').includes(pod));
    const left = names('old');
    await kubectl.ok('delete', 'rc', 'old', '--cascade=orphan');
    await become('orphans', () => podsOf('old').every(({ metadata }) => (metadata.ownerReferences ?? []).length === 0));
    expect(names('old')).toEqual(left);
    await kubectl.feed(replicationController, 'apply', '-f', '-');
    await become('two of them', () => podsOf('old').length === 2);
    await kubectl.ok('delete', 'rc', 'old', '--cascade=foreground');
    await expect.poll(() => names('old')).toEqual([]);
  });
});
