// A driver whose volumes have to be attached: they are before their pod starts, and until its end. Where that does not work at once,
// the pod gets an event with the driver's message, and starts when the volume is there.

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { Node } from '../../../client/types.ts';
import { listLoopDevices } from '../../../csi/driver/loop-devices.ts';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import { apply, eventually, FOREVER, prints, ready, shellPod } from '../agent/harness.ts';
import { verdictFor } from '../explain/answers.ts';
import { startLab, type TestLab } from '../support/lab.ts';

/** For giving up only: the pauses between tries to attach a volume grow. */
const LIMIT_MS = 300_000;

let lab: TestLab;
let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-csi-attach-'));
  lab = await startLab({ csi: ['--attach', '--faults', join(directory, 'faults.json')] });
});
afterAll(async () => {
  await lab?.stop();
  await rm(directory, { recursive: true, force: true });
});

const user = (name: string, script: string): readonly object[] => [
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '32Mi' } } },
  },
  shellPod(
    name,
    script,
    { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: name } }] },
    { volumeMounts: [{ name: 'v', mountPath: '/data' }] },
  ),
];

/** Of the driver's call that attaches. */
const faults = (fault: object): Promise<void> =>
  writeFileAtomic(join(directory, 'faults.json'), JSON.stringify([{ method: 'ControllerPublishVolume', ...fault }]));

test('the volume is attached before its pod starts and detached after it has ended', async () => {
  await apply(lab, ...user('near', FOREVER));
  await ready(lab, 'near');
  expect(await lab.kubectl('get', 'volumeattachments')).toMatch(
    /^csi-[0-9a-f]{64} +loop\.csi\.nodelet +pvc-\S+ +\S+ +true /m,
  );
  await expect
    .poll(async () => {
      const { status } = await lab.client.get<Node>(resourcePath('v1', 'nodes', { name: lab.nodeName }));
      return [status?.volumesAttached?.length, status?.volumesInUse?.length];
    })
    .toEqual([1, 1]);
  await lab.kubectl('delete', 'pod', 'near');
  await eventually('the volume is detached', async () => {
    const { items } = await lab.client.list('/apis/storage.k8s.io/v1/volumeattachments');
    return items.length === 0 ? true : undefined;
  });
  await lab.kubectl('delete', 'pvc', 'near');
  await eventually('the volume is gone', async () =>
    (await readdir(join(lab.root, 'csi', 'volumes'))).length === 0 ? true : undefined,
  );
  await expect
    .poll(async () => (await listLoopDevices()).filter(({ image }) => image.startsWith(lab.root)))
    .toEqual([]);
});

test('a volume for which no controller requests an attachment, and whose driver then does not answer', async () => {
  const webhooks = resourcePath('admissionregistration.k8s.io/v1', 'validatingwebhookconfigurations');
  // The attach/detach controller cannot store a VolumeAttachment while the webhook is down.
  await lab.client.create(webhooks, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'attachments' },
    webhooks: [
      {
        name: 'attachments.example.com',
        clientConfig: { url: 'https://127.0.0.1:1/' },
        rules: [
          {
            apiGroups: ['storage.k8s.io'],
            apiVersions: ['v1'],
            operations: ['CREATE'],
            resources: ['volumeattachments'],
          },
        ],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        timeoutSeconds: 2,
      },
    ],
  });
  await faults({ action: 'hold' });
  await apply(lab, ...user('waits', FOREVER));
  const unrequested = await verdictFor(lab, 'waits', 'volume-attach', /there is no VolumeAttachment for it$/);
  expect(unrequested.state).toBe('waiting');
  expect(unrequested.chain.map(({ text }) => text).join('\n')).toMatch(
    /driver loop\.csi\.nodelet has to attach its volumes .*, and no controller has requested it/,
  );
  await lab.client.delete(`${webhooks}/attachments`);
  const waiting = await verdictFor(
    lab,
    'waits',
    'volume-attach',
    /: attacher loop\.csi\.nodelet has not answered, after \d/,
  );
  expect(waiting.state).toBe('waiting');
  expect(waiting.chain.at(-1)?.call).toMatchObject({ name: 'ControllerPublishVolume', answer: 'none yet' });
  await writeFileAtomic(join(directory, 'faults.json'), '[]');
  await ready(lab, 'waits', LIMIT_MS);
  await lab.kubectl('delete', 'pod/waits', 'pvc/waits', '--timeout=110s');
});

test('a volume that cannot be attached yet is a FailedAttachVolume event, and the pod starts once it can', async () => {
  await faults({ action: 'fail', code: 'INTERNAL', message: 'the rack is full', times: 0 });
  await apply(lab, ...user('far', `echo there > /data/x && ${FOREVER}`));
  const event = await eventually('the event', async () => {
    const text = await lab.kubectl('get', 'events', '--field-selector', 'reason=FailedAttachVolume', '-o', 'json');
    const { items }: { items: { message: string; source: { component: string } }[] } = JSON.parse(text);
    return items.find(({ source, message }) => source.component === 'kubelet' && message.includes('the rack is full'));
  });
  expect(event.message).toMatch(/^AttachVolume\.Attach failed for volume "pvc-[0-9a-f-]+" : .*the rack is full/);
  const answer = await verdictFor(
    lab,
    'far',
    'volume-attach',
    /is not attached to node .*: attacher .*: .*the rack is full/,
  );
  const call = { name: 'ControllerPublishVolume', to: 'CSI driver loop.csi.nodelet' };
  expect(answer.chain.at(-1)?.call).toMatchObject({ ...call, answer: expect.stringMatching(/the rack is full/) });
  await writeFileAtomic(join(directory, 'faults.json'), '[]');
  await ready(lab, 'far', LIMIT_MS);
  await prints(lab, 'there\n', 'exec', 'far', '--', 'cat', '/data/x');
  await lab.kubectl('delete', 'pod/far', 'pvc/far', '--timeout=110s');
});
