import { describe, expect, it } from 'vitest';
import { Store } from '../../../../client/store.ts';
import type { Pod } from '../../../../client/types.ts';
import {
  decideProtection,
  usesClaim,
  VolumeProtection,
} from '../../../../controlplane/controllers/volume-protection/volume-protection.ts';
import { type Controller, runController } from '../../../../controlplane/runtime.ts';
import type { PersistentVolumeClaim } from '../../../../controlplane/storage/objects.ts';
import { FakeClient } from '../../../support/fake-client.ts';
import { makeClaim, makeVolume, podWithClaims, storageStores } from '../../../support/storage-objects.ts';
import { settle, VirtualClock } from '../../../support/virtual-clock.ts';

const GOING = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const PVC = 'kubernetes.io/pvc-protection';

const ephemeralPod = (name: string, extra: Partial<Pod> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => {
  const base = podWithClaims(name, [], 'n');
  return {
    ...base,
    metadata: { ...base.metadata, ...metadata },
    spec: {
      ...base.spec,
      volumes: [
        {
          name: 'v',
          ephemeral: {
            volumeClaimTemplate: { metadata: { labels: { a: 'b' } }, spec: { accessModes: ['ReadWriteOnce'] } },
          },
        },
      ],
    },
    ...extra,
  };
};
const ownedBy = (pod: Pod) => ({
  ownerReferences: [
    { apiVersion: 'v1', kind: 'Pod', name: pod.metadata.name, uid: pod.metadata.uid, controller: true },
  ],
});

describe('a claim is held back', () => {
  const claim = makeClaim('c');
  const pod = ephemeralPod('p');
  const own = makeClaim('p-v', {}, ownedBy(pod));
  it.each<[string, Pod, PersistentVolumeClaim, boolean]>([
    ['by a pod that is placed', podWithClaims('p', ['c'], 'n'), claim, true],
    [
      'by one that has ended, as its object is there',
      { ...podWithClaims('p', ['c'], 'n'), status: { phase: 'Succeeded' } },
      claim,
      true,
    ],
    ['not by one that is on no node', podWithClaims('p', ['c']), claim, false],
    ['not by one with another claim', podWithClaims('p', ['d'], 'n'), claim, false],
    [
      'not from another namespace',
      { ...podWithClaims('p', ['c'], 'n'), metadata: { ...podWithClaims('p', []).metadata, namespace: 'x' } },
      claim,
      false,
    ],
    ['by the pod it was made for', pod, own, true],
    ['not by that pod once it has ended', { ...pod, status: { phase: 'Failed' } }, own, false],
    ['not by a pod of that name that it was not made for', pod, makeClaim('p-v'), false],
  ])('%s', (_what, who, what, expected) => {
    expect(usesClaim(who, what)).toBe(expected);
  });

  it.each([
    ['added where it is missing', makeClaim('c'), false, 'add'],
    ['kept while the claim lives', makeClaim('c', {}, { finalizers: [PVC] }), false, 'keep'],
    ['kept while it is in use', makeClaim('c', {}, { finalizers: [PVC], ...GOING }), true, 'keep'],
    ['taken off when nobody uses it', makeClaim('c', {}, { finalizers: [PVC], ...GOING }), false, 'remove'],
    ['not put on what is going away', makeClaim('c', {}, GOING), false, 'keep'],
  ] as const)('the finalizer is %s', (_what, claimNow, inUse, expected) => {
    expect(decideProtection(claimNow, PVC, () => inUse)).toBe(expected);
  });
});

function environment() {
  const clock = new VirtualClock();
  const client = new FakeClient();
  const events: string[] = [];
  const informers = { pods: new Store<Pod>(), ...storageStores() };
  const log = (): void => undefined;
  const event = (subject: { metadata: { name: string } }, _type: string, reason: string) =>
    void events.push(`${subject.metadata.name} ${reason}`);
  const context = { client, clock, log, recorder: { event } };
  const run = (controller: Controller): void => void runController(controller, log, new AbortController().signal);
  return { clock, client, events, informers, context, run };
}

describe('VolumeProtection', () => {
  const going = makeClaim('c', {}, { finalizers: [PVC, 'other/one'], ...GOING });
  it('lets a claim go the moment its last pod is gone, and asks the server first', async () => {
    const { client, informers, context, run } = environment();
    client.objects.set('/api/v1/namespaces/demo/pods', { items: [] });
    run(new VolumeProtection(context, informers, 'claims'));
    const pod = podWithClaims('p', ['c'], 'n');
    informers.pods.upsert(pod);
    informers.persistentVolumeClaims.upsert(going);
    await settle();
    expect(client.writes).toEqual([]);
    informers.pods.remove(pod);
    await settle();
    const { resourceVersion, uid } = going.metadata;
    expect(client.writes).toEqual([
      {
        verb: 'patch',
        path: '/api/v1/namespaces/demo/persistentvolumeclaims/c',
        body: { metadata: { finalizers: ['other/one'], resourceVersion, uid } },
        type: 'merge',
      },
    ]);
  });

  it('keeps a claim that only the server knows to be used', async () => {
    const { client, informers, context, run } = environment();
    client.objects.set('/api/v1/namespaces/demo/pods', { items: [podWithClaims('p', ['c'], 'n')] });
    run(new VolumeProtection(context, informers, 'claims'));
    informers.persistentVolumeClaims.upsert(going);
    await settle();
    expect(client.reads).toBe(1);
    expect(client.writes).toEqual([]);
  });

  it('keeps a volume while it is bound', async () => {
    const { client, informers, context, run } = environment();
    run(new VolumeProtection(context, informers, 'volumes'));
    const volume = makeVolume('v', {}, { finalizers: ['kubernetes.io/pv-protection'], ...GOING }, 'Bound');
    informers.persistentVolumes.upsert(volume);
    await settle();
    expect(client.writes).toEqual([]);
    informers.persistentVolumes.upsert({
      ...volume,
      metadata: { ...volume.metadata, resourceVersion: '999' },
      status: { phase: 'Released' },
    });
    await settle();
    expect(client.writes).toHaveLength(1);
    expect(client.writes[0]?.body).toMatchObject({ metadata: { finalizers: null, resourceVersion: '999' } });
  });
});
