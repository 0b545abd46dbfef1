// A lab whose root directory is given by a link to it: it starts, a pod that goes leaves the machine's files that it had
// mounted, and after the end nothing of the lab is mounted or left.

import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readMounts } from '../../../lib/mounts.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { apply, deletePods, eventually, FOREVER, gone, ready, shellPod } from '../agent/harness.ts';
import { startLab, type TestLab } from '../support/lab.ts';

let lab: TestLab;
let data: string;

beforeAll(async () => {
  // On the same file system as the lab's root.
  data = await mkdtemp(join(tmpdir(), 'nodelet-data-'));
  lab = await startLab({ throughLink: true });
});
afterAll(async () => {
  await lab?.stop();
  await removeTree(data);
});

test('a deleted pod leaves the files of its hostPath and of its local volume', async () => {
  for (const name of ['host', 'local']) {
    await mkdir(join(data, name, 'part'), { recursive: true });
    await writeFile(join(data, name, 'part', 'file'), 'kept');
  }
  const metadata = { name: 'local' };
  const common = { accessModes: ['ReadWriteOnce'], storageClassName: '' };
  const hostname = { key: 'kubernetes.io/hostname', operator: 'In', values: [lab.nodeName] };
  await apply(
    lab,
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata,
      spec: {
        ...common,
        capacity: { storage: '1Mi' },
        local: { path: join(data, 'local') },
        persistentVolumeReclaimPolicy: 'Retain',
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [hostname] }] } },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata,
      spec: { ...common, volumeName: 'local', resources: { requests: { storage: '1Mi' } } },
    },
  );
  const volumes = [
    { name: 'host', hostPath: { path: join(data, 'host') } },
    { name: 'local', persistentVolumeClaim: { claimName: 'local' } },
    { name: 'memory', emptyDir: { medium: 'Memory' } },
  ];
  const volumeMounts = [
    { name: 'host', mountPath: '/host', subPath: 'part' },
    { name: 'local', mountPath: '/local' },
    { name: 'memory', mountPath: '/memory' },
  ];
  const script = `[ "$(cat /host/file /local/part/file)" = keptkept ] || exit 1; ${FOREVER}`;
  await apply(lab, shellPod('keeper', script, { automountServiceAccountToken: false, volumes }, { volumeMounts }));
  await ready(lab, 'keeper');
  await deletePods(lab, ['keeper'], { wait: false });
  await gone(lab, 'keeper');
  for (const name of ['host', 'local']) {
    expect(await readFile(join(data, name, 'part', 'file'), 'utf8')).toBe('kept');
  }
});

test('when it ends, with a pod that runs, nothing is mounted below its root and the pod’s files are kept', async () => {
  const volumes = [{ name: 'host', hostPath: { path: join(data, 'host') } }];
  const volumeMounts = [{ name: 'host', mountPath: '/host', subPath: 'part' }];
  await apply(lab, shellPod('last', FOREVER, { automountServiceAccountToken: false, volumes }, { volumeMounts }));
  await ready(lab, 'last');
  const below = async () => (await readMounts()).filter(({ path }) => path.startsWith(`${lab.root}/`));
  await eventually('its mount', async () => ((await below()).length > 0 ? true : undefined));
  // Rejects when anything of the lab is left on the machine.
  await lab.stop();
  expect(await below()).toEqual([]);
  expect(await readFile(join(data, 'host', 'part', 'file'), 'utf8')).toBe('kept');
});
