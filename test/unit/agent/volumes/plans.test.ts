// The plans of volume types, row by row: what is mounted from where with which options, and what is refused with which
// words.

import { chownSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makeMount, planMount } from '../../../../agent/volumes/container-mounts.ts';
import { emptyDirVolume } from '../../../../agent/volumes/empty-dir.ts';
import { hugePagesOption } from '../../../../agent/volumes/huge-pages.ts';
import { imageVolumeProblem } from '../../../../agent/volumes/image.ts';
import { knowsNoswap } from '../../../../agent/volumes/linux-mounter.ts';
import { hasOtherUsers, localVolume } from '../../../../agent/volumes/local.ts';
import { nfsVolume } from '../../../../agent/volumes/nfs.ts';
import { applyFsGroup, needsChange } from '../../../../agent/volumes/ownership.ts';
import { prepareVolume } from '../../../../agent/volumes/registry.ts';
import { TokenCache } from '../../../../agent/volumes/tokens.ts';
import type { SourceVolume } from '../../../../agent/volumes/volume-type.ts';
import { groupMode } from '../../../../lib/change-group.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { Gate } from '../../../../lib/gate.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { entry, FakeMounter, FakeObjects, FakeRecorder, pod } from './support.ts';

const input = (volume: SourceVolume, more: object = {}) => ({
  pod: pod({}),
  volume,
  podDir: '/r/pods/uid-1',
  allocatable: {},
  ...more,
});
const requesting = (...names: string[]) =>
  pod({
    containers: [{ name: 'c', image: 'i', resources: { requests: Object.fromEntries(names.map((n) => [n, '4Mi'])) } }],
  });

describe('an emptyDir of huge pages', () => {
  test.each([
    ['HugePages', ['hugepages-2Mi'], 'pagesize=2Mi'],
    ['HugePages', ['cpu', 'hugepages-1Gi'], 'pagesize=1Gi'],
    ['HugePages-2Mi', ['hugepages-1Gi', 'hugepages-2Mi'], 'pagesize=2Mi'],
    ['HugePages-2048Ki', ['hugepages-2Mi'], 'pagesize=2Mi'],
  ])('of medium %s in a pod that requests %j is mounted with %s', (medium, names, option) => {
    expect(hugePagesOption(medium, requesting(...names))).toBe(option);
  });

  test('may be requested by an init container alone, or by the pod as a whole', () => {
    const [container] = requesting('hugepages-2Mi').spec.containers;
    expect(hugePagesOption('HugePages', pod({ initContainers: container === undefined ? [] : [container] }))).toBe(
      'pagesize=2Mi',
    );
    const whole = pod({});
    Object.assign(whole.spec, { resources: { requests: { 'hugepages-1Gi': '1Gi' } } });
    expect(hugePagesOption('HugePages', whole)).toBe('pagesize=1Gi');
  });

  test.each([
    ['HugePages', [], 'medium HugePages: hugePages storage requested, but there is no resource request for huge pages'],
    [
      'HugePages-1Gi',
      ['hugepages-2Mi'],
      'medium HugePages-1Gi: hugePages storage requested, but there is no resource request for huge pages',
    ],
    [
      'HugePages',
      ['hugepages-2Mi', 'hugepages-1Gi'],
      "medium: HugePages can't be used if container requests multiple huge page sizes",
    ],
  ])('of medium %s in a pod that requests %j is refused', (medium, names, message) => {
    expect(() => hugePagesOption(medium, requesting(...names))).toThrow(message);
  });

  test('is a hugetlbfs, mounted once', async () => {
    const root = mkdtempSync(join(tmpdir(), 'nodelet-volumes-plans-'));
    try {
      const mounter = new FakeMounter();
      const subject = requesting('hugepages-2Mi');
      const volume = { name: 'h', emptyDir: { medium: 'HugePages' } };
      const plan = emptyDirVolume.plan({ pod: subject, volume, podDir: root, allocatable: {} });
      const objects = new FakeObjects(systemClock);
      const tokens = new TokenCache(objects, systemClock);
      const recorder = new FakeRecorder();
      for (let i = 0; i < 2; i++) {
        await emptyDirVolume.mount(plan, subject, {
          mounter,
          objects,
          clock: systemClock,
          tokens,
          recorder,
          tracer: new Tracer(),
          bigContents: new Gate(1),
        });
      }
      expect(mounter.calls).toEqual([`mount hugetlbfs pagesize=2Mi nodev ${plan.path}`]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});

test('an emptyDir of an unknown medium is refused', () => {
  expect(() => emptyDirVolume.plan(input({ name: 'e', emptyDir: { medium: 'Tape' } }))).toThrow(
    'unknown storage medium "Tape"',
  );
});

describe('an nfs volume', () => {
  const nfs = { server: 'files.example', path: '/exports/a' };
  const place = '/r/pods/uid-1/volumes/kubernetes.io~nfs/n';
  test.each<[string, object, object, string, boolean, readonly string[]]>([
    ['as it is', {}, {}, 'files.example:/exports/a', false, []],
    ['read-only', { readOnly: true }, {}, 'files.example:/exports/a', true, ['ro']],
    ['of a server with an IPv6 address', { server: 'fd00::1' }, {}, '[fd00::1]:/exports/a', false, []],
    ['of an address in brackets already', { server: '[fd00::1]' }, {}, '[fd00::1]:/exports/a', false, []],
    [
      'of a PersistentVolume with mount options, claimed read-only',
      {},
      { mountOptions: ['nfsvers=4.1', 'hard', 'ro'], readOnly: true },
      'files.example:/exports/a',
      true,
      ['nfsvers=4.1', 'hard', 'ro'],
    ],
  ])('%s', (_, source, more, from, readOnly, options) => {
    const plan = nfsVolume.plan(input({ name: 'n', nfs: { ...nfs, ...source } }, more));
    expect(plan).toEqual({ path: place, source: from, readOnly, managed: false, options });
  });

  test('that cannot be mounted fails in mount’s words, and leaves no directory that could be taken for it', async () => {
    const root = mkdtempSync(join(tmpdir(), 'nodelet-volumes-plans-'));
    try {
      const plan = nfsVolume.plan({ ...input({ name: 'n', nfs }), podDir: root });
      const mounter = new FakeMounter();
      const objects = new FakeObjects(systemClock);
      const tokens = new TokenCache(objects, systemClock);
      const host = {
        mounter,
        objects,
        clock: systemClock,
        tokens,
        recorder: new FakeRecorder(),
        tracer: new Tracer(),
        bigContents: new Gate(1),
      };
      mounter.mount = async () => {
        expect(lstatSync(plan.path).isDirectory()).toBe(true);
        throw new Error('mount failed: exit status 32, output: Connection refused');
      };
      await expect(nfsVolume.mount(plan, pod({}), host)).rejects.toThrow('Connection refused');
      expect(lstatSync(plan.path, { throwIfNoEntry: false })).toBeUndefined();
      const works = new FakeMounter();
      await nfsVolume.mount(plan, pod({}), { ...host, mounter: works });
      works.entries = works.entries.map((entry) => ({ ...entry, fsType: 'nfs4' }));
      await nfsVolume.mount(plan, pod({}), { ...host, mounter: works });
      expect(works.calls).toEqual([`mount nfs  files.example:/exports/a ${plan.path}`]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  test.each([
    ['', '/a', 'nfs server "" is not a host'],
    ['-o', '/a', 'nfs server "-o" is not a host'],
    ['s', 'a', 'nfs path "a" must be absolute'],
  ])('of server "%s" and path "%s" is refused', (server, path, message) => {
    expect(() => nfsVolume.plan(input({ name: 'n', nfs: { server, path } }))).toThrow(message);
  });
});

describe('a local volume', () => {
  const own = '/r/pods/a/volumes/kubernetes.io~local-volume/pv';
  const at = { podsDir: '/r/pods', path: own };
  const root = entry('/', { device: '8:1' });
  const disk = entry('/mnt', { device: '8:2' });
  const mine = entry(own, { device: '8:2', root: '/d' });
  const other = { path: '/r/pods/b/volumes/kubernetes.io~local-volume/pv', device: '8:2', root: '/d' };
  test.each<[string, object | undefined, boolean]>([
    ['nobody', undefined, false],
    ['another pod', {}, true],
    ['somebody else', { path: '/home/x' }, false],
    ['a pod of another directory', { root: '/e' }, false],
    ['a pod of another disk', { device: '8:1' }, false],
  ])('that %s has, too', (_, more, shared) => {
    const others = more === undefined ? [] : [entry('', { ...other, ...more })];
    expect(hasOtherUsers([root, disk, mine, ...others], '/mnt/d', at)).toBe(shared);
  });

  test.each([
    ['relative', 'local volume path "relative" is not absolute'],
    ['/a/../b', "local volume path /a/../b must not contain '..'"],
  ])('at %s is refused', (path, message) => {
    expect(() => localVolume.plan(input({ name: 'pv', local: { path } }))).toThrow(message);
  });

  test('is bound into the pod, and a device mounted in a place of the volume’s own', () => {
    const more = { mountOptions: ['noatime'], readOnly: true };
    expect(localVolume.plan(input({ name: 'pv', local: { path: '/dev/sdb', fsType: 'xfs' } }, more))).toEqual({
      path: '/r/pods/uid-1/volumes/kubernetes.io~local-volume/pv',
      name: 'pv',
      podsDir: '/r/pods',
      readOnly: true,
      managed: false,
      source: '/dev/sdb',
      fsType: 'xfs',
      globalPath: '/r/plugins/kubernetes.io/local-volume/mounts/pv',
      mountOptions: ['noatime'],
      gid: undefined,
    });
  });
});

describe('two pods that have one local volume', () => {
  /** A mount takes a while, and is in the table when it is over. */
  class SlowMounter extends FakeMounter {
    readonly underWay: PromiseWithResolvers<void>[] = [];
    mostAtOnce = 0;
    override async mount(request: Parameters<FakeMounter['mount']>[0]) {
      const over = Promise.withResolvers<void>();
      this.underWay.push(over);
      this.mostAtOnce = Math.max(this.mostAtOnce, this.underWay.length);
      await over.promise;
      await super.mount(request);
      this.entries = this.entries.map((each) =>
        each.path === request.target ? { ...each, device: '8:1', root: request.source } : each,
      );
    }
    end(): void {
      this.underWay.shift()?.resolve();
    }
  }

  test('are served one after the other: the second bind sees that the volume is in use', async () => {
    const root = mkdtempSync(join(tmpdir(), 'nodelet-volumes-plans-'));
    try {
      const source = join(root, 'disk');
      mkdirSync(source, { mode: 0o700 });
      const mounter = new SlowMounter();
      mounter.entries = [entry('/', { device: '8:1', root: '/' })];
      const recorder = new FakeRecorder();
      const gid = process.getgid?.() ?? 0;
      const mount = (uid: string, fsGroup: number): Promise<void> => {
        const subject = pod({ securityContext: { fsGroup } }, { uid });
        const podDir = join(root, 'pods', uid);
        const volume = { name: 'pv', local: { path: source } };
        const plan = localVolume.plan({ pod: subject, volume, podDir, allocatable: {} });
        const objects = new FakeObjects(systemClock);
        const tokens = new TokenCache(objects, systemClock);
        const host = {
          mounter,
          objects,
          clock: systemClock,
          tokens,
          recorder,
          tracer: new Tracer(),
          bigContents: new Gate(1),
        };
        return localVolume.mount(plan, subject, host);
      };
      const before = lstatSync(source);
      // The first pod asks for the group that the directory has, the second for another one.
      const both = [mount('uid-1', gid), mount('uid-2', gid + 1)];
      for (let bound = 0; bound < 2; bound++) {
        await expect.poll(() => mounter.underWay.length).toBeGreaterThan(0);
        mounter.end();
      }
      await Promise.all(both);
      expect(mounter.mostAtOnce).toBe(1);
      expect(recorder.events).toEqual([
        `AlreadyMountedVolume: The requested fsGroup is ${gid + 1}, but the volume pv has GID ${gid}. The volume may not be shareable.`,
      ]);
      expect(lstatSync(source).gid).toBe(before.gid);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});

describe('an image volume', () => {
  test.each([
    ['containerd', 'v2.1.0', true],
    ['containerd', '2.4.2', true],
    ['containerd', 'v2.0.5', false],
    ['containerd', '1.6.20~ds1', false],
    ['cri-o', '1.31.0', true],
    ['cri-o', '1.30.9', false],
    ['another', '0.1.0', true],
    ['containerd', 'devel', true],
  ])('with %s %s can be had: %s', (name, version, able) => {
    const problem = imageVolumeProblem({ name, version });
    if (able) expect(problem).toBeUndefined();
    else expect(problem).toContain(`${name} ${version} cannot mount images`);
  });

  test('is the runtime’s to mount, read-only, at the subPath in the image', async () => {
    const volume = { name: 'i', image: { reference: 'example.org/data:1', pullPolicy: 'Never' } };
    const prepared = prepareVolume(input(volume));
    expect(prepared.plan).toMatchObject({ readOnly: true, managed: false, image: volume.image });
    const at = { podDir: '/r/pods/uid-1', container: 'c' };
    const mount = { name: 'i', mountPath: '/data', subPath: 'sub/dir' };
    const plan = planMount(mount, 0, at, new Map([['i', prepared]]), [], false);
    const mounter = new FakeMounter();
    expect(await makeMount(plan, mounter, new Tracer())).toMatchObject({
      hostPath: '',
      containerPath: '/data',
      readOnly: true,
      image: { reference: 'example.org/data:1', pullPolicy: 'Never', subPath: 'sub/dir' },
    });
    expect(mounter.calls).toEqual([]);
  });

  test('is refused with the kubelet’s words and the reason where the runtime cannot', async () => {
    const prepared = prepareVolume(input({ name: 'i', image: { reference: 'a' } }));
    const objects = new FakeObjects(systemClock);
    const tokens = new TokenCache(objects, systemClock);
    const host = {
      mounter: new FakeMounter(),
      objects,
      clock: systemClock,
      tokens,
      recorder: new FakeRecorder(),
      tracer: new Tracer(),
      bigContents: new Gate(1),
    };
    const imageVolumeProblem = async () => 'containerd 1.6.20 cannot mount images';
    await expect(prepared.mount(pod({}), { ...host, imageVolumeProblem })).rejects.toThrow(
      'no volume plugin matched: containerd 1.6.20 cannot mount images',
    );
    await prepared.mount(pod({}), { ...host, imageVolumeProblem: async () => undefined });
  });

  test('without a reference is refused', () => {
    expect(() => prepareVolume(input({ name: 'i', image: {} }))).toThrow('image volume without a reference');
  });
});

describe('fsGroup', () => {
  test.each([
    [0o644, false, 0o664],
    [0o600, false, 0o660],
    [0o4755, false, 0o4775],
    [0o755, true, 0o2775],
    [0o1777, true, 0o3777],
    [0o700, true, 0o2770],
  ])('turns mode %o (directory: %s) into %o', (mode, isDirectory, wanted) => {
    expect(groupMode(mode, isDirectory)).toBe(wanted);
  });

  test.each<[string | undefined, number, number, boolean]>([
    [undefined, 7, 0o2770, true],
    ['Always', 7, 0o2770, true],
    ['OnRootMismatch', 7, 0o2770, false],
    ['OnRootMismatch', 7, 0o42775, false],
    ['OnRootMismatch', 8, 0o2770, true],
    ['OnRootMismatch', 7, 0o770, true],
    ['OnRootMismatch', 7, 0o2750, true],
  ])('with policy %s and a root of group %i and mode %o: change %s', (policy, gid, mode, change) => {
    expect(needsChange({ gid, mode }, 7, policy)).toBe(change);
  });

  test('reaches every file below, and follows no link', async () => {
    const root = mkdtempSync(join(tmpdir(), 'nodelet-volumes-plans-'));
    try {
      const gid = process.getgid?.() ?? 0;
      mkdirSync(join(root, 'v/sub/deep'), { recursive: true, mode: 0o700 });
      for (const name of ['v/a', 'v/sub/b', 'v/sub/deep/c', 'outside'])
        writeFileSync(join(root, name), '', { mode: 0o600 });
      symlinkSync('../outside', join(root, 'v/link'));
      chownSync(join(root, 'outside'), process.getuid?.() ?? 0, gid);
      await applyFsGroup(join(root, 'v'), { gid });
      const mode = (name: string) => lstatSync(join(root, name)).mode & 0o7777;
      expect(['v', 'v/sub', 'v/sub/deep'].map(mode)).toEqual([0o2770, 0o2770, 0o2770]);
      expect(['v/a', 'v/sub/b', 'v/sub/deep/c'].map(mode)).toEqual([0o660, 0o660, 0o660]);
      expect(mode('outside')).toBe(0o600);
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  test('is done to the root last, so that a walk that was interrupted is repeated', async () => {
    const root = mkdtempSync(join(tmpdir(), 'nodelet-volumes-plans-'));
    try {
      const gid = process.getgid?.() ?? 0;
      // More than one turn's worth, some in a directory of their own.
      mkdirSync(join(root, 'sub'));
      const names = Array.from({ length: 600 }, (_, i) => (i % 2 === 0 ? `${i}` : `sub/${i}`));
      for (const name of names) writeFileSync(join(root, name), '', { mode: 0o600 });
      const done = (): number => names.filter((name) => (lstatSync(join(root, name)).mode & 0o777) === 0o660).length;
      const mustRepeat = (): boolean => needsChange(lstatSync(root), gid, 'OnRootMismatch');
      const walk = applyFsGroup(root, { gid, policy: 'OnRootMismatch' });
      // As far as its first turn goes: a crash here leaves some files changed, and the next walk is not left out.
      expect(done()).toBeGreaterThan(0);
      expect(done()).toBeLessThan(names.length);
      expect(mustRepeat()).toBe(true);
      await walk;
      expect([done(), mustRepeat()]).toEqual([names.length, false]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  test('leaves the event loop its turns in a big tree', async () => {
    const root = mkdtempSync(join(tmpdir(), 'nodelet-volumes-plans-'));
    try {
      for (let i = 0; i < 600; i++) writeFileSync(join(root, String(i)), '');
      let turns = 0;
      const counting = setInterval(() => turns++, 0);
      const tracer = new Tracer();
      let files = 0;
      tracer.subscribe(({ attributes }) => {
        files = Number(attributes['files']);
      });
      await applyFsGroup(root, { gid: process.getgid?.() ?? 0, tracer });
      clearInterval(counting);
      expect(turns).toBeGreaterThan(0);
      // With the directory itself.
      expect(files).toBe(601);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});

test.each([
  ['5.10.0-28-amd64', false],
  ['6.1.0-18-amd64', false],
  ['6.4.0', true],
  ['6.18.44', true],
  ['7.0', true],
  ['odd', false],
])('kernel %s keeps tmpfs out of swap when asked: %s', (kernel, known) => {
  expect(knowsNoswap(kernel)).toBe(known);
});
