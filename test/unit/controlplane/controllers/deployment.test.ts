// The Deployment controller: the sizes it gives its replica sets, the status it reports, and what it writes.

import { describe, expect, it } from 'vitest';
import {
  newSetAnnotations,
  nextRevision,
  REVISION,
} from '../../../../controlplane/controllers/deployment/annotations.ts';
import { maxSurge, maxUnavailable } from '../../../../controlplane/controllers/deployment/counts.ts';
import { DeploymentController } from '../../../../controlplane/controllers/deployment/deployment.ts';
import { rollingStep, scaleAll } from '../../../../controlplane/controllers/deployment/scaling.ts';
import { newSet, setsToDelete, splitSets } from '../../../../controlplane/controllers/deployment/sets.ts';
import { nextCheckMs, rolloutStatus, withPause } from '../../../../controlplane/controllers/deployment/status.ts';
import type { Deployment, ReplicaSet } from '../../../../controlplane/controllers/shared/objects.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { apiError, type Write } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, meta, NOW } from '../environment.ts';

const AT = epochMs(Date.parse(NOW));
const template = (image: string) => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image }] },
});

function deploymentOf(
  replicas: number,
  spec: Partial<Deployment['spec']> = {},
  surge: number | string = '25%',
  missing: number | string = '25%',
): Deployment {
  return {
    metadata: { ...meta('web'), namespace: 'demo', generation: 1 },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'web' } },
      template: template('v2'),
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: surge, maxUnavailable: missing } },
      progressDeadlineSeconds: 600,
      revisionHistoryLimit: 10,
      ...spec,
    },
  };
}

interface SetFacts {
  readonly available?: number;
  readonly max?: number;
  readonly desired?: number;
  readonly revision?: number;
  readonly created?: string;
}

function setOf(name: string, replicas: number, image: string, facts: SetFacts = {}): ReplicaSet {
  const { available = replicas, max, desired, revision, created = NOW } = facts;
  const annotations = Object.entries({ 'max-replicas': max, 'desired-replicas': desired, revision })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => [`deployment.kubernetes.io/${key}`, String(value)]);
  return {
    metadata: {
      ...meta(name),
      namespace: 'demo',
      labels: { app: 'web' },
      creationTimestamp: created,
      generation: 1,
      annotations: Object.fromEntries(annotations),
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'uid-web', controller: true }],
    },
    spec: { replicas, selector: { matchLabels: { app: 'web' } }, template: template(image) },
    status: { replicas, readyReplicas: available, availableReplicas: available, observedGeneration: 1 },
  };
}

const sizes = (scalings: readonly { readonly set: ReplicaSet; readonly replicas: number }[]) =>
  scalings.map(({ set, replicas }) => `${set.metadata.name}=${replicas}`).join(' ');

describe('bounds of a rolling update', () => {
  it.each<[number, number | string, number | string, number, number]>([
    [10, '25%', '25%', 3, 2],
    [1, '25%', '25%', 1, 0],
    [4, 0, '10%', 0, 1],
    [3, 2, 5, 2, 3],
    [0, '25%', '25%', 0, 0],
  ])('%i replicas, maxSurge %s, maxUnavailable %s', (replicas, surge, missing, over, under) => {
    const deployment = deploymentOf(replicas, {}, surge, missing);
    expect([maxSurge(deployment), maxUnavailable(deployment)]).toEqual([over, under]);
  });
});

describe('one step of a rolling update', () => {
  // Size of the new set and of the old one, each with what is available; maxSurge and maxUnavailable; what follows.
  it.each<[string, number, [number, number], [number, number], number, number, string]>([
    ['the new set takes the surge', 10, [0, 0], [10, 10], 3, 2, 'new=3'],
    ['old pods go as far as pods may be missing', 10, [3, 0], [10, 10], 3, 2, 'old=8'],
    ['the new set follows', 10, [3, 0], [8, 8], 3, 2, 'new=5'],
    ['nothing goes while the new pods do not come up', 10, [5, 0], [8, 8], 3, 2, ''],
    ['an old pod that fails does not make more go', 10, [5, 0], [8, 7], 3, 2, ''],
    ['as new pods come up, old ones go', 10, [5, 3], [8, 8], 3, 2, 'old=5'],
    ['unavailable old pods go first', 10, [2, 2], [10, 5], 3, 2, 'new=3'],
    ['as many as may go', 4, [1, 1], [4, 0], 1, 1, 'old=2'],
    ['pods that are about to go do not count', 4, [2, 1], [3, 4], 1, 1, 'old=2'],
    ['without surge, an old pod has to go first', 2, [0, 0], [2, 2], 0, 1, 'old=1'],
    ['the new set shrinks with the deployment', 2, [5, 5], [0, 0], 1, 0, 'new=2'],
    ['complete', 2, [2, 2], [0, 0], 1, 0, ''],
  ])('%s', (_what, replicas, [size, up], [oldSize, oldUp], surge, missing, expected) => {
    const current = setOf('new', size, 'v2', { available: up });
    const old = setOf('old', oldSize, 'v1', { available: oldUp });
    expect(sizes(rollingStep(deploymentOf(replicas, {}, surge, missing), current, [old]))).toBe(expected);
  });

  it('never has fewer available nor more in all than the bounds allow, whatever comes up when', () => {
    for (let seed = 1; seed <= 200; seed++) {
      let state = seed;
      const random = (below: number): number => {
        state = (Math.imul(state, 1103515245) + 12345) >>> 0;
        return (state >>> 8) % below;
      };
      const replicas = 1 + random(12);
      const deployment = deploymentOf(replicas, {}, random(4), random(4));
      let current = setOf('new', 0, 'v2');
      let old = setOf('old', replicas, 'v1');
      for (
        let step = 0;
        step < 100 && (current.status?.availableReplicas !== replicas || old.spec.replicas !== 0);
        step++
      ) {
        for (const { set, replicas: size } of rollingStep(deployment, current, [old])) {
          const available = Math.min(size, set.status?.availableReplicas ?? 0);
          const next = setOf(set.metadata.name, size, set === current ? 'v2' : 'v1', { available });
          if (set === current) current = next;
          else old = next;
        }
        const [newSize = 0, oldSize = 0] = [current.spec.replicas, old.spec.replicas];
        const up = (current.status?.availableReplicas ?? 0) + (old.status?.availableReplicas ?? 0);
        expect(newSize + oldSize).toBeLessThanOrEqual(replicas + maxSurge(deployment));
        expect(up).toBeGreaterThanOrEqual(replicas - maxUnavailable(deployment));
        const known = current.status?.availableReplicas ?? 0;
        if (newSize > known) current = setOf('new', newSize, 'v2', { available: known + random(newSize - known + 1) });
      }
      expect([current.spec.replicas, old.spec.replicas]).toEqual([replicas, 0]);
    }
  });
});

describe('scaling', () => {
  it.each<[string, number, readonly [number, number], number, string]>([
    ['grows all sets in proportion', 20, [5, 8], 13, 'old=15 new=10'],
    ['shrinks all sets in proportion', 5, [5, 8], 13, 'old=4 new=3'],
    ['takes of the set whose pods are available too, though the rollout is stuck', 3, [2, 3], 5, 'old=2 new=2'],
    ['goes down to nothing', 0, [5, 8], 13, 'old=0 new=0'],
  ])('%s', (_what, replicas, [fresh, old], max, expected) => {
    const sets = [
      setOf('old', old, 'v1', { max, desired: 10 }),
      setOf('new', fresh, 'v2', { max, desired: 10, available: 0 }),
    ];
    const deployment = deploymentOf(replicas, {}, '25%', '25%');
    expect(sizes(scaleAll(deployment, splitSets(deployment, sets)))).toBe(expected);
  });

  it('of the only set that has pods gives it all', () => {
    const deployment = deploymentOf(5);
    const sets = [setOf('old', 3, 'v1'), setOf('new', 0, 'v2')];
    expect(sizes(scaleAll(deployment, splitSets(deployment, sets)))).toBe('old=5');
  });
});

describe('replica sets', () => {
  it('the one with the template is the current one, whatever its hash label', () => {
    const deployment = deploymentOf(1);
    const body = newSet(deployment, 1, 3n);
    expect(body.metadata.name).toMatch(/^web-[bcdfghjklmnpqrstvwxz2456789]{1,10}$/);
    expect(body.metadata.annotations).toEqual({
      'deployment.kubernetes.io/revision': '3',
      'deployment.kubernetes.io/desired-replicas': '1',
      'deployment.kubernetes.io/max-replicas': '2',
    });
    const stored: ReplicaSet = { ...setOf('old', 1, 'v1'), spec: body.spec };
    const { current, old } = splitSets(deployment, [setOf('other', 1, 'v1'), stored]);
    expect([current, old.map(({ metadata }) => metadata.name)]).toEqual([stored, ['other']]);
  });

  it('a rollback makes an old set the newest revision, and keeps the history', () => {
    const deployment = deploymentOf(1);
    const known = { [REVISION]: '1', 'deployment.kubernetes.io/revision-history': '7' };
    expect(newSetAnnotations(deployment, known, 3n)).toEqual({
      [REVISION]: '3',
      'deployment.kubernetes.io/revision-history': '7,1',
    });
    expect(newSetAnnotations(deployment, { [REVISION]: '4' }, 3n)).toEqual({ [REVISION]: '4' });
  });

  it('a revision is a 64-bit number, and no other text is one', () => {
    const highest = (...revisions: readonly string[]) =>
      nextRevision(
        revisions.map((revision, index) => ({
          ...setOf(`r${index}`, 1, 'v1'),
          metadata: { ...setOf(`r${index}`, 1, 'v1').metadata, annotations: { [REVISION]: revision } },
        })),
      );
    expect(highest('3546343826724305832', '7')).toBe(3546343826724305833n);
    expect(highest('x', '9223372036854775808', '1.5', '-4')).toBe(1n);
    expect(highest()).toBe(1n);
  });

  it('beyond the history limit the oldest empty ones go', () => {
    const old = [3, 1, 2].map((revision) => setOf(`r${revision}`, revision === 1 ? 1 : 0, 'v1', { revision }));
    const names = setsToDelete(deploymentOf(1, { revisionHistoryLimit: 1 }), old).map(({ metadata }) => metadata.name);
    expect(names).toEqual(['r2']);
  });
});

describe('conditions', () => {
  const split = (available: number) => ({ current: setOf('new', 2, 'v2', { available }), old: [] });
  const reasonOf = (conditions: readonly { type: string; reason?: string }[] | undefined, type = 'Progressing') =>
    conditions?.find((condition) => condition.type === type)?.reason;

  it('progress, completion and the deadline', () => {
    const deployment = deploymentOf(2);
    const moving = rolloutStatus(deployment, split(1), [], AT);
    expect([reasonOf(moving.conditions), reasonOf(moving.conditions, 'Available')]).toEqual([
      'ReplicaSetUpdated',
      'MinimumReplicasUnavailable',
    ]);
    const stuck = { ...deployment, status: moving };
    expect(nextCheckMs(stuck, moving, AT)).toBe(601_000);
    const soon = rolloutStatus(stuck, split(1), moving.conditions ?? [], plusMs(AT, 600_000));
    expect(reasonOf(soon.conditions)).toBe('ReplicaSetUpdated');
    const late = rolloutStatus(stuck, split(1), moving.conditions ?? [], plusMs(AT, 601_000));
    expect(late.conditions?.find(({ type }) => type === 'Progressing')).toMatchObject({
      status: 'False',
      reason: 'ProgressDeadlineExceeded',
      message: 'ReplicaSet "new" has timed out progressing.',
    });
    expect(nextCheckMs(stuck, late, AT)).toBeUndefined();
    const done = rolloutStatus(stuck, split(2), late.conditions ?? [], AT);
    expect(reasonOf(done.conditions)).toBe('NewReplicaSetAvailable');
  });

  it('pausing and resuming', () => {
    const paused = withPause(deploymentOf(1, { paused: true }), [], AT);
    expect(reasonOf(paused)).toBe('DeploymentPaused');
    expect(reasonOf(withPause(deploymentOf(1), paused, AT))).toBe('DeploymentResumed');
    expect(withPause(deploymentOf(1), [], AT)).toEqual([]);
  });
});

describe('the controller', () => {
  function start(deployment: Deployment, sets: readonly ReplicaSet[] = []) {
    const env = environment();
    const stored: ReplicaSet[] = [];
    // Versions as the server gives them, and an identity to what is new.
    env.client.onWrite = ({ body }) => {
      const object = body as ReplicaSet;
      const { uid, resourceVersion } = meta(object.metadata.name);
      const answer = { ...object, metadata: { ...object.metadata, uid: object.metadata.uid ?? uid, resourceVersion } };
      stored.push(answer);
      return answer;
    };
    const controller = new DeploymentController(env.context, env.informers);
    env.informers.pods.replace([]);
    env.informers.replicaSets.replace(sets);
    env.informers.deployments.replace([deployment]);
    env.run(controller);
    /** What the server has stored first, as its watch shows it. */
    const firstStored = (): ReplicaSet => {
      const [first] = stored;
      if (first === undefined) throw new Error('nothing has been written');
      return first;
    };
    return { ...env, firstStored };
  }
  const statusOf = (writes: readonly Write[]) =>
    writes.findLast(({ path }) => path.endsWith('/deployments/web/status'))?.body;

  it('makes a replica set, and writes revision and conditions once', async () => {
    const { client, events } = start(deploymentOf(2));
    await settle();
    expect(client.writes.map(({ verb, path }) => `${verb} ${path}`)).toEqual([
      'create /apis/apps/v1/namespaces/demo/replicasets',
      'replace /apis/apps/v1/namespaces/demo/deployments/web/status',
    ]);
    expect(events[0]).toMatch(/^web ScalingReplicaSet: Scaled up replica set web-\w+ from 0 to 2$/);
    expect(statusOf(client.writes)).toMatchObject({
      metadata: { annotations: { [REVISION]: '1' } },
      status: { conditions: [{ type: 'Progressing', reason: 'NewReplicaSetCreated' }, { type: 'Available' }] },
    });
  });

  it('with Recreate scales down adopted sets that another Deployment has sized', async () => {
    const deployment = deploymentOf(0, { strategy: { type: 'Recreate' } });
    const sets = [setOf('a', 2, 'v1', { desired: 4 }), setOf('b', 3, 'v0', { desired: 4 })];
    const { client } = start(deployment, sets);
    await settle();
    const sized = client.writes
      .filter(({ path }) => path.includes('/replicasets/'))
      .map(({ path, body }) => `${path.split('/').at(-1)} ${(body as ReplicaSet).spec.replicas}`);
    expect(sized.toSorted()).toEqual(['a 0', 'b 0']);
  });

  it('with Recreate makes the new set only when the old pods are gone', async () => {
    const deployment = deploymentOf(1, { strategy: { type: 'Recreate' } });
    const { client, informers } = start(deployment, [setOf('old', 1, 'v1')]);
    await settle();
    const creations = () => client.writes.filter(({ verb }) => verb === 'create').length;
    expect(client.writes[0]?.path).toBe('/apis/apps/v1/namespaces/demo/replicasets/old');
    informers.replicaSets.upsert(setOf('old', 0, 'v1'));
    await settle();
    expect(creations()).toBe(1);
  });

  it('goes on with a rollout when its cache shows what it has done', async () => {
    const seen = setOf('old', 4, 'v1');
    const first = deploymentOf(4, {}, 1, 0);
    const { client, informers, firstStored } = start(first, [seen]);
    await settle();
    const sizes = (): unknown[] =>
      client.writes
        .filter(({ path }) => path.includes('/replicasets'))
        .map(({ verb, body }) => `${verb} ${(body as ReplicaSet).spec.replicas}`);
    expect(sizes()).toEqual(['create 1']);
    // Another template, before the new set is in the cache: beside the one that is not seen there is no room for another one.
    const { spec } = deploymentOf(4, { template: template('v3') }, 1, 0);
    informers.deployments.upsert({ ...first, metadata: { ...first.metadata, ...meta('web') }, spec });
    await settle();
    expect(sizes()).toEqual(['create 1']);
    informers.replicaSets.upsert(firstStored());
    await settle();
    // The new set of the template before is not available, and goes.
    expect(sizes()).toEqual(['create 1', 'create 0', 'replace 0']);
  });

  it('waits for nothing of a set that is gone', async () => {
    const { client, informers, firstStored } = start(deploymentOf(2), [setOf('old', 0, 'v1', { available: 0 })]);
    await settle();
    const creations = () => client.writes.filter(({ verb }) => verb === 'create').length;
    expect(creations()).toBe(1);
    informers.replicaSets.upsert(firstStored());
    informers.replicaSets.remove(firstStored());
    await settle();
    expect(creations()).toBe(2);
  });

  it('takes another name where the name is taken by another template', async () => {
    const deployment = deploymentOf(1);
    const { metadata } = newSet(deployment, 1, 1n);
    const env = environment();
    env.client.objects.set(`/apis/apps/v1/namespaces/demo/replicasets/${metadata.name}`, setOf(metadata.name, 1, 'v1'));
    env.client.failures.push(apiError(409, 'AlreadyExists'));
    env.informers.pods.replace([]);
    env.informers.replicaSets.replace([]);
    const controller = new DeploymentController(env.context, env.informers);
    env.informers.deployments.replace([deployment]);
    await expect(controller.sync('demo/web')).rejects.toThrow('AlreadyExists');
    expect(statusOf(env.client.writes)).toMatchObject({ status: { collisionCount: 1 } });
    const next = newSet({ ...deployment, status: { collisionCount: 1 } }, 1, 1n);
    expect(next.metadata.name).not.toBe(metadata.name);
  });
});
