// Volumes on this machine's kernel: real tmpfs, bind mounts, owners and modes. Needs root.

import { execFile, spawn } from 'node:child_process';
import {
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import { createLinuxMounter, knowsNoswap } from '../../../agent/volumes/linux-mounter.ts';
import type { VolumeManager } from '../../../agent/volumes/options.ts';
import { createPodVolumes } from '../../../agent/volumes/pod-volumes.ts';
import { ensureSharedRoot, isShared, mountOf } from '../../../agent/volumes/shared-root.ts';
import type { Pod } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { mountAt, mountsUnder } from '../../../lib/mountinfo.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { median } from '../../support/median.ts';
import { configMap, FakeObjects, FakeRecorder, pod, podWith, secret } from '../../unit/agent/volumes/support.ts';
import { exchangeForever } from './exchange.ts';

const run = promisify(execFile);
const tracer = new Tracer();
const mounter = createLinuxMounter({ tracer });
/** For giving up only. */
const PATIENCE_MS = 300_000;
const ref = { uid: 'uid-1' as PodUID, namespace: 'demo', name: 'web' };
let rootDir = '';
let objects: FakeObjects;
let volumes: VolumeManager;

beforeEach(async () => {
  rootDir = await realpath(await mkdtemp(join(tmpdir(), 'nodelet-volumes-e2e-')));
  objects = new FakeObjects(systemClock);
  volumes = manager();
});
afterEach(async () => {
  volumes.close();
  for (const uid of await volumes.listPods()) await volumes.unmountAll({ ...ref, uid });
  expect(mountsUnder(await mounter.list(), rootDir)).toEqual([]);
  await rm(rootDir, { recursive: true });
});

function manager(): VolumeManager {
  return createPodVolumes({
    rootDir,
    mounter,
    objects,
    tracer,
    clock: systemClock,
    recorder: new FakeRecorder(),
    allocatable: () => ({ memory: '1Gi' }),
  });
}

const dirOf = (plugin: string, name: string) => join(rootDir, 'pods/uid-1/volumes', `kubernetes.io~${plugin}`, name);
const modeOf = async (path: string) => (await stat(path)).mode & 0o7777;
/** mode, owner and group of what a path leads to. */
const ownership = async (path: string) => {
  const { mode, uid, gid } = await stat(path);
  return [mode & 0o7777, uid, gid];
};

/** What this thread has of a processor meanwhile, ms: what else the machine does is not in it. */
async function processorMs(work: () => Promise<unknown>): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

describe('memory volumes', () => {
  test('are a tmpfs of their own, with the size of the limit', async () => {
    objects.secrets.set('s', secret('s', { key: 'K' }));
    await volumes.mountAll(
      podWith([
        { name: 's', secret: { secretName: 's', defaultMode: 0o400 } },
        { name: 'm', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
      ]),
    );
    const entries = await mounter.list();
    const scratch = mountAt(entries, dirOf('empty-dir', 'm'));
    expect(scratch?.fsType).toBe('tmpfs');
    expect(scratch?.superOptions).toContain('size=1024k');
    expect(mountAt(entries, dirOf('secret', 's'))?.fsType).toBe('tmpfs');
    expect(await readFile(join(dirOf('secret', 's'), 'key'), 'utf8')).toBe('K');
    expect(await modeOf(join(dirOf('secret', 's'), 'key'))).toBe(0o400);
    expect(await modeOf(dirOf('empty-dir', 'm'))).toBe(0o1777);
    await expect(writeFile(join(dirOf('empty-dir', 'm'), 'big'), Buffer.alloc(2 ** 21))).rejects.toThrow('ENOSPC');
  });

  test('of huge pages are a hugetlbfs with the page size that the pod requests', async () => {
    const resources = { requests: { 'hugepages-2Mi': '4Mi' }, limits: { 'hugepages-2Mi': '4Mi' } };
    const volumeMounts = [{ name: 'h', mountPath: '/h' }];
    const containers = [{ name: 'c', image: 'i', resources, volumeMounts }];
    await volumes.mountAll(
      pod({
        containers,
        volumes: [{ name: 'h', emptyDir: { medium: 'HugePages-2Mi' } }],
        securityContext: { fsGroup: 4321 },
      }),
    );
    const mount = mountAt(await mounter.list(), dirOf('empty-dir', 'h'));
    expect(mount).toMatchObject({ fsType: 'hugetlbfs', source: 'nodev' });
    expect(mount?.superOptions).toContain('pagesize=2M');
    expect((await ownership(dirOf('empty-dir', 'h'))).slice(1)).toEqual([0, 4321]);
  });

  test('are kept out of swap where this kernel can', async () => {
    objects.secrets.set('s', secret('s', { key: 'K' }));
    await volumes.mountAll(podWith([{ name: 's', secret: { secretName: 's' } }]));
    const mount = mountAt(await mounter.list(), dirOf('secret', 's'));
    expect(mount?.superOptions.includes('noswap')).toBe(knowsNoswap(release()));
  });

  test('are mounted by one short program, and cost a pod with only its token little more than that', async () => {
    objects.configMaps.set('kube-root-ca.crt', configMap('kube-root-ca.crt', { 'ca.crt': 'CA' }));
    const projected = {
      sources: [
        { serviceAccountToken: { path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt' } },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
      ],
    };
    const spans: Span[] = [];
    const stop = tracer.subscribe((span) => spans.push(span));
    const [figures, programs]: [number[], number[]] = [[], []];
    for (let i = 0; i < 15; i++) {
      const subject = podWith([{ name: 'kube-api-access', projected }]);
      const uid = `uid-${i}` as PodUID;
      spans.length = 0;
      figures.push(await processorMs(() => volumes.mountAll({ ...subject, metadata: { ...subject.metadata, uid } })));
      // Every program is a span, and the volume's SetUp is one.
      expect(spans.map(({ name }) => name)).toEqual(['mount tmpfs', 'MountVolume.SetUp']);
      programs.push(await processorMs(() => run('mount', ['--version'])));
      await volumes.unmountAll({ ...ref, uid });
    }
    stop();
    const [volume, program] = [median(figures), median(programs)];
    console.log(`token volume: ${volume.toFixed(1)} ms, a program: ${program.toFixed(1)} ms`);
    expect(volume).toBeLessThan(4 * program);
  });
});

describe('owners and modes', () => {
  test('fsGroup sets the group of an emptyDir, and lets it read projected files', async () => {
    objects.configMaps.set('cm', configMap('cm', { a: '1' }));
    const list: NonNullable<Pod['spec']['volumes']> = [
      { name: 'e', emptyDir: {} },
      { name: 'm', emptyDir: { medium: 'Memory' } },
      { name: 'c', configMap: { name: 'cm', defaultMode: 0o400, items: [{ key: 'a', path: 'sub/a' }] } },
      { name: 't', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
    ];
    await volumes.mountAll(podWith(list, { securityContext: { fsGroup: 4321, runAsUser: 1000 } }));
    expect(await ownership(dirOf('empty-dir', 'e'))).toEqual([0o2777, 0, 4321]);
    expect(await ownership(dirOf('empty-dir', 'm'))).toEqual([0o3777, 0, 4321]);
    expect(await ownership(join(dirOf('configmap', 'c'), 'sub/a'))).toEqual([0o440, 0, 4321]);
    expect(await ownership(join(dirOf('configmap', 'c'), 'sub'))).toEqual([0o2755, 0, 4321]);
    expect(await ownership(join(dirOf('projected', 't'), 'token'))).toEqual([0o640, 1000, 4321]);
  });

  test('without fsGroup a token belongs to the one user of the pod', async () => {
    const projected = { sources: [{ serviceAccountToken: { path: 'token' } }] };
    await volumes.mountAll(podWith([{ name: 't', projected }], { securityContext: { runAsUser: 1000 } }));
    expect(await ownership(join(dirOf('projected', 't'), 'token'))).toEqual([0o600, 1000, 0]);
  });

  test('a restarted agent leaves the owners that the pod has set', async () => {
    const subject = podWith([{ name: 'e', emptyDir: {} }], { securityContext: { fsGroup: 4321 } });
    await volumes.mountAll(subject);
    await writeFile(join(dirOf('empty-dir', 'e'), 'own'), 'x', { mode: 0o600 });
    await chown(join(dirOf('empty-dir', 'e'), 'own'), 77, 88);
    volumes.close();
    volumes = manager();
    await volumes.mountAll(subject);
    expect(await ownership(join(dirOf('empty-dir', 'e'), 'own'))).toEqual([0o600, 77, 88]);
  });
});

describe('updates', () => {
  test('renew a token when 80 % of its life are over, in the file that containers see', async () => {
    const sources = [{ serviceAccountToken: { path: 'token', expirationSeconds: 2 } }];
    const began = performance.now();
    await volumes.mountAll(podWith([{ name: 't', projected: { sources } }]));
    const file = join(dirOf('projected', 't'), 'token');
    const seen = new Set<string>();
    while (seen.size < 3 && performance.now() - began < 120_000) {
      seen.add(await readFile(file, 'utf8'));
      await systemClock.sleep(20);
    }
    // A busy machine may look too late to see one of them.
    const numbers = [...seen].map((token) => Number(token.replace('token-', '')));
    expect(numbers).toHaveLength(3);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(performance.now() - began).toBeGreaterThan(2 * 2000 * 0.7);
  });

  test('reach a reader through its own mount, swapped at once', async () => {
    objects.secrets.set('s', secret('s', { a: '1', gone: 'x' }));
    const subject = podWith([{ name: 's', secret: { secretName: 's' } }]);
    await volumes.mountAll(subject);
    // A container sees the volume by a bind mount of it.
    const view = join(rootDir, 'view');
    await mkdir(view);
    await mounter.mount({ source: dirOf('secret', 's'), target: view, options: ['bind'] });
    try {
      expect(await readFile(join(view, 'a'), 'utf8')).toBe('1');
      objects.secrets.set('s', secret('s', { a: '2' }));
      await volumes.update(subject);
      expect(await readFile(join(view, 'a'), 'utf8')).toBe('2');
      expect((await readdir(view)).filter((name) => !name.startsWith('..'))).toEqual(['a']);
    } finally {
      await mounter.unmount(view);
    }
  });
});

describe('subPaths', () => {
  const container = (subPath: string) => ({
    name: 'c',
    image: 'i',
    volumeMounts: [{ name: 'e', mountPath: '/e', subPath }],
  });
  const prepare = async (subPath: string) => {
    const one = container(subPath);
    const subject = pod({ containers: [one], volumes: [{ name: 'e', emptyDir: {} }] });
    await volumes.mountAll(subject);
    return { subject, one, dir: dirOf('empty-dir', 'e') };
  };

  test('of a directory and of a file are bind mounts, made once', async () => {
    const { subject, one, dir } = await prepare('data');
    const { mounts } = await volumes.containerMounts(subject, one, []);
    const target = mounts[0]?.hostPath ?? '';
    await writeFile(join(dir, 'data/file'), 'inside');
    expect(await readFile(join(target, 'file'), 'utf8')).toBe('inside');
    await volumes.containerMounts(subject, one, []);
    expect((await mounter.list()).filter(({ path }) => path === target)).toHaveLength(1);

    const file = container('data/file');
    const again = await volumes.containerMounts(subject, { ...file, name: 'other' }, []);
    expect(await readFile(again.mounts[0]?.hostPath ?? '', 'utf8')).toBe('inside');
    expect((await stat(again.mounts[0]?.hostPath ?? '')).isFile()).toBe(true);
  });

  test('that were moved since are bound anew when the container is made again', async () => {
    const { subject, one, dir } = await prepare('data');
    const { mounts } = await volumes.containerMounts(subject, one, []);
    await rename(join(dir, 'data'), join(dir, 'old'));
    await mkdir(join(dir, 'data'));
    await writeFile(join(dir, 'data/which'), 'new');
    await volumes.containerMounts(subject, one, []);
    expect(await readFile(join(mounts[0]?.hostPath ?? '', 'which'), 'utf8')).toBe('new');
  });

  test('of a ConfigMap key are that file, and updates do not reach them', async () => {
    objects.configMaps.set('cm', configMap('cm', { 'app.conf': 'one' }));
    const one = {
      name: 'c',
      image: 'i',
      volumeMounts: [{ name: 'v', mountPath: '/etc/app.conf', subPath: 'app.conf' }],
    };
    const subject = pod({ containers: [one], volumes: [{ name: 'v', configMap: { name: 'cm' } }] });
    await volumes.mountAll(subject);
    const { mounts } = await volumes.containerMounts(subject, one, []);
    objects.configMaps.set('cm', configMap('cm', { 'app.conf': 'two' }));
    await volumes.update(subject);
    expect(await readFile(join(dirOf('configmap', 'v'), 'app.conf'), 'utf8')).toBe('two');
    expect(await readFile(mounts[0]?.hostPath ?? '', 'utf8')).toBe('one');
  });

  test('never show anything outside, while a pod swaps the directory for a link as fast as it can', async () => {
    const outside = join(rootDir, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'secret'), 'stolen');
    const { subject, one, dir } = await prepare('swap');
    await mkdir(join(dir, 'swap'));
    await symlink(outside, join(dir, 'link'));
    // In one step: where the name is missing for a moment, the subPath is made there, and the attack is over.
    const attacker = await exchangeForever(join(dir, 'swap'), join(dir, 'link'));
    try {
      let mounted = 0;
      let refused = 0;
      const deadline = performance.now() + PATIENCE_MS;
      const bothSeen = (): boolean => mounted > 0 && refused > 0;
      for (let i = 0; i < 40 || (!bothSeen() && performance.now() < deadline); i++) {
        const attempt = { ...one, name: `c${i}` };
        try {
          const { mounts } = await volumes.containerMounts(subject, attempt, []);
          mounted++;
          expect(await readdir(mounts[0]?.hostPath ?? '')).not.toContain('secret');
        } catch (error) {
          if (!(error instanceof Error) || !error.message.includes('subPath')) throw error;
          refused++;
        }
      }
      console.log(`subPath race: ${mounted} mounted inside, ${refused} refused`);
      // Else the two did not meet, and nothing is shown.
      expect(mounted, 'mounted').toBeGreaterThan(0);
      expect(refused, 'refused').toBeGreaterThan(0);
      expect(await readdir(outside)).toEqual(['secret']);
    } finally {
      attacker.kill('SIGKILL');
      await new Promise((resolve) => attacker.once('close', resolve));
    }
  });
});

describe('propagation', () => {
  test('a shared root lets a second namespace see what is mounted later, and is made once', async () => {
    const root = join(rootDir, 'shared');
    await mkdir(join(root, 'volume'), { recursive: true });
    const already = isShared(mountOf(await mounter.list(), root));
    expect(await ensureSharedRoot(root, mounter)).toBe(!already);
    expect(await ensureSharedRoot(root, mounter)).toBe(false);
    expect(isShared(mountOf(await mounter.list(), root))).toBe(true);
    // What a HostToContainer container has: a namespace of its own that receives mounts of the machine.
    const other = spawn('unshare', ['--mount', '--propagation', 'slave', 'sh', '-c', 'echo ready; exec sleep 3600'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      await new Promise((resolve) => other.stdout.once('data', resolve));
      await mounter.mount({ fsType: 'tmpfs', source: 'tmpfs', target: join(root, 'volume') });
      const seen = createLinuxMounter({ tracer, mountInfo: `/proc/${other.pid}/mountinfo` });
      expect(mountAt(await seen.list(), join(root, 'volume'))?.fsType).toBe('tmpfs');
    } finally {
      other.kill('SIGKILL');
      await new Promise((resolve) => other.once('close', resolve));
      await mounter.unmount(join(root, 'volume'));
      if (!already) await mounter.unmount(root);
    }
  });
});

describe('unmounting', () => {
  test('leaves nothing: subPaths, stacked mounts and what a Bidirectional container left', async () => {
    const volumeMounts = [
      { name: 'm', mountPath: '/m', subPath: 'x' },
      { name: 'm', mountPath: '/n' },
    ];
    const one = { name: 'c', image: 'i', volumeMounts };
    const subject = pod({ containers: [one], volumes: [{ name: 'm', emptyDir: { medium: 'Memory' } }] });
    await volumes.mountAll(subject);
    await volumes.containerMounts(subject, one, []);
    const inner = join(dirOf('empty-dir', 'm'), 'inner');
    await mkdir(inner);
    await mounter.mount({ fsType: 'tmpfs', source: 'tmpfs', target: inner });
    await mounter.mount({ fsType: 'tmpfs', source: 'tmpfs', target: inner });
    volumes.close();
    volumes = manager();
    await volumes.unmountAll(ref);
    expect(mountsUnder(await mounter.list(), rootDir)).toEqual([]);
    await expect(lstat(join(rootDir, 'pods/uid-1'))).rejects.toThrow('ENOENT');
    await volumes.unmountAll(ref);
  });

  test('deletes nothing through a mount that is busy', async () => {
    await volumes.mountAll(podWith([{ name: 'm', emptyDir: { medium: 'Memory' } }]));
    const dir = dirOf('empty-dir', 'm');
    await writeFile(join(dir, 'kept'), 'x');
    const user = spawn('sleep', ['3600'], { cwd: dir, stdio: 'ignore' });
    try {
      await new Promise((resolve) => user.once('spawn', resolve));
      await expect(volumes.unmountAll(ref)).rejects.toThrow(/busy/);
      expect(await readFile(join(dir, 'kept'), 'utf8')).toBe('x');
    } finally {
      user.kill('SIGKILL');
      await new Promise((resolve) => user.once('close', resolve));
    }
    await volumes.unmountAll(ref);
    expect(await volumes.listPods()).toEqual([]);
  });

  test('does not follow links out of the pod’s directory', async () => {
    const outside = join(rootDir, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'kept'), 'x');
    await volumes.mountAll(podWith([{ name: 'e', emptyDir: {} }]));
    await symlink(outside, join(dirOf('empty-dir', 'e'), 'link'));
    await volumes.unmountAll(ref);
    expect(await readdir(outside)).toEqual(['kept']);
  });
});

describe('an agent killed in the middle', () => {
  test('leaves what the next one completes and takes down, wherever the kill falls', async () => {
    const script = join(import.meta.dirname, 'mount-forever.ts');
    for (let i = 0; i < 8; i++) {
      const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script, rootDir], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await new Promise((resolve) => child.stdout.once('data', resolve));
      await new Promise((resolve) => setTimeout(resolve, i * 3));
      child.kill('SIGKILL');
      // A program that it ran when it was killed has its output too, and goes on to its end.
      await new Promise((resolve) => child.once('close', resolve));
      objects.secrets.set('s', secret('s', { key: `value-${i}` }));
      const next = manager();
      const subject = podWith([
        { name: 's', secret: { secretName: 's' } },
        { name: 'e', emptyDir: { medium: 'Memory' } },
      ]);
      await next.mountAll(subject);
      expect(await readFile(join(dirOf('secret', 's'), 'key'), 'utf8')).toBe(`value-${i}`);
      expect((await mounter.list()).filter(({ path }) => path === dirOf('secret', 's'))).toHaveLength(1);
      expect((await readdir(dirOf('secret', 's'))).filter((name) => /^\.\.\d/.test(name))).toHaveLength(1);
      next.close();
      await next.unmountAll(ref);
      expect(mountsUnder(await mounter.list(), rootDir)).toEqual([]);
    }
  });
});

test('the programs that volumes need are on this machine', async () => {
  expect((await run('mount', ['--version'])).stdout).toContain('util-linux');
});
