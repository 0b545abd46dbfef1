// The claims of pods' own volumes: which are made, in whose name, and what happens where a name is taken.

import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../../client/types.ts';
import { claimFor, volumeSteps } from '../../../../controlplane/controllers/ephemeral-volume/claims.ts';
import { EphemeralVolumeController } from '../../../../controlplane/controllers/ephemeral-volume/ephemeral-volume.ts';
import type { PersistentVolumeClaim, PodVolume } from '../../../../controlplane/storage/objects.ts';
import { apiError } from '../../../support/fake-client.ts';
import { makeClaim } from '../../../support/storage-objects.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, makePod } from '../environment.ts';

const GOING = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const OWN: PodVolume = {
  name: 'v',
  ephemeral: { volumeClaimTemplate: { metadata: { labels: { a: 'b' } }, spec: { accessModes: ['ReadWriteOnce'] } } },
};
const SECOND: PodVolume = { ...OWN, name: 'w' };
const OTHERS: readonly PodVolume[] = [
  { name: 'e', emptyDir: {} },
  { name: 'c', persistentVolumeClaim: { claimName: 'p-v' } },
];

const podWith = (name: string, volumes: readonly PodVolume[], metadata: Partial<Pod['metadata']> = {}): Pod => {
  const pod = makePod(name, { volumes: [...volumes] });
  return { ...pod, metadata: { ...pod.metadata, ...metadata } };
};
const ownedBy = ({ metadata }: Pod, uid = metadata.uid) => ({
  ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: metadata.name, uid, controller: true }],
});
const CLAIMS = '/api/v1/namespaces/demo/persistentvolumeclaims';

it('a claim is made from the template, and is the pod’s', () => {
  expect(claimFor(podWith('p', [OWN]), OWN)).toEqual({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'p-v',
      namespace: 'demo',
      labels: { a: 'b' },
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'uid-p', controller: true, blockOwnerDeletion: true },
      ],
    },
    spec: { accessModes: ['ReadWriteOnce'] },
  });
});

describe('what is left to do for a pod', () => {
  const pod = podWith('p', [OWN, ...OTHERS, SECOND]);
  const refused = 'refuse v: PVC demo/p-v was not created for pod demo/p (pod is not owner)';
  const own = (name: string) => makeClaim(name, {}, ownedBy(pod));
  it.each<[string, Pod, readonly PersistentVolumeClaim[], readonly string[]]>([
    ['a claim for each volume of its own', pod, [], ['create p-v', 'create p-w']],
    ['none for volumes of other kinds', podWith('p', OTHERS), [], []],
    ['none where it is there', pod, [own('p-v')], ['create p-w']],
    ['nothing where all are there', pod, [own('p-v'), own('p-w')], []],
    [
      'none beside one that is being deleted',
      pod,
      [makeClaim('p-v', {}, { ...ownedBy(pod), ...GOING })],
      ['create p-w'],
    ],
    ['nothing for a pod on its way out', podWith('p', [OWN], GOING), [], []],
    ['a claim that someone made is not taken', pod, [makeClaim('p-v')], [refused, 'create p-w']],
    [
      'nor that of a pod of its name that was there before',
      pod,
      [makeClaim('p-v', {}, ownedBy(pod, 'uid-before')), own('p-w')],
      [refused],
    ],
    [
      'nor one that belongs to it beside a controller',
      pod,
      [
        makeClaim('p-v', {}, { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'uid-p' }] }),
        own('p-w'),
      ],
      [refused],
    ],
  ])('%s', (_what, who, claims, expected) => {
    const steps = volumeSteps(who, (name) => claims.find(({ metadata }) => metadata.name === name));
    const texts = steps.map((step) =>
      step.kind === 'create' ? `create ${step.name}` : `refuse ${step.volume}: ${step.message}`,
    );
    expect(texts).toEqual(expected);
  });
});

describe('EphemeralVolumeController', () => {
  const setUp = () => {
    const all = environment();
    all.run(new EphemeralVolumeController(all.context, all.informers));
    const writes = (): readonly string[] => all.client.writes.map(({ verb, path }) => `${verb} ${path}`);
    return { ...all, writes };
  };

  it('makes a claim once, and deletes none: that is the garbage collector’s', async () => {
    const { informers, writes, stop } = setUp();
    const pod = podWith('p', [OWN]);
    informers.pods.upsert(pod);
    await settle();
    informers.persistentVolumeClaims.upsert(makeClaim('p-v', {}, ownedBy(pod)));
    informers.pods.upsert(podWith('p', [OWN], { labels: { changed: 'yes' } }));
    await settle();
    informers.pods.remove(pod);
    await settle();
    expect(writes()).toEqual([`create ${CLAIMS}`]);
    stop.abort();
  });

  it('makes it again when someone has deleted it', async () => {
    const { informers, writes, stop } = setUp();
    const pod = podWith('p', [OWN]);
    const claim = makeClaim('p-v', {}, ownedBy(pod));
    informers.persistentVolumeClaims.upsert(claim);
    informers.pods.upsert(pod);
    await settle();
    expect(writes()).toEqual([]);
    informers.persistentVolumeClaims.remove(claim);
    await settle();
    expect(writes()).toEqual([`create ${CLAIMS}`]);
    stop.abort();
  });

  it('reports a claim in its way, and makes its own as soon as that is gone', async () => {
    const { informers, events, writes, stop } = setUp();
    const other = makeClaim('p-v');
    informers.persistentVolumeClaims.upsert(other);
    informers.pods.upsert(podWith('p', [OWN]));
    await settle();
    expect(writes()).toEqual([]);
    expect(events).toEqual([
      'p FailedBinding: ephemeral volume v: PVC demo/p-v was not created for pod demo/p (pod is not owner)',
    ]);
    informers.persistentVolumeClaims.remove(other);
    await settle();
    expect(writes()).toEqual([`create ${CLAIMS}`]);
    stop.abort();
  });

  it('reports a refused creation, and tries again', async () => {
    const { client, clock, informers, events, writes, stop } = setUp();
    client.failures.push(apiError(403, 'Forbidden'));
    informers.pods.upsert(podWith('p', [OWN]));
    await settle();
    expect(events).toEqual([expect.stringContaining('p FailedBinding: ephemeral volume v: create PVC p-v: ')]);
    await clock.advance(1000);
    expect(writes()).toEqual([`create ${CLAIMS}`]);
    stop.abort();
  });
});
