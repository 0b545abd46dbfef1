// Claims and CSI volumes through the volume manager, against a scripted driver and storage objects in memory.

import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CSIDriverSpec } from 'kubernetes-types/storage/v1';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { PodUID } from '../../../../../agent/ports/runtime.ts';
import type { PV } from '../../../../../agent/volumes/claims.ts';
import { CsiVolumes } from '../../../../../agent/volumes/csi/csi-volumes.ts';
import { attachmentName, ephemeralHandle } from '../../../../../agent/volumes/csi/layout.ts';
import { CsiStats } from '../../../../../agent/volumes/csi/stats.ts';
import type { VolumeManager } from '../../../../../agent/volumes/options.ts';
import { createPersistentVolumes } from '../../../../../agent/volumes/persistent.ts';
import { createPodVolumes } from '../../../../../agent/volumes/pod-volumes.ts';
import { VolumesInUse } from '../../../../../agent/volumes/volumes-in-use.ts';
import { type CsiClient, connectCsi } from '../../../../../csi/client.ts';
import { Tracer } from '../../../../../lib/trace.ts';
import { FakeCsiDriver } from '../../../../support/scripted-csi-driver.ts';
import { VirtualClock } from '../../../../support/virtual-clock.ts';
import { FakeMounter, FakeObjects, FakeRecorder, podWith, secret } from '../support.ts';
import { FakeStorage } from './fake-storage.ts';

let rootDir = '';
let driver: FakeCsiDriver;
let client: CsiClient;
let storage: FakeStorage;
let objects: FakeObjects;
let recorder: FakeRecorder;
let mounter: FakeMounter;
let clock: VirtualClock;
let inUse: VolumesInUse;
let csi: CsiVolumes;
let volumes: VolumeManager;
let trouble: string[];

beforeEach(async () => {
  rootDir = await mkdtemp(join(tmpdir(), 'nodelet-csi-pods-'));
  driver = new FakeCsiDriver();
  driver.onCall = ({ method, request }) => {
    if (method === 'NodePublishVolume') mkdirSync(String(request['target_path']), { recursive: true });
    if (method === 'NodeUnpublishVolume') rmSync(String(request['target_path']), { recursive: true, force: true });
  };
  await driver.listen(join(rootDir, 'csi.sock'));
  client = connectCsi(join(rootDir, 'csi.sock'));
  storage = new FakeStorage();
  recorder = new FakeRecorder();
  mounter = new FakeMounter();
  clock = new VirtualClock();
  objects = new FakeObjects(clock);
  inUse = new VolumesInUse();
  trouble = [];
  const parts = { rootDir, mounter, objects, recorder, clock, tracer: new Tracer() };
  const node = {
    driver: (name: string) => ({ name, node: client.node, capabilities: async () => new Set(driver.capabilities) }),
    registered: () => Promise.resolve(),
  };
  csi = new CsiVolumes({
    ...parts,
    nodeName: 'n1',
    csi: node,
    storage,
    inUse,
    onTrouble: (message) => trouble.push(message),
    random: () => 0,
  });
  const persistent = createPersistentVolumes({
    rootDir,
    mounter,
    storage,
    csi,
    recorder,
    nodeMatches: ({ nodeSelectorTerms }) => nodeSelectorTerms.length === 0,
  });
  volumes = createPodVolumes({ ...parts, persistent: async () => persistent });
  usualObjects({ attachRequired: false });
});
afterEach(async () => {
  volumes.close();
  csi.close();
  client.close();
  driver.kill();
  await rm(rootDir, { recursive: true, force: true });
});

const ref = { uid: 'uid-1' as PodUID, namespace: 'demo', name: 'web' };
const data = { name: 'data', persistentVolumeClaim: { claimName: 'claim' } };
const target = () => join(rootDir, 'pods/uid-1/volumes/kubernetes.io~csi/pv-1/mount');
const callOf = (method: string) => driver.calls.find((call) => call.method === method)?.request;
const statusOf = () => storage.claims.get('demo/claim')?.status;

function usualObjects(spec: CSIDriverSpec, more: { csi?: object; spec?: object } = {}): void {
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
  storage.volumes.set('pv-1', volume);
  storage.setClaim({
    metadata: { ...meta('claim'), namespace: 'demo' },
    spec: { volumeName: 'pv-1', resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Bound', capacity: { storage: '1Gi' } },
  });
  storage.drivers.set('fake.csi', { metadata: meta('fake.csi'), spec });
}

describe('a claim', () => {
  test('is mounted below the pod, and what containers get is where the driver published it', async () => {
    const subject = podWith([data]);
    await volumes.mountAll(subject);
    const [container] = subject.spec.containers;
    if (container === undefined) throw new Error('no container');
    const { mounts } = await volumes.containerMounts(subject, container, []);
    expect(mounts).toMatchObject([{ hostPath: target(), containerPath: '/data', readOnly: false }]);
    await volumes.unmountAll(ref);
    expect(driver.order).toEqual(['NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume']);
    expect(await volumes.listPods()).toEqual([]);
    expect(storage.followers).toBe(0);
  });

  test('that the pod may only read is published and mounted so', async () => {
    const readOnly = { name: 'data', persistentVolumeClaim: { claimName: 'claim', readOnly: true } };
    const subject = podWith([readOnly]);
    await volumes.mountAll(subject);
    expect(callOf('NodePublishVolume')).toMatchObject({ readonly: true });
    const [container] = subject.spec.containers;
    if (container === undefined) throw new Error('no container');
    expect((await volumes.containerMounts(subject, container, [])).mounts).toMatchObject([{ readOnly: true }]);
  });

  test('that is not bound is told in the kubelet’s words, and mounted the moment it is', async () => {
    const bound = storage.claims.get('demo/claim');
    if (bound === undefined) throw new Error('no claim');
    storage.setClaim({ ...bound, status: { phase: 'Pending' } });
    const mounting = volumes.mountAll(podWith([data]));
    await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
    expect(recorder.events[0]).toBe(
      'FailedMount: Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], ' +
        'failed to process volumes=[data]: error processing PVC demo/claim: PVC is not bound',
    );
    storage.setClaim(bound);
    // No time passes.
    await mounting;
    expect(driver.order).toEqual(['NodeStageVolume', 'NodePublishVolume']);
  });

  test('that fails in a way of the agent’s own is told by its volume’s name', async () => {
    writeFileSync(join(rootDir, 'plugins'), 'a file where a directory should be');
    volumes.mountAll(podWith([data])).catch(() => undefined);
    await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
    expect(recorder.events[0]).toMatch(/^FailedMount: MountVolume.SetUp failed for volume "pv-1" : ENOTDIR/);
  });

  test('whose volume belongs on another node is not mounted', async () => {
    usualObjects({ attachRequired: false }, { spec: { nodeAffinity: { required: { nodeSelectorTerms: [{}] } } } });
    volumes.mountAll(podWith([data])).catch(() => undefined);
    await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
    expect(recorder.events[0]).toBe(
      'FailedMount: MountVolume.NodeAffinity check failed for volume "pv-1" : no matching NodeSelectorTerms',
    );
    expect(driver.order).toEqual([]);
  });

  test('of a kind that nobody serves is refused by name', async () => {
    const { csi: _, ...spec } = storage.volumes.get('pv-1')?.spec ?? {};
    storage.volumes.set('pv-1', { metadata: { name: 'pv-1', uid: 'x', resourceVersion: '1' }, spec });
    volumes.mountAll(podWith([data])).catch(() => undefined);
    await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
    expect(recorder.events[0]).toContain('PersistentVolume pv-1 is of a kind that is not supported');
  });

  test('of a hostPath PersistentVolume is that path', async () => {
    const { csi: _, ...spec } = storage.volumes.get('pv-1')?.spec ?? {};
    storage.volumes.set('pv-1', {
      metadata: { name: 'pv-1', uid: 'x', resourceVersion: '1' },
      spec: { ...spec, hostPath: { path: '/srv/data' } },
    });
    const subject = podWith([data]);
    await volumes.mountAll(subject);
    const [container] = subject.spec.containers;
    if (container === undefined) throw new Error('no container');
    expect((await volumes.containerMounts(subject, container, [])).mounts).toMatchObject([{ hostPath: '/srv/data' }]);
  });

  test('of a local PersistentVolume is bound into the pod', async () => {
    const { csi: _, ...spec } = storage.volumes.get('pv-1')?.spec ?? {};
    mkdirSync(join(rootDir, 'disk'));
    storage.volumes.set('pv-1', {
      metadata: { name: 'pv-1', uid: 'x', resourceVersion: '1' },
      spec: { ...spec, local: { path: join(rootDir, 'disk') }, mountOptions: ['noatime'] },
    });
    await volumes.mountAll(podWith([data]));
    const at = join(rootDir, 'pods/uid-1/volumes/kubernetes.io~local-volume/pv-1');
    expect(mounter.calls).toEqual([`mount  bind,noatime ${join(rootDir, 'disk')} ${at}`]);
    await volumes.unmountAll(ref);
    expect(mounter.entries).toEqual([]);
  });

  test.each([
    ['that is not there', '/nowhere/disk', 'path "/nowhere/disk" does not exist'],
    ['that is a file', '/etc/passwd', 'only directory and block device are supported'],
  ])(
    'of a local PersistentVolume %s fails in the kubelet’s words, by the PersistentVolume’s name',
    async (_, path, words) => {
      const { csi: _csi, ...spec } = storage.volumes.get('pv-1')?.spec ?? {};
      storage.volumes.set('pv-1', {
        metadata: { name: 'pv-1', uid: 'x', resourceVersion: '1' },
        spec: { ...spec, local: { path } },
      });
      volumes.mountAll(podWith([data])).catch(() => undefined);
      await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
      expect(recorder.events[0]).toBe(
        `FailedMount: MountVolume.NewMounter initialization failed for volume "pv-1" : ${words}`,
      );
    },
  );
});

describe('attaching', () => {
  const name = attachmentName('vol-1', 'fake.csi', 'n1');
  beforeEach(() => usualObjects({ attachRequired: true }));

  test('is waited for, and its metadata told to the driver', async () => {
    const mounting = volumes.mountAll(podWith([data]));
    await vi.waitFor(() => expect(inUse.list()).toEqual(['kubernetes.io/csi/fake.csi^vol-1']));
    storage.setAttachment(name, { attached: false });
    await clock.advance(1000);
    expect(driver.order).toEqual([]);
    storage.setAttachment(name, { attached: true, attachmentMetadata: { device: '/dev/x' } });
    inUse.written(inUse.list());
    await mounting;
    expect(callOf('NodeStageVolume')).toMatchObject({ publish_context: { device: '/dev/x' } });
    expect(callOf('NodePublishVolume')).toMatchObject({ publish_context: { device: '/dev/x' } });
    await volumes.unmountAll(ref);
    expect(inUse.list()).toEqual([]);
    expect(storage.followers).toBe(0);
  });

  test('does not count before the cluster knows that the volume is in use', async () => {
    storage.setAttachment(name, { attached: true });
    const mounting = volumes.mountAll(podWith([data]));
    await vi.waitFor(() => expect(inUse.list()).toHaveLength(1));
    await clock.advance(1000);
    expect(driver.order).toEqual([]);
    inUse.written(inUse.list());
    await mounting;
  });

  test('that fails is told with the driver’s words, and tried again when the attachment changes', async () => {
    storage.setAttachment(name, { attached: false, attachError: { message: 'rpc error: disk is elsewhere' } });
    const mounting = volumes.mountAll(podWith([data]));
    await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
    expect(recorder.events).toEqual([
      'FailedAttachVolume: AttachVolume.Attach failed for volume "pv-1" : rpc error: disk is elsewhere',
    ]);
    storage.setAttachment(name, { attached: true });
    inUse.written(inUse.list());
    await mounting;
    expect(recorder.events).toHaveLength(1);
  });

  test('is not waited for any more when the pod ends', async () => {
    const mounting = volumes.mountAll(podWith([data]));
    await vi.waitFor(() => expect(storage.followers).toBe(1));
    const gone = volumes.unmountAll(ref);
    await expect(mounting).rejects.toThrow();
    await gone;
    expect(storage.followers).toBe(0);
    expect(inUse.list()).toEqual([]);
    expect(driver.order).toEqual([]);
  });

  test('stays in use for a pod that waits, when another one has given the volume back', async () => {
    const other = podWith([data]);
    const next = { ...other, metadata: { ...other.metadata, name: 'next', uid: 'uid-2' } };
    storage.setAttachment(name, { attached: true });
    const first = volumes.mountAll(podWith([data]));
    await vi.waitFor(() => expect(inUse.list()).toHaveLength(1));
    inUse.written(inUse.list());
    await first;
    storage.setAttachment(name, { attached: false });
    const second = volumes.mountAll(next);
    await vi.waitFor(() => expect(storage.followers).toBe(1));
    await volumes.unmountAll(ref);
    expect(inUse.list()).toEqual(['kubernetes.io/csi/fake.csi^vol-1']);
    storage.setAttachment(name, { attached: true });
    await second;
    await volumes.unmountAll({ ...ref, uid: 'uid-2' as PodUID });
    expect(inUse.list()).toEqual([]);
  });

  test('is required where nobody has said otherwise', async () => {
    storage.drivers.clear();
    volumes.mountAll(podWith([data])).catch(() => undefined);
    await vi.waitFor(() => expect(inUse.list()).toHaveLength(1));
  });
});

describe('the driver is told', () => {
  test('the secrets that the volume names, each in its call', async () => {
    const at = (name: string) => ({ name, namespace: 'vault' });
    usualObjects({ attachRequired: false }, { csi: { nodeStageSecretRef: at('s'), nodePublishSecretRef: at('p') } });
    objects.secrets.set('s', secret('s', { key: 'stage' }));
    objects.secrets.set('p', secret('p', { key: 'publish' }));
    await volumes.mountAll(podWith([data]));
    expect(callOf('NodeStageVolume')).toMatchObject({ secrets: { key: 'stage' } });
    expect(callOf('NodePublishVolume')).toMatchObject({ secrets: { key: 'publish' } });
  });

  test('nothing when a secret is missing', async () => {
    usualObjects({ attachRequired: false }, { csi: { nodeStageSecretRef: { name: 's', namespace: 'vault' } } });
    volumes.mountAll(podWith([data])).catch(() => undefined);
    await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
    expect(recorder.events).toEqual([
      'FailedMount: MountVolume.MountDevice failed for volume "pv-1" : fetching NodeStageSecretRef vault/s failed: secrets "s" not found',
    ]);
    expect(driver.order).toEqual([]);
  });

  test('mount flags, and the group where it mounts for one', async () => {
    driver.capabilities = ['STAGE_UNSTAGE_VOLUME', 'VOLUME_MOUNT_GROUP'];
    usualObjects({ attachRequired: false }, { spec: { mountOptions: ['noatime'] } });
    await volumes.mountAll(podWith([data], { securityContext: { fsGroup: 4321 } }));
    const mount = { fs_type: 'ext4', mount_flags: ['noatime'], volume_mount_group: '4321' };
    expect(callOf('NodeStageVolume')).toMatchObject({ volume_capability: { mount } });
    expect(callOf('NodePublishVolume')).toMatchObject({ volume_capability: { mount } });
  });

  test('of the pod and its tokens where it asks, again every minute or so with new ones', async () => {
    usualObjects({
      attachRequired: false,
      podInfoOnMount: true,
      requiresRepublish: true,
      tokenRequests: [{ audience: 'vault', expirationSeconds: 600 }],
    });
    await volumes.mountAll(podWith([data]));
    const contexts = () =>
      driver.calls.flatMap(({ method, request }) =>
        method === 'NodePublishVolume' ? [request['volume_context']] : [],
      );
    expect(contexts()).toMatchObject([{ a: 'b', 'csi.storage.k8s.io/pod.name': 'web' }]);
    expect(JSON.stringify(contexts()[0])).toContain('token-1');
    driver.next('NodePublishVolume', { code: 'INTERNAL', message: 'not now' });
    await clock.advance(60_000);
    await vi.waitFor(() => expect(trouble).toHaveLength(1));
    expect(existsSync(target())).toBe(true);
    await clock.advance(60_000);
    await vi.waitFor(() => expect(contexts()).toHaveLength(3));
    expect(JSON.stringify(contexts()[2])).toContain('token-3');
    await volumes.unmountAll(ref);
    await clock.advance(300_000);
    expect(contexts()).toHaveLength(3);
  });
});

describe('an inline volume', () => {
  const inline = { name: 'cache', csi: { driver: 'fake.csi', volumeAttributes: { size: '1' } } };
  test('is published under an id of the pod’s own, without staging or attaching', async () => {
    usualObjects({ volumeLifecycleModes: ['Ephemeral'], podInfoOnMount: true });
    await volumes.mountAll(podWith([inline]));
    expect(driver.order).toEqual(['NodePublishVolume']);
    expect(callOf('NodePublishVolume')).toMatchObject({
      volume_id: ephemeralHandle('uid-1', 'cache'),
      volume_context: { size: '1', 'csi.storage.k8s.io/ephemeral': 'true' },
    });
    await volumes.unmountAll(ref);
    expect(driver.order).toEqual(['NodePublishVolume', 'NodeUnpublishVolume']);
    expect(await volumes.listPods()).toEqual([]);
  });

  test('is refused where the driver serves claims only', async () => {
    volumes.mountAll(podWith([inline])).catch(() => undefined);
    await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
    expect(recorder.events[0]).toBe(
      'FailedMount: MountVolume.SetUp failed for volume "cache" : volume mode "Ephemeral" not supported by driver fake.csi (only supports ["Persistent"])',
    );
  });
});

test('files are given to the pod’s group after the driver has published them', async () => {
  driver.onCall = ({ method, request }) => {
    if (method !== 'NodePublishVolume') return;
    mkdirSync(String(request['target_path']), { recursive: true });
    writeFileSync(join(String(request['target_path']), 'file'), '', { mode: 0o600 });
  };
  const gid = process.getgid?.() ?? 0;
  await volumes.mountAll(podWith([data], { securityContext: { fsGroup: gid } }));
  expect(statSync(join(target(), 'file')).mode & 0o777).toBe(0o660);
  expect(statSync(target()).mode & 0o2070).toBe(0o2070);
});

describe('growing', () => {
  const grow = (size: string) => {
    const volume = storage.volumes.get('pv-1');
    const claim = storage.claims.get('demo/claim');
    if (volume === undefined || claim === undefined) throw new Error('no claim');
    storage.volumes.set('pv-1', { ...volume, spec: { ...volume.spec, capacity: { storage: size } } });
    const conditions = [{ type: 'FileSystemResizePending', status: 'True' }];
    storage.setClaim({
      ...claim,
      spec: { ...claim.spec, resources: { requests: { storage: size } } },
      status: { ...claim.status, conditions, allocatedResourceStatuses: { storage: 'NodeResizePending' } },
    });
  };
  beforeEach(() => {
    driver.capabilities = ['STAGE_UNSTAGE_VOLUME', 'EXPAND_VOLUME'];
  });

  test('while mounted asks the driver, and tells the claim before and after', async () => {
    await volumes.mountAll(podWith([data]));
    grow('2Gi');
    await vi.waitFor(() => expect(statusOf()?.capacity).toEqual({ storage: '2Gi' }));
    expect(callOf('NodeExpandVolume')).toMatchObject({
      volume_id: 'vol-1',
      volume_path: target(),
      staging_target_path: expect.stringContaining('globalmount'),
      capacity_range: { required_bytes: String(2 ** 31) },
    });
    expect(storage.patches).toEqual([
      { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } },
      { capacity: { storage: '2Gi' }, conditions: [], allocatedResourceStatuses: { storage: null } },
    ]);
    expect(recorder.events).toEqual([
      'FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv-1"',
      'FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv-1"',
    ]);
    expect(driver.order.filter((method) => method === 'NodeExpandVolume')).toHaveLength(1);
  });

  test('that was waited for is done before the pod starts', async () => {
    grow('2Gi');
    await volumes.mountAll(podWith([data]));
    expect(driver.order).toEqual(['NodeStageVolume', 'NodePublishVolume', 'NodeExpandVolume']);
  });

  test('that fails is told, tried again with pauses, and ends', async () => {
    await volumes.mountAll(podWith([data]));
    driver.next('NodeExpandVolume', { code: 'INTERNAL', message: 'no room' }, { code: 'ABORTED', message: 'busy' });
    grow('2Gi');
    await vi.waitFor(() => expect(recorder.events).toHaveLength(2));
    expect(recorder.events[0]).toBe(
      'VolumeResizeFailed: NodeExpandVolume.NodeExpandVolume failed for volume "pv-1" : rpc error: code = Internal desc = no room',
    );
    expect(statusOf()?.conditions).toMatchObject([
      { type: 'FileSystemResizePending' },
      { type: 'NodeResizeError', message: expect.stringContaining('no room') },
    ]);
    await clock.advance(500);
    await vi.waitFor(() => expect(recorder.events).toHaveLength(4));
    await clock.advance(1000);
    await vi.waitFor(() => expect(statusOf()?.capacity).toEqual({ storage: '2Gi' }));
    expect(statusOf()?.conditions).toEqual([]);
  });

  test('that can never be is said once, and not tried again before somebody wishes anew', async () => {
    await volumes.mountAll(podWith([data]));
    driver.next('NodeExpandVolume', { code: 'OUT_OF_RANGE', message: 'too large' });
    grow('2Gi');
    await vi.waitFor(() => expect(statusOf()?.allocatedResourceStatuses).toEqual({ storage: 'NodeResizeInfeasible' }));
    await clock.advance(600_000);
    expect(driver.order.filter((method) => method === 'NodeExpandVolume')).toHaveLength(1);
    grow('1536Mi');
    await vi.waitFor(() => expect(statusOf()?.capacity).toEqual({ storage: '1536Mi' }));
  });

  test('that a driver refuses while the volume is in use waits for the next mount', async () => {
    await volumes.mountAll(podWith([data]));
    driver.next('NodeExpandVolume', { code: 'FAILED_PRECONDITION', message: 'in use' });
    grow('2Gi');
    await vi.waitFor(() => expect(recorder.events).toHaveLength(2));
    await clock.advance(600_000);
    expect(driver.order.filter((method) => method === 'NodeExpandVolume')).toHaveLength(1);
    await volumes.unmountAll(ref);
    await volumes.mountAll(podWith([data]));
    expect(statusOf()?.capacity).toEqual({ storage: '2Gi' });
  });

  test('is left to whoever can where the driver cannot', async () => {
    driver.capabilities = ['STAGE_UNSTAGE_VOLUME'];
    await volumes.mountAll(podWith([data]));
    grow('2Gi');
    await clock.advance(1000);
    expect(storage.patches).toEqual([]);
  });
});

describe('figures', () => {
  const answer = (abnormal: boolean, message: string) => ({
    response: {
      usage: [
        { unit: 'BYTES', total: '100', available: '60', used: '40' },
        { unit: 'INODES', total: '10', available: '7', used: '3' },
      ],
      volume_condition: { abnormal, message },
    },
  });
  const setUp = async () => {
    driver.capabilities = ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS'];
    await volumes.mountAll(podWith([data]));
    return new CsiStats({ volumes: csi, recorder, clock, onTrouble: (message) => trouble.push(message) });
  };
  const asked = () => driver.calls.filter(({ method }) => method === 'NodeGetVolumeStats');

  test('of a volume are what its driver says, asked at most once a minute', async () => {
    const stats = await setUp();
    driver.next('NodeGetVolumeStats', answer(false, 'well'));
    const [figures] = await stats.read();
    expect(figures).toMatchObject({
      podUid: 'uid-1',
      name: 'data',
      pvcRef: { name: 'claim', namespace: 'demo' },
      capacityBytes: 100,
      availableBytes: 60,
      usedBytes: 40,
      inodes: 10,
      inodesFree: 7,
      inodesUsed: 3,
      condition: { abnormal: false, message: 'well' },
    });
    expect(asked()[0]?.request).toMatchObject({ volume_id: 'vol-1', volume_path: target() });
    await clock.advance(59_000);
    await stats.read();
    expect(asked()).toHaveLength(1);
    await clock.advance(1000);
    await stats.read();
    expect(asked()).toHaveLength(2);
  });

  test('of a volume that is not well are an event, once for each thing that is wrong', async () => {
    const stats = await setUp();
    driver.next('NodeGetVolumeStats', answer(true, 'the disk smokes'), answer(true, 'the disk smokes'));
    await stats.read();
    await clock.advance(60_000);
    await stats.read();
    expect(recorder.events).toEqual(['VolumeConditionAbnormal: Volume data: the disk smokes']);
  });

  test('that cannot be had are told, and the last ones stand', async () => {
    const stats = await setUp();
    driver.next('NodeGetVolumeStats', answer(false, ''), { code: 'INTERNAL', message: 'cannot look' });
    await stats.read();
    await clock.advance(60_000);
    expect(await stats.read()).toMatchObject([{ usedBytes: 40 }]);
    expect(trouble).toEqual(['no figures of volume pv-1: cannot look']);
  });

  test('are not asked of a driver that has none, nor of a pod that has gone', async () => {
    const stats = await setUp();
    driver.capabilities = ['STAGE_UNSTAGE_VOLUME'];
    expect(await stats.read()).toEqual([]);
    await volumes.unmountAll(ref);
    driver.capabilities = ['GET_VOLUME_STATS'];
    expect(await stats.read()).toEqual([]);
    expect(asked()).toEqual([]);
  });
});
