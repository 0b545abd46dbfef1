// Deployments, replica sets and their deletion with stock kubectl, against an API server and the control plane. There is no
// node: the test reports pods as ready the way one would, but for those of the image "bad".

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../../../client/api.ts';
import { isConflict, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { Reflector } from '../../../client/reflector.ts';
import { objectKey, type ReadableStore } from '../../../client/store.ts';
import type { Event, Pod } from '../../../client/types.ts';
import type { Deployment, ReplicaSet } from '../../../controlplane/controllers/shared/objects.ts';
import { isActive, isReady } from '../../../controlplane/controllers/shared/pods.ts';
import { systemClock } from '../../../lib/clock.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import { type Kubectl, kubectlFor } from '../kubectl/support.ts';
import { kubectls } from '../support/kubectls.ts';
import { Cluster, eventually } from './cluster.ts';

const versions = (await kubectls()).filter(({ full }) => full);

let cluster: Cluster;
let admin: ApiClient;
let pods: ReadableStore<Pod>;
const stop = new AbortController();
let replicaSets: ReadableStore<ReplicaSet>;
let watching: Promise<unknown>;
const calls: Promise<void>[] = [];
const failures: unknown[] = [];

/** Reports a pod as a node does that has started its containers. */
async function makeReady(pod: Pod): Promise<void> {
  const lastTransitionTime = rfc3339(systemClock.now());
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime }] };
  const { namespace, name } = pod.metadata;
  const path = resourcePath('v1', 'pods', { namespace, name, subresource: 'status' });
  await admin.patch(path, { metadata: { uid: pod.metadata.uid }, status }, 'strategic');
}

beforeAll(async () => {
  cluster = await Cluster.start();
  admin = await cluster.client();
  await cluster.startControlPlane();
  const reflector = new Reflector<Pod>({ client: admin, path: '/api/v1/pods', clock: systemClock });
  pods = reflector.store;
  pods.onChange((changes) => {
    for (const { type, object } of changes) {
      const good = object.spec.containers.every(({ image }) => image !== 'bad');
      if (type !== 'added' || !good) continue;
      const call = makeReady(object).catch((error: unknown) => {
        if (!isNotFound(error) && !isConflict(error)) failures.push(error);
      });
      calls.push(call);
    }
  });
  const path = resourcePath('apps/v1', 'replicasets');
  const setReflector = new Reflector<ReplicaSet>({ client: admin, path, clock: systemClock });
  replicaSets = setReflector.store;
  watching = Promise.all([reflector.run(stop.signal), setReflector.run(stop.signal)]);
});
afterAll(async () => {
  stop.abort(new Error('the test has ended'));
  await watching;
  await Promise.all(calls);
  await cluster[Symbol.asyncDispose]();
  expect(failures).toEqual([]);
});

describe.each(versions)('kubectl $version', ({ command, version }) => {
  const namespace = `workloads-${version.replace('.', '-')}`;
  let kubectl: Kubectl;
  const podsOf = (): readonly Pod[] => pods.list().filter((pod) => pod.metadata.namespace === namespace);
  const web = (): Promise<Deployment> => admin.get(resourcePath('apps/v1', 'deployments', { namespace, name: 'web' }));
  const sets = async (): Promise<readonly ReplicaSet[]> =>
    (await admin.list<ReplicaSet>(resourcePath('apps/v1', 'replicasets', { namespace }))).items;
  const events = async (reason: string): Promise<readonly string[]> => {
    const { items } = await admin.list<Event>(resourcePath('v1', 'events', { namespace }));
    return items.filter((event) => event.reason === reason).map(({ message = '' }) => message);
  };
  const rolledOut = async (): Promise<void> => {
    expect(await kubectl.ok('rollout', 'status', 'deployment/web', '--timeout=240s')).toContain(
      'successfully rolled out',
    );
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

  it('makes a deployment’s pods, and every step is an event', async () => {
    await kubectl.ok('create', 'deployment', 'web', '--image=web:1', '--replicas=3');
    await rolledOut();
    expect(podsOf().map(isReady)).toEqual([true, true, true]);
    const [set] = await sets();
    // Each controller sends its own, in its own time.
    await eventually('the events', async () => {
      const found = [await events('SuccessfulCreate'), await events('ScalingReplicaSet')];
      return found.flat().length >= 4 ? true : undefined;
    });
    expect(await events('ScalingReplicaSet')).toEqual([`Scaled up replica set ${set?.metadata.name} from 0 to 3`]);
    expect((await events('SuccessfulCreate')).toSorted()).toEqual(
      podsOf()
        .map(({ metadata }) => `Created pod: ${metadata.name}`)
        .toSorted(),
    );
    expect(set?.metadata.labels).toEqual(set?.spec.selector.matchLabels);
  });

  it('replaces a pod that is deleted, and scales', async () => {
    const [pod] = podsOf();
    await kubectl.ok('delete', 'pod', pod?.metadata.name ?? '');
    await kubectl.ok('scale', 'deployment/web', '--replicas=5');
    await rolledOut();
    await eventually('five pods', async () => (podsOf().filter(isReady).length === 5 ? true : undefined));
    await kubectl.ok('scale', 'deployment/web', '--replicas=4');
    await eventually('four pods', async () => (podsOf().length === 4 ? true : undefined));
    await eventually('the status', async () => ((await web()).status?.replicas === 4 ? true : undefined));
  });

  it('rolls out another image without too few pods or too many', async () => {
    const ready: number[] = [];
    const wanted: number[] = [];
    const unwatch = pods.onChange(
      () => void ready.push(podsOf().filter((pod) => isActive(pod) && isReady(pod)).length),
    );
    const unwatchSets = replicaSets.onChange(() => {
      const own = replicaSets.list().filter(({ metadata }) => metadata.namespace === namespace);
      wanted.push(own.reduce((sum, { spec }) => sum + (spec.replicas ?? 1), 0));
    });
    await kubectl.ok('set', 'image', 'deployment/web', 'web=web:2');
    await rolledOut();
    unwatch();
    unwatchSets();
    // A quarter of four fewer, and as many more.
    expect(Math.min(...ready)).toBeGreaterThanOrEqual(3);
    expect(Math.max(...wanted)).toBe(5);
    const images = new Set(
      podsOf()
        .filter(isActive)
        .flatMap(({ spec }) => spec.containers.map(({ image }) => image)),
    );
    expect([...images]).toEqual(['web:2']);
    expect(await kubectl.ok('rollout', 'history', 'deployment/web')).toMatch(/^1 .*\n2 /m);
  });

  it('stops half-way at an image that does not start, and goes back', async () => {
    await kubectl.ok('set', 'image', 'deployment/web', 'web=bad');
    await eventually('two pods of the bad image', async () => {
      const bad = podsOf().filter(({ spec }) => spec.containers[0]?.image === 'bad');
      return bad.length === 2 ? true : undefined;
    });
    const good = (): number => podsOf().filter((pod) => isActive(pod) && isReady(pod)).length;
    await eventually('one good pod fewer', async () => (good() === 3 ? true : undefined));
    const waits = /Waiting for deployment "web" rollout to finish/;
    const status = await kubectl.until(['rollout', 'status', 'deployment/web'], (text) => waits.test(text));
    expect(good()).toBe(3);
    expect(status).not.toContain('successfully rolled out');
    await kubectl.ok('rollout', 'undo', 'deployment/web');
    await rolledOut();
    expect((await web()).metadata.annotations?.['deployment.kubernetes.io/revision']).toBe('4');
    expect(await kubectl.ok('rollout', 'history', 'deployment/web')).toMatch(/^1 .*\n3 .*\n4 /m);
    expect((await sets()).length).toBe(3);
  });

  it('does nothing while it is paused', async () => {
    await kubectl.ok('rollout', 'pause', 'deployment/web');
    await kubectl.ok('set', 'image', 'deployment/web', 'web=web:3');
    const paused = await eventually('the pause to be seen', async () => {
      const { metadata, status } = await web();
      return status?.observedGeneration === metadata.generation ? status : undefined;
    });
    expect(paused.conditions?.find(({ type }) => type === 'Progressing')?.reason).toBe('DeploymentPaused');
    expect((await sets()).length).toBe(3);
    await kubectl.ok('rollout', 'resume', 'deployment/web');
    await rolledOut();
    expect((await sets()).length).toBe(4);
  });

  it('shows a quota’s refusal in events and conditions', async () => {
    await kubectl.ok('create', 'quota', 'few', '--hard=pods=5');
    await kubectl.ok('scale', 'deployment/web', '--replicas=8');
    const failure = await eventually('the refusal', async () =>
      (await web()).status?.conditions?.find(({ type }) => type === 'ReplicaFailure'),
    );
    expect(failure).toMatchObject({ status: 'True', reason: 'FailedCreate' });
    expect(failure.message).toContain('exceeded quota: few');
    await eventually('the event', async () => (await events('FailedCreate'))[0]);
    await kubectl.ok('delete', 'quota', 'few');
    await kubectl.ok('scale', 'deployment/web', '--replicas=2');
    await rolledOut();
  });

  it('deletes each way: orphaned, in the foreground, in the background', async () => {
    await kubectl.ok('delete', 'deployment', 'web', '--cascade=orphan');
    const orphans = await sets();
    expect([orphans.length, orphans.flatMap(({ metadata }) => metadata.ownerReferences ?? [])]).toEqual([4, []]);
    await eventually('two pods', async () => (podsOf().filter(isActive).length === 2 ? true : undefined));
    // kubectl waits until they are gone, and they are gone after their pods.
    await kubectl.ok('delete', 'replicasets', '--all', '--cascade=foreground');
    const { items } = await admin.list<Pod>(resourcePath('v1', 'pods', { namespace }));
    expect(items.map(objectKey)).toEqual([]);
    await kubectl.ok('create', 'deployment', 'web', '--image=web:1', '--replicas=2');
    await rolledOut();
    await kubectl.ok('delete', 'deployment', 'web', '--cascade=background');
    await eventually('nothing left', async () => {
      return (await sets()).length === 0 && podsOf().length === 0 ? true : undefined;
    });
  });
});
