// What the StatefulSet controller decides, as tables: the steps of a sync, the pods and claims it makes, and the status.

import type { OwnerReference } from 'kubernetes-types/meta/v1';
import { describe, expect, it } from 'vitest';
import type { StatefulSet } from '../../../../controlplane/controllers/shared/objects.ts';
import { claimWork, hasStaleClaim, ownerUpdates } from '../../../../controlplane/controllers/statefulset/claims.ts';
import { newPod, ordinalOf, repaired, versionFor } from '../../../../controlplane/controllers/statefulset/identity.ts';
import { type Facts, plan } from '../../../../controlplane/controllers/statefulset/plan.ts';
import { statefulSetStatus } from '../../../../controlplane/controllers/statefulset/status.ts';
import type { PersistentVolumeClaim } from '../../../../controlplane/storage/objects.ts';
import { meta, NOW } from '../environment.ts';
import { factsOf, OWNER, podOf, setOf, stepsOf, template } from './stateful-cases.ts';

type Spec = Partial<StatefulSet['spec']>;
const PARALLEL: Spec = { podManagementPolicy: 'Parallel' };
const ON_DELETE: Spec = { updateStrategy: { type: 'OnDelete' } };
const rolling = (partition: number): Spec => ({
  updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition } },
});
const ALL = ['web-0 ready', 'web-1 ready', 'web-2 ready'];
const ALL_OLD = ALL.map((pod) => `${pod} old`);

type Case = readonly [what: string, spec: Spec, pods: readonly string[], steps: readonly string[]];

describe('a sync, in order', () => {
  it.each<Case>([
    ['makes the first pod', {}, [], ['create web-0 new']],
    ['makes the next one when the one before is available', {}, ['web-0 ready'], ['create web-1 new']],
    ['waits for one that is pending', {}, ['web-0 pending'], []],
    ['waits for one that runs and is not ready', {}, ['web-0 running'], []],
    ['waits for one that is ready for too short a time', { minReadySeconds: 10 }, ['web-0 ready:9'], []],
    ['goes on when it is available', { minReadySeconds: 10 }, ['web-0 ready:10'], ['create web-1 new']],
    ['fills a gap first', {}, ['web-0 ready', 'web-2 ready'], ['create web-1 new']],
    ['waits for one that is on its way out', {}, ['web-0 ready', 'web-1 ready terminating'], []],
    ['waits for one on a lost node, however long', {}, ['web-0 running terminating', 'web-1 ready'], []],
    ['does nothing when all serve', {}, ALL, []],
    ['makes a failed one anew', {}, ['web-0 ready', 'web-1 failed', 'web-2 ready'], ['delete web-1']],
    ['makes one anew that has ended well', {}, ['web-0 succeeded'], ['delete web-0']],
    ['waits for a failed one to go', {}, ['web-0 failed terminating'], []],
    ['begins at the first ordinal', { ordinals: { start: 5 } }, [], ['create web-5 new']],
    ['removes what is below the first ordinal', { ordinals: { start: 1 }, replicas: 2 }, ALL, ['delete web-0']],
    ['scales down from the top', { replicas: 1 }, ALL, ['delete web-2']],
    ['to none, too', { replicas: 0 }, ALL, ['delete web-2']],
    ['scales down one at a time', { replicas: 1 }, ['web-0 ready', 'web-1 ready', 'web-2 ready terminating'], []],
    ['scales down only when those that stay serve', { replicas: 1 }, ['web-0 running', 'web-1 ready'], []],
    ['makes what is missing before it scales down', { replicas: 1 }, ['web-1 ready'], ['create web-0 new']],
    ['removes one that does not serve', { replicas: 1 }, ['web-0 ready', 'web-1 running'], ['delete web-1']],
    ['not one above another that does not', { replicas: 1 }, ['web-0 ready', 'web-1 running', 'web-2 running'], []],
    [
      'but one that serves above it',
      { replicas: 1 },
      ['web-0 ready', 'web-1 running', 'web-2 ready'],
      ['delete web-2'],
    ],
    ['leaves a pod with another name alone', {}, [...ALL, 'web-x ready', 'web-01 ready'], []],
    ['repairs a pod without its label', {}, ['web-0 ready unlabelled', ...ALL.slice(1)], ['repair web-0']],
  ])('%s', (_what, spec, pods, steps) => expect(stepsOf(plan(factsOf(setOf(spec), pods)))).toEqual(steps));
});

describe('a sync, in parallel', () => {
  it.each<Case>([
    ['makes all pods', {}, [], ['create web-0 new', 'create web-1 new', 'create web-2 new']],
    ['waits for none', {}, ['web-1 pending'], ['create web-0 new', 'create web-2 new']],
    ['does not make one again that is on its way out', {}, ['web-0 ready terminating', ...ALL.slice(1)], []],
    ['removes all that are too many', { replicas: 0 }, ALL, ['delete web-2', 'delete web-1', 'delete web-0']],
    ['makes and removes', { replicas: 1 }, ALL.slice(1), ['create web-0 new', 'delete web-2', 'delete web-1']],
    ['makes failed ones anew', {}, ['web-0 failed', 'web-1 failed', 'web-2 ready'], ['delete web-0', 'delete web-1']],
    ['updates one at a time', {}, ALL_OLD, ['delete web-2']],
  ])('%s', (_what, spec, pods, steps) =>
    expect(stepsOf(plan(factsOf(setOf({ ...PARALLEL, ...spec }), pods)))).toEqual(steps),
  );
});

describe('an update', () => {
  it.each<Case>([
    ['begins at the top', {}, ALL_OLD, ['delete web-2']],
    ['waits until the new one serves', {}, ['web-0 ready old', 'web-1 ready old', 'web-2 running'], []],
    ['then takes the next', {}, ['web-0 ready old', 'web-1 ready old', 'web-2 ready'], ['delete web-1']],
    ['waits for minReadySeconds', { minReadySeconds: 9 }, ['web-0 ready old', 'web-1 ready old', 'web-2 ready:8'], []],
    ['ends at the partition', rolling(2), ['web-0 ready old', 'web-1 ready old', 'web-2 ready'], []],
    ['touches nothing with a partition above all', rolling(3), ALL_OLD, []],
    ['makes what is missing below it of the old version', rolling(2), ['web-0 ready old'], ['create web-1 old']],
    ['and above it of the new one', rolling(1), ['web-0 ready old'], ['create web-1 new']],
    [
      'counts the partition from the first ordinal',
      { ...rolling(1), ordinals: { start: 4 } },
      [],
      ['create web-4 old'],
    ],
    ['does not begin while the set is scaled', { replicas: 2 }, ALL_OLD, ['delete web-2']],
    ['waits for an old one that is not there', {}, ['web-0 ready old', 'web-2 ready old'], ['create web-1 new']],
    ['is left to the user with OnDelete', ON_DELETE, ALL_OLD, []],
    ['who gets new ones for those he deletes', ON_DELETE, ALL_OLD.slice(0, 2), ['create web-2 new']],
    [
      'without parameters begins at the top, too',
      { updateStrategy: { type: 'RollingUpdate' } },
      ALL_OLD,
      ['delete web-2'],
    ],
  ])('%s', (_what, spec, pods, steps) => expect(stepsOf(plan(factsOf(setOf(spec), pods)))).toEqual(steps));

  it('without parameters makes as many of the old version as there are', () => {
    const set = setOf({ updateStrategy: { type: 'RollingUpdate' } }, { replicas: 2, currentReplicas: 1 });
    const { current, update } = factsOf(set, []);
    expect([0, 1, 2].map((ordinal) => versionFor(set, current, update, ordinal).name)).toEqual([
      'web-old',
      'web-new',
      'web-new',
    ]);
  });

  it('does not repair an unready old pod that holds it up: that is the user’s to delete', () => {
    expect(stepsOf(plan(factsOf(setOf(), ['web-0 ready old', 'web-1 running old', 'web-2 ready'])))).toEqual([]);
  });

  it('touches nothing of a set that is being deleted', () => {
    const set = setOf();
    const leaving = { ...set, metadata: { ...set.metadata, deletionTimestamp: NOW } };
    expect(plan(factsOf(leaving, ['web-0 failed'])).phases).toEqual([]);
  });
});

const CLAIMS: Spec = { volumeClaimTemplates: [{ metadata: { name: 'data', labels: { tier: 'disk' } }, spec: {} }] };
const policy = (whenDeleted: string, whenScaled: string): Spec => ({
  ...CLAIMS,
  persistentVolumeClaimRetentionPolicy: { whenDeleted, whenScaled },
});

/** The pods with the volumes of their claims. */
const mounted = (facts: Facts): Facts => ({
  ...facts,
  pods: facts.pods.map((pod) => repaired(facts.set, pod, ordinalOf(facts.set, pod) ?? 0) ?? pod),
});

function claimOf(
  name: string,
  ownerReferences: readonly OwnerReference[] = [],
  leaving = false,
): PersistentVolumeClaim {
  const metadata = { ...meta(name), namespace: 'demo', ownerReferences: [...ownerReferences] };
  return { metadata: leaving ? { ...metadata, deletionTimestamp: NOW } : metadata };
}

describe('a pod', () => {
  it('has its name as host name, labels, and a volume for each claim', () => {
    const volumes = [
      { name: 'data', emptyDir: {} },
      { name: 'own', emptyDir: {} },
    ];
    const { spec } = template('v2');
    const version = { name: 'web-new', template: { ...template('v2'), spec: { ...spec, hostname: 'x', volumes } } };
    expect(newPod(setOf(CLAIMS), version, 1)).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'web-1',
        generateName: 'web-',
        namespace: 'demo',
        labels: {
          app: 'web',
          'statefulset.kubernetes.io/pod-name': 'web-1',
          'apps.kubernetes.io/pod-index': '1',
          'controller-revision-hash': 'web-new',
        },
        ownerReferences: [{ ...OWNER, blockOwnerDeletion: true }],
      },
      spec: {
        ...spec,
        hostname: 'web-1',
        subdomain: 'peers',
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data-web-1' } }, volumes[1]],
      },
    });
  });

  it.each<[string, number | undefined]>([
    ['web-0', 0],
    ['web-17', 17],
    ['web-01', undefined],
    ['web-', undefined],
    ['web', undefined],
    ['web-0-1', undefined],
    ['other-0', undefined],
    ['web-2147483648', undefined],
  ])('%s has ordinal %s', (name, ordinal) => expect(ordinalOf(setOf(), podOf(name))).toBe(ordinal));

  it('with the wrong volume is given the right one', () => {
    const volumes = repaired(setOf(CLAIMS), podOf('web-1 ready'), 1)?.spec.volumes;
    expect(volumes).toEqual([{ name: 'data', persistentVolumeClaim: { claimName: 'data-web-1' } }]);
  });
});

describe('claims', () => {
  it('are made for each template, with the set’s labels', () => {
    expect(claimWork(setOf(CLAIMS), 1, () => undefined)).toEqual({
      missing: [
        {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { name: 'data-web-1', namespace: 'demo', labels: { tier: 'disk', app: 'web' } },
          spec: {},
        },
      ],
      leaving: [],
    });
  });

  it('that are being deleted hold up their pod', () => {
    expect(claimWork(setOf(CLAIMS), 1, (name) => claimOf(name, [], true)).leaving).toEqual(['data-web-1']);
  });

  it('of a pending pod are made when they are missing', () => {
    expect(stepsOf(plan(factsOf(setOf(CLAIMS), ['web-0 pending'])))).toEqual(['claims web-0']);
    expect(stepsOf(plan(factsOf(setOf(CLAIMS), ['web-0 pending'], [claimOf('data-web-0')])))).toEqual([]);
  });

  const bySet: OwnerReference = { ...OWNER, blockOwnerDeletion: true };
  const reference = (uid: string): OwnerReference => ({
    apiVersion: 'v1',
    kind: 'Pod',
    name: 'web-1',
    uid,
    controller: true,
    blockOwnerDeletion: true,
  });
  const byPod = reference('uid-web-1');
  const foreign: OwnerReference = { apiVersion: 'x/v1', kind: 'X', name: 'x', uid: 'uid-x', controller: true };
  const { controller: _, ...uncontrolled } = bySet;

  /** Pod web-1 of a set that has, after scaling down, one replica. `undefined`: nothing is written. */
  it.each<[string, Spec, number, readonly OwnerReference[], readonly OwnerReference[] | undefined]>([
    ['stay', policy('Retain', 'Retain'), 2, [], undefined],
    ['that went with the set stay', policy('Retain', 'Retain'), 2, [bySet], []],
    ['that went with a pod stay', policy('Retain', 'Retain'), 2, [byPod], []],
    ['keep owners that are none of the set’s', policy('Retain', 'Retain'), 2, [foreign, bySet], [foreign]],
    ['go with the set', policy('Delete', 'Retain'), 2, [], [bySet]],
    ['go with the set when scaled down, too', policy('Delete', 'Retain'), 1, [byPod], [bySet]],
    ['are the set’s as their controller', policy('Delete', 'Retain'), 2, [uncontrolled], [bySet]],
    ['are right as they are', policy('Delete', 'Retain'), 2, [bySet], undefined],
    ['go with a pod that is one too many', policy('Retain', 'Delete'), 1, [], [byPod]],
    ['not with one that there should be', policy('Retain', 'Delete'), 2, [byPod], []],
    ['go with the pod rather than the set', policy('Delete', 'Delete'), 1, [bySet], [byPod]],
    ['go with the set when the pod is needed again', policy('Delete', 'Delete'), 2, [byPod], [bySet]],
    ['of another controller are left to it', policy('Delete', 'Delete'), 2, [foreign], undefined],
    ['of another controller, too, are so only', policy('Delete', 'Delete'), 2, [foreign, bySet], [foreign]],
    [
      'of a set that was before are not touched',
      policy('Delete', 'Delete'),
      2,
      [{ ...bySet, uid: 'before' }],
      undefined,
    ],
    ['of a pod that was before are not touched', policy('Delete', 'Delete'), 2, [reference('before')], undefined],
  ])('%s', (_what, spec, replicas, known, wanted) => {
    const claim = claimOf('data-web-1', known);
    const pod = { metadata: podOf('web-1').metadata, ordinal: 1 };
    const updates = ownerUpdates(setOf({ ...spec, replicas }), pod, () => claim);
    expect(updates.map(({ ownerReferences }) => ownerReferences)).toEqual(wanted === undefined ? [] : [wanted]);
  });

  it('of a pod that went hold up the next of its name, as long as they go with it', () => {
    const pod = { metadata: { name: 'web-1', uid: '', resourceVersion: '' }, ordinal: 1 };
    const find = () => claimOf('data-web-1', [byPod]);
    expect(hasStaleClaim(setOf(policy('Retain', 'Delete')), pod, find)).toBe(true);
    expect(hasStaleClaim(setOf(policy('Retain', 'Retain')), pod, find)).toBe(false);
    const facts = factsOf(setOf(policy('Retain', 'Delete')), ['web-0 ready'], [claimOf('data-web-1', [byPod])]);
    expect(stepsOf(plan(mounted(facts)))).toEqual([]);
  });

  it('of pods that are too many get their owners before the pods go', () => {
    const claims = ['data-web-1', 'data-web-2'].map((name) => claimOf(name));
    const facts = factsOf(setOf({ ...policy('Retain', 'Delete'), replicas: 1 }), ALL, [
      claimOf('data-web-0'),
      ...claims,
    ]);
    expect(stepsOf(plan(mounted(facts)))).toEqual(['owners data-web-2', 'owners data-web-1', 'delete web-2']);
  });
});

describe('the status', () => {
  const NONE = { replicas: 0, readyReplicas: 0, availableReplicas: 0, currentReplicas: 0, updatedReplicas: 0 };
  const OLD = { currentRevision: 'web-old', updateRevision: 'web-new', observedGeneration: 1, collisionCount: 0 };

  it.each<[string, Spec, readonly string[], object]>([
    ['of none', {}, [], {}],
    [
      'counts versions',
      {},
      ['web-0 ready old', 'web-1 ready old', 'web-2 running'],
      {
        replicas: 3,
        readyReplicas: 2,
        availableReplicas: 2,
        currentReplicas: 2,
        updatedReplicas: 1,
      },
    ],
    [
      'counts no version of one on its way out',
      {},
      ['web-0 ready old terminating'],
      {
        replicas: 1,
        readyReplicas: 1,
        availableReplicas: 1,
      },
    ],
    [
      'counts those that are available',
      { minReadySeconds: 10 },
      ['web-0 ready:9', 'web-1 ready:10'],
      {
        replicas: 2,
        readyReplicas: 2,
        availableReplicas: 1,
        updatedReplicas: 2,
      },
    ],
    [
      'makes the new version current when all have it',
      {},
      ALL,
      {
        replicas: 3,
        readyReplicas: 3,
        availableReplicas: 3,
        currentReplicas: 3,
        updatedReplicas: 3,
        currentRevision: 'web-new',
      },
    ],
    [
      'not with OnDelete',
      ON_DELETE,
      ALL,
      {
        replicas: 3,
        readyReplicas: 3,
        availableReplicas: 3,
        updatedReplicas: 3,
      },
    ],
    [
      'not while one more is there',
      { replicas: 2 },
      ALL,
      {
        replicas: 3,
        readyReplicas: 3,
        availableReplicas: 3,
        updatedReplicas: 3,
      },
    ],
  ])('%s', (_what, spec, pods, wanted) => {
    expect(statefulSetStatus(factsOf(setOf(spec), pods), undefined, 0)).toEqual({ ...NONE, ...OLD, ...wanted });
  });

  it('no longer counts the old pod that is being deleted', () => {
    const facts = factsOf(setOf(), ALL_OLD);
    expect(statefulSetStatus(facts, plan(facts).updating, 0).currentReplicas).toBe(2);
  });
});
