// What containers get of a pod's volumes: host paths for their mounts, subPaths and what is refused.

import { mkdtemp, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { VolumeError } from '../../../../agent/ports/node.ts';
import type { VolumeManager } from '../../../../agent/volumes/options.ts';
import { createPodVolumes } from '../../../../agent/volumes/pod-volumes.ts';
import { type Span, Tracer } from '../../../../lib/trace.ts';
import { FakeMounter, FakeObjects, FakeRecorder, ManualClock, pod } from './support.ts';

let rootDir = '';
let mounter: FakeMounter;
let volumes: VolumeManager;
let spans: Span[];
beforeEach(async () => {
  rootDir = await mkdtemp(join(tmpdir(), 'nodelet-volumes-mounts-'));
  mounter = new FakeMounter();
  spans = [];
  const clock = new ManualClock();
  const tracer = new Tracer();
  tracer.subscribe((span) => spans.push(span));
  volumes = createPodVolumes({
    rootDir,
    mounter,
    objects: new FakeObjects(clock),
    tracer,
    clock,
    recorder: new FakeRecorder(),
    allocatable: () => ({ memory: '1Gi' }),
    random: () => 0,
  });
});
afterEach(async () => {
  volumes.close();
  await rm(rootDir, { recursive: true, force: true });
});

const dirOf = (plugin: string, name: string) => join(rootDir, 'pods/uid-1/volumes', `kubernetes.io~${plugin}`, name);

describe('a container’s mounts', () => {
  test('are host paths, in order, read-only where the volume is', async () => {
    const volumeMounts = [
      { name: 'e', mountPath: '/e' },
      { name: 's', mountPath: '/s' },
      { name: 'h', mountPath: '/h', readOnly: true },
    ];
    const container = { name: 'c', image: 'i', volumeMounts };
    const subject = pod({
      containers: [container],
      volumes: [
        { name: 'e', emptyDir: {} },
        { name: 's', secret: { secretName: 'x', optional: true } },
        { name: 'h', hostPath: { path: '/etc' } },
      ],
    });
    await volumes.mountAll(subject);
    const { mounts, devices } = await volumes.containerMounts(subject, container, []);
    expect(devices).toEqual([]);
    expect(mounts).toMatchObject([
      { hostPath: dirOf('empty-dir', 'e'), containerPath: '/e', readOnly: false, selinuxRelabel: true },
      { hostPath: dirOf('secret', 's'), containerPath: '/s', readOnly: true },
      { hostPath: '/etc', containerPath: '/h', readOnly: true, selinuxRelabel: false },
    ]);
  });

  test('with a subPath are bound once and reused', async () => {
    const container = { name: 'c', image: 'i', volumeMounts: [{ name: 'e', mountPath: '/e', subPathExpr: '$(P)/x' }] };
    const subject = pod({ containers: [container], volumes: [{ name: 'e', emptyDir: {} }] });
    await volumes.mountAll(subject);
    const { mounts } = await volumes.containerMounts(subject, container, [{ name: 'P', value: 'web' }]);
    const target = join(rootDir, 'pods/uid-1/volume-subpaths/e/c/0');
    expect(mounts[0]?.hostPath).toBe(target);
    expect((await stat(join(dirOf('empty-dir', 'e'), 'web/x'))).isDirectory()).toBe(true);
    expect(mounter.calls).toHaveLength(1);
    expect(mounter.calls[0]).toMatch(new RegExp(`^mount {2}bind /proc/${process.pid}/fd/\\d+ ${target}$`));
  });

  test.each([
    ['prepare subPath', 'evil'],
    ['create subPath directory', 'evil/none/x'],
    ['create subPath directory', 'nowhere/x'],
  ])('that lead outside fail to %s, and only the trace says what is there', async (what, subPath) => {
    const container = { name: 'c', image: 'i', volumeMounts: [{ name: 'e', mountPath: '/e', subPath }] };
    const subject = pod({ containers: [container], volumes: [{ name: 'e', emptyDir: {} }] });
    await volumes.mountAll(subject);
    await symlink('/etc', join(dirOf('empty-dir', 'e'), 'evil'));
    await symlink('/nothing-here', join(dirOf('empty-dir', 'e'), 'nowhere'));
    const failed = new VolumeError('e', `failed to ${what} for volumeMount "e" of container "c"`);
    await expect(volumes.containerMounts(subject, container, [])).rejects.toThrow(failed);
    const span = spans.find(({ name }) => name === 'PrepareSubPath');
    expect(span).toMatchObject({ outcome: 'error', attributes: { volume: 'e', container: 'c', subPath } });
    expect(span?.error).toMatch(/subpath/);
  });

  test('a block device or an unknown volume is a VolumeError', async () => {
    const subject = pod({});
    const device = { name: 'c', image: 'i', volumeDevices: [{ name: 'b', devicePath: '/dev/b' }] };
    await expect(volumes.containerMounts(subject, device, [])).rejects.toThrow(
      'cannot find volume "b" to pass into container "c"',
    );
    const lost = { name: 'c', image: 'i', volumeMounts: [{ name: 'v', mountPath: '/v' }] };
    await expect(volumes.containerMounts(subject, lost, [])).rejects.toBeInstanceOf(VolumeError);
  });
});
