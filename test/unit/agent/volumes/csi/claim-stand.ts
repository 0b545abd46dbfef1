// What tests of claims and CSI volumes start: a volume manager, a scripted driver, and storage objects in memory.

import { mkdirSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CSIDriverSpec } from 'kubernetes-types/storage/v1';
import type { PodUID } from '../../../../../agent/ports/runtime.ts';
import type { PV } from '../../../../../agent/volumes/claims.ts';
import { CsiVolumes } from '../../../../../agent/volumes/csi/csi-volumes.ts';
import type { VolumeManager } from '../../../../../agent/volumes/options.ts';
import { createPersistentVolumes } from '../../../../../agent/volumes/persistent.ts';
import { createPodVolumes } from '../../../../../agent/volumes/pod-volumes.ts';
import { VolumesInUse } from '../../../../../agent/volumes/volumes-in-use.ts';
import { type CsiClient, connectCsi } from '../../../../../csi/client.ts';
import { Tracer } from '../../../../../lib/trace.ts';
import { FakeCsiDriver } from '../../../../support/scripted-csi-driver.ts';
import { VirtualClock } from '../../../../support/virtual-clock.ts';
import { FakeMounter, FakeObjects, FakeRecorder } from '../support.ts';
import { FakeStorage } from './fake-storage.ts';

export const REF = { uid: 'uid-1' as PodUID, namespace: 'demo', name: 'web' };
export const DATA = { name: 'data', persistentVolumeClaim: { claimName: 'claim' } };

/** The volume manager with everything around it in memory, in a directory of its own. */
export class ClaimStand {
  readonly rootDir: string;
  readonly driver = new FakeCsiDriver();
  readonly client: CsiClient;
  readonly storage = new FakeStorage();
  readonly recorder = new FakeRecorder();
  readonly mounter = new FakeMounter();
  readonly clock = new VirtualClock();
  readonly objects = new FakeObjects(this.clock);
  readonly inUse = new VolumesInUse();
  readonly csi: CsiVolumes;
  readonly volumes: VolumeManager;
  readonly trouble: string[] = [];

  private constructor(rootDir: string) {
    this.rootDir = rootDir;
    const { driver, storage, recorder, mounter, clock, objects, inUse } = this;
    driver.onCall = ({ method, request }) => {
      if (method === 'NodePublishVolume') mkdirSync(String(request['target_path']), { recursive: true });
      if (method === 'NodeUnpublishVolume') rmSync(String(request['target_path']), { recursive: true, force: true });
    };
    const client = connectCsi(join(rootDir, 'csi.sock'));
    this.client = client;
    const parts = { rootDir, mounter, objects, recorder, clock, tracer: new Tracer() };
    const node = {
      driver: (name: string) => ({ name, node: client.node, capabilities: async () => new Set(driver.capabilities) }),
      registered: () => Promise.resolve(),
    };
    this.csi = new CsiVolumes({
      ...parts,
      nodeName: 'n1',
      csi: node,
      storage,
      inUse,
      onError: (message) => this.trouble.push(message),
      random: () => 0,
    });
    const persistent = createPersistentVolumes({
      rootDir,
      mounter,
      storage,
      csi: this.csi,
      recorder,
      nodeMatches: ({ nodeSelectorTerms }) => nodeSelectorTerms.length === 0,
    });
    this.volumes = createPodVolumes({ ...parts, persistent: async () => persistent });
  }

  /** With a claim, its volume, and a driver that needs no attaching. */
  static async make(): Promise<ClaimStand> {
    const rootDir = await mkdtemp(join(tmpdir(), 'nodelet-csi-pods-'));
    const stand = new ClaimStand(rootDir);
    await stand.driver.listen(join(rootDir, 'csi.sock'));
    stand.usualObjects({ attachRequired: false });
    return stand;
  }

  async close(): Promise<void> {
    this.volumes.close();
    this.csi.close();
    this.client.close();
    this.driver.kill();
    await rm(this.rootDir, { recursive: true, force: true });
  }

  /** Where the claim's volume is published. */
  target(): string {
    return join(this.rootDir, 'pods/uid-1/volumes/kubernetes.io~csi/pv-1/mount');
  }

  /** What the driver was asked first by that method. */
  callOf(method: string) {
    return this.driver.calls.find((call) => call.method === method)?.request;
  }

  statusOf() {
    return this.storage.claims.get('demo/claim')?.status;
  }

  usualObjects(spec: CSIDriverSpec, more: { csi?: object; spec?: object } = {}): void {
    const meta = (name: string) => ({ name, uid: `uid-of-${name}`, resourceVersion: '1' });
    const source = {
      driver: 'fake.csi',
      volumeHandle: 'vol-1',
      fsType: 'ext4',
      volumeAttributes: { a: 'b' },
      ...more.csi,
    };
    const volume: PV = {
      metadata: meta('pv-1'),
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        claimRef: { uid: 'uid-of-claim' },
        csi: source,
        ...more.spec,
      },
    };
    this.storage.volumes.set('pv-1', volume);
    this.storage.setClaim({
      metadata: { ...meta('claim'), namespace: 'demo' },
      spec: { volumeName: 'pv-1', resources: { requests: { storage: '1Gi' } } },
      status: { phase: 'Bound', capacity: { storage: '1Gi' } },
    });
    this.storage.drivers.set('fake.csi', { metadata: meta('fake.csi'), spec });
  }
}
