import type { CSIDriverSpec } from 'kubernetes-types/storage/v1';
import { describe, expect, test } from 'vitest';
import { attachmentState } from '../../../../../agent/volumes/csi/attachment.ts';
import { mappedMessages } from '../../../../../agent/volumes/csi/block.ts';
import {
  attachmentName,
  blockStagingPlace,
  ephemeralHandle,
  podBlockPlace,
  podPlace,
  stagingPlace,
  uniqueVolumeName,
} from '../../../../../agent/volumes/csi/layout.ts';
import { csiMessage, isFinal, isInfeasible } from '../../../../../agent/volumes/csi/outcome.ts';
import {
  accessMode,
  appliesFsGroup,
  exclusivityProblem,
  inlineCsiVolume,
  lifecycleProblem,
  publishVolumeContext,
  volumeCapability,
} from '../../../../../agent/volumes/csi/volume.ts';
import { CsiError } from '../../../../../csi/client.ts';
import { epochMs } from '../../../../../lib/clock.ts';
import { pod } from '../support.ts';

// As sha256sum(1) prints them.
const SHA_VOL_1 = 'd2e8363faaac7ae76def3b14091d8eb5755f6b92e9531627aeec833a8731cc49';
const SHA_ATTACHMENT = 'ada9b5cd362835a59d5b637a7efadf7497f0704804beae7ef2ab78bf5c62c034';
const SHA_INLINE = '2eb40120db329d0b1883693648d926ab29de838ab9b06942cb9e21f9d29b0788';

describe('on disk a volume lies where the kubelet puts it', () => {
  test('staged by driver and hash of its handle', () => {
    const { note, path } = stagingPlace('/r', 'd.csi', 'vol-1');
    // sha256("vol-1")
    expect(path).toBe(`/r/plugins/kubernetes.io/csi/d.csi/${SHA_VOL_1}/globalmount`);
    expect(note).toBe(`/r/plugins/kubernetes.io/csi/d.csi/${SHA_VOL_1}/vol_data.json`);
  });
  test('published below the pod, by the PersistentVolume’s name', () => {
    expect(podPlace('/r', 'u1', 'pv-1')).toEqual({
      note: '/r/pods/u1/volumes/kubernetes.io~csi/pv-1/vol_data.json',
      target: '/r/pods/u1/volumes/kubernetes.io~csi/pv-1/mount',
    });
  });
  test('a device has its own staging, publish and map places', () => {
    expect(blockStagingPlace('/r', 'pv-1')).toEqual({
      note: '/r/plugins/kubernetes.io/csi/volumeDevices/pv-1/data/vol_data.json',
      path: '/r/plugins/kubernetes.io/csi/volumeDevices/staging/pv-1',
    });
    expect(podBlockPlace('/r', 'u1', 'pv-1')).toMatchObject({
      target: '/r/plugins/kubernetes.io/csi/volumeDevices/publish/pv-1/u1',
      globalMap: '/r/plugins/kubernetes.io/csi/volumeDevices/pv-1/dev/u1',
      podMap: '/r/pods/u1/volumeDevices/kubernetes.io~csi/pv-1',
    });
  });
  test('an attachment is named by handle, driver and node', () => {
    // sha256("vol-1" + "d.csi" + "n1")
    expect(attachmentName('vol-1', 'd.csi', 'n1')).toBe(`csi-${SHA_ATTACHMENT}`);
  });
  test('an inline volume’s handle is made of the pod and its name', () => {
    // sha256("u1" + "cache")
    expect(ephemeralHandle('u1', 'cache')).toBe(`csi-${SHA_INLINE}`);
  });
  test('in node.status a volume is named by driver and handle', () => {
    expect(uniqueVolumeName('d.csi', 'vol-1')).toBe('kubernetes.io/csi/d.csi^vol-1');
  });
});

describe('the access mode in the driver’s request', () => {
  test.each([
    [[], [], 'SINGLE_NODE_WRITER'],
    [['ReadWriteOnce'], [], 'SINGLE_NODE_WRITER'],
    [['ReadWriteOnce'], ['SINGLE_NODE_MULTI_WRITER'], 'SINGLE_NODE_MULTI_WRITER'],
    [['ReadWriteOncePod'], [], 'SINGLE_NODE_WRITER'],
    [['ReadWriteOncePod'], ['SINGLE_NODE_MULTI_WRITER'], 'SINGLE_NODE_SINGLE_WRITER'],
    [['ReadOnlyMany'], [], 'MULTI_NODE_READER_ONLY'],
    [['ReadWriteMany'], ['SINGLE_NODE_MULTI_WRITER'], 'MULTI_NODE_MULTI_WRITER'],
    [['ReadOnlyMany', 'ReadWriteOnce'], [], 'MULTI_NODE_READER_ONLY'],
  ])('for %j of a driver with %j is %s', (modes, capabilities, mode) => {
    expect(accessMode(modes, new Set(capabilities))).toBe(mode);
  });
  test('is refused when unknown', () => {
    expect(() => accessMode(['ReadSometimes'], new Set())).toThrow('unknown access mode "ReadSometimes"');
  });
});

describe('a volume for one pod at a time (ReadWriteOncePod)', () => {
  const only = ['ReadWriteOncePod'];
  const has = (podUid: string) => ({ podUid, phase: 'published' as const });
  const wants = (podUid: string) => ({ podUid, phase: 'referenced' as const });
  test.each([
    ['that nobody uses is the pod’s', only, [], false],
    ['that the pod has already stays the pod’s', only, [has('u1')], false],
    ['that another pod has is refused', only, [has('u2')], true],
    ['that the pod and another one have is refused', only, [has('u1'), has('u2')], true],
    ['that another pod only waits for is the first comer’s', only, [wants('u2')], false],
    ['is what no other mode makes it', ['ReadWriteOnce'], [has('u2')], false],
    ['is not told of one with several modes', ['ReadWriteOncePod', 'ReadWriteOnce'], [has('u2')], false],
    ['is not one without modes (inline)', [], [has('u2')], false],
  ])('%s', (_, modes, users, refused) => {
    expect(exclusivityProblem(modes, 'u1', users)).toBe(
      refused ? 'volume uses the ReadWriteOncePod access mode and is already in use by another pod' : undefined,
    );
  });
});

const filesystem = { block: false, fsType: 'xfs', mountFlags: ['noatime'], accessModes: ['ReadWriteOnce'] };

test('a device that a pod has got is two events, as the kubelet’s', () => {
  expect(mappedMessages('pv-1', podBlockPlace('/r', 'u1', 'pv-1'))).toEqual([
    'MapVolume.MapPodDevice succeeded for volume "pv-1" globalMapPath "/r/plugins/kubernetes.io/csi/volumeDevices/pv-1/dev"',
    'MapVolume.MapPodDevice succeeded for volume "pv-1" volumeMapPath "/r/pods/u1/volumeDevices/kubernetes.io~csi"',
  ]);
});

describe('the capability', () => {
  test('of a file system names type, flags and no group', () => {
    expect(volumeCapability(filesystem, new Set(), 2000)).toEqual({
      access_mode: { mode: 'SINGLE_NODE_WRITER' },
      access_type: 'mount',
      mount: { fs_type: 'xfs', mount_flags: ['noatime'], volume_mount_group: '' },
    });
  });
  test('names the group to a driver that mounts for one', () => {
    expect(volumeCapability(filesystem, new Set(['VOLUME_MOUNT_GROUP']), 2000).mount?.volume_mount_group).toBe('2000');
    expect(volumeCapability(filesystem, new Set(['VOLUME_MOUNT_GROUP']), undefined).mount?.volume_mount_group).toBe('');
  });
  test('of a device names neither type nor flags', () => {
    expect(volumeCapability({ ...filesystem, block: true }, new Set(), 2000)).toEqual({
      access_mode: { mode: 'SINGLE_NODE_WRITER' },
      access_type: 'block',
      block: {},
    });
  });
});

describe('files are given to the pod’s group by the agent', () => {
  const usual = {
    readOnly: false,
    fsType: 'ext4',
    accessModes: ['ReadWriteOnce'],
    lifecycle: 'Persistent',
    block: false,
  } as const;
  const policy = (fsGroupPolicy: string): CSIDriverSpec => ({ fsGroupPolicy });
  test.each<
    [string, Parameters<typeof appliesFsGroup>[0], CSIDriverSpec | undefined, string[], number | undefined, boolean]
  >([
    ['without a policy, for one writer and a file system type', usual, undefined, [], 1, true],
    ['not without fsGroup', usual, policy('File'), [], undefined, false],
    ['not where the driver does it', usual, policy('File'), ['VOLUME_MOUNT_GROUP'], 1, false],
    ['not with the policy None', usual, policy('None'), [], 1, false],
    [
      'always with the policy File',
      { ...usual, fsType: '', accessModes: ['ReadWriteMany'] },
      policy('File'),
      [],
      1,
      true,
    ],
    ['not when read-only', { ...usual, readOnly: true }, policy('File'), [], 1, false],
    ['not without a file system type', { ...usual, fsType: '' }, policy('ReadWriteOnceWithFSType'), [], 1, false],
    ['not for many writers', { ...usual, accessModes: ['ReadWriteMany'] }, undefined, [], 1, false],
    ['for ReadWriteOncePod', { ...usual, accessModes: ['ReadWriteOncePod'] }, undefined, [], 1, true],
    ['not without access modes', { ...usual, accessModes: [] }, undefined, [], 1, false],
    ['for an inline volume with a type', { ...usual, accessModes: [], lifecycle: 'Ephemeral' }, undefined, [], 1, true],
    ['never for a device', { ...usual, block: true }, policy('File'), [], 1, false],
  ])('%s', (_, volume, driver, capabilities, fsGroup, applies) => {
    expect(appliesFsGroup(volume, driver, new Set(capabilities), fsGroup)).toBe(applies);
  });
});

describe('which volumes a driver serves', () => {
  test.each<['Persistent' | 'Ephemeral', CSIDriverSpec | undefined, string | undefined]>([
    ['Persistent', undefined, undefined],
    ['Persistent', {}, undefined],
    ['Persistent', { volumeLifecycleModes: ['Persistent', 'Ephemeral'] }, undefined],
    ['Ephemeral', { volumeLifecycleModes: ['Ephemeral'] }, undefined],
    ['Ephemeral', {}, 'volume mode "Ephemeral" not supported by driver d (only supports ["Persistent"])'],
    ['Ephemeral', undefined, 'volume mode "Ephemeral" not supported by driver d (no CSIDriver object)'],
    [
      'Persistent',
      { volumeLifecycleModes: ['Ephemeral'] },
      'volume mode "Persistent" not supported by driver d (only supports ["Ephemeral"])',
    ],
  ])('%s with %j: %s', (lifecycle, spec, problem) => {
    expect(lifecycleProblem({ driver: 'd', lifecycle }, spec)).toBe(problem);
  });
});

describe('volume_context', () => {
  const subject = pod({ serviceAccountName: 'sa' });
  test('is the volume’s own attributes where the driver asks for nothing', () => {
    const context = publishVolumeContext({ attributes: { a: '1' }, lifecycle: 'Persistent' }, subject, {}, []);
    expect(context).toEqual({ a: '1' });
  });
  test('contains the pod with podInfoOnMount', () => {
    const context = publishVolumeContext(
      inlineCsiVolume(subject, { name: 'v', csi: { driver: 'd' } }),
      subject,
      { podInfoOnMount: true },
      [],
    );
    expect(context).toEqual({
      'csi.storage.k8s.io/pod.name': 'web',
      'csi.storage.k8s.io/pod.namespace': 'demo',
      'csi.storage.k8s.io/pod.uid': 'uid-1',
      'csi.storage.k8s.io/serviceAccount.name': 'sa',
      'csi.storage.k8s.io/ephemeral': 'true',
    });
  });
  test('carries the tokens that the driver asks for, by audience', () => {
    const tokens = [
      { audience: '', token: 't1', expiresAt: epochMs(Date.parse('2026-01-01T00:00:00Z')) },
      { audience: 'vault', token: 't2', expiresAt: epochMs(Date.parse('2026-01-01T01:00:00.5Z')) },
    ];
    const context = publishVolumeContext({ attributes: {}, lifecycle: 'Persistent' }, subject, {}, tokens);
    expect(JSON.parse(context['csi.storage.k8s.io/serviceAccount.tokens'] ?? '')).toEqual({
      '': { token: 't1', expirationTimestamp: '2026-01-01T00:00:00Z' },
      vault: { token: 't2', expirationTimestamp: '2026-01-01T01:00:00Z' },
    });
  });
});

describe('after a failed call', () => {
  test.each([
    ['CANCELLED', false],
    ['DEADLINE_EXCEEDED', false],
    ['UNAVAILABLE', false],
    ['RESOURCE_EXHAUSTED', false],
    ['ABORTED', false],
    ['INTERNAL', true],
    ['NOT_FOUND', true],
    ['FAILED_PRECONDITION', true],
    ['INVALID_ARGUMENT', true],
    ['UNIMPLEMENTED', true],
  ])('%s: certainly not done is %s', (code, final) => {
    expect(isFinal(new CsiError(code, 'x', 'NodeStageVolume'))).toBe(final);
  });
  test('what failed before the call is not final', () => {
    expect(isFinal(new Error('no driver'))).toBe(false);
  });
  test.each([
    ['INVALID_ARGUMENT', true],
    ['OUT_OF_RANGE', true],
    ['NOT_FOUND', true],
    ['INTERNAL', false],
  ])('%s: expanding is infeasible is %s', (code, infeasible) => {
    expect(isInfeasible(new CsiError(code, 'x', 'NodeExpandVolume'))).toBe(infeasible);
  });
  test.each([
    ['DEADLINE_EXCEEDED', 'rpc error: code = DeadlineExceeded desc = w'],
    ['CANCELLED', 'rpc error: code = Canceled desc = w'],
    ['INTERNAL', 'rpc error: code = Internal desc = w'],
  ])('%s is reported as %s', (code, text) => {
    expect(csiMessage(new CsiError(code, 'w', 'x'))).toBe(text);
  });
});

describe('an attachment', () => {
  const attachment = (
    status:
      | { attached: boolean; attachError?: { message?: string }; attachmentMetadata?: Record<string, string> }
      | undefined,
    deleted = false,
  ) => ({
    metadata: { name: 'a', uid: 'u', resourceVersion: '1', ...(deleted ? { deletionTimestamp: 'now' } : {}) },
    spec: { attacher: 'd', nodeName: 'n', source: {} },
    ...(status === undefined ? {} : { status }),
  });
  test.each([
    ['that does not exist is waited for', undefined, { kind: 'waiting' }],
    ['that nobody has worked on is waited for', attachment(undefined), { kind: 'waiting' }],
    ['that is not attached is waited for', attachment({ attached: false }), { kind: 'waiting' }],
    [
      'that is attached has the device',
      attachment({ attached: true, attachmentMetadata: { device: '/dev/x' } }),
      { kind: 'attached', publishContext: { device: '/dev/x' } },
    ],
    [
      'that failed has the error',
      attachment({ attached: false, attachError: { message: 'disk full' } }),
      { kind: 'failed', why: 'disk full' },
    ],
    [
      'that is being deleted is of no use',
      attachment({ attached: true }, true),
      { kind: 'failed', why: 'volume attachment is being deleted' },
    ],
  ])('%s', (_, given, state) => {
    expect(attachmentState(given)).toEqual(state);
  });
});
