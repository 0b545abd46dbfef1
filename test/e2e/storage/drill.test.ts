// Drill C10 on a real lab, with stock kubectl: StorageClass → claim → pod that writes a file → pod deleted → second pod
// reads it → claim deleted → volume gone. Then a user's next steps: growing a claim, a pod's own volume, a block
// device. A driver whose volumes must be attached: test/e2e/csi-agent/attach.test.ts.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { listLoopDevices } from '../../../csi/driver/loop-devices.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { apply, eventually, eventWhen, FOREVER, prints, shellPod } from '../agent/harness.ts';
import { kubectls } from '../support/kubectls.ts';
import { startLab, type TestLab } from '../support/lab.ts';

const versions = (await kubectls()).filter(({ full }) => full);

const manifest = (name: string): string => fileURLToPath(new URL(`../../../labs/manifests/${name}`, import.meta.url));

/** For giving up only. */
const LIMIT_S = 300;
const LIMIT = `--timeout=${LIMIT_S}s`;
const KUBECTL_MS = (LIMIT_S + 60) * 1000;

let lab: TestLab;
afterAll(() => lab?.stop());

beforeEach(({ onTestFailed }) => {
  onTestFailed(async () => {
    const { stdout } = await exec('kubectl', [
      '--kubeconfig',
      lab.kubeconfig,
      'get',
      'pods,pvc,pv,events',
      '-o',
      'wide',
    ]);
    const logs = await exec('tail', [
      '-n',
      '40',
      ...['agent', 'controlplane', 'csi-driver'].map((name) => `${lab.root}/logs/${name}.log`),
    ]);
    console.error(`${stdout}${logs.stdout}`);
  });
});

/** kubectl with its own limit. */
async function patiently(...args: string[]): Promise<void> {
  const { code, stderr } = await lab.tryKubectl(args, { timeoutMs: KUBECTL_MS });
  expect(code, stderr).toBe(0);
}

async function wait(what: string, condition: string): Promise<void> {
  await patiently('wait', what, `--for=${condition}`, LIMIT);
}

/** Volumes that the driver keeps on this machine. */
async function volumesOnDisk(): Promise<readonly string[]> {
  return await readdir(join(lab.root, 'csi', 'volumes'));
}

/** Neither the driver nor the kernel has any volume of this lab. */
async function expectNothingLeft(): Promise<void> {
  await eventually('every volume is gone', async () => ((await volumesOnDisk()).length === 0 ? true : undefined));
  await expect
    .poll(async () => (await listLoopDevices()).filter(({ image }) => image.startsWith(lab.root)))
    .toEqual([]);
  await expect
    .poll(async () => (await exec('grep', [`${lab.root}.*kubernetes.io.csi`, '/proc/self/mountinfo'])).stdout)
    .toBe('');
}

const claim = (name: string, storage: string, more: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...more },
});
const onClaim = (name: string, more: object = {}) => ({
  volumes: [{ name: 'v', persistentVolumeClaim: { claimName: name } }],
  ...more,
});
const MOUNT = { volumeMounts: [{ name: 'v', mountPath: '/data' }] };

describe('a lab with a CSI driver', () => {
  beforeAll(async () => {
    lab = await startLab({ csi: true });
  });

  test.each(versions)('the drill, with kubectl $version', async ({ command }) => {
    const run = (...args: string[]): Promise<string> =>
      execOk(command, ['--kubeconfig', lab.kubeconfig, ...args], { timeoutMs: KUBECTL_MS });
    await run('apply', '-f', manifest('volume-claim.yaml'));
    await run('wait', 'pod/writer', '--for=jsonpath={.status.phase}=Succeeded', LIMIT);
    expect(await run('get', 'pvc', 'notes')).toMatch(/^notes +Bound +pvc-[0-9a-f-]{36} +32Mi +RWO +disk +/m);
    const volume = await run('get', 'pvc', 'notes', '-o', 'jsonpath={.spec.volumeName}');
    expect(await run('get', 'pv', volume)).toMatch(/ 32Mi +RWO +Delete +Bound +default\/notes +disk +/);
    expect(await run('describe', 'pvc', 'notes')).toMatch(/Used By: +writer/);
    expect(await run('describe', 'pv', volume)).toMatch(/Driver: +loop\.csi\.nodelet/);
    expect(await volumesOnDisk()).toHaveLength(1);

    await run('delete', 'pod', 'writer');
    await run('apply', '-f', manifest('volume-reader.yaml'));
    await run('wait', 'pod/reader', '--for=jsonpath={.status.phase}=Succeeded', LIMIT);
    // The runtime may have reported the end before it has written the last line.
    await expect.poll(() => run('logs', 'reader')).toBe('written by writer\n');

    // While a pod has it, a claim that is deleted stays.
    await run('delete', 'pvc', 'notes', '--wait=false');
    expect(await run('get', 'pvc', 'notes')).toMatch(/^notes +Terminating /m);
    expect(await volumesOnDisk()).toHaveLength(1);
    await run('delete', 'pod', 'reader');
    await run('wait', 'pvc/notes', '--for=delete', LIMIT);
    await run('wait', `pv/${volume}`, '--for=delete', LIMIT);
    await run('delete', 'storageclass', 'disk');
    await expectNothingLeft();
  });

  test('a claim grows while its pod runs, and is done with it', async () => {
    // xfs: growing a mounted ext4 takes CAP_SYS_RESOURCE, which not every machine gives its root.
    const small = claim('grow', '320Mi', { storageClassName: 'loop-xfs' });
    await apply(lab, small, shellPod('grower', FOREVER, onClaim('grow'), MOUNT));
    await wait('pod/grower', 'condition=Ready');
    const size = async (): Promise<number> =>
      Number(await lab.kubectl('exec', 'grower', '--', 'sh', '-c', "df -m /data | tail -n 1 | awk '{print $2}'"));
    const before = await size();
    await lab.kubectl('patch', 'pvc', 'grow', '-p', '{"spec":{"resources":{"requests":{"storage":"640Mi"}}}}');
    await wait('pvc/grow', 'jsonpath={.status.capacity.storage}=640Mi');
    expect(await size()).toBeGreaterThan(before * 1.8);
    await expect
      .poll(async () => {
        const claimNow: { status: { conditions?: unknown[]; allocatedResourceStatuses?: object } } = JSON.parse(
          await lab.kubectl('get', 'pvc', 'grow', '-o', 'json'),
        );
        return [claimNow.status.conditions ?? [], claimNow.status.allocatedResourceStatuses ?? {}];
      })
      .toEqual([[], {}]);
    await lab.kubectl('delete', 'pod/grower', 'pvc/grow');
    await expectNothingLeft();
  });

  test('a pod’s own volume comes and goes with the pod', async () => {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '32Mi' } } };
    const volumes = [{ name: 'v', ephemeral: { volumeClaimTemplate: { spec } } }];
    await apply(lab, shellPod('scratch', `echo hello > /data/x && cat /data/x && ${FOREVER}`, { volumes }, MOUNT));
    await wait('pod/scratch', 'condition=Ready');
    expect(await lab.kubectl('get', 'pvc', 'scratch-v', '-o', 'jsonpath={.status.phase}')).toBe('Bound');
    await prints(lab, 'hello\n', 'logs', 'scratch');
    await lab.kubectl('delete', 'pod', 'scratch');
    await wait('pvc/scratch-v', 'delete');
    await expectNothingLeft();
  });

  test('a stateful set’s pods keep their volumes, which go with the set', async () => {
    const labels = { app: 'web' };
    const script = `echo started >> /data/starts && ${FOREVER}`;
    const container = { name: 'main', image: 'busybox:stable', command: ['sh', '-c', script], ...MOUNT };
    const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers: [container] } };
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '32Mi' } } };
    await apply(lab, {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'web' },
      spec: {
        serviceName: 'peers',
        podManagementPolicy: 'Parallel',
        replicas: 2,
        selector: { matchLabels: labels },
        template,
        volumeClaimTemplates: [{ metadata: { name: 'v' }, spec }],
        persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Retain' },
      },
    });
    await patiently('rollout', 'status', 'statefulset/web', LIMIT);
    await lab.kubectl('delete', 'pod', 'web-1');
    await patiently('rollout', 'status', 'statefulset/web', LIMIT);
    await prints(lab, 'started\nstarted\nweb-1\n', 'exec', 'web-1', '--', 'sh', '-c', 'cat /data/starts; hostname');
    await prints(lab, 'started\n', 'exec', 'web-0', '--', 'cat', '/data/starts');
    await lab.kubectl('delete', 'statefulset', 'web');
    await expectNothingLeft();
  });

  test('a claim for a block device is a device in its pod', async () => {
    const devices = { volumeDevices: [{ name: 'v', devicePath: '/dev/disk' }] };
    await apply(
      lab,
      claim('raw', '32Mi', { volumeMode: 'Block' }),
      shellPod('raw', `test -b /dev/disk && echo marker > /dev/disk && ${FOREVER}`, onClaim('raw'), devices),
    );
    await wait('pod/raw', 'condition=Ready');
    await prints(lab, 'marker', 'exec', 'raw', '--', 'head', '-c', '6', '/dev/disk');
    await lab.kubectl('delete', 'pod/raw', 'pvc/raw');
    await expectNothingLeft();
  });

  test('a pod whose claim is missing waits, reports the reason, and starts when the claim exists', async () => {
    await apply(lab, shellPod('early', FOREVER, onClaim('late'), MOUNT));
    await eventually('the event', async () => {
      const text = await lab.kubectl('describe', 'pod', 'early');
      return text.includes('0/1 nodes are available: persistentvolumeclaim "late" not found.') ? true : undefined;
    });
    await apply(lab, claim('late', '32Mi'));
    await wait('pod/early', 'condition=Ready');
    await lab.kubectl('delete', 'pod/early', 'pvc/late');
    await expectNothingLeft();
  });

  test('a pod whose new volume no node has room for gets an event, and nothing is provisioned', async () => {
    await apply(lab, claim('huge', '32Ti'), shellPod('huge', FOREVER, onClaim('huge'), MOUNT));
    const event = await eventWhen(lab, 'huge', 'FailedScheduling', /free storage/);
    expect(event.message).toBe(
      '0/1 nodes are available: 1 node(s) did not have enough free storage. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.',
    );
    expect(await lab.kubectl('get', 'pvc', 'huge', '-o', 'jsonpath={.metadata.annotations}')).not.toContain('selected');
    await lab.kubectl('delete', 'pod/huge', 'pvc/huge');
    await expectNothingLeft();
  });

  test('what the API shows of the driver is what kubectl prints', async () => {
    expect(await lab.kubectl('get', 'csidrivers')).toMatch(/^loop\.csi\.nodelet +false +true +true +/m);
    expect(await lab.kubectl('get', 'csinodes')).toMatch(new RegExp(`^${lab.nodeName} +1 +`, 'm'));
    expect(await lab.kubectl('get', 'storageclasses')).toMatch(
      /^loop \(default\) +loop\.csi\.nodelet +Delete +WaitForFirstConsumer +true +/m,
    );
    await prints(lab, /^kube-system +csisc-\w+ +loop +\d+/m, 'get', 'csistoragecapacities', '-A');
  });

  test('the lab stops and leaves nothing', async () => {
    await lab.stop();
  });
});
