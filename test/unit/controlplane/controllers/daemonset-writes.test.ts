// What the DaemonSet controller writes, against a cluster in memory: pods as nodes come, go and change, updates, revisions, the delay
// of failed pods; and what it does not write while its caches lag.

import type { Taint } from 'kubernetes-types/core/v1';
import { describe, expect, it } from 'vitest';
import { DaemonSetController } from '../../../../controlplane/controllers/daemonset/daemonset.ts';
import { targetNode } from '../../../../controlplane/controllers/daemonset/placement.ts';
import type { ControllerRevision, DaemonSet } from '../../../../controlplane/controllers/shared/objects.ts';
import { apiError } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { makeNode } from '../environment.ts';
import { setWith } from './daemon-cases.ts';
import { liveEnvironment } from './live.ts';

const SET = '/apis/apps/v1/namespaces/demo/daemonsets/web';
const template = (image: string) => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image }] },
});

async function start(spec: Partial<DaemonSet['spec']> = {}, nodes: readonly string[] = ['a', 'b', 'c']) {
  const env = liveEnvironment();
  env.run(new DaemonSetController(env.context, env.informers));
  for (const name of nodes) env.informers.nodes.upsert(makeNode(name, 'True'));
  env.put(SET, setWith(spec));
  await settle();
  const change = async (next: Partial<DaemonSet['spec']>): Promise<void> => {
    const known = env.informers.daemonSets.get('demo/web') ?? setWith(spec);
    const generation = String((known.metadata.generation ?? 0) + 1);
    const annotations = { 'deprecated.daemonset.template.generation': generation };
    const metadata = { ...known.metadata, generation: Number(generation), annotations };
    env.put(SET, { ...known, metadata, spec: { ...known.spec, ...next } } as DaemonSet);
    await settle();
  };
  const pods = () => env.informers.pods.list();
  /** Pods run, and those that were deleted end, until nothing changes. `look` is called after each step. */
  const converge = async (look: () => void = () => undefined): Promise<void> => {
    for (let before = ''; before !== JSON.stringify(pods()); ) {
      before = JSON.stringify(pods());
      for (const { metadata, status } of pods()) {
        if (metadata.deletionTimestamp !== undefined) await env.end(metadata.name);
        else if (status?.phase === 'Pending') await env.report(metadata.name);
        look();
      }
    }
  };
  const revisions = (): readonly ControllerRevision[] =>
    env.informers.controllerRevisions.list().toSorted((a, b) => a.revision - b.revision);
  const status = () => env.informers.daemonSets.get('demo/web')?.status;
  const placed = (): readonly (string | undefined)[] => pods().map(targetNode).toSorted();
  return { ...env, change, converge, pods, placed, revisions, status };
}

describe('pods', () => {
  it('are made for each node, bound by none but the scheduler', async () => {
    const { events, pods, placed, status } = await start();
    expect([placed(), pods().map(({ spec }) => spec.nodeName)]).toEqual([
      ['a', 'b', 'c'],
      [undefined, undefined, undefined],
    ]);
    expect(pods()[0]?.metadata.generateName).toBe('web-');
    expect(events).toEqual(pods().map(({ metadata }) => `web SuccessfulCreate: Created pod: ${metadata.name}`));
    expect(status()).toMatchObject({ desiredNumberScheduled: 3, currentNumberScheduled: 3, observedGeneration: 1 });
  });

  it('follow nodes: new ones, tainted ones, those that are gone', async () => {
    const { informers, placed, pods, converge, status } = await start({}, ['a']);
    await converge();
    informers.nodes.upsert(makeNode('b', 'True'));
    await settle();
    expect(placed()).toEqual(['a', 'b']);
    const taints: Taint[] = [{ key: 'x', effect: 'NoExecute' }];
    const { metadata } = informers.nodes.get('a') ?? makeNode('a', 'True');
    informers.nodes.upsert({
      ...makeNode('a', 'True', { taints }),
      metadata: { ...metadata, resourceVersion: 'later' },
    });
    await settle();
    expect(
      pods()
        .filter((pod) => pod.metadata.deletionTimestamp !== undefined)
        .map(targetNode),
    ).toEqual(['a']);
    await converge();
    const gone = informers.nodes.get('b');
    if (gone !== undefined) informers.nodes.remove(gone);
    await settle();
    expect(status()).toMatchObject({ desiredNumberScheduled: 0, numberMisscheduled: 0 });
  });

  it('are not made twice while the cache lags', async () => {
    const { change, stall, catchUp, informers, placed, status } = await start({}, []);
    stall('pods');
    informers.nodes.upsert(makeNode('a', 'True'));
    await settle();
    await change({ minReadySeconds: 1 });
    // What has not been acted on is not observed.
    expect(status()).toMatchObject({ desiredNumberScheduled: 1, currentNumberScheduled: 0, observedGeneration: 1 });
    await catchUp();
    expect([placed(), status()?.observedGeneration]).toEqual([['a'], 2]);
  });

  it('that are refused are reported, and tried again', async () => {
    const { client, clock, events, informers, placed } = await start({}, []);
    client.failures.push(apiError(403, 'exceeded quota'));
    informers.nodes.upsert(makeNode('a', 'True'));
    await settle();
    await clock.advance(10);
    expect(events).toEqual([
      'web FailedCreate: Error creating: exceeded quota',
      expect.stringMatching(/^web SuccessfulCreate: /),
    ]);
    expect(placed()).toEqual(['a']);
  });

  it('that fail are replaced, ever later', async () => {
    const { clock, converge, end, events, podNames, report } = await start({}, ['a']);
    await converge();
    const waits: number[] = [];
    for (let round = 0; round < 4; round++) {
      const [name = ''] = podNames();
      const before = clock.monotonic();
      await report(name, { phase: 'Failed' });
      while (!events.some((event) => event.includes(`demo/${name} on`))) await clock.advance(clock.nextTimerMs ?? 1);
      waits.push(clock.monotonic() - before);
      await end(name);
    }
    expect(waits).toEqual([0, 1000, 2000, 4000]);
    expect(events[1]).toMatch(
      /^web FailedDaemonPod: Found failed daemon pod demo\/\S+ on node a, will try to kill it$/,
    );
  });

  it('that end well are replaced at once', async () => {
    const { converge, events, podNames, report } = await start({}, ['a']);
    await converge();
    const [name = ''] = podNames();
    await report(name, { phase: 'Succeeded' });
    expect(events.slice(1)).toEqual([
      `web SucceededDaemonPod: Found succeeded daemon pod demo/${name} on node a, will try to delete it`,
      `web SuccessfulDelete: Deleted pod: ${name}`,
      expect.stringMatching(/^web SuccessfulCreate: /),
    ]);
  });
});

describe('an update', () => {
  const images = (pods: readonly { spec: { containers: { image?: string }[] } }[]) =>
    pods.map(({ spec }) => spec.containers[0]?.image);

  it('leaves no more nodes without a pod than it may', async () => {
    const { change, converge, pods, status } = await start();
    await converge();
    const serving: number[] = [];
    await change({ template: template('v2') });
    await converge(() => {
      const ready = pods().filter(
        (pod) => pod.metadata.deletionTimestamp === undefined && pod.status?.phase === 'Running',
      );
      serving.push(ready.length);
    });
    expect(Math.min(...serving)).toBe(2);
    expect(images(pods())).toEqual(['v2', 'v2', 'v2']);
    expect(status()).toMatchObject({ updatedNumberScheduled: 3, numberAvailable: 3, numberUnavailable: 0 });
  });

  it('that goes back half-way leaves the pods that it has not reached', async () => {
    const { change, converge, end, pods } = await start();
    await converge();
    await change({ template: template('bad') });
    const [gone] = pods().filter((pod) => pod.metadata.deletionTimestamp !== undefined);
    await end(gone?.metadata.name ?? '');
    const kept = pods().filter((pod) => pod.status?.phase === 'Running');
    expect(images(pods()).toSorted()).toEqual(['bad', 'v1', 'v1']);
    await change({ template: template('v1') });
    await converge();
    expect(images(pods())).toEqual(['v1', 'v1', 'v1']);
    expect(pods().map(({ metadata }) => metadata.uid)).toEqual(
      expect.arrayContaining(kept.map(({ metadata }) => metadata.uid)),
    );
  });

  it('with surge leaves none without', async () => {
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } };
    const { change, converge, pods } = await start({ updateStrategy });
    await converge();
    const counts: number[] = [];
    const serving: number[] = [];
    await change({ template: template('v2') });
    await converge(() => {
      const alive = pods().filter((pod) => pod.metadata.deletionTimestamp === undefined);
      counts.push(alive.length);
      serving.push(new Set(alive.filter((pod) => pod.status?.phase === 'Running').map(targetNode)).size);
    });
    expect([Math.min(...serving), Math.max(...counts)]).toEqual([3, 4]);
    expect(images(pods())).toEqual(['v2', 'v2', 'v2']);
  });

  it('waits for the user with OnDelete', async () => {
    const { change, client, converge, pods } = await start({ updateStrategy: { type: 'OnDelete' } });
    await converge();
    await change({ template: template('v2') });
    await converge();
    expect(images(pods())).toEqual(['v1', 'v1', 'v1']);
    await client.delete(`/api/v1/namespaces/demo/pods/${pods()[0]?.metadata.name}`);
    await settle();
    await converge();
    expect(images(pods()).toSorted()).toEqual(['v1', 'v1', 'v2']);
  });

  it('is a revision with the hash of its pods; going back makes the old one the newest', async () => {
    const { change, converge, pods, revisions } = await start({}, ['a']);
    await converge();
    const [first] = revisions();
    expect(first?.data).toEqual({ spec: { template: { ...template('v1'), $patch: 'replace' } } });
    expect(first?.metadata.labels?.['controller-revision-hash']).toBe(
      pods()[0]?.metadata.labels?.['controller-revision-hash'],
    );
    await change({ template: template('v2') });
    await converge();
    await change({ template: template('v1') });
    await converge();
    expect(revisions().map(({ metadata, revision }) => [metadata.name === first?.metadata.name, revision])).toEqual([
      [false, 2],
      [true, 3],
    ]);
  });

  it('keeps as many old revisions as it may', async () => {
    const { change, converge, revisions } = await start({ revisionHistoryLimit: 1 }, ['a']);
    for (const image of ['v2', 'v3', 'v4']) {
      await converge();
      await change({ template: template(image) });
    }
    await converge();
    expect(revisions().map(({ revision }) => revision)).toEqual([3, 4]);
  });

  it('has one revision of a template: others go, and their pods get its hash', async () => {
    const { change, converge, put, pods, revisions } = await start({}, ['a']);
    await converge();
    const [own] = revisions();
    if (own === undefined) throw new Error('there is a revision');
    put('/apis/apps/v1/namespaces/demo/controllerrevisions/web-double', {
      ...own,
      metadata: {
        ...own.metadata,
        name: 'web-double',
        uid: 'uid-double',
        labels: { app: 'web', 'controller-revision-hash': 'double' },
      },
      revision: 2,
    } as ControllerRevision);
    await change({ minReadySeconds: 0 });
    expect(revisions().map(({ metadata }) => metadata.name)).toEqual(['web-double']);
    expect(pods()[0]?.metadata.labels).toMatchObject({ 'controller-revision-hash': 'double' });
  });
});
