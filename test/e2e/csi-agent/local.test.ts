// PersistentVolumes that no driver serves, on this machine's kernel: local ones on a block device (formatted once, mounted
// once for all pods, unmounted after the last one; given to containers as it is) and in a directory, whose files are the
// first pod's group's; and nfs. Needs root and loop devices.

import { existsSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import type { PV } from '../../../agent/volumes/claims.ts';
import { CsiVolumes } from '../../../agent/volumes/csi/csi-volumes.ts';
import { createLinuxMounter } from '../../../agent/volumes/linux-mounter.ts';
import type { VolumeManager } from '../../../agent/volumes/options.ts';
import { createPersistentVolumes } from '../../../agent/volumes/persistent.ts';
import { createPodVolumes } from '../../../agent/volumes/pod-volumes.ts';
import { VolumesInUse } from '../../../agent/volumes/volumes-in-use.ts';
import { systemClock as clock } from '../../../lib/clock.ts';
import { execOk } from '../../../lib/exec.ts';
import { mountsUnder } from '../../../lib/mountinfo.ts';
import { Tracer } from '../../../lib/trace.ts';
import { FakeStorage } from '../../unit/agent/volumes/csi/fake-storage.ts';
import { FakeObjects, FakeRecorder, pod } from '../../unit/agent/volumes/support.ts';

const tracer = new Tracer();
const mounter = createLinuxMounter({ tracer });
let rootDir = '';
let device = '';
let storage: FakeStorage;
let volumes: VolumeManager;
let csi: CsiVolumes;
let recorder: FakeRecorder;

beforeEach(async () => {
  rootDir = realpathSync(await mkdtemp(join(tmpdir(), 'nodelet-local-')));
  const image = join(rootDir, 'disk.img');
  await execOk('truncate', ['-s', '32M', image]);
  device = (await execOk('losetup', ['--find', '--show', image])).trim();
  storage = new FakeStorage();
  recorder = new FakeRecorder();
  begin();
});
afterEach(async () => {
  volumes.close();
  csi.close();
  for (const { path } of mountsUnder(await mounter.list(), rootDir)) await mounter.unmount(path);
  await execOk('losetup', ['--detach', device]);
  await rm(rootDir, { recursive: true, force: true });
});

function provide(volumeMode: 'Filesystem' | 'Block', source: object = { local: { path: device } }): void {
  const meta = (name: string) => ({ name, uid: `uid-of-${name}`, resourceVersion: '1' });
  const spec: NonNullable<PV['spec']> = {
    volumeMode,
    accessModes: ['ReadWriteOnce'],
    claimRef: { uid: 'uid-of-claim' },
    ...source,
  };
  storage.volumes.set('pv-1', { metadata: meta('pv-1'), spec });
  const metadata = { ...meta('claim'), namespace: 'demo' };
  storage.setClaim({ metadata, spec: { volumeName: 'pv-1' }, status: { phase: 'Bound' } });
}

/** A new manager: its state is on disk and in the mount table. */
function begin(): void {
  const parts = { rootDir, mounter, objects: new FakeObjects(clock), recorder, clock, tracer };
  const none = { driver: () => undefined, registered: () => new Promise<void>(() => undefined) };
  const inUse = new VolumesInUse();
  csi = new CsiVolumes({ ...parts, nodeName: 'n1', csi: none, storage, inUse, onError: () => undefined });
  const persistent = createPersistentVolumes({ ...parts, storage, csi });
  volumes = createPodVolumes({ ...parts, persistent: async () => persistent });
}

const list = [{ name: 'v', persistentVolumeClaim: { claimName: 'claim' } }];
const container = { name: 'c', volumeMounts: [{ name: 'v', mountPath: '/v' }] };
/** A pod with the claim. */
const user = (uid: string, securityContext: object = {}) =>
  pod({ volumes: list, containers: [container], securityContext }, { uid });
const at = (uid: string) => `/pods/${uid}/volumes/kubernetes.io~local-volume/pv-1`;
const ref = (uid: string) => ({ uid: uid as PodUID, namespace: 'demo', name: 'web' });
const paths = async () => mountsUnder(await mounter.list(), rootDir).map(({ path }) => path.slice(rootDir.length));

test('an empty device is formatted, mounted once for its pods, and unmounted after the last one', async () => {
  provide('Filesystem');
  const global = '/plugins/kubernetes.io/local-volume/mounts/pv-1';
  await volumes.mountAll(user('u1'));
  await volumes.mountAll(user('u2'));
  expect((await paths()).toSorted()).toEqual([global, at('u1'), at('u2')]);
  await writeFile(join(rootDir, at('u1'), 'x'), 'kept');
  await volumes.unmountAll(ref('u1'));
  expect((await paths()).toSorted()).toEqual([global, at('u2')]);
  expect(await readFile(join(rootDir, at('u2'), 'x'), 'utf8')).toBe('kept');
  await volumes.unmountAll(ref('u2'));
  expect(await paths()).toEqual([]);
  expect(existsSync(join(rootDir, global))).toBe(false);
  // Not formatted again.
  await volumes.mountAll(user('u3'));
  expect(await readFile(join(rootDir, at('u3'), 'x'), 'utf8')).toBe('kept');
  await volumes.unmountAll(ref('u3'));
  expect(await paths()).toEqual([]);
});

test('a device is given to a container as it is', async () => {
  provide('Block');
  const asDevice = { name: 'c', volumeDevices: [{ name: 'v', devicePath: '/dev/v' }] };
  const subject = pod({ volumes: list, containers: [asDevice] }, { uid: 'u1' });
  await volumes.mountAll(subject);
  const { devices } = await volumes.containerMounts(subject, asDevice, []);
  expect(devices).toMatchObject([{ containerPath: '/dev/v', permissions: 'mrw' }]);
  const link = devices[0]?.hostPath ?? '';
  expect(readlinkSync(link)).toBe(device);
  expect(statSync(link).isBlockDevice()).toBe(true);
  expect(await paths()).toEqual(['/plugins/kubernetes.io~local-volume/volumeDevices/pv-1/u1']);
  const notified = 'SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "pv-1"';
  expect(recorder.events).toEqual([
    `${notified} globalMapPath "${rootDir}/plugins/kubernetes.io~local-volume/volumeDevices/pv-1"`,
    `${notified} volumeMapPath "${rootDir}/pods/u1/volumeDevices/kubernetes.io~local-volume"`,
  ]);
  await volumes.unmountAll(ref('u1'));
  expect(await paths()).toEqual([]);
  expect(existsSync(join(rootDir, 'pods/u1'))).toBe(false);
});

describe('a directory', () => {
  /** mode, owner and group of something in it. */
  const owner = (name = ''): readonly [string, number, number] => {
    const { mode, uid, gid } = statSync(join(rootDir, 'data', name));
    return [(mode & 0o7777).toString(8), uid, gid];
  };
  beforeEach(async () => {
    await mkdir(join(rootDir, 'data'), { mode: 0o755 });
    await writeFile(join(rootDir, 'data/file'), 'kept', { mode: 0o600 });
    provide('Filesystem', { local: { path: join(rootDir, 'data') } });
  });

  test('belongs to the group of its first pod; a second one with another group gets a warning event', async () => {
    await volumes.mountAll(user('u1', { fsGroup: 1234 }));
    expect([owner(), owner('file')]).toEqual([
      ['2775', 0, 1234],
      ['660', 0, 1234],
    ]);
    await volumes.mountAll(user('u2', { fsGroup: 4321 }));
    expect([owner(), owner('file')]).toEqual([
      ['2775', 0, 1234],
      ['660', 0, 1234],
    ]);
    expect(recorder.events).toEqual([
      'AlreadyMountedVolume: The requested fsGroup is 4321, but the volume pv-1 has GID 1234. The volume may not be shareable.',
    ]);
    await volumes.mountAll(user('u3', { fsGroup: 1234 }));
    expect(recorder.events).toHaveLength(1);
    for (const uid of ['u1', 'u2', 'u3']) await volumes.unmountAll(ref(uid));
    await volumes.mountAll(user('u4', { fsGroup: 4321 }));
    expect(owner('file')).toEqual(['660', 0, 4321]);
    await volumes.unmountAll(ref('u4'));
    expect(await readFile(join(rootDir, 'data/file'), 'utf8')).toBe('kept');
  });

  test.each([
    ['OnRootMismatch', ['600', 7, 8]],
    ['Always', ['660', 7, 1234]],
  ])('whose root is the group’s already: with fsGroupChangePolicy %s its files are %j', async (policy, wanted) => {
    await volumes.mountAll(user('u1', { fsGroup: 1234 }));
    await volumes.unmountAll(ref('u1'));
    await writeFile(join(rootDir, 'data/own'), '', { mode: 0o600 });
    await chown(join(rootDir, 'data/own'), 7, 8);
    await volumes.mountAll(user('u2', { fsGroup: 1234, fsGroupChangePolicy: policy }));
    expect(owner('own')).toEqual(wanted);
    await volumes.unmountAll(ref('u2'));
  });

  test('whose root is not the group’s is changed with OnRootMismatch', async () => {
    await volumes.mountAll(user('u1', { fsGroup: 1234, fsGroupChangePolicy: 'OnRootMismatch' }));
    expect(owner('file')).toEqual(['660', 0, 1234]);
    await volumes.unmountAll(ref('u1'));
  });

  test('of a running pod keeps the owners that the pod has set, when the agent begins anew', async () => {
    const subject = user('u1', { fsGroup: 1234 });
    await volumes.mountAll(subject);
    await chmod(join(rootDir, 'data/file'), 0o600);
    volumes.close();
    csi.close();
    begin();
    await volumes.mountAll(subject);
    expect(owner('file')).toEqual(['600', 0, 1234]);
    expect(await paths()).toEqual([at('u1')]);
    await volumes.unmountAll(ref('u1'));
  });

  test('that is claimed read-only can be read, and keeps its owner', async () => {
    const readOnly = [{ name: 'v', persistentVolumeClaim: { claimName: 'claim', readOnly: true } }];
    const subject = user('u1', { fsGroup: 1234 });
    await volumes.mountAll({ ...subject, spec: { ...subject.spec, volumes: readOnly } });
    expect(owner('file')).toEqual(['600', 0, 0]);
    expect(await readFile(join(rootDir, at('u1'), 'file'), 'utf8')).toBe('kept');
    await expect(writeFile(join(rootDir, at('u1'), 'new'), '')).rejects.toThrow('EROFS');
    await volumes.unmountAll(ref('u1'));
  });
});

test('an NFS server that cannot be reached is reported with the PersistentVolume, mount(8)’s message and its options', async () => {
  provide('Filesystem', { nfs: { server: 'files.invalid', path: '/none' }, mountOptions: ['nfsvers=4.1', 'retry=0'] });
  const mounting = volumes.mountAll(user('u1'));
  mounting.catch(() => undefined);
  await vi.waitFor(() => expect(recorder.events.length).toBeGreaterThan(0), { timeout: 300_000 });
  const [event] = recorder.events;
  const arguments_ = '-n -c -t nfs -o nfsvers=4.1,retry=0 files.invalid:/none ';
  expect(event).toContain(
    'FailedMount: MountVolume.SetUp failed for volume "pv-1" : mount failed: exit status 32\n' +
      `Mounting command: mount\nMounting arguments: ${arguments_}${rootDir}/pods/u1/volumes/kubernetes.io~nfs/pv-1\nOutput: `,
  );
  await volumes.unmountAll(ref('u1'));
  expect(existsSync(join(rootDir, 'pods/u1'))).toBe(false);
});
