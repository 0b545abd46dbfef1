import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  expandSubPath,
  planMount,
  type VolumeMount,
  volumeGroups,
  volumesInUse,
} from '../../../../agent/volumes/container-mounts.ts';
import { createLinuxMounter } from '../../../../agent/volumes/linux-mounter.ts';
import type { PreparedVolume } from '../../../../agent/volumes/registry.ts';
import { isShared, mountOf } from '../../../../agent/volumes/shared-root.ts';
import { unmountBelow, unmountRound } from '../../../../agent/volumes/unmount.ts';
import type { ExecResult } from '../../../../lib/exec.ts';
import { mountAt, mountsUnder, parseMountInfo } from '../../../../lib/mountinfo.ts';
import { type Span, Tracer } from '../../../../lib/trace.ts';
import { entry, FakeMounter, pod } from './support.ts';

const INFO = `22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw
36 28 0:31 / /var/my\\040dir/a\\134b rw,relatime shared:1 master:2 - tmpfs tmpfs rw,size=1024k
40 28 8:1 /data /mnt ro - ext4 /dev/sda1 rw
41 40 0:99 / /mnt rw - tmpfs none rw
`;

describe('mountinfo', () => {
  test('is read line by line, escapes undone', () => {
    const entries = parseMountInfo(INFO);
    expect(entries).toHaveLength(4);
    expect(entries[1]).toEqual({
      id: 36,
      parent: 28,
      device: '0:31',
      root: '/',
      rootDeleted: false,
      path: '/var/my dir/a\\b',
      options: ['rw', 'relatime'],
      optional: ['shared:1', 'master:2'],
      fsType: 'tmpfs',
      source: 'tmpfs',
      superOptions: ['rw', 'size=1024k'],
    });
    expect(entries[2]).toMatchObject({ root: '/data', options: ['ro'], optional: [], source: '/dev/sda1' });
  });
  test('the topmost of stacked mounts counts', () => {
    expect(mountAt(parseMountInfo(INFO), '/mnt')?.fsType).toBe('tmpfs');
    expect(mountAt(parseMountInfo(INFO), '/mn')).toBeUndefined();
  });
  test('mounts under a directory come newest first, siblings with the same prefix not among them', () => {
    const entries = ['/p/a', '/p/a/b', '/p/ab', '/p/a/c'].map((path) => entry(path));
    expect(mountsUnder(entries, '/p/a').map(({ path }) => path)).toEqual(['/p/a/c', '/p/a/b', '/p/a']);
  });
});

describe('the mount that a path is on', () => {
  const entries = [
    entry('/', { optional: ['shared:1'] }),
    entry('/var', { id: 2 }),
    entry('/var', { id: 3, optional: ['shared:5', 'master:1'] }),
    entry('/var/li', { id: 4 }),
  ];
  test.each([
    ['/var/lib/x', 3, true],
    ['/var', 3, true],
    ['/variable', 1, true],
    ['/var/li/x', 4, false],
  ])('%s', (path, id, shared) => {
    const found = mountOf(entries, path);
    expect(found?.id).toBe(id);
    expect(isShared(found)).toBe(shared);
  });
});

describe('unmounting a tree', () => {
  test('takes in each round only what carries no other mount', () => {
    expect(unmountRound(['/a', '/a/b', '/a/b/c', '/d'].map((path) => entry(path)))).toEqual(['/a/b/c', '/d']);
  });
  test('goes from the leaves to the root, stacked mounts too', async () => {
    const mounter = new FakeMounter();
    mounter.entries = ['/p', '/p/v', '/p/v', '/p/w', '/other'].map((path) => entry(path));
    await unmountBelow('/p', mounter);
    expect(mounter.entries.map(({ path }) => path)).toEqual(['/other']);
    expect(mounter.calls.at(-1)).toBe('umount /p');
  });
  test('of a directory that is reached through a link: the table has the path without one', async () => {
    const base = realpathSync(mkdtempSync(join(tmpdir(), 'nodelet-unmount-')));
    try {
      mkdirSync(join(base, 'real', 'pod'), { recursive: true });
      symlinkSync('real', join(base, 'link'));
      const mounter = new FakeMounter();
      mounter.entries = [join(base, 'real', 'pod', 'volume'), join(base, 'real', 'other')].map((path) => entry(path));
      await unmountBelow(join(base, 'link', 'pod'), mounter);
      expect(mounter.entries.map(({ path }) => path)).toEqual([join(base, 'real', 'other')]);
    } finally {
      rmSync(base, { recursive: true });
    }
  });
  test('stops at a busy one and says so', async () => {
    const mounter = new FakeMounter();
    mounter.entries = ['/p', '/p/v'].map((path) => entry(path));
    mounter.busy.add('/p/v');
    await expect(unmountBelow('/p', mounter)).rejects.toThrow('/p/v: target is busy');
    expect(mounter.calls).not.toContain('umount /p');
  });
  test('does not go on for ever when nothing changes', async () => {
    const mounter = new FakeMounter();
    mounter.entries = [entry('/p')];
    mounter.unmount = async () => undefined;
    await expect(unmountBelow('/p', mounter)).rejects.toThrow('/p is still mounted');
  });
});

describe('the Linux mounter', () => {
  const run = (result: Partial<ExecResult>, mountInfo = '/proc/self/mountinfo', kernelRelease = '6.1.0') => {
    const calls: string[][] = [];
    const spans: Span[] = [];
    const tracer = new Tracer();
    tracer.subscribe((span) => spans.push(span));
    const exec = async (file: string, args: readonly string[]): Promise<ExecResult> => {
      calls.push([file, ...args]);
      return { code: 0, signal: null, timedOut: false, stdout: '', stderr: '', ...result };
    };
    return { mounter: createLinuxMounter({ tracer, exec, mountInfo, kernelRelease }), calls, spans };
  };
  test('runs mount with literal paths and records a span', async () => {
    const { mounter, calls, spans } = run({});
    await mounter.mount({ fsType: 'tmpfs', source: 'tmpfs', target: '/t', options: ['size=5', 'ro'] });
    expect(calls).toEqual([['mount', '-n', '-c', '-t', 'tmpfs', '-o', 'size=5,ro', 'tmpfs', '/t']]);
    expect(spans).toMatchObject([{ kind: 'mount', name: 'mount tmpfs', outcome: 'ok', attributes: { target: '/t' } }]);
  });
  test('keeps tmpfs out of swap where the kernel can, and asks nothing of the kind for others', async () => {
    const { mounter, calls } = run({}, undefined, '6.4.0');
    await mounter.mount({ fsType: 'tmpfs', source: 'tmpfs', target: '/t', options: ['size=5'] });
    await mounter.mount({ fsType: 'ext4', source: '/dev/x', target: '/x' });
    expect(calls.map((call) => call.slice(3))).toEqual([
      ['-t', 'tmpfs', '-o', 'size=5,noswap', 'tmpfs', '/t'],
      ['-t', 'ext4', '/dev/x', '/x'],
    ]);
  });
  test('forces an NFS mount whose server is gone, and no other', async () => {
    const root = mkdtempSync(join(tmpdir(), 'nodelet-volumes-mounts-'));
    try {
      const table = join(root, 'mountinfo');
      const line = (path: string, type: string) => `36 28 0:31 / ${path} rw - ${type} s:/a rw\n`;
      writeFileSync(table, line('/n', 'nfs4') + line('/d', 'ext4'));
      const { mounter, calls } = run({ code: 32, stderr: 'target is busy.' }, table);
      await expect(mounter.unmount('/n')).rejects.toThrow('Unmounting arguments: -n -c -f /n\n');
      await expect(mounter.unmount('/d')).rejects.toThrow('Unmounting arguments: -n -c /d\n');
      expect(calls.filter((call) => call.includes('-f'))).toEqual([['umount', '-n', '-c', '-f', '/n']]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
  test('fails with the program’s own words', async () => {
    const { mounter, spans } = run({ code: 32, stderr: 'mount: /t: no such device.\n' });
    await expect(mounter.mount({ source: 'x', target: '/t' })).rejects.toThrow(
      'mount failed: exit status 32\nMounting command: mount\nMounting arguments: -n -c x /t\n' +
        'Output: mount: /t: no such device.',
    );
    expect(spans[0]?.outcome).toBe('error');
  });
  test('takes "not mounted" for unmounted', async () => {
    const { mounter } = run({ code: 32, stderr: 'umount: /nowhere/at/all: not mounted.' });
    await expect(mounter.unmount('/nowhere/at/all')).resolves.toBeUndefined();
  });
  test('a busy unmount is a failure', async () => {
    const { mounter } = run({ code: 32, stderr: 'umount: /proc: target is busy.' });
    await expect(mounter.unmount('/proc')).rejects.toThrow(
      'unmount failed: exit status 32\nUnmounting arguments: -n -c /proc\nOutput: umount: /proc: target is busy.',
    );
  });
});

describe('a container’s mounts', () => {
  const prepared = (readOnly: boolean, managed = true): PreparedVolume => ({
    name: 'v',
    plugin: 'kubernetes.io/x',
    plan: { path: '/vol', readOnly, managed },
    mount: async () => undefined,
    update: undefined,
  });
  const at = { podDir: '/root/pods/u', container: 'c' };
  const env = [
    { name: 'POD', value: 'web' },
    { name: 'EMPTY', value: '' },
    { name: 'UP', value: '../x' },
  ];
  const plan = (mount: Partial<VolumeMount>, readOnly = false, recursive = false) =>
    planMount({ name: 'v', mountPath: '/m', ...mount }, 3, at, new Map([['v', prepared(readOnly)]]), env, recursive);

  test.each<[string, Partial<VolumeMount>, boolean, object]>([
    ['plain', {}, false, { readOnly: false, propagation: 'private', containerPath: '/m', recursiveReadOnly: false }],
    ['read-only', { readOnly: true }, false, { readOnly: true }],
    ['of a read-only volume', {}, true, { readOnly: true }],
    ['HostToContainer', { mountPropagation: 'HostToContainer' }, false, { propagation: 'hostToContainer' }],
    ['Bidirectional', { mountPropagation: 'Bidirectional' }, false, { propagation: 'bidirectional' }],
    ['with a relative path', { mountPath: 'm/n' }, false, { containerPath: '/m/n' }],
  ])('%s', (_, mount, readOnly, expected) => {
    expect(plan(mount, readOnly).mount).toMatchObject(expected);
  });

  test.each([
    [{ subPath: 'a/b' }, 'a/b'],
    [{ subPath: '' }, undefined],
    [{ subPathExpr: '$(POD)/logs' }, 'web/logs'],
    [{ subPathExpr: '$(EMPTY)' }, undefined],
  ])('%j gives the subPath %s', (mount, subPath) => {
    expect(plan(mount).subPath).toBe(subPath);
  });

  test('a subPath has a place of its own per volume, container and index', () => {
    expect(plan({ subPath: 'x' }).subPathTarget).toBe('/root/pods/u/volume-subpaths/v/c/3');
  });

  test.each<[Partial<VolumeMount>, boolean, boolean | string]>([
    [{ recursiveReadOnly: 'Enabled', readOnly: true }, true, true],
    [
      { recursiveReadOnly: 'Enabled', readOnly: true },
      false,
      'failed to resolve recursive read-only mode: volume "v" requested recursive read-only mode, but it is not supported by the runtime',
    ],
    [{ recursiveReadOnly: 'IfPossible', readOnly: true }, true, true],
    [{ recursiveReadOnly: 'IfPossible', readOnly: true }, false, false],
    [{ recursiveReadOnly: 'Disabled', readOnly: true }, true, false],
    [{ recursiveReadOnly: 'Maybe', readOnly: true }, true, 'unknown recursive read-only mode "Maybe"'],
    [{ recursiveReadOnly: 'Enabled' }, true, 'but it is not read-only'],
    [{ recursiveReadOnly: 'IfPossible' }, true, 'but it is not read-only'],
    [
      { recursiveReadOnly: 'IfPossible', readOnly: true, mountPropagation: 'HostToContainer' },
      true,
      'but it is not compatible with propagation "HostToContainer"',
    ],
  ])('%j with support %s is %s', (mount, supported, expected) => {
    if (typeof expected === 'string') expect(() => plan(mount, false, supported)).toThrow(expected);
    else expect(plan(mount, false, supported).mount.recursiveReadOnly).toBe(expected);
  });

  test.each([
    [{ name: 'other' }, 'cannot find volume "other" to mount into container "c"'],
    [{ subPath: '/etc' }, 'error SubPath `/etc` must not be an absolute path'],
    [{ subPath: 'a/../../b' }, "unable to provision SubPath `a/../../b`: must not contain '..'"],
    [{ subPathExpr: '$(UP)' }, "unable to provision SubPath `../x`: must not contain '..'"],
    [{ mountPropagation: 'Both' }, 'invalid MountPropagation mode: "Both"'],
    [{ subPathExpr: '$(NOPE)' }, 'missing value for "NOPE"'],
  ])('%j is refused', (mount, message) => {
    expect(() => plan(mount)).toThrow(message);
  });

  test.each([
    ['$(POD)-$(POD)', 'web-web'],
    ['$$(POD)', '$(POD)'],
    ['$POD', '$POD'],
    ['a$', 'a$'],
  ])('expands %s to %s', (text, expanded) => {
    expect(expandSubPath(text, env)).toBe(expanded);
  });

  test('a pod’s containers have the groups of its volumes, each once, and none twice that the pod names itself', () => {
    const volumes = [undefined, 7, 8, 7, 9].map((group) => ({
      ...prepared(false),
      ...(group === undefined ? {} : { group }),
    }));
    expect(volumeGroups(pod({ securityContext: { supplementalGroups: [8] } }), volumes)).toEqual([7, 9]);
    expect(volumeGroups(pod({}), volumes)).toEqual([7, 8, 9]);
  });

  test('volumes that no container mounts are not in use; those of every kind of container are', () => {
    const mount = (name: string) => ({ name: `c-${name}`, image: 'i', volumeMounts: [{ name, mountPath: '/m' }] });
    const subject = pod({
      containers: [mount('a'), { name: 'b', image: 'i', volumeDevices: [{ name: 'block', devicePath: '/dev/x' }] }],
      initContainers: [mount('i')],
      ephemeralContainers: [mount('e')],
      volumes: ['a', 'i', 'e', 'block', 'unused'].map((name) => ({ name })),
    });
    expect([...volumesInUse(subject)].sort()).toEqual(['a', 'block', 'e', 'i']);
  });
});
