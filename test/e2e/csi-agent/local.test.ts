// local PersistentVolumes on a real block device: formatted once, mounted once for all pods, unmounted after the last one;
// and given to containers as it is. Needs root and loop devices.

import { existsSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import type { PV } from '../../../agent/volumes/claims.ts';
import { CsiVolumes } from '../../../agent/volumes/csi/csi-volumes.ts';
import { createLinuxMounter } from '../../../agent/volumes/linux-mounter.ts';
import { mountsUnder } from '../../../agent/volumes/mountinfo.ts';
import type { VolumeManager } from '../../../agent/volumes/options.ts';
import { createPersistentVolumes } from '../../../agent/volumes/persistent.ts';
import { createPodVolumes } from '../../../agent/volumes/pod-volumes.ts';
import { VolumesInUse } from '../../../agent/volumes/volumes-in-use.ts';
import { systemClock as clock } from '../../../lib/clock.ts';
import { execOk } from '../../../lib/exec.ts';
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
  const parts = { rootDir, mounter, objects: new FakeObjects(clock), recorder, clock, tracer };
  const none = { driver: () => undefined, registered: () => new Promise<void>(() => undefined) };
  csi = new CsiVolumes({
    ...parts,
    nodeName: 'n1',
    csi: none,
    storage,
    inUse: new VolumesInUse(),
    onTrouble: () => undefined,
  });
  const persistent = createPersistentVolumes({ ...parts, storage, csi });
  volumes = createPodVolumes({ ...parts, persistent: async () => persistent });
});
afterEach(async () => {
  volumes.close();
  csi.close();
  for (const { path } of mountsUnder(await mounter.list(), rootDir)) await mounter.unmount(path);
  await execOk('losetup', ['--detach', device]);
  await rm(rootDir, { recursive: true, force: true });
});

function provide(volumeMode: 'Filesystem' | 'Block'): void {
  const meta = (name: string) => ({ name, uid: `uid-of-${name}`, resourceVersion: '1' });
  const spec: NonNullable<PV['spec']> = {
    volumeMode,
    accessModes: ['ReadWriteOnce'],
    claimRef: { uid: 'uid-of-claim' },
    local: { path: device },
  };
  storage.volumes.set('pv-1', { metadata: meta('pv-1'), spec });
  const metadata = { ...meta('claim'), namespace: 'demo' };
  storage.setClaim({ metadata, spec: { volumeName: 'pv-1' }, status: { phase: 'Bound' } });
}

const list = [{ name: 'v', persistentVolumeClaim: { claimName: 'claim' } }];
const ref = (uid: string) => ({ uid: uid as PodUID, namespace: 'demo', name: 'web' });
const paths = async () => mountsUnder(await mounter.list(), rootDir).map(({ path }) => path.slice(rootDir.length));

test('an empty device is formatted, mounted once for its pods, and unmounted after the last one', async () => {
  provide('Filesystem');
  const container = { name: 'c', volumeMounts: [{ name: 'v', mountPath: '/v' }] };
  const user = (uid: string) => pod({ volumes: list, containers: [container] }, { uid });
  const at = (uid: string) => `/pods/${uid}/volumes/kubernetes.io~local-volume/pv-1`;
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
  const container = { name: 'c', volumeDevices: [{ name: 'v', devicePath: '/dev/v' }] };
  const subject = pod({ volumes: list, containers: [container] }, { uid: 'u1' });
  await volumes.mountAll(subject);
  const { devices } = await volumes.containerMounts(subject, container, []);
  expect(devices).toMatchObject([{ containerPath: '/dev/v', permissions: 'mrw' }]);
  const link = devices[0]?.hostPath ?? '';
  expect(readlinkSync(link)).toBe(device);
  expect(statSync(link).isBlockDevice()).toBe(true);
  expect(await paths()).toEqual(['/plugins/kubernetes.io~local-volume/volumeDevices/pv-1/u1']);
  const told = 'SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "pv-1"';
  expect(recorder.events).toEqual([
    `${told} globalMapPath "${rootDir}/plugins/kubernetes.io~local-volume/volumeDevices/pv-1"`,
    `${told} volumeMapPath "${rootDir}/pods/u1/volumeDevices/kubernetes.io~local-volume"`,
  ]);
  await volumes.unmountAll(ref('u1'));
  expect(await paths()).toEqual([]);
  expect(existsSync(join(rootDir, 'pods/u1'))).toBe(false);
});
