import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { VolumeError } from '../../../../agent/ports/node.ts';
import type { PodUID } from '../../../../agent/ports/runtime.ts';
import type { PodVolumesOptions, VolumeManager } from '../../../../agent/volumes/options.ts';
import { createPodVolumes } from '../../../../agent/volumes/pod-volumes.ts';
import { renewalTime, TokenCache } from '../../../../agent/volumes/tokens.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { type Span, Tracer } from '../../../../lib/trace.ts';
import {
  configMap,
  entry,
  FakeMounter,
  FakeObjects,
  FakeRecorder,
  ManualClock,
  pod,
  podWith,
  secret,
} from './support.ts';

let rootDir = '';
let mounter: FakeMounter;
let objects: FakeObjects;
let clock: ManualClock;
let volumes: VolumeManager;
let recorder: FakeRecorder;
let spans: Span[];
beforeEach(async () => {
  rootDir = await mkdtemp(join(tmpdir(), 'nodelet-volumes-pod-'));
  mounter = new FakeMounter();
  clock = new ManualClock();
  objects = new FakeObjects(clock);
  volumes = restarted();
});
afterEach(async () => {
  volumes.close();
  await rm(rootDir, { recursive: true, force: true });
});

/** A manager that knows nothing but what is on disk and in the mount table. */
function restarted(more: Partial<PodVolumesOptions> = {}): VolumeManager {
  spans = [];
  recorder = new FakeRecorder();
  const tracer = new Tracer();
  tracer.subscribe((span) => spans.push(span));
  return createPodVolumes({
    rootDir,
    mounter,
    objects,
    tracer,
    clock,
    recorder,
    allocatable: () => ({ memory: '1Gi' }),
    random: () => 0,
    ...more,
  });
}

const ref = { uid: 'uid-1' as PodUID, namespace: 'demo', name: 'web' };
const dirOf = (plugin: string, name: string) => join(rootDir, 'pods/uid-1/volumes', `kubernetes.io~${plugin}`, name);
const text = (plugin: string, name: string, file: string) => readFile(join(dirOf(plugin, name), file), 'utf8');

const kubeApiAccess = {
  name: 'kube-api-access-x',
  projected: {
    defaultMode: 0o644,
    sources: [
      { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
    ],
  },
};

describe('mounting', () => {
  test('lays volumes out as the kubelet does', async () => {
    objects.configMaps.set('cm', configMap('cm', { 'a.conf': 'A' }));
    objects.secrets.set('s', secret('s', { key: 'K' }));
    objects.configMaps.set('kube-root-ca.crt', configMap('kube-root-ca.crt', { 'ca.crt': 'CA' }));
    const subject = podWith([
      { name: 'e', emptyDir: {} },
      { name: 'c', configMap: { name: 'cm' } },
      { name: 's', secret: { secretName: 's', defaultMode: 0o400 } },
      { name: 'd', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
      kubeApiAccess,
    ]);
    await volumes.mountAll(subject);
    expect((await stat(dirOf('empty-dir', 'e'))).mode & 0o7777).toBe(0o777);
    expect(await text('configmap', 'c', 'a.conf')).toBe('A');
    expect(await text('secret', 's', 'key')).toBe('K');
    expect((await stat(join(dirOf('secret', 's'), 'key'))).mode & 0o777).toBe(0o400);
    expect(await text('downward-api', 'd', 'name')).toBe('web');
    expect(await text('projected', 'kube-api-access-x', 'token')).toBe('token-1');
    expect(await text('projected', 'kube-api-access-x', 'ca.crt')).toBe('CA');
    expect(await text('projected', 'kube-api-access-x', 'namespace')).toBe('demo');
    expect(objects.tokenRequests).toEqual([{ expirationSeconds: 3607 }]);
    const inMemory = [dirOf('downward-api', 'd'), dirOf('projected', 'kube-api-access-x'), dirOf('secret', 's')];
    expect(mounter.calls.sort()).toEqual(inMemory.map((dir) => `mount tmpfs size=1073741824 tmpfs ${dir}`).sort());
    expect(spans.map(({ kind, name }) => `${kind} ${name}`)).toContain('volume MountVolume.SetUp');
  });

  test('sets up each volume once, however often it is asked', async () => {
    objects.configMaps.set('kube-root-ca.crt', configMap('kube-root-ca.crt', { 'ca.crt': 'CA' }));
    const subject = podWith([kubeApiAccess]);
    await Promise.all([volumes.mountAll(subject), volumes.mountAll(subject)]);
    await volumes.mountAll(subject);
    expect(mounter.calls).toHaveLength(1);
    expect(objects.tokenRequests).toHaveLength(1);
  });

  test('leaves out volumes that no container mounts, whatever their type', async () => {
    await volumes.mountAll(pod({ volumes: [{ name: 'x', nfs: { server: 's', path: '/' } }], containers: [] }));
    expect(mounter.calls).toEqual([]);
  });

  test('works on all volumes side by side, and is done the moment the last one is up', async () => {
    const requested: string[] = [];
    const answers = new Map<string, () => void>();
    objects.configMap = (_namespace, name) =>
      new Promise((resolve) => {
        requested.push(name);
        answers.set(name, () => resolve(configMap(name, { k: name })));
      });
    const names = ['a', 'b', 'c'];
    let done = false;
    const mounting = volumes.mountAll(podWith(names.map((name) => ({ name, configMap: { name } }))));
    void mounting.then(() => {
      done = true;
    });
    await vi.waitFor(() => expect(requested.toSorted()).toEqual(names));
    for (const name of ['c', 'a']) {
      answers.get(name)?.();
      await vi.waitFor(async () => expect(await text('configmap', name, 'k')).toBe(name));
      expect(done).toBe(false);
    }
    answers.get('b')?.();
    // No time passes: nothing is polled.
    await mounting;
    expect(await text('configmap', 'b', 'k')).toBe('b');
  });

  test('sets up a volume that an ephemeral container needs later', async () => {
    const volume = { name: 'e', emptyDir: {} };
    await volumes.mountAll(pod({ volumes: [volume] }));
    await expect(stat(dirOf('empty-dir', 'e'))).rejects.toThrow('ENOENT');
    await volumes.mountAll(podWith([volume]));
    expect((await stat(dirOf('empty-dir', 'e'))).isDirectory()).toBe(true);
  });

  test.each([
    ['1Mi', undefined, 'size=1048576'],
    [undefined, undefined, 'size=1073741824'],
    ['4Gi', undefined, 'size=1073741824'],
    ['64Mi', '16Mi', 'size=16777216'],
    ['64Mi', '16Mi', 'size=17825792', { memory: '1Mi' }],
  ])(
    'an emptyDir in memory with sizeLimit %s and pod limit %s gets %s',
    async (sizeLimit, limit, option, overhead?) => {
      const emptyDir = sizeLimit === undefined ? { medium: 'Memory' } : { medium: 'Memory', sizeLimit };
      const resources = limit === undefined ? {} : { limits: { memory: limit } };
      const volumeMounts = [{ name: 'm', mountPath: '/m' }];
      const containers = [{ name: 'c', image: 'i', resources, volumeMounts }];
      const extra = overhead === undefined ? {} : { overhead };
      await volumes.mountAll(pod({ volumes: [{ name: 'm', emptyDir }], containers, ...extra }));
      expect(mounter.calls).toEqual([`mount tmpfs ${option} tmpfs ${dirOf('empty-dir', 'm')}`]);
    },
  );

  test('after a restart takes what is mounted for mounted and renews only what changed', async () => {
    objects.configMaps.set('cm', configMap('cm', { a: '1' }));
    const subject = podWith([
      { name: 's', secret: { secretName: 'none', optional: true } },
      { name: 'c', configMap: { name: 'cm' } },
      { name: 'e', emptyDir: {} },
    ]);
    await volumes.mountAll(subject);
    await writeFile(join(dirOf('empty-dir', 'e'), 'precious'), 'data', { mode: 0o600 });
    volumes.close();
    volumes = restarted();
    objects.configMaps.set('cm', configMap('cm', { a: '2' }));
    await volumes.mountAll(subject);
    expect(mounter.calls).toHaveLength(1);
    expect(await text('configmap', 'c', 'a')).toBe('2');
    expect((await stat(join(dirOf('empty-dir', 'e'), 'precious'))).mode & 0o777).toBe(0o600);
  });

  test('after a crash between directory and mount it mounts', async () => {
    await mkdir(dirOf('secret', 's'), { recursive: true });
    await volumes.mountAll(podWith([{ name: 's', secret: { secretName: 'x', optional: true } }]));
    expect(mounter.calls).toHaveLength(1);
  });
});

describe('failures are worded as FailedMount events', () => {
  /** The events of the first try of each volume; the pod is left trying. */
  const failures = async (count: number, ...list: Parameters<typeof podWith>[0]) => {
    const trying = volumes.mountAll(podWith(list));
    trying.catch(() => undefined);
    await vi.waitFor(() => expect(recorder.events).toHaveLength(count));
    return { events: recorder.events, trying };
  };
  test.each<[string, Parameters<typeof podWith>[0][number], string]>([
    ['a missing ConfigMap', { name: 'v', configMap: { name: 'y' } }, 'configmap "y" not found'],
    ['a missing Secret', { name: 'v', secret: { secretName: 'y' } }, 'secret "y" not found'],
    ['iscsi', { name: 'v', iscsi: { targetPortal: 'p', iqn: 'i', lun: 0 } }, 'volume type iscsi is not supported'],
    [
      'a claim',
      { name: 'v', persistentVolumeClaim: { claimName: 'c' } },
      'volume type persistentVolumeClaim is not supported',
    ],
    ['csi', { name: 'v', csi: { driver: 'd' } }, 'volume type csi is not supported'],
    ['a medium nobody knows', { name: 'v', emptyDir: { medium: 'Tape' } }, 'unknown storage medium "Tape"'],
    [
      'a trust bundle',
      { name: 'v', projected: { sources: [{ clusterTrustBundle: { path: 'p' } }] } },
      'ClusterTrustBundle projection is not supported in static kubelet mode',
    ],
    [
      'an item that climbs',
      { name: 'v', downwardAPI: { items: [{ path: '../x', fieldRef: { fieldPath: 'metadata.name' } }] } },
      "invalid path: must not contain '..': ../x",
    ],
    [
      'two missing sources',
      { name: 'v', projected: { sources: [{ secret: { name: 'a' } }, { configMap: { name: 'b' } }] } },
      '[secret "a" not found, configmap "b" not found]',
    ],
  ])('%s', async (_, volume, message) => {
    const { events } = await failures(1, volume);
    expect(events).toEqual([`FailedMount: MountVolume.SetUp failed for volume "v" : ${message}`]);
  });

  test('of several volumes each is reported, and those that work are set up', async () => {
    const { events } = await failures(
      2,
      { name: 'a', configMap: { name: 'x' } },
      { name: 'b', secret: { secretName: 'y' } },
      { name: 'e', emptyDir: {} },
    );
    expect(events.toSorted()).toEqual([
      'FailedMount: MountVolume.SetUp failed for volume "a" : configmap "x" not found',
      'FailedMount: MountVolume.SetUp failed for volume "b" : secret "y" not found',
    ]);
    expect((await stat(dirOf('empty-dir', 'e'))).isDirectory()).toBe(true);
  });

  test('and the pod’s volumes are up once the object is there, without a second mount', async () => {
    const { trying } = await failures(1, { name: 's', secret: { secretName: 'y' } });
    objects.secrets.set('y', secret('y', { k: 'v' }));
    clock.advance(500);
    await trying;
    expect(await text('secret', 's', 'k')).toBe('v');
    expect(mounter.calls).toHaveLength(1);
  });

  test('tries are 500 ms apart, then twice as long each time, at most 2 min 2 s', async () => {
    const { trying } = await failures(1, { name: 's', secret: { secretName: 'y' } });
    const pauses = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 122_000, 122_000];
    for (const [index, pause] of pauses.entries()) {
      clock.advance(pause - 1);
      await new Promise((resolve) => setImmediate(resolve));
      expect(recorder.events).toHaveLength(index + 1);
      clock.advance(1);
      await vi.waitFor(() => expect(recorder.events).toHaveLength(index + 2));
    }
    await expect(trying).rejects.toThrow();
  });

  test('a volume that fails does not hold up the tries of another', async () => {
    const { trying } = await failures(
      2,
      { name: 'a', configMap: { name: 'x' } },
      { name: 'b', configMap: { name: 'y' } },
    );
    objects.configMaps.set('x', configMap('x', { k: 'v' }));
    clock.advance(500);
    await vi.waitFor(() => expect(recorder.events).toHaveLength(3));
    expect(await text('configmap', 'a', 'k')).toBe('v');
    objects.configMaps.set('y', configMap('y', { k: 'w' }));
    clock.advance(1000);
    await trying;
    expect(await text('configmap', 'b', 'k')).toBe('w');
  });

  test('after 2 min 3 s an event names the missing ones, and they are retried', async () => {
    const { trying } = await failures(1, { name: 's', secret: { secretName: 'y' } }, { name: 'e', emptyDir: {} });
    clock.advance(123_000);
    await expect(trying).rejects.toThrow(
      new VolumeError(
        's',
        'Unable to attach or mount volumes: unmounted volumes=[s], unattached volumes=[], ' +
          'failed to process volumes=[]: context deadline exceeded',
      ),
    );
    await vi.waitFor(() => expect(recorder.events).toHaveLength(2));
    objects.secrets.set('y', secret('y', { k: 'v' }));
    clock.advance(1000);
    await volumes.mountAll(podWith([{ name: 's', secret: { secretName: 'y' } }]));
    expect(recorder.events).toHaveLength(2);
  });

  test('a pod that is taken down stops trying, and nothing is left', async () => {
    const { trying } = await failures(1, { name: 's', secret: { secretName: 'y' } });
    await volumes.unmountAll(ref);
    await expect(trying).rejects.toThrow('are being taken down');
    expect(clock.pending).toBe(0);
    expect(mounter.entries).toEqual([]);
    expect(await volumes.listPods()).toEqual([]);
  });

  test('waiting ends with the signal, trying with the pod', async () => {
    const over = new AbortController();
    const trying = volumes.mountAll(podWith([{ name: 's', secret: { secretName: 'y' } }]), over.signal);
    over.abort(new Error('the pod ends'));
    await expect(trying).rejects.toThrow('the pod ends');
    await volumes.unmountAll(ref);
    expect(await volumes.listPods()).toEqual([]);
  });

  test('a uid that is a path is refused', async () => {
    await expect(volumes.unmountAll({ ...ref, uid: '../..' as PodUID })).rejects.toThrow('is not a pod uid');
  });
});

describe('keeping up to date', () => {
  test('every 60 to 90 seconds the files follow the objects', async () => {
    objects.configMaps.set('cm', configMap('cm', { a: '1' }));
    await volumes.mountAll(podWith([{ name: 'c', configMap: { name: 'cm' } }]));
    objects.configMaps.set('cm', configMap('cm', { b: '2' }));
    clock.advance(59_999);
    expect(await text('configmap', 'c', 'a')).toBe('1');
    clock.advance(1);
    await vi.waitFor(async () => expect((await readdir(dirOf('configmap', 'c'))).sort()).toContain('b'));
    await vi.waitFor(() => expect(clock.pending).toBe(1));
    expect(await readdir(dirOf('configmap', 'c'))).not.toContain('a');
  });

  test('a refresh that fails is an event, leaves the files alone and is tried again after growing pauses', async () => {
    objects.configMaps.set('cm', configMap('cm', { a: '1' }));
    await volumes.mountAll(podWith([{ name: 'c', configMap: { name: 'cm' } }]));
    objects.failure = new Error('connection refused');
    clock.advance(60_000);
    await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
    expect(recorder.events[0]).toContain('connection refused');
    expect(await text('configmap', 'c', 'a')).toBe('1');
    for (const [pause, events] of [
      [500, 2],
      [1000, 3],
      [2000, 4],
    ] as const) {
      await vi.waitFor(() => expect(clock.pending).toBe(1));
      clock.advance(pause - 1);
      expect(recorder.events).toHaveLength(events - 1);
      clock.advance(1);
      await vi.waitFor(() => expect(recorder.events).toHaveLength(events));
    }
    objects.failure = undefined;
    objects.configMaps.set('cm', configMap('cm', { a: '2' }));
    await vi.waitFor(() => expect(clock.pending).toBe(1));
    clock.advance(4000);
    await vi.waitFor(async () => expect(await text('configmap', 'c', 'a')).toBe('2'));
  });

  test('changed labels show as soon as the pod is synced', async () => {
    const volume = {
      name: 'd',
      downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: "metadata.labels['x']" } }] },
    };
    const subject = podWith([volume]);
    await volumes.mountAll({ ...subject, metadata: { ...subject.metadata, labels: { x: '1' } } });
    await volumes.mountAll({ ...subject, metadata: { ...subject.metadata, labels: { x: '2' } } });
    expect(await text('downward-api', 'd', 'l')).toBe('2');
  });

  test('nothing is refreshed for a pod without such volumes, after unmounting, or after closing', async () => {
    await volumes.mountAll(podWith([{ name: 'e', emptyDir: {} }]));
    expect(clock.pending).toBe(0);
    objects.configMaps.set('cm', configMap('cm', { a: '1' }));
    await volumes.mountAll(podWith([{ name: 'c', configMap: { name: 'cm' } }]));
    expect(clock.pending).toBe(1);
    await volumes.unmountAll(ref);
    expect(clock.pending).toBe(0);
  });

  test('tokens are renewed at 80 % of their life, and the old one serves while renewal fails', async () => {
    const cache = new TokenCache(objects, clock);
    const subject = pod({});
    const request = { expirationSeconds: 1000 };
    expect(await cache.token(subject, request)).toBe('token-1');
    clock.advance(799_999);
    expect(await cache.token(subject, request)).toBe('token-1');
    clock.advance(1);
    objects.failure = new Error('down');
    expect(await cache.token(subject, request)).toBe('token-1');
    clock.advance(200_000);
    await expect(cache.token(subject, request)).rejects.toThrow(
      'token ""/"demo"/1000 expired and refresh failed: down',
    );
    objects.failure = undefined;
    expect(await cache.token(subject, request)).toBe('token-2');
    objects.failure = new Error('serviceaccounts "x" not found');
    await expect(cache.token(subject, { ...request, audience: 'vault' })).rejects.toThrow(
      'failed to fetch token: serviceaccounts "x" not found',
    );
    objects.failure = undefined;
    expect(await cache.token(subject, { ...request, audience: 'other' })).toBe('token-3');
  });

  test.each([
    [3_600_000, 2_880_000],
    [7 * 24 * 3_600_000, 24 * 3_600_000],
  ])('a token of %d ms is renewed after %d ms', (life, renewal) => {
    expect(renewalTime(epochMs(5), epochMs(5 + life))).toBe(5 + renewal);
  });
});

describe('unmounting', () => {
  test('takes everything down from disk and the mount table alone', async () => {
    await volumes.mountAll(
      podWith([
        { name: 's', secret: { secretName: 'x', optional: true } },
        { name: 'e', emptyDir: {} },
      ]),
    );
    await writeFile(join(dirOf('empty-dir', 'e'), 'file'), 'x');
    await mkdir(join(rootDir, 'pods/uid-2'));
    volumes.close();
    volumes = restarted();
    expect([...(await volumes.listPods())].sort()).toEqual(['uid-1', 'uid-2']);
    await volumes.unmountAll(ref);
    expect(mounter.entries).toEqual([]);
    expect(await volumes.listPods()).toEqual(['uid-2']);
    await volumes.unmountAll(ref);
  });

  test('leaves what containers wrote when they ended, where that is asked for', async () => {
    await volumes.mountAll(podWith([{ name: 'e', emptyDir: {} }]));
    const ends = join(rootDir, 'pods/uid-1/containers/web');
    await mkdir(ends, { recursive: true });
    await writeFile(join(ends, '1234'), 'last words');
    await volumes.unmountAll(ref, { keepsEnds: true });
    expect(await readdir(join(rootDir, 'pods/uid-1'))).toEqual(['containers']);
    expect(await readFile(join(ends, '1234'), 'utf8')).toBe('last words');
    await volumes.unmountAll(ref);
    expect(await volumes.listPods()).toEqual([]);
    await volumes.mountAll(podWith([{ name: 'e', emptyDir: {} }]));
    await volumes.unmountAll(ref, { keepsEnds: true });
    expect(await volumes.listPods()).toEqual([]);
  });

  test('keeps the directory of a pod that has logs, and nothing in it', async () => {
    const logs = new Set(['uid-1']);
    volumes.close();
    volumes = restarted({ hasLogs: ({ uid }) => logs.has(uid) });
    await volumes.mountAll(podWith([{ name: 'e', emptyDir: {} }]));
    await mkdir(join(rootDir, 'pods/uid-1/containers/web'), { recursive: true });
    await volumes.unmountAll(ref);
    expect(await readdir(join(rootDir, 'pods/uid-1'))).toEqual([]);
    // Nor does it make one.
    logs.add('uid-2');
    await volumes.unmountAll({ ...ref, uid: 'uid-2' as PodUID });
    logs.clear();
    await volumes.unmountAll(ref);
    expect(await volumes.listPods()).toEqual([]);
  });

  test('deletes nothing behind a mount that is busy, and works once it is free', async () => {
    await volumes.mountAll(podWith([{ name: 's', secret: { secretName: 'x', optional: true } }]));
    const path = dirOf('secret', 's');
    await writeFile(join(path, 'behind'), 'x');
    mounter.busy.add(path);
    await expect(volumes.unmountAll(ref)).rejects.toThrow(
      /UnmountVolume.TearDown failed for pod demo\/web: .*target is busy/,
    );
    expect(await readFile(join(path, 'behind'), 'utf8')).toBe('x');
    mounter.busy.clear();
    await volumes.unmountAll(ref);
    expect(await volumes.listPods()).toEqual([]);
  });

  test('does not touch the mounts of a pod whose uid begins alike', async () => {
    const other = join(rootDir, 'pods/uid-10/volumes/x');
    mounter.entries.push(entry(other));
    await volumes.unmountAll(ref);
    expect(mounter.entries.map(({ path }) => path)).toEqual([other]);
  });

  test('no pods directory means no pods', async () => {
    expect(await volumes.listPods()).toEqual([]);
  });
});
