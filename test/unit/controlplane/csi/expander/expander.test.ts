import { describe, expect, it } from 'vitest';
import { Expander } from '../../../../../controlplane/csi/expander/expander.ts';
import { runController } from '../../../../../controlplane/runtime.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../../../controlplane/storage/objects.ts';
import { CsiError } from '../../../../../csi/client.ts';
import { FakeClient } from '../../../../support/fake-client.ts';
import { FakeDriver } from '../../../../support/fake-csi-driver.ts';
import { claimRef, makeClaim, makeVolume, storageStores } from '../../../../support/storage-objects.ts';
import { settle, VirtualClock } from '../../../../support/virtual-clock.ts';

const BOUND = { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } };

function start() {
  const clock = new VirtualClock();
  const client = new FakeClient();
  const fake = new FakeDriver('EXPAND_VOLUME');
  const events: string[] = [];
  const log = (): void => undefined;
  const informers = storageStores();
  const event = (_subject: unknown, _type: string, reason: string) => void events.push(reason);
  // Both objects as the server would keep them: every patch comes back over the watch.
  let version = 1000;
  client.onWrite = (write) => {
    const volume = informers.persistentVolumes.get('v');
    if (write.path === '/api/v1/persistentvolumes/v' && volume !== undefined) {
      const { spec = {} } = write.body as PersistentVolume;
      const metadata = { ...volume.metadata, resourceVersion: String(version++) };
      informers.persistentVolumes.upsert({ ...volume, metadata, spec: { ...volume.spec, ...spec } });
      return write.body;
    }
    const known = informers.persistentVolumeClaims.get('demo/c');
    if (!write.path.includes('persistentvolumeclaims') || known === undefined) return write.body;
    const { status = {} } = write.body as PersistentVolumeClaim;
    const metadata = { ...known.metadata, resourceVersion: String(version++) };
    const next = { ...known, metadata, status: { ...known.status, ...status } };
    informers.persistentVolumeClaims.upsert(next);
    return next;
  };
  void runController(
    new Expander(fake.driver, { client, clock, log, recorder: { event } }, informers),
    log,
    new AbortController().signal,
  );
  const grow = (): void => {
    const spec = { volumeName: 'v', resources: { requests: { storage: '2Gi' } } };
    const claim = makeClaim('c', spec, BOUND, { phase: 'Bound', capacity: { storage: '1Gi' } });
    informers.persistentVolumes.upsert(makeVolume('v', { claimRef: claimRef(claim) }, {}, 'Bound'));
    informers.persistentVolumeClaims.upsert(claim);
  };
  return { clock, client, fake, events, informers, grow };
}

describe('Expander', () => {
  it('expands a volume, updates both objects, and leaves the filesystem to the node', async () => {
    const { client, fake, events, informers, grow } = start();
    grow();
    await settle();
    expect(fake.calls).toEqual(['ControllerExpandVolume handle-v 2147483648']);
    expect(events).toEqual(['Resizing', 'FileSystemResizeRequired']);
    const volume = client.writes.find(({ path }) => path === '/api/v1/persistentvolumes/v');
    expect(volume?.body).toMatchObject({ spec: { capacity: { storage: '2Gi' } } });
    expect(informers.persistentVolumeClaims.get('demo/c')?.status).toMatchObject({
      capacity: { storage: '1Gi' },
      allocatedResources: { storage: '2Gi' },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
      conditions: [{ type: 'FileSystemResizePending', status: 'True' }],
    });
  });

  it('finishes the claim where the node has nothing to do', async () => {
    const { fake, events, informers, grow } = start();
    fake.nodeMustResize = false;
    grow();
    await settle();
    expect(events).toEqual(['Resizing', 'VolumeResizeSuccessful']);
    expect(informers.persistentVolumeClaims.get('demo/c')?.status).toMatchObject({
      capacity: { storage: '2Gi' },
      allocatedResourceStatuses: { storage: null },
      conditions: [],
    });
  });

  it('does not ask again at once because its own note of the failure came back', async () => {
    const { clock, fake, events, informers, grow } = start();
    for (let i = 0; i < 50; i++) fake.answers.push(new CsiError('OUT_OF_RANGE', 'too large', 'ControllerExpandVolume'));
    grow();
    await settle();
    expect(fake.calls).toHaveLength(1);
    expect(events).toContain('VolumeResizeFailed');
    expect(informers.persistentVolumeClaims.get('demo/c')?.status?.allocatedResourceStatuses).toEqual({
      storage: 'ControllerResizeInfeasible',
    });
    await clock.advance(60_000);
    expect(fake.calls.length).toBeGreaterThan(2);
    expect(fake.calls.length).toBeLessThan(12);
  });
});
