// The ReplicaSet controller: what it decides, as tables, and what it does against a client in memory.

import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../../client/types.ts';
import { choosePodsToDelete } from '../../../../controlplane/controllers/replicaset/ranking.ts';
import { ReplicaSetController } from '../../../../controlplane/controllers/replicaset/replicaset.ts';
import { replicaSetStatus } from '../../../../controlplane/controllers/replicaset/status.ts';
import { EXPECTATION_MS, Expectations } from '../../../../controlplane/controllers/shared/expectations.ts';
import type { ReplicaSet } from '../../../../controlplane/controllers/shared/objects.ts';
import { slowStart } from '../../../../controlplane/controllers/shared/slow-start.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { rfc3339 } from '../../../../lib/rfc3339.ts';
import { apiError, type Write } from '../../../support/fake-client.ts';
import { settle, VirtualClock } from '../../../support/virtual-clock.ts';
import { environment, meta, NOW } from '../environment.ts';

const AT = epochMs(Date.parse(NOW));
const ago = (seconds: number): string => rfc3339(plusMs(AT, -seconds * 1000));
const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'uid-web', controller: true };

function makeSet(replicas: number, spec: Partial<ReplicaSet['spec']> = {}): ReplicaSet {
  return {
    metadata: { ...meta('web'), namespace: 'demo', generation: 1 },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c' }] } },
      ...spec,
    },
    status: { replicas: 0 },
  };
}

interface Facts {
  readonly node?: string;
  readonly phase?: string;
  readonly readyFor?: number;
  readonly age?: number;
  readonly restarts?: number;
  readonly cost?: string;
  readonly labels?: Record<string, string>;
}

function podOf(name: string, facts: Facts = {}, owned = true): Pod {
  const { node = '', phase = 'Running', readyFor, age = 100, restarts = 0, cost, labels = { app: 'web' } } = facts;
  const ready = { type: 'Ready', status: 'True', lastTransitionTime: ago(readyFor ?? 0) };
  return {
    metadata: {
      ...meta(name),
      namespace: 'demo',
      labels,
      creationTimestamp: ago(age),
      ...(cost === undefined ? {} : { annotations: { 'controller.kubernetes.io/pod-deletion-cost': cost } }),
      ...(owned ? { ownerReferences: [OWNER] } : {}),
    },
    spec: { containers: [{ name: 'c' }], nodeName: node },
    status: {
      phase,
      conditions: readyFor === undefined ? [] : [ready],
      containerStatuses: [{ name: 'c', image: '', imageID: '', ready: true, restartCount: restarts }],
    },
  };
}

describe('which pod goes first', () => {
  it.each<[string, Facts, Facts]>([
    ['one without a node', {}, { node: 'a' }],
    ['a pending one', { node: 'a', phase: 'Pending' }, { node: 'a' }],
    ['one of unknown phase before a running one', { node: 'a', phase: 'Unknown' }, { node: 'a' }],
    ['one that is not ready', { node: 'a' }, { node: 'a', readyFor: 5 }],
    ['the cheaper one', { node: 'a', readyFor: 500, cost: '-1' }, { node: 'a', readyFor: 5 }],
    ['one whose cost is no number counts as 0', { node: 'a', cost: '01' }, { node: 'a', cost: '1' }],
    ['one that has been ready for less time', { node: 'a', readyFor: 5 }, { node: 'a', readyFor: 500 }],
    ['one that has restarted more often', { node: 'a', restarts: 3 }, { node: 'a', restarts: 2 }],
    ['the younger one', { node: 'a', age: 5 }, { node: 'a', age: 500 }],
    ['of two of about the same age, the one with the smaller uid', { node: 'a', age: 101 }, { node: 'a', age: 100 }],
  ])('%s', (_what, first, second) => {
    const [a, b] = [podOf('a', first), podOf('b', second)];
    expect(choosePodsToDelete([b, a], [], 1, AT)).toEqual([a]);
    expect(choosePodsToDelete([a, b], [], 1, AT)).toEqual([a]);
  });

  it('the one with more related pods on its node', () => {
    const [a, b, other] = [podOf('a', { node: 'n' }), podOf('b', { node: 'm' }), podOf('other', { node: 'm' }, false)];
    expect(choosePodsToDelete([a, b], [a, b, other], 1, AT)).toEqual([b]);
  });
});

describe('the status', () => {
  it('counts labels, readiness and minReadySeconds', () => {
    const set = makeSet(3, { minReadySeconds: 10 });
    const pods = [podOf('a', { readyFor: 10 }), podOf('b', { readyFor: 9 }), podOf('c', { labels: { app: 'x' } })];
    expect(replicaSetStatus(set, pods, undefined, AT)).toEqual({
      replicas: 3,
      fullyLabeledReplicas: 2,
      readyReplicas: 2,
      availableReplicas: 1,
      observedGeneration: 1,
    });
  });

  it('has a failure until it is over, as it was when it began', () => {
    const set = makeSet(1);
    const failed = replicaSetStatus(set, [], 'no', AT);
    const condition = { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'no' };
    expect(failed.conditions).toEqual([{ ...condition, lastTransitionTime: NOW }]);
    const later = replicaSetStatus({ ...set, status: failed }, [], 'another', plusMs(AT, 9000));
    expect(later.conditions).toEqual(failed.conditions);
    expect(replicaSetStatus({ ...set, status: failed }, [], undefined, AT).conditions).toBeUndefined();
  });
});

describe('slow start', () => {
  it.each([
    [7, 7, 7],
    [20, 0, 1],
    [20, 1, 3],
    [20, 4, 7],
  ])('of %i, with %i that succeed, %i are tried', async (count, good, tried) => {
    let calls = 0;
    const { succeeded } = await slowStart(count, async () => {
      calls++;
      if (calls > good) throw new Error('refused');
    });
    expect([succeeded, calls]).toEqual([Math.min(good, count), tried]);
  });
});

describe('expectations', () => {
  it('are met when the cache shows what was done, in whatever order answers and events come', () => {
    const expectations = new Expectations(new VirtualClock());
    expectations.expectCreations('o', 2);
    expectations.observedCreation('o', 'early');
    expectations.created('o', 'early');
    expectations.created('o', 'late');
    expect(expectations.satisfied('o')).toBe(false);
    expectations.observedCreation('o', 'stranger');
    expect(expectations.satisfied('o')).toBe(false);
    expectations.observedCreation('o', 'late');
    expect(expectations.satisfied('o')).toBe(true);
  });

  it('are given up after five minutes', async () => {
    const clock = new VirtualClock();
    const expectations = new Expectations(clock);
    expectations.expectDeletions('o', ['a']);
    await clock.advance(EXPECTATION_MS);
    expect(expectations.satisfied('o')).toBe(false);
    await clock.advance(1);
    expect(expectations.satisfied('o')).toBe(true);
  });
});

describe('the controller', () => {
  function start(set: ReplicaSet, pods: readonly Pod[] = []) {
    const env = environment();
    const created: Pod[] = [];
    env.client.onWrite = ({ verb, path, body }: Write) => {
      if (verb !== 'create' || !path.endsWith('/pods')) return body;
      const pod = podOf(`made-${created.length}`);
      created.push(pod);
      return pod;
    };
    const controller = new ReplicaSetController(env.context, env.informers);
    env.informers.pods.replace(pods);
    env.informers.replicaSets.replace([set]);
    env.client.objects.set('/apis/apps/v1/namespaces/demo/replicasets/web', set);
    env.run(controller);
    const wake = async (resourceVersion: string): Promise<void> => {
      const { status } = lastStatus(env.client.writes) ?? set;
      env.informers.replicaSets.upsert({
        ...set,
        metadata: { ...set.metadata, resourceVersion },
        ...(status === undefined ? {} : { status }),
      });
      await settle();
    };
    return { ...env, created, wake };
  }
  const lastStatus = (writes: readonly Write[]): ReplicaSet | undefined =>
    writes.findLast(({ path }) => path.endsWith('/status'))?.body as ReplicaSet | undefined;
  const creations = (writes: readonly Write[]) => writes.filter(({ verb }) => verb === 'create').length;

  it('creates pods of the template with itself as controller, and says so', async () => {
    const { client, events } = start(makeSet(1));
    await settle();
    expect(client.writes[0]).toEqual({
      verb: 'create',
      path: '/api/v1/namespaces/demo/pods',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          generateName: 'web-',
          labels: { app: 'web' },
          ownerReferences: [{ ...OWNER, blockOwnerDeletion: true }],
        },
        spec: { containers: [{ name: 'c' }] },
      },
    });
    expect(events).toEqual(['web SuccessfulCreate: Created pod: made-0']);
  });

  it('looks again when a pod that it made was never seen, without an event', async () => {
    const { client, clock, wake } = start(makeSet(1));
    await settle();
    await wake('x1');
    await clock.advance(EXPECTATION_MS);
    expect(creations(client.writes)).toBe(1);
    await clock.advance(1000);
    expect(creations(client.writes)).toBe(2);
  });

  it('creates nothing again while its cache does not show what it made', async () => {
    const { client, created, informers, wake } = start(makeSet(3));
    await settle();
    expect(creations(client.writes)).toBe(3);
    await wake('x1');
    for (const pod of created.slice(0, 2)) informers.pods.upsert(pod);
    await settle();
    expect(creations(client.writes)).toBe(3);
    // One of the three is gone before the last one is seen: no more than that one is made.
    const [first, , last] = created;
    if (first === undefined || last === undefined) throw new Error('three pods were made');
    informers.pods.remove(first);
    informers.pods.upsert(last);
    await settle();
    expect(creations(client.writes)).toBe(4);
  });

  it('reports a refusal in an event and a condition, and goes on trying', async () => {
    const env = start(makeSet(5));
    env.client.failures.push(apiError(403, 'exceeded quota'));
    await settle();
    expect(env.events).toEqual(['web FailedCreate: Error creating: exceeded quota']);
    expect(lastStatus(env.client.writes)?.status?.conditions?.[0]).toMatchObject({
      type: 'ReplicaFailure',
      reason: 'FailedCreate',
      message: 'exceeded quota',
    });
    await env.clock.advance(5);
    await settle();
    expect(creations(env.client.writes)).toBe(5);
  });

  it('deletes what is too much, each once', async () => {
    const pods = ['a', 'b', 'c'].map((name, index) => podOf(name, { node: 'n', readyFor: 10 ** (index + 1) }));
    const { client, events, wake } = start(makeSet(1), pods);
    await settle();
    await wake('x2');
    const deleted = client.writes.filter(({ verb }) => verb === 'delete').map(({ path }) => path);
    expect(deleted).toEqual(['a', 'b'].map((name) => `/api/v1/namespaces/demo/pods/${name}`));
    expect(events).toEqual(['web SuccessfulDelete: Deleted pod: a', 'web SuccessfulDelete: Deleted pod: b']);
  });

  it('adopts orphans that it selects and releases pods that it no longer selects', async () => {
    const pods = [podOf('orphan', {}, false), podOf('stray', { labels: { app: 'other' } })];
    const { client } = start(makeSet(1), pods);
    await settle();
    const patches = client.writes.filter(({ verb }) => verb === 'patch');
    expect(patches.map(({ path, body }) => [path, body])).toEqual([
      [
        '/api/v1/namespaces/demo/pods/stray',
        { metadata: { uid: 'uid-stray', ownerReferences: [{ $patch: 'delete', uid: 'uid-web' }] } },
      ],
      [
        '/api/v1/namespaces/demo/pods/orphan',
        { metadata: { uid: 'uid-orphan', ownerReferences: [{ ...OWNER, blockOwnerDeletion: true }] } },
      ],
    ]);
    expect(creations(client.writes)).toBe(0);
  });

  it('does nothing for a set on its way out but report', async () => {
    const set = makeSet(2);
    const { client } = start({ ...set, metadata: { ...set.metadata, deletionTimestamp: NOW } });
    await settle();
    expect(client.writes.map(({ path }) => path)).toEqual(['/apis/apps/v1/namespaces/demo/replicasets/web/status']);
  });
});
