import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { FollowedObjects } from '../../../../agent/ports/api.ts';
import type { PodUID } from '../../../../agent/ports/runtime.ts';
import type { VolumeManager } from '../../../../agent/volumes/options.ts';
import { createPodVolumes } from '../../../../agent/volumes/pod-volumes.ts';
import type { Pod } from '../../../../client/types.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { configMap, FakeMounter, FakeObjects, FakeRecorder, ManualClock, podWith } from './support.ts';

/** Emits changes only when a test does. */
class Reported implements FollowedObjects {
  readonly live = true;
  readonly pods = new Map<string, { pod: Pod; onChange: () => void }>();
  follow(pod: Pod, onChange: () => void) {
    this.pods.set(pod.metadata.uid, { pod, onChange });
  }
  release(uid: string) {
    this.pods.delete(uid);
  }
  change() {
    for (const { onChange } of this.pods.values()) onChange();
  }
}

const ref = { uid: 'uid-1' as PodUID, namespace: 'demo', name: 'web' };
let rootDir = '';
let clock: ManualClock;
let objects: FakeObjects;
let followed: Reported;
let recorder: FakeRecorder;
let volumes: VolumeManager;
beforeEach(async () => {
  rootDir = await mkdtemp(join(tmpdir(), 'nodelet-volumes-live-'));
  clock = new ManualClock();
  objects = new FakeObjects(clock);
  followed = new Reported();
  recorder = new FakeRecorder();
  const [mounter, tracer] = [new FakeMounter(), new Tracer()];
  volumes = createPodVolumes({ rootDir, mounter, objects, tracer, clock, recorder, followed, random: () => 0 });
});
afterEach(async () => {
  volumes.close();
  await rm(rootDir, { recursive: true, force: true });
});

const dirOf = (plugin: string, name: string) => join(rootDir, 'pods/uid-1/volumes', `kubernetes.io~${plugin}`, name);
const text = (plugin: string, name: string, file: string) => readFile(join(dirOf(plugin, name), file), 'utf8');
const ofConfigMap = podWith([{ name: 'c', configMap: { name: 'cm' } }]);
const withToken = podWith([
  { name: 't', projected: { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 1000 } }] } },
]);

describe('a reported change', () => {
  test('reaches the files without any time passing', async () => {
    objects.configMaps.set('cm', configMap('cm', { a: '1' }));
    await volumes.mountAll(ofConfigMap);
    expect(clock.pending).toBe(0);
    objects.configMaps.set('cm', configMap('cm', { a: '2' }));
    followed.change();
    await vi.waitFor(async () => expect(await text('configmap', 'c', 'a')).toBe('2'));
    expect(clock.pending).toBe(0);
  });

  test('while the volumes are being set up is not lost', async () => {
    objects.configMaps.set('cm', configMap('cm', { a: '1' }));
    const mounting = volumes.mountAll(ofConfigMap);
    // What was read is the old one already; the change is reported before the files are there.
    await Promise.resolve();
    objects.configMaps.set('cm', configMap('cm', { a: '2' }));
    followed.change();
    await mounting;
    await vi.waitFor(async () => expect(await text('configmap', 'c', 'a')).toBe('2'));
  });

  test('that takes a required object away is an event, and the files stay as they were', async () => {
    objects.configMaps.set('cm', configMap('cm', { a: '1' }));
    await volumes.mountAll(ofConfigMap);
    objects.configMaps.delete('cm');
    followed.change();
    await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
    expect(recorder.events[0]).toContain('MountVolume.SetUp failed for volume "c" : configmap "cm" not found');
    expect(await text('configmap', 'c', 'a')).toBe('1');
  });

  test('that takes an optional object away empties the volume', async () => {
    objects.configMaps.set('cm', configMap('cm', { a: '1' }));
    await volumes.mountAll(podWith([{ name: 'c', configMap: { name: 'cm', optional: true } }]));
    objects.configMaps.delete('cm');
    followed.change();
    await vi.waitFor(async () =>
      expect((await readdir(dirOf('configmap', 'c'))).filter((name) => !name.startsWith('..'))).toEqual([]),
    );
    expect(recorder.events).toEqual([]);
  });

  test('that brings what a pod waits for ends the pause before the next try', async () => {
    const mounting = volumes.mountAll(ofConfigMap);
    await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
    for (const events of [2, 3]) {
      // Another change, and still not the object.
      followed.change();
      await vi.waitFor(() => expect(recorder.events).toHaveLength(events));
    }
    objects.configMaps.set('cm', configMap('cm', { a: '1' }));
    followed.change();
    await mounting;
    expect(await text('configmap', 'c', 'a')).toBe('1');
    expect(recorder.events).toHaveLength(3);
  });

  test('for a pod that is gone does nothing, and the pod is no longer followed', async () => {
    objects.configMaps.set('cm', configMap('cm', { a: '1' }));
    await volumes.mountAll(ofConfigMap);
    const { onChange } = followed.pods.get('uid-1') ?? { onChange: () => undefined };
    await volumes.unmountAll(ref);
    expect([...followed.pods]).toEqual([]);
    onChange();
    expect(await volumes.listPods()).toEqual([]);
  });
});

describe('a volume that is up while another one of its pod is not', () => {
  const both = podWith([
    { name: 'c', configMap: { name: 'cm' } },
    { name: 'slow', configMap: { name: 'missing' } },
  ]);
  const until = (file: string, content: string) =>
    vi.waitFor(async () => expect(await text('configmap', 'c', file)).toBe(content));
  const edit = (value: string) => objects.configMaps.set('cm', configMap('cm', { a: value }));

  test('shows a reported change', async () => {
    edit('1');
    const mounting = volumes.mountAll(both);
    await until('a', '1');
    await vi.waitFor(() => expect(recorder.events).toHaveLength(1));
    edit('2');
    followed.change();
    await until('a', '2');
    objects.configMaps.set('missing', configMap('missing', {}));
    followed.change();
    await mounting;
  });

  test('shows an unreported change after the resync, which the other one does not delay', async () => {
    const [mounter, tracer] = [new FakeMounter(), new Tracer()];
    volumes = createPodVolumes({ rootDir, mounter, objects, tracer, clock, recorder, random: () => 0 });
    edit('1');
    const mounting = volumes.mountAll(both);
    await until('a', '1');
    // The resync, the other one's next try, and the limit of all.
    await vi.waitFor(() => expect(clock.pending).toBe(3));
    objects.configMaps.set('missing', configMap('missing', {}));
    clock.advance(59_000);
    await mounting;
    edit('2');
    clock.advance(1_000);
    await until('a', '2');
  });

  test('shows a change that comes while the other one is read, and so does that one', async () => {
    edit('1');
    await volumes.mountAll(ofConfigMap);
    objects.configMaps.set('missing', configMap('missing', { b: '1' }));
    const mounting = volumes.mountAll(both);
    // The old one is read already.
    await Promise.resolve();
    objects.configMaps.set('missing', configMap('missing', { b: '2' }));
    edit('2');
    followed.change();
    await until('a', '2');
    await mounting;
    await vi.waitFor(async () => expect(await text('configmap', 'slow', 'b')).toBe('2'));
  });
});

describe('a newer version of the pod', () => {
  const fields = ['metadata.labels', 'metadata.annotations'];
  const items = fields.map((fieldPath) => ({ path: fieldPath, fieldRef: { fieldPath } }));
  const resources = [{ path: 'cpu', resourceFieldRef: { containerName: 'c', resource: 'limits.cpu' } }];
  const subject = podWith([{ name: 'd', downwardAPI: { items: [...items, ...resources] } }]);
  const withMeta = (metadata: Partial<Pod['metadata']>) => ({
    ...subject,
    metadata: { ...subject.metadata, ...metadata },
  });
  const withCpu = (cpu: string) => ({
    ...subject,
    spec: {
      ...subject.spec,
      containers: subject.spec.containers.map((c) => ({ ...c, resources: { limits: { cpu } } })),
    },
  });

  test.each([
    ['labels', withMeta({ labels: { x: '2' } }), 'metadata.labels', 'x="2"'],
    ['annotations', withMeta({ annotations: { y: '3' } }), 'metadata.annotations', 'y="3"'],
    ['resources', withCpu('7'), 'cpu', '7'],
  ])('with other %s shows in the files', async (_, newer, file, content) => {
    await volumes.mountAll(withCpu('1'));
    volumes.podChanged?.(newer);
    await vi.waitFor(async () => expect(await text('downward-api', 'd', file)).toBe(content));
  });

  test('is followed with what it refers to now', async () => {
    await volumes.mountAll(subject);
    const newer = withMeta({ resourceVersion: '2' });
    volumes.podChanged?.(newer);
    expect(followed.pods.get('uid-1')?.pod).toBe(newer);
  });

  test('of a pod that is not mounted is not followed', () => {
    volumes.podChanged?.(subject);
    expect([...followed.pods]).toEqual([]);
  });
});

describe('tokens', () => {
  test('are renewed at 80 % of their life, by one timer and nothing before', async () => {
    await volumes.mountAll(withToken);
    clock.advance(799_999);
    await Promise.resolve();
    expect(objects.tokenRequests).toHaveLength(1);
    clock.advance(1);
    await vi.waitFor(async () => expect(await text('projected', 't', 'token')).toBe('token-2'));
    await vi.waitFor(() => expect(clock.pending).toBe(1));
  });

  test('that cannot be renewed stay while they last, and are asked for once a minute', async () => {
    await volumes.mountAll(withToken);
    objects.failure = new Error('down');
    clock.advance(800_000);
    await vi.waitFor(() => expect(clock.pending).toBe(1));
    expect(await text('projected', 't', 'token')).toBe('token-1');
    objects.failure = undefined;
    clock.advance(59_999);
    expect(objects.tokenRequests).toHaveLength(1);
    clock.advance(1);
    await vi.waitFor(async () => expect(await text('projected', 't', 'token')).toBe('token-2'));
  });
});
