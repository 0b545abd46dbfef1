// `nodelet explain` on a real node, for pods and claims that wait for storage: claims that get no volume, volumes that are
// elsewhere, cannot be formatted, are being formatted, or have many files, and devices that are not there. No driver takes part; attaching is in test/e2e/csi-agent/attach.test.ts, a
// driver that fails in test/e2e/csi-agent/lab.test.ts.

import { chmod, link, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { Stored } from '../../../client/types.ts';
import { execOk } from '../../../lib/exec.ts';
import { apply, eventually, FOREVER, gone, mainProcess, ready, shellPod } from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import { type Answer, answerWhen, chainText, verdictFor } from './answers.ts';

/** So many that the walk through them is seen under way. They are names of one file, in memory. */
const FILES = 100_000;
const VOLUMES = '/api/v1/persistentvolumes';
const CLASSES = resourcePath('storage.k8s.io/v1', 'storageclasses');

let lab: TestLab;
let directory: string;
let files: string;
let device: string;
/** Its image is in a file system that can be frozen: then the kernel keeps back whatever changes the device. */
let slowDevice: string;
let freezer: string;

const here = (name: string): string => `${lab.namespace}/${name}`;
const claimPath = (name: string): string =>
  resourcePath('v1', 'persistentvolumeclaims', { namespace: lab.namespace, name });

const claim = (name: string, spec: object): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } }, ...spec },
});

/** A volume by hand, and a claim of the same name that is bound to it. `at`: a label of the nodes that reach it. */
async function provide(
  name: string,
  path: string,
  at: readonly [key: string, value: string],
  volumeMode = 'Filesystem',
): Promise<void> {
  const [key, value] = at;
  const term = { matchExpressions: [{ key, operator: 'In', values: [value] }] };
  await lab.client.create(VOLUMES, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `explain-${name}` },
    spec: {
      capacity: { storage: '1Mi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: '',
      volumeMode,
      local: { path },
      nodeAffinity: { required: { nodeSelectorTerms: [term] } },
    },
  });
  await apply(lab, claim(name, { storageClassName: '', volumeMode, volumeName: `explain-${name}` }));
}

const storageClass = (name: string, provisioner: string, volumeBindingMode: string): Promise<unknown> =>
  lab.client.create(CLASSES, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: `explain-${name}` },
    provisioner,
    volumeBindingMode,
  });

const user = (name: string, claimName: string, spec: object = {}): object =>
  shellPod(
    name,
    FOREVER,
    {
      hostNetwork: true,
      automountServiceAccountToken: false,
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
      ...spec,
    },
    { volumeMounts: [{ name: 'data', mountPath: '/data' }] },
  );

/** It has the volume as a device. */
const deviceUser = (name: string, claimName: string): object =>
  shellPod(
    name,
    FOREVER,
    {
      hostNetwork: true,
      automountServiceAccountToken: false,
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
    },
    { volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] },
  );

const claimWhen = (name: string, phase: string): Promise<unknown> =>
  eventually(`claim ${name} to be ${phase}`, async () => {
    const { status } = await lab.client.get<Stored<PersistentVolumeClaim>>(claimPath(name));
    return status?.phase === phase ? true : undefined;
  });

/** Waits until the answer for a claim has these fields. */
const claimShows = (name: string, expected: object): Promise<Answer> =>
  answerWhen(lab, 'pvc', here(name), (answer) => expect(answer).toMatchObject(expected));

async function attach(image: string, ...options: string[]): Promise<string> {
  return (await execOk('losetup', ['--find', '--show', ...options, image])).trim();
}

async function makeImage(path: string, megabytes: number): Promise<string> {
  await writeFile(path, '');
  await truncate(path, megabytes * 1024 * 1024);
  return path;
}

async function makeSlowDevice(): Promise<string> {
  const image = await makeImage(join(directory, 'slow.img'), 64);
  await execOk('mkfs.ext4', ['-q', image]);
  freezer = join(directory, 'freezer');
  await mkdir(freezer);
  await execOk('mount', ['-o', 'loop', image, freezer]);
  return await attach(await makeImage(join(freezer, 'disk.img'), 16));
}

beforeAll(async () => {
  lab = await shareLab();
  directory = await mkdtemp(join(tmpdir(), 'nodelet-explain-'));
  files = await mkdtemp('/dev/shm/nodelet-explain-');
  await chmod(files, 0o755);
  const image = await makeImage(join(directory, 'disk.img'), 4);
  device = await attach(image, '--read-only');
  slowDevice = await makeSlowDevice();
  await symlink(device, join(directory, 'disk'));
  await storageClass('late', 'none.example.com', 'WaitForFirstConsumer');
  await storageClass('broken', 'kubernetes.io/none', 'Immediate');
  const self = ['kubernetes.io/hostname', lab.nodeName] as const;
  await provide('moon', '/nonexistent', ['topology.kubernetes.io/zone', 'moon']);
  await provide('lost', '/nonexistent', self);
  await provide('disk', device, self);
  await provide('files', files, self);
  await provide('slow', slowDevice, self);
  await provide('device', join(directory, 'disk'), self, 'Block');
  await provide('no-device', join(directory, 'none'), self, 'Block');
  await apply(
    lab,
    claim('late', { storageClassName: 'explain-late' }),
    claim('broken', { storageClassName: 'explain-broken' }),
    claim('classless', { storageClassName: 'explain-fast' }),
  );
  await apply(
    lab,
    user('on-the-moon', 'moon'),
    user('of-no-class', 'classless'),
    user('of-broken', 'broken'),
    user('unformatted', 'disk'),
    deviceUser('of-a-device', 'device'),
    deviceUser('of-no-device', 'no-device'),
  );
});

afterAll(async () => {
  // They go when their claims have gone, with the namespace.
  for (const name of ['moon', 'disk', 'files', 'slow', 'device', 'no-device'])
    await lab?.client.delete(`${VOLUMES}/explain-${name}`);
  for (const name of ['late', 'broken']) await lab?.client.delete(`${CLASSES}/explain-${name}`);
  await lab?.stop();
  for (const each of [device, slowDevice]) if (each !== undefined) await execOk('losetup', ['--detach', each]);
  if (freezer !== undefined) await execOk('umount', [freezer]);
  for (const path of [directory, files]) if (path !== undefined) await rm(path, { recursive: true });
});

test('a pod whose volume is in another zone', async () => {
  await verdictFor(lab, 'on-the-moon', 'no-node-fits', /volume explain-moon cannot be reached from there/, (answer) =>
    expect(chainText(answer)).toMatch(
      /volume explain-moon is only where topology\.kubernetes\.io\/zone In \(moon\), the node has no label topology\.kubernetes\.io\/zone/,
    ),
  );
});

test('a claim of a class that is missing, and the pod that uses it', async () => {
  const verdict = /^its claim classless names StorageClass explain-fast, which does not exist$/;
  await verdictFor(lab, 'of-no-class', 'claim-not-bound', verdict);
  await claimShows('classless', {
    rule: 'claim-pending',
    state: 'broken',
    verdict: expect.stringMatching(/names StorageClass explain-fast, which does not exist/),
  });
});

test('a claim for which no volume could be made, and the pod that uses it', async () => {
  const verdict = /its claim broken has no volume: making one failed/;
  await verdictFor(lab, 'of-broken', 'claim-not-bound', verdict, (answer) =>
    expect(chainText(answer)).toMatch(
      /\[CreateVolume → kubernetes\.io\/none: no volume plugin matched name: kubernetes\.io\/none\]/,
    ),
  );
  await claimShows('broken', { rule: 'claim-pending', verdict: 'it has no volume: making one failed' });
});

test('a claim that waits for a pod', async () => {
  await claimShows('late', {
    rule: 'claim-pending',
    state: 'waiting',
    verdict: expect.stringMatching(/^it waits for a pod: class explain-late makes a volume only when a pod/),
  });
});

test('a claim that has lost its volume, and a pod that uses it', async () => {
  await claimWhen('lost', 'Bound');
  const path = `${VOLUMES}/explain-lost`;
  await lab.client.delete(path);
  await lab.client.patch(path, { metadata: { finalizers: null } }, 'merge');
  await claimWhen('lost', 'Lost');
  await claimShows('lost', { verdict: 'it has lost its volume explain-lost' });
  await apply(lab, user('of-lost', 'lost'));
  await verdictFor(lab, 'of-lost', 'claim-not-bound', /^its claim lost has lost its volume explain-lost$/);
});

test('a device that cannot be formatted, in mkfs’ words', async () => {
  const failed = {
    text: 'an empty device gets a file system first: that fails',
    call: { name: 'mkfs.ext4', to: 'the node', with: device },
  };
  const verdict = /mkfs\.ext4 on \/dev\/loop\d+ fails: .*\w/;
  await verdictFor(lab, 'unformatted', 'volume-failed', verdict, ({ chain }) => expect(chain[1]).toMatchObject(failed));
});

test('a device that is being formatted, and takes its time', async () => {
  await execOk('fsfreeze', ['--freeze', freezer]);
  try {
    await apply(lab, user('formatting', 'slow'));
    const verdict = new RegExp(`^volume data is being formatted: mkfs\\.ext4 has run on ${slowDevice} for \\d`);
    await verdictFor(lab, 'formatting', 'volume-under-way', verdict, ({ chain }) =>
      expect(chain.at(-1)?.call).toMatchObject({ name: 'mkfs.ext4', with: slowDevice, answer: 'none yet' }),
    );
  } finally {
    await execOk('fsfreeze', ['--unfreeze', freezer]);
  }
  await ready(lab, 'formatting');
});

test('a device that is not there, and one that goes while its pod runs', async () => {
  await verdictFor(lab, 'of-no-device', 'volume-failed', /no such file or directory|does not exist/);
  const pod = await ready(lab, 'of-a-device');
  await rm(join(directory, 'disk'));
  process.kill(Number(await mainProcess(lab, pod)), 'SIGKILL');
  await verdictFor(lab, 'of-a-device', 'container-start', /cannot be created: .*device.* is not there$/, (answer) =>
    expect(chainText(answer)).toMatch(/CreateContainer → the container runtime: .*no such file or directory/),
  );
});

test('a walk for fsGroup under way, with its count; a claim that is bound, and one that is deleted and in use', async () => {
  const first = join(files, 'file');
  await writeFile(first, '');
  for (let index = 0; index < FILES; index += 1000) {
    await Promise.all(Array.from({ length: 1000 }, (_, offset) => link(first, join(files, `${index + offset}`))));
  }
  await apply(lab, user('walked', 'files', { securityContext: { fsGroup: 4321 } }));
  const verdict = /^volume data is given to the pod’s fsGroup for .*: \d{3,} files so far$/;
  await verdictFor(lab, 'walked', 'volume-under-way', verdict, (walk) => {
    expect(walk.state).toBe('waiting');
    expect(chainText(walk)).toMatch(/each file of the volume gets group 4321 .*\[chown and chmod → the kernel/);
  });
  await ready(lab, 'walked');
  await claimShows('files', {
    rule: 'claim-bound',
    state: 'ready',
    verdict: 'it is bound to volume explain-files, 1Mi',
  });
  await lab.client.delete(claimPath('files'));
  await claimShows('files', {
    rule: 'claim-deleted',
    verdict: 'it is deleted, and pods keep it that use it: walked',
  });
  await lab.client.delete(resourcePath('v1', 'pods', { namespace: lab.namespace, name: 'walked' }));
  await gone(lab, 'walked');
});
