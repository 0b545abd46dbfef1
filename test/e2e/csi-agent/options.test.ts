// What a StorageClass, a CSIDriver and a pod may request of a volume, on a whole lab: secrets of each call, mount options, the
// pod's tokens and name, a group that the driver mounts for, many writers, readers. The driver refuses calls without
// their secrets, and its log of calls contains the requests.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apply, FOREVER, gone, prints, ready, shellPod } from '../agent/harness.ts';
import { startLab, type TestLab } from '../support/lab.ts';

const DRIVER = 'loop.csi.nodelet';
const GROUP = 4321;
const PREFIX = 'csi.storage.k8s.io';

let lab: TestLab;
let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-csi-options-'));
  const required = ['NodeStageVolume:key=for staging', 'NodePublishVolume:key=for publishing'];
  lab = await startLab({
    csi: [
      '--mount-group',
      '--call-log',
      join(directory, 'calls.ndjson'),
      ...required.flatMap((secret) => ['--require-secret', secret]),
    ],
  });
  const spec = { tokenRequests: [{ audience: 'vault', expirationSeconds: 3600 }] };
  await lab.kubectl('patch', 'csidriver', DRIVER, '--type=merge', '-p', JSON.stringify({ spec }));
  const secret = (name: string, key: string) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    stringData: { key },
  });
  const named = (use: string, name: string) => ({
    [`${PREFIX}/${use}-secret-name`]: name,
    [`${PREFIX}/${use}-secret-namespace`]: 'default',
  });
  await apply(lab, secret('staging', 'for staging'), secret('publishing', 'for publishing'), {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'strict' },
    provisioner: DRIVER,
    parameters: {
      [`${PREFIX}/fstype`]: 'ext4',
      ...named('node-stage', 'staging'),
      ...named('node-publish', 'publishing'),
    },
    mountOptions: ['noatime', 'nodiratime'],
    volumeBindingMode: 'WaitForFirstConsumer',
  });
});
afterAll(async () => {
  await lab?.stop();
  await rm(directory, { recursive: true, force: true });
});

const claim = (name: string, mode: string): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: [mode], storageClassName: 'strict', resources: { requests: { storage: '32Mi' } } },
});
const user = (name: string, claimName: string, script: string, spec: object = {}, readOnly = false): object =>
  shellPod(
    name,
    `${script} && ${FOREVER}`,
    { volumes: [{ name: 'v', persistentVolumeClaim: { claimName, readOnly } }], ...spec },
    { volumeMounts: [{ name: 'v', mountPath: '/data' }] },
  );

interface Call {
  readonly method: string;
  readonly code: string;
  readonly request: Readonly<Record<string, unknown>>;
}

/** Calls of one method that succeeded, since the lab began. */
async function calls(method: string): Promise<readonly Call[]> {
  const text = await readFile(join(directory, 'calls.ndjson'), 'utf8');
  const all = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Call => JSON.parse(line));
  return all.filter((call) => call.method === method && call.code === 'OK');
}

test('secrets, mount options, tokens, the pod’s name and its group reach the driver, each in its call', async () => {
  const securityContext = { runAsUser: 1000, runAsGroup: 1000, fsGroup: GROUP };
  await apply(lab, claim('one', 'ReadWriteOnce'), user('one', 'one', 'touch /data/file', { securityContext }));
  const { metadata } = await ready(lab, 'one');
  await prints(lab, `${GROUP}\n`, 'exec', 'one', '--', 'stat', '-c', '%g', '/data/file');
  await prints(lab, /^\S+ \/data ext4 \S*noatime/, 'exec', 'one', '--', 'grep', ' /data ', '/proc/mounts');

  const [stage, ...again] = await calls('NodeStageVolume');
  expect(again).toEqual([]);
  const capability = { access_mode: { mode: 'SINGLE_NODE_MULTI_WRITER' } };
  // What is secret is hidden in the log; the driver has compared it.
  expect(stage?.request).toMatchObject({ secrets: { key: '***' }, volume_capability: capability });
  const [publish] = await calls('NodePublishVolume');
  expect(publish?.request).toMatchObject({
    secrets: { key: '***' },
    volume_capability: {
      ...capability,
      mount: { fs_type: 'ext4', mount_flags: ['***', '***'], volume_mount_group: String(GROUP) },
    },
    volume_context: {
      [`${PREFIX}/pod.name`]: 'one',
      [`${PREFIX}/pod.namespace`]: 'default',
      [`${PREFIX}/pod.uid`]: metadata.uid,
      [`${PREFIX}/serviceAccount.name`]: 'default',
      [`${PREFIX}/serviceAccount.tokens`]: expect.stringMatching(/^\*\*\* \(\d{3,} characters\)$/),
      [`${PREFIX}/ephemeral`]: 'false',
    },
  });
  await lab.kubectl('delete', 'pod/one', 'pvc/one', '--timeout=110s');
});

test('a volume of many writers serves pods side by side, and one that only reads cannot write', async () => {
  await apply(lab, claim('many', 'ReadWriteMany'), user('writer', 'many', 'echo written > /data/file'));
  await ready(lab, 'writer');
  await prints(lab, 'written\n', 'exec', 'writer', '--', 'cat', '/data/file');
  await apply(lab, user('reader', 'many', 'cat /data/file', {}, true));
  await ready(lab, 'reader');
  await prints(lab, 'written\n', 'logs', 'reader');
  const refused = await lab.tryKubectl(['exec', 'reader', '--', 'sh', '-c', 'echo x > /data/file']);
  expect(refused.stderr).toContain('Read-only file system');
  const published = (await calls('NodePublishVolume')).slice(-2);
  expect(published.map(({ request }) => request['readonly'])).toEqual([undefined, true]);
  for (const { request } of published) {
    expect(request).toMatchObject({ volume_capability: { access_mode: { mode: 'MULTI_NODE_MULTI_WRITER' } } });
  }
  await lab.kubectl('delete', 'pod/writer', 'pod/reader', 'pvc/many', '--timeout=110s');
});

test('a volume that many may only read is so for its driver and for its pods, though they do not request it', async () => {
  await apply(lab, claim('read', 'ReadOnlyMany'), user('first', 'read', 'true'), user('second', 'read', 'true'));
  for (const name of ['first', 'second']) {
    await ready(lab, name);
    const refused = await lab.tryKubectl(['exec', name, '--', 'sh', '-c', 'echo x > /data/file']);
    expect(refused.stderr).toContain('Read-only file system');
  }
  const published = (await calls('NodePublishVolume')).slice(-2);
  for (const { request } of published) {
    expect(request).toMatchObject({ volume_capability: { access_mode: { mode: 'MULTI_NODE_READER_ONLY' } } });
  }
  await lab.kubectl('delete', 'pod/first', 'pod/second', 'pvc/read', '--timeout=110s');
});

test('a missing secret is reported with the kubelet’s message, and the pod starts when it exists', async () => {
  await lab.kubectl('delete', 'secret', 'publishing');
  await apply(lab, claim('late', 'ReadWriteOnce'), user('late', 'late', 'true'));
  const events = ['get', 'events', '--field-selector', 'involvedObject.name=late,reason=FailedMount', '-o', 'name'];
  await prints(lab, /^event\//, ...events);
  await prints(
    lab,
    /fetching NodePublishSecretRef default\/publishing failed: secrets "publishing" not found/,
    'get',
    'events',
    '-o',
    'jsonpath={.items[*].message}',
  );
  await lab.kubectl('create', 'secret', 'generic', 'publishing', '--from-literal=key=for publishing');
  // The pauses between tries of a volume grow to 2 min 2 s.
  await ready(lab, 'late', 300_000);
  await lab.kubectl('delete', 'pod/late', 'pvc/late', '--timeout=110s');
  await gone(lab, 'late');
});
