import { describe, expect, it } from 'vitest';
import { Store } from '../../../../../client/store.ts';
import type { Node } from '../../../../../client/types.ts';
import { Provisioner } from '../../../../../controlplane/csi/provisioner/provisioner.ts';
import { runController } from '../../../../../controlplane/runtime.ts';
import { CsiError } from '../../../../../csi/client.ts';
import { FakeClient } from '../../../../support/fake-client.ts';
import { FakeDriver } from '../../../../support/fake-csi-driver.ts';
import { makeClaim, makeClass, makeVolume, storageStores } from '../../../../support/storage-objects.ts';
import { settle, VirtualClock } from '../../../../support/virtual-clock.ts';

const ASKED = { annotations: { 'volume.kubernetes.io/storage-provisioner': 'csi.test' } };

function start(mode = 'Immediate') {
  const clock = new VirtualClock();
  const client = new FakeClient();
  const fake = new FakeDriver('CREATE_DELETE_VOLUME');
  const events: string[] = [];
  const log = (): void => undefined;
  const informers = { nodes: new Store<Node>(), ...storageStores() };
  const event = (_subject: unknown, _type: string, reason: string, message: string) =>
    void events.push(`${reason}: ${message}`);
  const context = { client, clock, log, recorder: { event } };
  informers.storageClasses.replace([makeClass('fast', { volumeBindingMode: mode })]);
  void runController(new Provisioner(fake.driver, context, informers), log, new AbortController().signal);
  const created = () =>
    client.writes.filter(({ path, verb }) => verb === 'create' && path === '/api/v1/persistentvolumes');
  return { clock, client, fake, events, informers, created };
}
const failure = (code: string): CsiError => new CsiError(code, 'no luck', 'CreateVolume');

describe('Provisioner', () => {
  it('makes a volume for a claim, and says so', async () => {
    const { fake, events, informers, created } = start();
    informers.persistentVolumeClaims.upsert(makeClaim('c', {}, ASKED));
    await settle();
    expect(fake.calls).toEqual(['CreateVolume pvc-uid-c']);
    expect(created()).toHaveLength(1);
    expect(events).toEqual([
      'Provisioning: External provisioner is provisioning volume for claim "demo/c"',
      'ProvisioningSucceeded: Successfully provisioned volume pvc-uid-c',
    ]);
  });

  it('asks again under the same name after a failure, in the driver’s words', async () => {
    const { clock, fake, events, informers, created } = start();
    fake.answers.push(failure('INTERNAL'));
    informers.persistentVolumeClaims.upsert(makeClaim('c', {}, ASKED));
    await settle();
    expect(created()).toEqual([]);
    expect(events.at(-1)).toBe(
      'ProvisioningFailed: failed to provision volume with StorageClass "fast": rpc error: code = Internal desc = no luck',
    );
    await clock.advance(1000);
    expect(fake.calls).toEqual(['CreateVolume pvc-uid-c', 'CreateVolume pvc-uid-c']);
    expect(created()).toHaveLength(1);
  });

  it('sees a call through whose outcome is not known, even if the claim is gone', async () => {
    const { clock, fake, informers, created } = start();
    fake.answers.push(failure('DEADLINE_EXCEEDED'), failure('UNAVAILABLE'));
    const claim = makeClaim('c', {}, ASKED);
    informers.persistentVolumeClaims.upsert(claim);
    await settle();
    informers.persistentVolumeClaims.remove(claim);
    await clock.advance(5000);
    expect(fake.calls).toHaveLength(3);
    // It is written down, so that it can be released and deleted.
    expect(created()).toHaveLength(1);
    await clock.advance(600_000);
    expect(fake.calls).toHaveLength(3);
  });

  it('forgets a claim that is gone after a failure that is final', async () => {
    const { clock, fake, informers } = start();
    fake.answers.push(failure('RESOURCE_EXHAUSTED'));
    const claim = makeClaim('c', {}, ASKED);
    informers.persistentVolumeClaims.upsert(claim);
    await settle();
    informers.persistentVolumeClaims.remove(claim);
    await clock.advance(600_000);
    expect(fake.calls).toHaveLength(1);
  });

  it('deletes a volume that came out too small', async () => {
    const { fake, events, informers, created } = start();
    fake.answers.push('1024');
    informers.persistentVolumeClaims.upsert(makeClaim('c', {}, ASKED));
    await settle();
    expect(fake.calls).toEqual(['CreateVolume pvc-uid-c', 'DeleteVolume vol-pvc-uid-c']);
    expect(created()).toEqual([]);
    expect(events.at(-1)).toContain('created volume capacity 1024 less than requested capacity 1073741824');
  });

  it('makes nothing where the volume is there already', async () => {
    const { client, fake, informers } = start();
    client.objects.set('/api/v1/persistentvolumes/pvc-uid-c', makeVolume('pvc-uid-c'));
    informers.persistentVolumeClaims.upsert(makeClaim('c', {}, ASKED));
    await settle();
    expect(fake.calls).toEqual([]);
  });

  it('lets the scheduler choose again where the chosen node has no room, or is gone', async () => {
    const { client, fake, informers } = start('WaitForFirstConsumer');
    const on = (node: string) => ({
      annotations: { ...ASKED.annotations, 'volume.kubernetes.io/selected-node': node },
    });
    const key = 'topology.test/host';
    informers.nodes.replace([{ metadata: { name: 'n', uid: 'n', resourceVersion: '1', labels: { [key]: 'n' } } }]);
    informers.csiNodes.replace([
      {
        metadata: { name: 'n', uid: 'n', resourceVersion: '1' },
        spec: { drivers: [{ name: 'csi.test', nodeID: 'n', topologyKeys: [key] }] },
      },
    ]);
    fake.answers.push(failure('RESOURCE_EXHAUSTED'));
    informers.persistentVolumeClaims.upsert(makeClaim('full', {}, on('n')));
    informers.persistentVolumeClaims.upsert(makeClaim('lost', {}, on('gone')));
    await settle();
    expect(fake.calls).toEqual(['CreateVolume pvc-uid-full']);
    const patches = client.writes.filter(({ verb }) => verb === 'patch');
    expect(patches.map(({ path }) => path.split('/').at(-1)).sort()).toEqual(['full', 'lost']);
    for (const { body } of patches) {
      expect(body).toMatchObject({ metadata: { annotations: { 'volume.kubernetes.io/selected-node': null } } });
    }
  });

  it('deletes a released volume once, then its object, then removes the finalizer', async () => {
    const { client, fake, informers } = start();
    const finalizer = 'external-provisioner.volume.kubernetes.io/finalizer';
    const volume = makeVolume(
      'v',
      {},
      { annotations: { 'pv.kubernetes.io/provisioned-by': 'csi.test' }, finalizers: [finalizer] },
      'Released',
    );
    const going = { ...volume, metadata: { ...volume.metadata, deletionTimestamp: 'now', resourceVersion: '500' } };
    client.objects.set('/api/v1/persistentvolumes/v', going);
    informers.persistentVolumes.upsert(volume);
    await settle();
    // Its own deletion comes back over the watch before the object is gone.
    informers.persistentVolumes.upsert(going);
    await settle();
    expect(fake.calls).toEqual(['DeleteVolume handle-v']);
    expect(client.writes.slice(0, 2).map(({ verb }) => verb)).toEqual(['delete', 'patch']);
    expect(client.writes[1]?.body).toMatchObject({ metadata: { finalizers: null, resourceVersion: '500' } });
  });

  it('does not delete what is still attached', async () => {
    const { fake, events, informers } = start();
    informers.volumeAttachments.replace([
      {
        metadata: { name: 'a', uid: 'a', resourceVersion: '1' },
        spec: { attacher: 'csi.test', nodeName: 'n', source: { persistentVolumeName: 'v' } },
      },
    ]);
    const ours = {
      annotations: { 'pv.kubernetes.io/provisioned-by': 'csi.test' },
      finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
    };
    informers.persistentVolumes.upsert(makeVolume('v', {}, ours, 'Released'));
    await settle();
    expect(fake.calls).toEqual([]);
    expect(events).toEqual(['VolumeFailedDelete: persistentvolume v is still attached to node n']);
  });
});
