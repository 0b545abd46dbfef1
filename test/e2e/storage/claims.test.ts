// Claims, volumes and attachments from the API's side: an embedded API server, the control plane and the real
// loop-device driver, without an agent. The test writes what a node would (CSINode, labels, volumes in use).

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ApiClient } from '../../../client/api.ts';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Event, Node, Pod } from '../../../client/types.ts';
import {
  bytesOf,
  type CsiStorageCapacity,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type VolumeAttachment,
} from '../../../controlplane/storage/objects.ts';
import type { RunningDriver } from '../../../csi/driver/main.ts';
import { DRIVER_NAME, TOPOLOGY_KEY } from '../../../csi/driver/names.ts';
import { Cluster, eventually } from '../controlplane/cluster.ts';
import { renewLeases, startLoopDriver } from './stand.ts';

const STORAGE = 'storage.k8s.io/v1';
/** The driver is on n1 and can attach to n2; n3 does not have it. */
const NODES = ['n1', 'n2', 'n3'] as const;
/** The maximum of all volumes' capacities together. */
const POOL = 1024n ** 3n;

let dir: string;
let driver: RunningDriver;
let cluster: Cluster;
let admin: ApiClient;
let renewing: NodeJS.Timeout | undefined;
const faults = (): string => join(dir, 'faults');

const startTheDriver = (): Promise<RunningDriver> =>
  startLoopDriver(dir, { poolBytes: Number(POOL), faultFile: faults() });

async function create(path: string, object: object): Promise<void> {
  await admin.create(path, object);
}
async function find<T>(path: string): Promise<T | undefined> {
  try {
    return await admin.get<T>(path);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
const claimPath = (name: string): string => resourcePath('v1', 'persistentvolumeclaims', { namespace: 'demo', name });
const volumePath = (name: string): string => resourcePath('v1', 'persistentvolumes', { name });
const podPath = (name: string): string => resourcePath('v1', 'pods', { namespace: 'demo', name });

async function makeClass(name: string, more: object = {}): Promise<void> {
  await create(resourcePath(STORAGE, 'storageclasses'), {
    metadata: { name },
    provisioner: DRIVER_NAME,
    parameters: {
      'csi.storage.k8s.io/fstype': 'ext4',
      'csi.storage.k8s.io/provisioner-secret-name': 'keys',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the class's template
      'csi.storage.k8s.io/provisioner-secret-namespace': '${pvc.namespace}',
    },
    allowVolumeExpansion: true,
    ...more,
  });
}

async function makeClaim(name: string, storageClassName: string | undefined, spec: object = {}): Promise<void> {
  await create(resourcePath('v1', 'persistentvolumeclaims', { namespace: 'demo' }), {
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '16Mi' } },
      ...(storageClassName === undefined ? {} : { storageClassName }),
      ...spec,
    },
  });
}

async function makePod(name: string, volume: object, spec: object = {}): Promise<void> {
  await create(resourcePath('v1', 'pods', { namespace: 'demo' }), {
    metadata: { name },
    spec: {
      containers: [{ name: 'c', image: 'busybox:stable' }],
      volumes: [{ name: 'v', ...volume }],
      ...spec,
    },
  });
}
const withClaim = (claimName: string): object => ({ persistentVolumeClaim: { claimName } });

/** For giving up only: the pauses of the driver's connection grow to 2 min. */
const BACKED_OFF_MS = 300_000;

async function bound(
  name: string,
  timeoutMs?: number,
): Promise<{ claim: PersistentVolumeClaim; volume: PersistentVolume }> {
  const seen = async (): Promise<PersistentVolumeClaim | undefined> => {
    const found = await find<PersistentVolumeClaim>(claimPath(name));
    return found?.status?.phase === 'Bound' ? found : undefined;
  };
  const claim = await eventually(`claim ${name} is bound`, seen, timeoutMs);
  const volume = await find<PersistentVolume>(volumePath(claim.spec?.volumeName ?? ''));
  if (volume === undefined) throw new Error(`claim ${name} is bound to ${claim.spec?.volumeName}, which is not there`);
  return { claim, volume };
}

async function gone(path: string): Promise<void> {
  await eventually(`${path} is gone`, async () => ((await find(path)) === undefined ? true : undefined));
}

/** The event whose message has these words: another one may be before it, from when a cache did not have everything yet. */
async function event(name: string, reason: string, words = ''): Promise<Event> {
  return await eventually(`event ${reason} of ${name}: ${words}`, async () => {
    const { items } = await admin.list<Event>('/api/v1/events');
    return items.find(
      ({ involvedObject, reason: of, message = '' }) =>
        involvedObject.name === name && of === reason && message.includes(words),
    );
  });
}

/** The driver's own records of volumes: what is really there. */
async function volumesOnDisk(): Promise<readonly string[]> {
  return (await readdir(join(dir, 'state', 'volumes'))).sort();
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'nodelet-storage-'));
  driver = await startTheDriver();
  cluster = await Cluster.start();
  admin = await cluster.client();
  await cluster.startControlPlane([{ name: DRIVER_NAME, endpoint: `unix://${dir}/csi.sock` }]);
  await create('/api/v1/namespaces', { metadata: { name: 'demo' } });
  await eventually('the service account of demo', () =>
    find(resourcePath('v1', 'serviceaccounts', { namespace: 'demo', name: 'default' })),
  );
  await create(resourcePath('v1', 'secrets', { namespace: 'demo' }), {
    metadata: { name: 'keys' },
    stringData: { key: 'right' },
  });
  for (const name of NODES) {
    const hasDriver = name !== 'n3';
    const labels = { ...(hasDriver ? { [TOPOLOGY_KEY]: name } : {}), 'kubernetes.io/hostname': name };
    await create('/api/v1/nodes', {
      metadata: { name, labels },
      status: {
        allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    });
    if (!hasDriver) continue;
    await create(resourcePath(STORAGE, 'csinodes'), {
      metadata: { name },
      spec: { drivers: [{ name: DRIVER_NAME, nodeID: name, topologyKeys: [TOPOLOGY_KEY], allocatable: { count: 3 } }] },
    });
  }
  await create(resourcePath(STORAGE, 'csidrivers'), {
    metadata: { name: DRIVER_NAME },
    spec: { attachRequired: true },
  });
  await renewLeases(admin, NODES);
  // However long a test takes: nodes that are silent are taken for lost.
  renewing = setInterval(() => {
    renewLeases(admin, NODES).catch((error: unknown) => cluster.logs.push(`the leases: ${error}`));
  }, 5_000);
  await makeClass('now');
  await makeClass('later', { volumeBindingMode: 'WaitForFirstConsumer' });
});
afterAll(async () => {
  clearInterval(renewing);
  await cluster[Symbol.asyncDispose]();
  await driver.stop();
  await rm(dir, { recursive: true, force: true });
});

beforeEach(({ onTestFailed }) => {
  onTestFailed(() => console.error(cluster.logs.join('\n')));
});

describe('a claim of an immediate class', () => {
  it('gets a volume of the driver, as the external-provisioner describes it', async () => {
    await makeClaim('first', 'now');
    const { claim, volume } = await bound('first');
    expect(volume.metadata.name).toBe(`pvc-${claim.metadata.uid}`);
    expect(volume.metadata.annotations).toMatchObject({
      'pv.kubernetes.io/provisioned-by': DRIVER_NAME,
      'volume.kubernetes.io/provisioner-deletion-secret-name': 'keys',
      'volume.kubernetes.io/provisioner-deletion-secret-namespace': 'demo',
    });
    expect([...(volume.metadata.finalizers ?? [])].sort()).toEqual([
      'external-provisioner.volume.kubernetes.io/finalizer',
      'kubernetes.io/pv-protection',
    ]);
    expect(volume.spec).toMatchObject({
      capacity: { storage: '16Mi' },
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: 'now',
      volumeMode: 'Filesystem',
      csi: { driver: DRIVER_NAME, fsType: 'ext4' },
      claimRef: { name: 'first', namespace: 'demo', uid: claim.metadata.uid },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: ['n1', 'n2'].map((node) => ({
            matchExpressions: [{ key: TOPOLOGY_KEY, operator: 'In', values: [node] }],
          })),
        },
      },
    });
    expect(volume.status?.phase).toBe('Bound');
    expect(claim.status).toMatchObject({ capacity: { storage: '16Mi' }, accessModes: ['ReadWriteOnce'] });
    expect(claim.metadata.annotations).toMatchObject({
      'pv.kubernetes.io/bind-completed': 'yes',
      'volume.kubernetes.io/storage-provisioner': DRIVER_NAME,
    });
    expect((await event('first', 'ProvisioningSucceeded')).message).toBe(
      `Successfully provisioned volume ${volume.metadata.name}`,
    );
    expect((await event('first', 'ExternalProvisioning')).message).toContain(DRIVER_NAME);
    expect(await volumesOnDisk()).toHaveLength(1);
  });

  it('loses volume and data when it is deleted', async () => {
    const { volume } = await bound('first');
    await admin.delete(claimPath('first'));
    await gone(claimPath('first'));
    await gone(volumePath(volume.metadata.name));
    expect(await volumesOnDisk()).toEqual([]);
  });

  it('leaves its volume, Released, with reclaim policy Retain', async () => {
    await makeClass('kept', { reclaimPolicy: 'Retain' });
    await makeClaim('keep', 'kept');
    const { volume } = await bound('keep');
    await admin.delete(claimPath('keep'));
    await eventually('the volume is Released', async () =>
      (await find<PersistentVolume>(volumePath(volume.metadata.name)))?.status?.phase === 'Released' ? true : undefined,
    );
    expect(await volumesOnDisk()).toHaveLength(1);
    // To delete the data as well, the user first changes the reclaim policy.
    await admin.patch(volumePath(volume.metadata.name), { spec: { persistentVolumeReclaimPolicy: 'Delete' } }, 'merge');
    await gone(volumePath(volume.metadata.name));
    expect(await volumesOnDisk()).toEqual([]);
  });

  it('gets the driver’s own message when it requests more than there is', async () => {
    await makeClaim('huge', 'now', { resources: { requests: { storage: '100Gi' } } });
    const { message } = await event('huge', 'ProvisioningFailed');
    expect(message).toMatch(/^failed to provision volume with StorageClass "now": rpc error: code = \w+ desc = /);
    await admin.delete(claimPath('huge'));
    await gone(claimPath('huge'));
  });
});

describe('a claim that waits for its first consumer', () => {
  it('is Pending until a pod comes, and then gets a volume that the pod’s node reaches', async () => {
    await makeClaim('lazy', 'later');
    expect((await event('lazy', 'WaitForFirstConsumer')).message).toBe(
      'waiting for first consumer to be created before binding',
    );
    await makePod('consumer', withClaim('lazy'), { nodeSelector: { 'kubernetes.io/hostname': 'n1' } });
    const { claim } = await bound('lazy');
    expect(claim.metadata.annotations?.['volume.kubernetes.io/selected-node']).toBe('n1');
    const pod = await eventually('the pod is placed', async () => {
      const found = await find<Pod>(podPath('consumer'));
      return found?.spec.nodeName === undefined ? undefined : found;
    });
    expect(pod.spec.nodeName).toBe('n1');
  });

  it('is attached to the node, and its status and the pods’ events report it', async () => {
    const { volume } = await bound('lazy');
    const attachment = await eventually('the volume is attached', async () => {
      const { items } = await admin.list<VolumeAttachment>(resourcePath(STORAGE, 'volumeattachments'));
      return items.find((one) => one.status?.attached === true);
    });
    expect(attachment.metadata.name).toMatch(/^csi-[0-9a-f]{64}$/);
    expect(attachment.metadata.finalizers).toEqual(['external-attacher/loop-csi-nodelet']);
    expect(attachment.spec).toEqual({
      attacher: DRIVER_NAME,
      nodeName: 'n1',
      source: { persistentVolumeName: volume.metadata.name },
    });
    const name = `kubernetes.io/csi/${DRIVER_NAME}^${volume.spec?.csi?.volumeHandle}`;
    await eventually('volumesAttached in the Node', async () => {
      const node = await find<Node>(resourcePath('v1', 'nodes', { name: 'n1' }));
      return node?.status?.volumesAttached?.some((one) => one.name === name) ? true : undefined;
    });
    expect((await event('consumer', 'SuccessfulAttachVolume')).message).toContain(volume.metadata.name);
  });

  it('keeps a second pod away from nodes that do not reach it, with the reason', async () => {
    await makePod('elsewhere', withClaim('lazy'), { nodeSelector: { 'kubernetes.io/hostname': 'n3' } });
    expect((await event('elsewhere', 'FailedScheduling', 'affinity conflict')).message).toBe(
      "0/3 nodes are available: 1 node(s) had volume node affinity conflict, 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
    );
    await admin.delete(podPath('elsewhere'), { gracePeriodSeconds: 0 });
  });

  it('stays, Terminating, while a pod uses it; then everything goes in order', async () => {
    const { volume } = await bound('lazy');
    const inUse = [`kubernetes.io/csi/${DRIVER_NAME}^${volume.spec?.csi?.volumeHandle}`];
    const nodeStatus = resourcePath('v1', 'nodes', { name: 'n1', subresource: 'status' });
    await admin.patch(nodeStatus, { status: { volumesInUse: inUse } }, 'merge');
    await admin.delete(claimPath('lazy'));
    await admin.delete(volumePath(volume.metadata.name));
    await admin.delete(podPath('consumer'), { gracePeriodSeconds: 0 });
    await gone(claimPath('lazy'));
    // The node still uses it: it stays attached, and so it stays.
    expect((await event(volume.metadata.name, 'VolumeFailedDelete')).message).toContain('is still attached to node n1');
    expect(await volumesOnDisk()).toHaveLength(1);
    await admin.patch(nodeStatus, { status: { volumesInUse: [] } }, 'merge');
    await gone(volumePath(volume.metadata.name));
    expect(await volumesOnDisk()).toEqual([]);
    await expect.poll(async () => (await admin.list(resourcePath(STORAGE, 'volumeattachments'))).items).toEqual([]);
    await expect
      .poll(async () => (await find<Node>(resourcePath('v1', 'nodes', { name: 'n1' })))?.status?.volumesAttached ?? [])
      .toEqual([]);
  });

  it('has its room published per class and segment, and shrinks it by what is taken', async () => {
    const published = async (): Promise<CsiStorageCapacity[]> => {
      const { items } = await admin.list<CsiStorageCapacity>(resourcePath(STORAGE, 'csistoragecapacities'));
      return items.filter((one) => one.storageClassName === 'later');
    };
    const objects = await eventually('capacities', async () => {
      const found = await published();
      return found.length >= 2 ? found : undefined;
    });
    expect(objects.map((one) => one.nodeTopology?.matchLabels?.[TOPOLOGY_KEY]).sort()).toEqual(['n1', 'n2']);
    expect(objects[0]?.metadata.labels).toEqual({
      'csi.storage.k8s.io/drivername': DRIVER_NAME,
      'csi.storage.k8s.io/managed-by': 'external-provisioner',
    });
    const room = async (): Promise<readonly bigint[]> => (await published()).map((one) => bytesOf(one.capacity));
    await eventually('all of it is free', async () => ((await room()).every((one) => one === POOL) ? true : undefined));
    await makeClaim('taken', 'now');
    await bound('taken');
    const rest = POOL - 16n * 1024n ** 2n;
    await eventually('what is taken is missing', async () =>
      (await room()).every((one) => one === rest) ? true : undefined,
    );
    await admin.delete(claimPath('taken'));
    await gone(claimPath('taken'));
  });
});

describe('growing a claim', () => {
  it('grows the volume and leaves the filesystem to the node', async () => {
    await makeClaim('grow', 'now');
    const { volume } = await bound('grow');
    await admin.patch(claimPath('grow'), { spec: { resources: { requests: { storage: '32Mi' } } } }, 'merge');
    const claim = await eventually('the condition FileSystemResizePending', async () => {
      const found = await find<PersistentVolumeClaim>(claimPath('grow'));
      return found?.status?.conditions?.some(({ type }) => type === 'FileSystemResizePending') ? found : undefined;
    });
    expect(claim.status?.allocatedResourceStatuses).toEqual({ storage: 'NodeResizePending' });
    expect(claim.status?.allocatedResources).toEqual({ storage: '32Mi' });
    expect(claim.status?.capacity).toEqual({ storage: '16Mi' });
    expect(claim.status?.conditions?.some(({ type }) => type === 'Resizing')).toBe(false);
    const grown = await find<PersistentVolume>(volumePath(volume.metadata.name));
    expect(grown?.spec?.capacity).toEqual({ storage: '32Mi' });
    await event('grow', 'FileSystemResizeRequired');
  });

  it('is refused for a claim that is not bound, and for a class that does not allow it', async () => {
    await makeClass('fixed', { allowVolumeExpansion: false });
    await makeClaim('small', 'fixed');
    await bound('small');
    const more = { spec: { resources: { requests: { storage: '64Mi' } } } };
    await expect(admin.patch(claimPath('small'), more, 'merge')).rejects.toThrow(
      'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
    );
    await makeClaim('waiting', 'later');
    await expect(admin.patch(claimPath('waiting'), more, 'merge')).rejects.toThrow(
      // Validation comes before the validating admission, whose refusal would be another.
      'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
    );
    for (const name of ['small', 'waiting', 'grow']) await admin.delete(claimPath(name));
    for (const name of ['small', 'waiting', 'grow']) await gone(claimPath(name));
  });
});

describe('volumes made by hand', () => {
  const local = (storage: string, more: object = {}): object => ({
    accessModes: ['ReadWriteOnce'],
    capacity: { storage },
    hostPath: { path: '/data' },
    storageClassName: 'manual',
    ...more,
  });

  it('are bound smallest first, are Released with their claim, and Retain is the default', async () => {
    for (const [name, size] of [
      ['large', '5Gi'],
      ['fitting', '2Gi'],
      ['tiny', '1Mi'],
    ] as const) {
      await create('/api/v1/persistentvolumes', { metadata: { name }, spec: local(size) });
      // The controller has seen it, which a claim may overtake.
      await eventually(`${name} is Available`, async () =>
        (await find<PersistentVolume>(volumePath(name)))?.status?.phase === 'Available' ? true : undefined,
      );
    }
    await makeClaim('manual', 'manual', { resources: { requests: { storage: '1Gi' } } });
    const { claim, volume } = await bound('manual');
    expect(volume.metadata.name).toBe('fitting');
    expect(volume.metadata.annotations?.['pv.kubernetes.io/bound-by-controller']).toBe('yes');
    expect(claim.status?.capacity).toEqual({ storage: '2Gi' });
    await admin.delete(claimPath('manual'));
    await eventually('Released', async () =>
      (await find<PersistentVolume>(volumePath('fitting')))?.status?.phase === 'Released' ? true : undefined,
    );
  });

  it('with Recycle, or with Delete and without a provisioner, end as Failed with the reason', async () => {
    const volumes = { recycled: 'Recycle', orphan: 'Delete' } as const;
    for (const [name, persistentVolumeReclaimPolicy] of Object.entries(volumes)) {
      await create('/api/v1/persistentvolumes', {
        metadata: { name },
        spec: local('1Gi', { storageClassName: `by-hand-${name}`, persistentVolumeReclaimPolicy }),
      });
      await makeClaim(name, `by-hand-${name}`);
      await bound(name);
      await admin.delete(claimPath(name));
    }
    const failed = (name: string) =>
      eventually(`${name} is Failed`, async () => {
        const found = await find<PersistentVolume>(volumePath(name));
        return found?.status?.phase === 'Failed' ? found : undefined;
      });
    expect((await failed('recycled')).status?.reason).toBe('VolumeFailedRecycle');
    expect((await failed('orphan')).status?.reason).toBe('VolumeFailedDelete');
  });

  it('that wait for a consumer are set aside by the scheduler for the pod’s node', async () => {
    await create(resourcePath(STORAGE, 'storageclasses'), {
      metadata: { name: 'local' },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    });
    for (const node of NODES) {
      const expression = { key: 'kubernetes.io/hostname', operator: 'In', values: [node] };
      await create('/api/v1/persistentvolumes', {
        metadata: { name: `disk-${node}` },
        spec: {
          accessModes: ['ReadWriteOnce'],
          capacity: { storage: '1Gi' },
          local: { path: '/mnt/disk' },
          storageClassName: 'local',
          nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [expression] }] } },
        },
      });
    }
    await makeClaim('disk', 'local');
    await makePod('on-disk', withClaim('disk'), { nodeSelector: { 'kubernetes.io/hostname': 'n2' } });
    const { volume } = await bound('disk');
    expect(volume.metadata.name).toBe('disk-n2');
    await makeClaim('second-disk', 'local');
    await makePod('no-disk', withClaim('second-disk'), { nodeSelector: { 'kubernetes.io/hostname': 'n2' } });
    await event('no-disk', 'FailedScheduling', "1 node(s) didn't find available persistent volumes to bind");
  });
});

describe('a pod’s own volume', () => {
  it('has a claim of the pod’s, and goes with the pod', async () => {
    const volumeClaimTemplate = {
      metadata: { labels: { kind: 'scratch' } },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } }, storageClassName: 'later' },
    };
    await makePod(
      'scratch',
      { ephemeral: { volumeClaimTemplate } },
      { nodeSelector: { 'kubernetes.io/hostname': 'n1' } },
    );
    const { claim, volume } = await bound('scratch-v');
    const pod = await find<Pod>(podPath('scratch'));
    expect(claim.metadata.labels).toEqual({ kind: 'scratch' });
    expect(claim.metadata.ownerReferences).toMatchObject([
      { kind: 'Pod', name: 'scratch', uid: pod?.metadata.uid, controller: true },
    ]);
    await admin.delete(podPath('scratch'), { gracePeriodSeconds: 0 });
    await gone(claimPath('scratch-v'));
    await gone(volumePath(volume.metadata.name));
  });
});

describe('a driver that is away', () => {
  it('is waited for: the claim is served when it is back', async () => {
    await driver.stop();
    await makeClaim('patient', 'now');
    await event('patient', 'ProvisioningFailed', 'code = Unavailable');
    driver = await startTheDriver();
    await bound('patient', BACKED_OFF_MS);
    await expect.poll(volumesOnDisk).toHaveLength(1);
  });
});
