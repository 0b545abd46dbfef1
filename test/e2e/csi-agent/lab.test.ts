// A whole lab with the real driver made to misbehave: failures reported with the kubelet's messages, a driver killed under a running
// pod, volumes shared and refused, figures and volumes of other kinds.

import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { listLoopDevices } from '../../../csi/driver/loop-devices.ts';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import { exec } from '../../../lib/exec.ts';
import { apply, eventually, eventWhen, FOREVER, ready as podReady, prints, shellPod } from '../agent/harness.ts';
import { verdictFor } from '../explain/answers.ts';
import { startLab, type TestLab } from '../support/lab.ts';

/** For giving up only: the pauses between tries of a volume grow to 2 min 2 s. */
const LIMIT_S = 300;

let lab: TestLab;
let directory = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-csi-lab-'));
  lab = await startLab({ kills: true, csi: ['--faults', join(directory, 'faults.json')] });
});
afterAll(async () => {
  await lab?.stop();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(({ onTestFailed }) => {
  onTestFailed(async () => {
    const { stdout } = await lab.tryKubectl(['get', 'pods,pvc,pv,events', '-o', 'wide']);
    const logs = ['agent', 'csi-driver'].map((name) => `${lab.root}/logs/${name}.log`);
    console.error(`${stdout}${(await exec('tail', ['-n', '40', ...logs])).stdout}`);
  });
});
afterEach(() => faults());

const claim = (name: string, more: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '32Mi' } }, ...more },
});
const MOUNT = { volumeMounts: [{ name: 'v', mountPath: '/data' }] };
const user = (name: string, claimName: string, script = FOREVER, more: object = {}): object =>
  shellPod(name, script, { volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }], ...more }, MOUNT);

/** What the driver does wrong from now on. */
async function faults(...rules: readonly object[]): Promise<void> {
  await writeFileAtomic(join(directory, 'faults.json'), JSON.stringify(rules));
}

async function ready(name: string): Promise<void> {
  await podReady(lab, name, LIMIT_S * 1000);
}

async function remove(...what: readonly string[]): Promise<void> {
  const args = ['delete', ...what, `--timeout=${LIMIT_S}s`];
  const { code, stderr } = await lab.tryKubectl(args, { timeoutMs: (LIMIT_S + 60) * 1000 });
  expect(code, stderr).toBe(0);
}

async function csiMounts(): Promise<readonly string[]> {
  const text = await readFile('/proc/self/mountinfo', 'utf8');
  return text
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.startsWith(lab.root) && /kubernetes\.io[~/]csi/.test(path));
}

async function expectNothingLeft(): Promise<void> {
  await eventually('no mount of a driver', async () => ((await csiMounts()).length === 0 ? true : undefined));
  await eventually('no loop device', async () =>
    (await listLoopDevices()).some(({ image }) => image.startsWith(lab.root)) ? undefined : true,
  );
}

async function events(name: string): Promise<string> {
  return await lab.kubectl('get', 'events', '--field-selector', `involvedObject.name=${name}`, '-o', 'json');
}

async function kill(process_: 'agent' | 'csi-driver'): Promise<void> {
  const old = await eventually(`${process_} to run`, () => lab.lab.pid(process_));
  process.kill(old, 'SIGKILL');
  await eventually(`another ${process_}`, () => {
    const next = lab.lab.pid(process_);
    return next !== undefined && next !== old ? true : undefined;
  });
}

describe('a driver that fails', () => {
  test('is reported in the pod’s events, and retried until it succeeds', async () => {
    await faults({ method: 'NodeStageVolume', action: 'fail', code: 'INTERNAL', message: 'upside down', times: 0 });
    await apply(lab, claim('failing'), user('failing', 'failing'));
    const answer = await verdictFor(lab, 'failing', 'volume-failed', /upside down/);
    const call = { name: 'NodeStageVolume', to: 'the CSI driver', answer: expect.stringMatching(/upside down/) };
    expect(answer.chain[1]).toMatchObject({ text: 'staging it on the node fails', call });
    await faults();
    await ready('failing');
    const event = await eventWhen(lab, 'failing', 'FailedMount', /upside down/);
    expect(event.message).toMatch(
      /^MountVolume\.MountDevice failed for volume "pvc-[0-9a-f-]+" : rpc error: code = Internal desc = upside down/,
    );
    await remove('pod/failing', 'pvc/failing');
    await expectNothingLeft();
  });

  test('to unpublish keeps the pod until it has', async () => {
    await apply(lab, claim('stuck'), user('stuck', 'stuck'));
    await ready('stuck');
    await faults({ method: 'NodeUnpublishVolume', action: 'fail', code: 'INTERNAL', message: 'busy', times: 2 });
    await remove('pod/stuck', 'pvc/stuck');
    await expectNothingLeft();
  });

  test('killed under a running pod, and back, serves it as before', async () => {
    await apply(lab, claim('robust'), user('robust', 'robust', `echo kept > /data/x && ${FOREVER}`));
    await ready('robust');
    await kill('csi-driver');
    await prints(lab, 'kept\n', 'exec', 'robust', '--', 'cat', '/data/x');
    await remove('pod/robust', 'pvc/robust');
    await expectNothingLeft();
  });
});

// In the middle of every other call: agent-killed.test.ts.
test('the agent killed while it unpublishes for a pod that is gone by force: what was staged is unstaged', async () => {
  await apply(lab, claim('k3'), user('k3', 'k3'));
  await ready('k3');
  await faults({ method: 'NodeUnpublishVolume', action: 'hold', message: 'of k3' });
  await lab.kubectl('delete', 'pod/k3', '--grace-period=0', '--force');
  await eventually('the call to be held', async () =>
    (await readFile(`${lab.root}/logs/csi-driver.log`, 'utf8')).includes('"rule":"of k3"') ? true : undefined,
  );
  await kill('agent');
  await faults();
  await remove('pvc/k3');
  await expectNothingLeft();
});

test('a volume of two pods stays staged until the second has gone', async () => {
  const spec = { nodeName: lab.nodeName };
  await apply(lab, claim('shared'), user('one', 'shared', `echo one > /data/x && ${FOREVER}`));
  await ready('one');
  await apply(lab, user('two', 'shared', FOREVER, spec));
  await ready('two');
  expect((await csiMounts()).filter((path) => path.endsWith('/globalmount'))).toHaveLength(1);
  await remove('pod/one');
  await prints(lab, 'one\n', 'exec', 'two', '--', 'cat', '/data/x');
  await remove('pod/two', 'pvc/shared');
  await expectNothingLeft();
});

test('a claim for one pod at a time is refused to the second by the node itself', async () => {
  await apply(lab, claim('single', { accessModes: ['ReadWriteOncePod'] }), user('first', 'single'));
  await ready('first');
  // Past the scheduler, which refuses it as well.
  await apply(lab, user('second', 'single', FOREVER, { nodeName: lab.nodeName }));
  await eventually('the event', async () =>
    (await events('second')).includes(
      'volume uses the ReadWriteOncePod access mode and is already in use by another pod',
    )
      ? true
      : undefined,
  );
  await remove('pod/first');
  await ready('second');
  await remove('pod/second', 'pvc/single');
  await expectNothingLeft();
});

test('an inline volume lives as long as its pod', async () => {
  const volumes = [{ name: 'v', csi: { driver: 'loop.csi.nodelet', volumeAttributes: { size: '16Mi' } } }];
  await apply(lab, shellPod('inline', `echo hello > /data/x && ${FOREVER}`, { volumes }, MOUNT));
  await ready('inline');
  await prints(lab, 'hello\n', 'exec', 'inline', '--', 'cat', '/data/x');
  await remove('pod/inline');
  await expectNothingLeft();
});

test('a pod’s group owns the files of its volume', async () => {
  const securityContext = { runAsUser: 1000, fsGroup: 4321 };
  const script = `id -G > /data/groups && stat -c %g /data > /data/owner && ${FOREVER}`;
  await faults({ method: 'NodeStageVolume', action: 'hold', times: 0 });
  await apply(lab, claim('group'), user('group', 'group', script, { securityContext }));
  const held = /^volume v waits for CSI driver loop\.csi\.nodelet: NodeStageVolume has not returned for/;
  expect((await verdictFor(lab, 'group', 'volume-under-way', held)).state).toBe('waiting');
  await faults();
  await ready('group');
  await prints(lab, '4321\n', 'exec', 'group', '--', 'cat', '/data/owner');
  expect(await lab.kubectl('exec', 'group', '--', 'cat', '/data/groups')).toContain('4321');
  await remove('pod/group', 'pvc/group');
});

test('the room in a volume is in the node’s stats', async () => {
  await apply(lab, claim('room'), user('room', 'room', `head -c 4000000 /dev/zero > /data/x && sync && ${FOREVER}`));
  await ready('room');
  // Measured now and then, and the pod may still be writing.
  const volume = await eventually(
    'the volume to be as full as it is',
    async () => {
      const raw = await lab.kubectl('get', '--raw', `/api/v1/nodes/${lab.nodeName}/proxy/stats/summary`);
      const summary: {
        pods: { podRef: { name: string }; volume?: { name: string; usedBytes: number; pvcRef: object }[] }[];
      } = JSON.parse(raw);
      const pod = summary.pods.find(({ podRef }) => podRef.name === 'room');
      const found = pod?.volume?.find(({ name }) => name === 'v');
      return found !== undefined && found.usedBytes > 4_000_000 ? found : undefined;
    },
    200_000,
  );
  expect(volume).toMatchObject({ name: 'v', pvcRef: { name: 'room', namespace: 'default' } });
  await remove('pod/room', 'pvc/room');
  await expectNothingLeft();
});

test('a local directory behind a claim keeps what a pod wrote', async () => {
  const path = join(directory, 'local-disk');
  await mkdir(path);
  const required = {
    nodeSelectorTerms: [
      { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [lab.nodeName] }] },
    ],
  };
  const volume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'local-1' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: 'by-hand',
      local: { path },
      nodeAffinity: { required },
    },
  };
  await apply(lab, volume, claim('local', { storageClassName: 'by-hand', volumeName: 'local-1' }));
  await apply(lab, user('local', 'local', `echo here > /data/x && ${FOREVER}`));
  await ready('local');
  await eventually('the file', async () => ((await readFile(join(path, 'x'), 'utf8')) === 'here\n' ? true : undefined));
  await remove('pod/local', 'pvc/local', 'pv/local-1');
  expect(await readFile(join(path, 'x'), 'utf8')).toBe('here\n');
});
