// Claims and CSI volumes through the volume manager, against a scripted driver and storage objects in memory.

import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { PodUID } from '../../../../../agent/ports/runtime.ts';
import { attachmentName, ephemeralHandle } from '../../../../../agent/volumes/csi/layout.ts';
import { podWith, secret } from '../support.ts';
import { ClaimStand, DATA, REF } from './claim-stand.ts';

let stand: ClaimStand;
beforeEach(async () => {
  stand = await ClaimStand.make();
});
afterEach(() => stand.close());

describe('a claim', () => {
  test('is mounted below the pod, and what containers get is where the driver published it', async () => {
    const subject = podWith([DATA]);
    await stand.volumes.mountAll(subject);
    const [container] = subject.spec.containers;
    if (container === undefined) throw new Error('no container');
    const { mounts } = await stand.volumes.containerMounts(subject, container, []);
    expect(mounts).toMatchObject([{ hostPath: stand.target(), containerPath: '/data', readOnly: false }]);
    await stand.volumes.unmountAll(REF);
    expect(stand.driver.order).toEqual([
      'NodeStageVolume',
      'NodePublishVolume',
      'NodeUnpublishVolume',
      'NodeUnstageVolume',
    ]);
    expect(await stand.volumes.listPods()).toEqual([]);
    expect(stand.storage.followers).toBe(0);
  });

  test('that the pod may only read is published and mounted so', async () => {
    const readOnly = { name: 'data', persistentVolumeClaim: { claimName: 'claim', readOnly: true } };
    const subject = podWith([readOnly]);
    await stand.volumes.mountAll(subject);
    expect(stand.callOf('NodePublishVolume')).toMatchObject({ readonly: true });
    const [container] = subject.spec.containers;
    if (container === undefined) throw new Error('no container');
    expect((await stand.volumes.containerMounts(subject, container, [])).mounts).toMatchObject([{ readOnly: true }]);
  });

  test('that is not bound is reported with the kubelet’s message, and mounted once it is', async () => {
    const bound = stand.storage.claims.get('demo/claim');
    if (bound === undefined) throw new Error('no claim');
    stand.storage.setClaim({ ...bound, status: { phase: 'Pending' } });
    const mounting = stand.volumes.mountAll(podWith([DATA]));
    await vi.waitFor(() => expect(stand.recorder.events).toHaveLength(1));
    expect(stand.recorder.events[0]).toBe(
      'FailedMount: Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], ' +
        'failed to process volumes=[data]: error processing PVC demo/claim: PVC is not bound',
    );
    stand.storage.setClaim(bound);
    // No time passes.
    await mounting;
    expect(stand.driver.order).toEqual(['NodeStageVolume', 'NodePublishVolume']);
  });

  test('that has another volume than last time gets that one', async () => {
    await stand.volumes.mountAll(podWith([DATA]));
    await stand.volumes.unmountAll(REF);
    const { storage } = stand;
    const [claim, volume] = [storage.claims.get('demo/claim'), storage.volumes.get('pv-1')];
    if (claim === undefined || volume?.spec === undefined) throw new Error('no claim');
    const csi = { driver: 'fake.csi', volumeHandle: 'vol-2' };
    storage.volumes.set('pv-2', {
      metadata: { ...volume.metadata, name: 'pv-2' },
      spec: { ...volume.spec, csi, claimRef: { uid: 'uid-of-next' } },
    });
    storage.setClaim({
      ...claim,
      metadata: { ...claim.metadata, uid: 'uid-of-next' },
      spec: { ...claim.spec, volumeName: 'pv-2' },
    });
    await stand.volumes.mountAll(podWith([DATA]));
    expect(stand.driver.calls.at(-1)?.request).toMatchObject({ volume_id: 'vol-2' });
  });

  test('that fails with an internal error is reported with its volume’s name', async () => {
    writeFileSync(join(stand.rootDir, 'plugins'), 'a file where a directory should be');
    stand.volumes.mountAll(podWith([DATA])).catch(() => undefined);
    await vi.waitFor(() => expect(stand.recorder.events).toHaveLength(1));
    expect(stand.recorder.events[0]).toMatch(/^FailedMount: MountVolume.SetUp failed for volume "pv-1" : ENOTDIR/);
  });

  test('whose volume belongs on another node is not mounted', async () => {
    stand.usualObjects(
      { attachRequired: false },
      { spec: { nodeAffinity: { required: { nodeSelectorTerms: [{}] } } } },
    );
    stand.volumes.mountAll(podWith([DATA])).catch(() => undefined);
    await vi.waitFor(() => expect(stand.recorder.events).toHaveLength(1));
    expect(stand.recorder.events[0]).toBe(
      'FailedMount: MountVolume.NodeAffinity check failed for volume "pv-1" : no matching NodeSelectorTerms',
    );
    expect(stand.driver.order).toEqual([]);
  });

  test('of an unsupported kind is refused by name', async () => {
    const { csi: _, ...spec } = stand.storage.volumes.get('pv-1')?.spec ?? {};
    stand.storage.volumes.set('pv-1', { metadata: { name: 'pv-1', uid: 'x', resourceVersion: '1' }, spec });
    stand.volumes.mountAll(podWith([DATA])).catch(() => undefined);
    await vi.waitFor(() => expect(stand.recorder.events).toHaveLength(1));
    expect(stand.recorder.events[0]).toContain('PersistentVolume pv-1 is of a kind that is not supported');
  });

  test('of a hostPath PersistentVolume is that path', async () => {
    const { csi: _, ...spec } = stand.storage.volumes.get('pv-1')?.spec ?? {};
    stand.storage.volumes.set('pv-1', {
      metadata: { name: 'pv-1', uid: 'x', resourceVersion: '1' },
      spec: { ...spec, hostPath: { path: '/srv/data' } },
    });
    const subject = podWith([DATA]);
    await stand.volumes.mountAll(subject);
    const [container] = subject.spec.containers;
    if (container === undefined) throw new Error('no container');
    expect((await stand.volumes.containerMounts(subject, container, [])).mounts).toMatchObject([
      { hostPath: '/srv/data' },
    ]);
  });

  test('of a local PersistentVolume is bound into the pod', async () => {
    const { csi: _, ...spec } = stand.storage.volumes.get('pv-1')?.spec ?? {};
    mkdirSync(join(stand.rootDir, 'disk'));
    stand.storage.volumes.set('pv-1', {
      metadata: { name: 'pv-1', uid: 'x', resourceVersion: '1' },
      spec: { ...spec, local: { path: join(stand.rootDir, 'disk') }, mountOptions: ['noatime'] },
    });
    await stand.volumes.mountAll(podWith([DATA]));
    const at = join(stand.rootDir, 'pods/uid-1/volumes/kubernetes.io~local-volume/pv-1');
    expect(stand.mounter.calls).toEqual([`mount  bind,noatime ${join(stand.rootDir, 'disk')} ${at}`]);
    await stand.volumes.unmountAll(REF);
    expect(stand.mounter.entries).toEqual([]);
  });

  test.each([
    ['that is not there', '/nowhere/disk', 'path "/nowhere/disk" does not exist'],
    ['that is a file', '/etc/passwd', 'only directory and block device are supported'],
  ])(
    'of a local PersistentVolume %s fails in the kubelet’s words, by the PersistentVolume’s name',
    async (_, path, words) => {
      const { csi: _csi, ...spec } = stand.storage.volumes.get('pv-1')?.spec ?? {};
      stand.storage.volumes.set('pv-1', {
        metadata: { name: 'pv-1', uid: 'x', resourceVersion: '1' },
        spec: { ...spec, local: { path } },
      });
      stand.volumes.mountAll(podWith([DATA])).catch(() => undefined);
      await vi.waitFor(() => expect(stand.recorder.events).toHaveLength(1));
      expect(stand.recorder.events[0]).toBe(
        `FailedMount: MountVolume.NewMounter initialization failed for volume "pv-1" : ${words}`,
      );
    },
  );
});

describe('attaching', () => {
  const name = attachmentName('vol-1', 'fake.csi', 'n1');
  beforeEach(() => stand.usualObjects({ attachRequired: true }));

  test('is waited for, and its metadata sent to the driver', async () => {
    const mounting = stand.volumes.mountAll(podWith([DATA]));
    await vi.waitFor(() => expect(stand.inUse.list()).toEqual(['kubernetes.io/csi/fake.csi^vol-1']));
    stand.storage.setAttachment(name, { attached: false });
    await stand.clock.advance(1000);
    expect(stand.driver.order).toEqual([]);
    stand.storage.setAttachment(name, { attached: true, attachmentMetadata: { device: '/dev/x' } });
    stand.inUse.written(stand.inUse.list());
    await mounting;
    expect(stand.callOf('NodeStageVolume')).toMatchObject({ publish_context: { device: '/dev/x' } });
    expect(stand.callOf('NodePublishVolume')).toMatchObject({ publish_context: { device: '/dev/x' } });
    await stand.volumes.unmountAll(REF);
    expect(stand.inUse.list()).toEqual([]);
    expect(stand.storage.followers).toBe(0);
  });

  test('does not count before the cluster knows that the volume is in use', async () => {
    stand.storage.setAttachment(name, { attached: true });
    const mounting = stand.volumes.mountAll(podWith([DATA]));
    await vi.waitFor(() => expect(stand.inUse.list()).toHaveLength(1));
    await stand.clock.advance(1000);
    expect(stand.driver.order).toEqual([]);
    stand.inUse.written(stand.inUse.list());
    await mounting;
  });

  test('that fails is reported with the driver’s message, and retried when the attachment changes', async () => {
    stand.storage.setAttachment(name, { attached: false, attachError: { message: 'rpc error: disk is elsewhere' } });
    const mounting = stand.volumes.mountAll(podWith([DATA]));
    await vi.waitFor(() => expect(stand.recorder.events).toHaveLength(1));
    expect(stand.recorder.events).toEqual([
      'FailedAttachVolume: AttachVolume.Attach failed for volume "pv-1" : rpc error: disk is elsewhere',
    ]);
    stand.storage.setAttachment(name, { attached: true });
    stand.inUse.written(stand.inUse.list());
    await mounting;
    expect(stand.recorder.events).toHaveLength(1);
  });

  test('is not waited for any more when the pod ends', async () => {
    const mounting = stand.volumes.mountAll(podWith([DATA]));
    await vi.waitFor(() => expect(stand.storage.followers).toBe(1));
    const gone = stand.volumes.unmountAll(REF);
    await expect(mounting).rejects.toThrow();
    await gone;
    expect(stand.storage.followers).toBe(0);
    expect(stand.inUse.list()).toEqual([]);
    expect(stand.driver.order).toEqual([]);
  });

  test('stays in use for a pod that waits, when another one has given the volume back', async () => {
    const other = podWith([DATA]);
    const next = { ...other, metadata: { ...other.metadata, name: 'next', uid: 'uid-2' } };
    stand.storage.setAttachment(name, { attached: true });
    const first = stand.volumes.mountAll(podWith([DATA]));
    await vi.waitFor(() => expect(stand.inUse.list()).toHaveLength(1));
    stand.inUse.written(stand.inUse.list());
    await first;
    stand.storage.setAttachment(name, { attached: false });
    const second = stand.volumes.mountAll(next);
    await vi.waitFor(() => expect(stand.storage.followers).toBe(1));
    await stand.volumes.unmountAll(REF);
    expect(stand.inUse.list()).toEqual(['kubernetes.io/csi/fake.csi^vol-1']);
    stand.storage.setAttachment(name, { attached: true });
    await second;
    await stand.volumes.unmountAll({ ...REF, uid: 'uid-2' as PodUID });
    expect(stand.inUse.list()).toEqual([]);
  });

  test('is required by default', async () => {
    stand.storage.drivers.clear();
    stand.volumes.mountAll(podWith([DATA])).catch(() => undefined);
    await vi.waitFor(() => expect(stand.inUse.list()).toHaveLength(1));
  });
});

describe('the driver receives', () => {
  test('the secrets that the volume names, each in its call', async () => {
    const at = (name: string) => ({ name, namespace: 'vault' });
    stand.usualObjects(
      { attachRequired: false },
      { csi: { nodeStageSecretRef: at('s'), nodePublishSecretRef: at('p') } },
    );
    stand.objects.secrets.set('s', secret('s', { key: 'stage' }));
    stand.objects.secrets.set('p', secret('p', { key: 'publish' }));
    await stand.volumes.mountAll(podWith([DATA]));
    expect(stand.callOf('NodeStageVolume')).toMatchObject({ secrets: { key: 'stage' } });
    expect(stand.callOf('NodePublishVolume')).toMatchObject({ secrets: { key: 'publish' } });
  });

  test('nothing when a secret is missing', async () => {
    stand.usualObjects({ attachRequired: false }, { csi: { nodeStageSecretRef: { name: 's', namespace: 'vault' } } });
    stand.volumes.mountAll(podWith([DATA])).catch(() => undefined);
    await vi.waitFor(() => expect(stand.recorder.events).toHaveLength(1));
    expect(stand.recorder.events).toEqual([
      'FailedMount: MountVolume.MountDevice failed for volume "pv-1" : fetching NodeStageSecretRef vault/s failed: secrets "s" not found',
    ]);
    expect(stand.driver.order).toEqual([]);
  });

  test('mount flags, and the group where it mounts for one', async () => {
    stand.driver.capabilities = ['STAGE_UNSTAGE_VOLUME', 'VOLUME_MOUNT_GROUP'];
    stand.usualObjects({ attachRequired: false }, { spec: { mountOptions: ['noatime'] } });
    await stand.volumes.mountAll(podWith([DATA], { securityContext: { fsGroup: 4321 } }));
    const mount = { fs_type: 'ext4', mount_flags: ['noatime'], volume_mount_group: '4321' };
    expect(stand.callOf('NodeStageVolume')).toMatchObject({ volume_capability: { mount } });
    expect(stand.callOf('NodePublishVolume')).toMatchObject({ volume_capability: { mount } });
  });

  test('of the pod and its tokens where it asks, again every minute or so with new ones', async () => {
    stand.usualObjects({
      attachRequired: false,
      podInfoOnMount: true,
      requiresRepublish: true,
      tokenRequests: [{ audience: 'vault', expirationSeconds: 600 }],
    });
    await stand.volumes.mountAll(podWith([DATA]));
    const contexts = () =>
      stand.driver.calls.flatMap(({ method, request }) =>
        method === 'NodePublishVolume' ? [request['volume_context']] : [],
      );
    expect(contexts()).toMatchObject([{ a: 'b', 'csi.storage.k8s.io/pod.name': 'web' }]);
    expect(JSON.stringify(contexts()[0])).toContain('token-1');
    stand.driver.next('NodePublishVolume', { code: 'INTERNAL', message: 'not now' });
    await stand.clock.advance(60_000);
    await vi.waitFor(() => expect(stand.trouble).toHaveLength(1));
    expect(existsSync(stand.target())).toBe(true);
    await stand.clock.advance(60_000);
    await vi.waitFor(() => expect(contexts()).toHaveLength(3));
    expect(JSON.stringify(contexts()[2])).toContain('token-3');
    await stand.volumes.unmountAll(REF);
    await stand.clock.advance(300_000);
    expect(contexts()).toHaveLength(3);
  });
});

describe('an inline volume', () => {
  const inline = { name: 'cache', csi: { driver: 'fake.csi', volumeAttributes: { size: '1' } } };
  test('is published under an id of the pod’s own, without staging or attaching', async () => {
    stand.usualObjects({ volumeLifecycleModes: ['Ephemeral'], podInfoOnMount: true });
    await stand.volumes.mountAll(podWith([inline]));
    expect(stand.driver.order).toEqual(['NodePublishVolume']);
    expect(stand.callOf('NodePublishVolume')).toMatchObject({
      volume_id: ephemeralHandle('uid-1', 'cache'),
      volume_context: { size: '1', 'csi.storage.k8s.io/ephemeral': 'true' },
    });
    await stand.volumes.unmountAll(REF);
    expect(stand.driver.order).toEqual(['NodePublishVolume', 'NodeUnpublishVolume']);
    expect(await stand.volumes.listPods()).toEqual([]);
  });

  test('is refused where the driver serves claims only', async () => {
    stand.volumes.mountAll(podWith([inline])).catch(() => undefined);
    await vi.waitFor(() => expect(stand.recorder.events).toHaveLength(1));
    expect(stand.recorder.events[0]).toBe(
      'FailedMount: MountVolume.SetUp failed for volume "cache" : volume mode "Ephemeral" not supported by driver fake.csi (only supports ["Persistent"])',
    );
  });
});

test('files are given to the pod’s group after the driver has published them', async () => {
  stand.driver.onCall = ({ method, request }) => {
    if (method !== 'NodePublishVolume') return;
    mkdirSync(String(request['target_path']), { recursive: true });
    writeFileSync(join(String(request['target_path']), 'file'), '', { mode: 0o600 });
  };
  const gid = process.getgid?.() ?? 0;
  await stand.volumes.mountAll(podWith([DATA], { securityContext: { fsGroup: gid } }));
  expect(statSync(join(stand.target(), 'file')).mode & 0o777).toBe(0o660);
  expect(statSync(stand.target()).mode & 0o2070).toBe(0o2070);
});
