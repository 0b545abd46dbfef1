// A driver whose volumes have to be attached, and are not at once: the pod gets an event with the driver's message, and starts when
// the volume is there.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import { apply, eventually, FOREVER, prints, shellPod } from '../agent/harness.ts';
import { startLab, type TestLab } from '../support/lab.ts';

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

test('a volume that cannot be attached yet is a FailedAttachVolume event, and the pod starts once it can', async () => {
  const fault = {
    method: 'ControllerPublishVolume',
    action: 'fail',
    code: 'INTERNAL',
    message: 'the rack is full',
    times: 0,
  };
  await writeFileAtomic(join(directory, 'faults.json'), JSON.stringify([fault]));
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'far' } }];
  const mount = { volumeMounts: [{ name: 'v', mountPath: '/data' }] };
  await apply(
    lab,
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'far' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '32Mi' } } },
    },
    shellPod('far', `echo there > /data/x && ${FOREVER}`, { volumes }, mount),
  );
  const event = await eventually('the event', async () => {
    const text = await lab.kubectl('get', 'events', '--field-selector', 'reason=FailedAttachVolume', '-o', 'json');
    const { items }: { items: { message: string; source: { component: string } }[] } = JSON.parse(text);
    return items.find(({ source }) => source.component === 'kubelet');
  });
  expect(event.message).toMatch(/^AttachVolume\.Attach failed for volume "pvc-[0-9a-f-]+" : .*the rack is full/);
  await writeFileAtomic(join(directory, 'faults.json'), '[]');
  await lab.kubectl('wait', 'pod/far', '--for=condition=Ready', '--timeout=110s');
  await prints(lab, 'there\n', 'exec', 'far', '--', 'cat', '/data/x');
  await lab.kubectl('delete', 'pod/far', 'pvc/far', '--timeout=110s');
});
