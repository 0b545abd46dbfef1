// The agent of a lab is killed with SIGKILL while its driver is held inside each of the four calls of a volume's life:
// before the driver has done anything, half-way, and when all is done and the answer is not yet on its way. The pod of
// a StatefulSet, always of the same name and claim, comes and goes under it: its data stays, and nothing else does.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PersistentVolume } from 'kubernetes-types/core/v1';
import type { VolumeAttachment } from 'kubernetes-types/storage/v1';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { Node, Stored } from '../../../client/types.ts';
import type { FaultRule } from '../../../csi/driver/faults.ts';
import { listLoopDevices } from '../../../csi/driver/loop-devices.ts';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import { exec } from '../../../lib/exec.ts';
import { apply, container, eventually, FOREVER, gone, prints, ready, shellPod } from '../agent/harness.ts';
import { startLab, type TestLab } from '../support/lab.ts';

const MOUNTING = ['NodeStageVolume', 'NodePublishVolume'] as const;
const UNMOUNTING = ['NodeUnpublishVolume', 'NodeUnstageVolume'] as const;
type Method = (typeof MOUNTING)[number] | (typeof UNMOUNTING)[number];
/** Of each of the four calls this is when something of it has been done and something has not. */
const HALF_WAY = 2;
type Moment = FaultRule['when'];

interface Retained {
  readonly method: Method;
  readonly when: Moment;
  readonly action: 'hold';
  /** Identifies this rule. */
  readonly message: string;
}

let lab: TestLab;
let directory = '';
let retained: readonly Retained[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-csi-killed-'));
  lab = await startLab({
    kills: true,
    csi: ['--attach', '--faults', join(directory, 'faults.json')],
    // Killed a dozen times on purpose: there is nothing to be careful about.
    restart: { initialMs: 100, maxMs: 100, factor: 1, resetMs: 0 },
  });
});
afterAll(async () => {
  await lab?.stop();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(({ onTestFailed }) => {
  onTestFailed(async () => {
    const { stdout } = await lab.tryKubectl(['get', 'pods,pvc,pv,volumeattachments,events', '-o', 'wide']);
    const logs = ['agent', 'csi-driver', 'controlplane'].map((name) => `${lab.root}/logs/${name}.log`);
    console.error(`${stdout}${(await exec('tail', ['-n', '40', ...logs])).stdout}`);
  });
});

async function hold(rules: readonly Retained[]): Promise<void> {
  retained = rules;
  await writeFileAtomic(join(directory, 'faults.json'), JSON.stringify(rules));
}

async function driverLog(): Promise<string> {
  return await readFile(`${lab.root}/logs/csi-driver.log`, 'utf8');
}

async function killAgent(): Promise<void> {
  const old = await eventually('the agent to run', () => lab.lab.pid('agent'));
  process.kill(old, 'SIGKILL');
  await eventually('another agent', () => {
    const next = lab.lab.pid('agent');
    return next !== undefined && next !== old ? true : undefined;
  });
}

/** Waits until the driver is held in its call, kills the agent, and lets the driver continue. */
async function killWhileIn(method: Method): Promise<void> {
  const rule = retained.find((each) => each.method === method);
  if (rule === undefined) throw new Error(`${method} is not held`);
  await eventually(`${method} to be held`, async () =>
    (await driverLog()).includes(`"rule":"${rule.message}"`) ? true : undefined,
  );
  const before = (await driverLog()).length;
  await killAgent();
  if (rule.when === HALF_WAY) {
    // The driver is still in its call: the next agent's calls for the volume are ABORTED, and retried later.
    await eventually(`the next agent to be refused because of ${method}`, async () =>
      (await driverLog()).slice(before).includes(`${method} has not ended`) ? true : undefined,
    );
  }
  await hold(retained.filter((each) => each !== rule));
}

/** Mount points of the driver's volumes, one for each mount. */
async function mounts(): Promise<readonly string[]> {
  const text = await readFile('/proc/self/mountinfo', 'utf8');
  return text
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.startsWith(lab.root) && /kubernetes\.io[~/]csi/.test(path))
    .map((path) => path.slice(lab.paths.kubeletDir.length));
}

async function loops(): Promise<number> {
  return (await listLoopDevices()).filter(({ image }) => image.startsWith(lab.root)).length;
}

async function attachments(): Promise<readonly Stored<VolumeAttachment>[]> {
  return (await lab.client.list<Stored<VolumeAttachment>>('/apis/storage.k8s.io/v1/volumeattachments')).items;
}

/** What the agent has noted about volumes and pods. */
async function notes(): Promise<readonly string[]> {
  const paths = await readdir(lab.paths.kubeletDir, { recursive: true });
  return paths.filter((path) => /^pods\/|vol_data\.json$/.test(path));
}

async function volumeName(claim: string): Promise<string> {
  const path = resourcePath('v1', 'persistentvolumeclaims', { namespace: 'default', name: claim });
  const found = await lab.client.get<{ spec: { volumeName?: string } }>(path);
  return found.spec.volumeName ?? '';
}

async function expectNothingOnNode(): Promise<void> {
  const look = async () => {
    const node = await lab.client.get<Node>(resourcePath('v1', 'nodes', { name: lab.nodeName }));
    const { volumesInUse = [], volumesAttached = [] } = node.status ?? {};
    const attached = (await attachments()).map(({ metadata }) => metadata.name);
    return {
      mounts: await mounts(),
      loops: await loops(),
      notes: await notes(),
      volumesInUse,
      volumesAttached,
      attached,
    };
  };
  const nothing = { mounts: [], loops: 0, notes: [], volumesInUse: [], volumesAttached: [], attached: [] };
  let found: object = {};
  await eventually('nothing to be left', async () => {
    found = await look();
    return JSON.stringify(found) === JSON.stringify(nothing) ? true : undefined;
  }).catch(() => expect(found).toEqual(nothing));
}

interface Kind {
  readonly name: string;
  readonly block: boolean;
  /** Adds the number of the round to what is on the volume. */
  readonly write: (round: number) => string;
  readonly read: string;
}

const FILES: Kind = {
  name: 'web',
  block: false,
  write: (round) => `echo ${round} >>/data/log && sync`,
  read: 'cat /data/log',
};
const DEVICE: Kind = {
  name: 'raw',
  block: true,
  write: (round) => `echo ${round} | dd of=/dev/data bs=2 seek=${round - 1} conv=notrunc,fsync`,
  read: 'head -c 64 /dev/data | tr -d "\\0"',
};

function objects({ name, block, write }: Kind, round: number): readonly object[] {
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: `data-${name}-0` } }];
  const use = block
    ? { volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] }
    : { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: `data-${name}-0` },
    spec: {
      accessModes: ['ReadWriteOnce'],
      volumeMode: block ? 'Block' : 'Filesystem',
      resources: { requests: { storage: '32Mi' } },
    },
  };
  return [claim, shellPod(`${name}-0`, `${write(round)} && ${FOREVER}`, { volumes }, use)];
}

/** One life of the pod, with the agent killed in each of its four calls. */
async function live(kind: Kind, round: number, when: Moment): Promise<void> {
  const pod = `${kind.name}-0`;
  const rule = (method: Method): Retained => ({
    method,
    when,
    action: 'hold',
    message: `${kind.name} ${round}: ${method} ${when}`,
  });
  await hold([...MOUNTING, ...UNMOUNTING].map(rule));
  await apply(lab, ...objects(kind, round));
  for (const method of MOUNTING) await killWhileIn(method);
  const started = await ready(lab, pod);
  expect(container(started).restartCount).toBe(0);

  // What every life before this one wrote is there, and each of them wrote once.
  const lines = Array.from({ length: round }, (_, index) => `${index + 1}\n`).join('');
  await prints(lab, lines, 'exec', pod, '--', 'sh', '-c', kind.read);
  // Once staged, once published, one device, attached once.
  const volume = await volumeName(`data-${kind.name}-0`);
  const { uid } = started.metadata;
  const found = (await mounts()).toSorted();
  if (kind.block) {
    const devices = '/plugins/kubernetes.io/csi/volumeDevices';
    expect(found).toEqual([`${devices}/${volume}/dev/${uid}`, `${devices}/publish/${volume}/${uid}`].toSorted());
  } else {
    expect(found).toEqual([
      expect.stringMatching(/^\/plugins\/kubernetes\.io\/csi\/loop\.csi\.nodelet\/[0-9a-f]{64}\/globalmount$/),
      `/pods/${uid}/volumes/kubernetes.io~csi/${volume}/mount`,
    ]);
  }
  expect(await loops()).toBe(1);
  expect((await attachments()).map(({ status }) => status?.attached)).toEqual([true]);

  await lab.kubectl('delete', `pod/${pod}`, '--wait=false');
  for (const method of UNMOUNTING) await killWhileIn(method);
  await gone(lab, pod);
  await expectNothingOnNode();
  // No detach of a staged volume was tried: a new agent reports its volumesInUse at once.
  expect(await driverLog()).not.toMatch(/ControllerUnpublishVolume: (?!OK)/);
}

async function removeClaim({ name }: Kind): Promise<void> {
  await lab.kubectl('delete', `pvc/data-${name}-0`, '--timeout=110s');
  await eventually('the volume to be deleted', async () => {
    const { items } = await lab.client.list<PersistentVolume>('/api/v1/persistentvolumes');
    return items.length === 0 ? true : undefined;
  });
  expect(await readdir(join(lab.root, 'csi/volumes'))).toEqual([]);
}

test('the agent killed in every call, before it is done, half-way and after: files are once mounted, and kept', async () => {
  await live(FILES, 1, 'before');
  await live(FILES, 2, HALF_WAY);
  await live(FILES, 3, 'after');
  await removeClaim(FILES);
});

test('the agent killed half-way in every call of a device: it is once given, and what was written is kept', async () => {
  await live(DEVICE, 1, HALF_WAY);
  await removeClaim(DEVICE);
});
