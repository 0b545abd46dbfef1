// Every volume type that needs no driver, in real pods on this machine: what a container finds in it, with which owners and
// modes, and the events of a pod whose volume cannot be mounted.

import { chmod, chown, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Pod, PodSpec } from '../../../client/types.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { mountAt, parseMountInfo } from '../../../lib/mountinfo.ts';
import {
  apply,
  container,
  deletePods,
  eventually,
  eventWhen,
  FOREVER,
  gone,
  mainProcess,
  nothingLeft,
  podResources,
  podWhen,
  ready,
  shellPod,
} from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import { ABSENT } from './absent.ts';

const GROUP = 4321;
const USER = 1234;

let lab: TestLab;
let before: readonly string[] = [];
/** A directory of the machine for hostPath volumes. */
let host = '';
let socket: Server;
let loop = '';

const object = (kind: string, name: string, rest: object) => ({
  apiVersion: 'v1',
  kind,
  metadata: { name },
  ...rest,
});

/** A pod whose one container mounts each volume at /<name>. */
function podOf(
  name: string,
  volumes: NonNullable<PodSpec['volumes']>,
  spec: Partial<PodSpec> = {},
  more: object = {},
): object {
  const volumeMounts = volumes.map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` }));
  return shellPod(name, FOREVER, { volumes, ...spec }, { volumeMounts, ...more });
}

/** The root of the pod's first container, as the kernel shows it. */
async function rootOf(pod: Pod, name?: string): Promise<string> {
  return `/proc/${await mainProcess(lab, pod, name)}/root`;
}

async function run(manifest: object, name: string): Promise<{ pod: Pod; root: string }> {
  await apply(lab, manifest);
  const pod = await ready(lab, name);
  return { pod, root: await rootOf(pod) };
}

/** mode, owner and group of what a path leads to. */
const ownership = async (path: string) => {
  const { mode, uid, gid } = await stat(path);
  return [(mode & 0o7777).toString(8), uid, gid];
};
const mountOfContainer = async (root: string, path: string) =>
  mountAt(parseMountInfo(await readFile(root.replace('/root', '/mountinfo'), 'utf8')), path);

beforeAll(async () => {
  lab = await shareLab();
  before = await podResources(lab);
  host = await mkdtemp(join(tmpdir(), 'nodelet-volumes-host-'));
  await mkdir(join(host, 'directory'));
  await writeFile(join(host, 'file'), 'of the machine');
  socket = createServer().listen(join(host, 'socket'));
  await writeFile(join(host, 'disk'), Buffer.alloc(2 ** 20));
  loop = (await execOk('losetup', ['--find', '--show', join(host, 'disk')])).trim();
  await apply(
    lab,
    object('ConfigMap', 'settings', {
      data: { 'app.conf': 'a=1', other: 'x' },
      binaryData: { raw: Buffer.from([0, 255, 10]).toString('base64') },
    }),
    object('Secret', 'keys', { data: { key: Buffer.from([1, 2, 254]).toString('base64') } }),
  );
});
afterAll(async () => {
  if (loop !== '') await exec('losetup', ['--detach', loop]);
  socket?.close();
  try {
    if (lab !== undefined) {
      await lab.kubectl('delete', 'pods', '--all', '--wait=true');
      await lab.kubectl('delete', 'pvc,clustertrustbundles', '--all');
      await lab.kubectl('delete', 'pv', 'grouped');
      await nothingLeft(lab, before);
    }
  } finally {
    await lab?.stop();
    await rm(host, { recursive: true });
  }
});

describe('content volumes', () => {
  let root = '';
  beforeAll(async () => {
    const volumes: NonNullable<PodSpec['volumes']> = [
      { name: 'cm', configMap: { name: 'settings' } },
      {
        name: 'items',
        configMap: {
          name: 'settings',
          defaultMode: 0o400,
          items: [
            { key: 'app.conf', path: 'etc/app/app.conf' },
            { key: 'raw', path: 'raw.bin', mode: 0o755 },
          ],
        },
      },
      { name: 'secret', secret: { secretName: 'keys', defaultMode: 0o400 } },
      { name: 'none', secret: { secretName: 'nowhere', optional: true } },
      {
        name: 'self',
        downwardAPI: {
          items: [
            { path: 'name', fieldRef: { fieldPath: 'metadata.name' } },
            { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
            { path: 'memory', resourceFieldRef: { containerName: 'main', resource: 'limits.memory', divisor: '1Mi' } },
            {
              path: 'cpu',
              mode: 0o440,
              resourceFieldRef: { containerName: 'main', resource: 'requests.cpu', divisor: '1m' },
            },
          ],
        },
      },
      {
        name: 'all',
        projected: {
          defaultMode: 0o440,
          sources: [
            { configMap: { name: 'settings', items: [{ key: 'other', path: 'cm/other' }] } },
            { secret: { name: 'keys' } },
            { configMap: { name: 'nowhere', optional: true } },
            { downwardAPI: { items: [{ path: 'ns', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
            { serviceAccountToken: { path: 'token', audience: 'vault', expirationSeconds: 600 } },
          ],
        },
      },
    ];
    const resources = { limits: { memory: '32Mi', cpu: '1' }, requests: { cpu: '250m' } };
    ({ root } = await run(podOf('content', volumes, {}, { resources }), 'content'));
  });
  const text = (path: string) => readFile(join(root, path), 'utf8');

  test('show every key of a ConfigMap, binary ones byte for byte', async () => {
    expect(await text('cm/app.conf')).toBe('a=1');
    expect(await text('cm/other')).toBe('x');
    expect([...(await readFile(join(root, 'cm/raw')))]).toEqual([0, 255, 10]);
    expect(await ownership(join(root, 'cm/other'))).toEqual(['644', 0, 0]);
  });
  test('show the items alone, at their paths with their modes', async () => {
    expect((await readdir(join(root, 'items'))).filter((name) => !name.startsWith('..')).sort()).toEqual([
      'etc',
      'raw.bin',
    ]);
    expect(await text('items/etc/app/app.conf')).toBe('a=1');
    expect(await ownership(join(root, 'items/etc/app/app.conf'))).toEqual(['400', 0, 0]);
    expect(await ownership(join(root, 'items/raw.bin'))).toEqual(['755', 0, 0]);
  });
  test('keep a Secret in memory, read-only for the container', async () => {
    expect([...(await readFile(join(root, 'secret/key')))]).toEqual([1, 2, 254]);
    expect(await ownership(join(root, 'secret/key'))).toEqual(['400', 0, 0]);
    const mount = await mountOfContainer(root, '/secret');
    expect(mount?.fsType).toBe('tmpfs');
    expect(mount?.options).toContain('ro');
    const write = await lab.tryKubectl(['exec', 'content', '--', 'sh', '-c', 'echo x > /secret/new']);
    expect(write.stderr).toContain('Read-only file system');
  });
  test('of an optional Secret that does not exist are empty', async () => {
    expect((await readdir(join(root, 'none'))).filter((name) => !name.startsWith('..'))).toEqual([]);
  });
  test('show the pod’s own fields and its resources in the requested units', async () => {
    expect(await text('self/name')).toBe('content');
    expect(await text('self/labels')).toBe('');
    expect(await text('self/memory')).toBe('32');
    expect(await text('self/cpu')).toBe('250');
    expect(await ownership(join(root, 'self/cpu'))).toEqual(['440', 0, 0]);
  });
  test('project all sources into one directory, a token for the requested audience among them', async () => {
    expect(await text('all/cm/other')).toBe('x');
    expect(await text('all/ns')).toBe(lab.namespace);
    expect((await readFile(join(root, 'all/key'))).length).toBe(3);
    const [, payload = ''] = (await text('all/token')).split('.');
    const claims: { aud: string[]; exp: number; iat: number } = JSON.parse(
      Buffer.from(payload, 'base64url').toString(),
    );
    expect(claims.aud).toEqual(['vault']);
    expect(claims.exp - claims.iat).toBe(600);
    expect(await ownership(join(root, 'all/token'))).toEqual(['440', 0, 0]);
  });
  test('show through links that are swapped as one', async () => {
    const link = await lstat(join(root, 'cm/app.conf'));
    expect(link.isSymbolicLink()).toBe(true);
    expect((await lstat(join(root, 'cm/..data'))).isSymbolicLink()).toBe(true);
  });
});

describe('trust bundles', () => {
  test('of the cluster are projected by name and by signer, and follow their objects', async () => {
    const ca = await readFile(join(lab.paths.pkiDir, 'ca.crt'), 'utf8');
    const trust = (name: string, signerName: string, labels: object = {}) => ({
      apiVersion: 'certificates.k8s.io/v1beta1',
      kind: 'ClusterTrustBundle',
      metadata: { name, labels },
      spec: { trustBundle: ca, ...(signerName === '' ? {} : { signerName }) },
    });
    await apply(lab, trust('ours', ''));
    const sources = [
      { clusterTrustBundle: { name: 'ours', path: 'named.pem' } },
      {
        clusterTrustBundle: {
          signerName: 'example.org/one',
          labelSelector: { matchLabels: { live: 'yes' } },
          optional: true,
          path: 'signed.pem',
        },
      },
    ];
    const { root } = await run(podOf('trust', [{ name: 'trust', projected: { sources } }]), 'trust');
    const anchors = async (file: string) =>
      (await readFile(join(root, 'trust', file), 'utf8')).replace(/-----[A-Z ]+-----|\s/g, '');
    const der = ca.replace(/-----[A-Z ]+-----|\s/g, '');
    expect(await anchors('named.pem')).toBe(der);
    expect(await anchors('signed.pem')).toBe('');
    await apply(lab, trust('example.org:one:a', 'example.org/one', { live: 'yes' }));
    await eventually('the signer’s anchors', async () => ((await anchors('signed.pem')) === der ? true : undefined));
    expect(await lab.kubectl('get', 'clustertrustbundles')).toMatch(/example\.org:one:a +example\.org\/one/);
  });
});

describe('emptyDir', () => {
  test('on disk is writable for every user, in memory has its own size', async () => {
    const volumes = [
      { name: 'disk', emptyDir: {} },
      { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } },
      { name: 'limited', emptyDir: { medium: 'Memory' } },
    ];
    const resources = { limits: { memory: '48Mi' } };
    const securityContext = { runAsUser: USER };
    const { root } = await run(podOf('scratch', volumes, { securityContext }, { resources }), 'scratch');
    await lab.kubectl('exec', 'scratch', '--', 'sh', '-c', 'echo mine > /disk/f; echo mine > /memory/f');
    expect(await ownership(join(root, 'disk/f'))).toEqual(['644', USER, 0]);
    expect(await ownership(join(root, 'disk'))).toEqual(['777', 0, 0]);
    expect((await mountOfContainer(root, '/memory'))?.superOptions).toContain('size=8192k');
    expect((await mountOfContainer(root, '/limited'))?.superOptions).toContain('size=49152k');
    const full = await lab.tryKubectl([
      'exec',
      'scratch',
      '--',
      'dd',
      'if=/dev/zero',
      'of=/memory/big',
      'bs=1M',
      'count=9',
    ]);
    expect(full.stderr).toContain('No space left on device');
  });
});

describe('fsGroup', () => {
  test('owns what the pod may write, and reads what it may not', async () => {
    const volumes: NonNullable<PodSpec['volumes']> = [
      { name: 'disk', emptyDir: {} },
      { name: 'cm', configMap: { name: 'settings', defaultMode: 0o400 } },
      { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
      { name: 'host', hostPath: { path: join(host, 'directory') } },
    ];
    const securityContext = { runAsUser: USER, fsGroup: GROUP };
    const { root } = await run(podOf('group', volumes, { securityContext }), 'group');
    const made = await lab.kubectl('exec', 'group', '--', 'sh', '-c', 'echo x > /disk/new; cat /cm/app.conf; id -G');
    expect(made).toContain('a=1');
    expect(made.split('\n')[0]?.replace('a=1', '').split(' ')).toContain(String(GROUP));
    expect(await ownership(join(root, 'disk'))).toEqual(['2777', 0, GROUP]);
    expect(await ownership(join(root, 'disk/new'))).toEqual(['644', USER, GROUP]);
    expect(await ownership(join(root, 'cm/app.conf'))).toEqual(['440', 0, GROUP]);
    expect(await ownership(join(root, 'cm'))).toEqual(['2777', 0, GROUP]);
    expect(await ownership(join(root, 'token/token'))).toEqual(['640', USER, GROUP]);
    // The machine's own files are never given away.
    expect(await ownership(join(root, 'host'))).toEqual(['755', 0, 0]);
  });
});

describe('hostPath', () => {
  test('of every type that is there, or is made', async () => {
    const types = {
      any: { path: join(host, 'directory'), type: '' },
      directory: { path: join(host, 'directory'), type: 'Directory' },
      made: { path: join(host, 'made/deep'), type: 'DirectoryOrCreate' },
      file: { path: join(host, 'file'), type: 'File' },
      created: { path: join(host, 'created'), type: 'FileOrCreate' },
      socket: { path: join(host, 'socket'), type: 'Socket' },
      char: { path: '/dev/zero', type: 'CharDevice' },
      block: { path: loop, type: 'BlockDevice' },
    };
    const volumes = Object.entries(types).map(([name, hostPath]) => ({ name, hostPath }));
    const { root } = await run(podOf('paths', volumes), 'paths');
    expect(await readFile(join(root, 'file'), 'utf8')).toBe('of the machine');
    expect((await stat(join(host, 'made/deep'))).mode & 0o7777).toBe(0o755);
    expect((await stat(join(host, 'created'))).mode & 0o7777).toBe(0o644);
    expect((await stat(join(root, 'socket'))).isSocket()).toBe(true);
    expect((await stat(join(root, 'char'))).isCharacterDevice()).toBe(true);
    expect((await stat(join(root, 'block'))).isBlockDevice()).toBe(true);
    await lab.kubectl('exec', 'paths', '--', 'sh', '-c', 'echo from inside > /made/f');
    expect(await readFile(join(host, 'made/deep/f'), 'utf8')).toBe('from inside\n');
    // A pod that goes leaves the machine's files alone.
    await deletePods(lab, ['paths']);
    await gone(lab, 'paths');
    expect(await readFile(join(host, 'made/deep/f'), 'utf8')).toBe('from inside\n');
  });
});

test('a PersistentVolume’s group is every container’s, so that they may write where only it may', async () => {
  const path = join(host, 'group');
  await mkdir(path);
  await chown(path, 0, GROUP);
  await chmod(path, 0o770);
  const annotations = { 'pv.beta.kubernetes.io/gid': String(GROUP) };
  const capacity = { storage: '1Gi' };
  const common = { accessModes: ['ReadWriteOnce'], storageClassName: '' };
  await apply(
    lab,
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'grouped', annotations },
      spec: { ...common, capacity, hostPath: { path } },
    },
    object('PersistentVolumeClaim', 'grouped', {
      spec: { ...common, volumeName: 'grouped', resources: { requests: capacity } },
    }),
  );
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'grouped' } }];
  const { root } = await run(podOf('grouped', volumes, { securityContext: { runAsUser: USER } }), 'grouped');
  const groups = await lab.kubectl('exec', 'grouped', '--', 'sh', '-c', 'echo x > /data/f && id -G');
  expect(groups.trim().split(' ')).toContain(String(GROUP));
  expect(await ownership(join(root, 'data/f'))).toEqual(['644', USER, 0]);
});

describe('a mount of a volume', () => {
  test('is read-only with readOnly, and shows a subPath or the path of an expression, made for its user', async () => {
    const volumeMounts = [
      { name: 'disk', mountPath: '/whole' },
      { name: 'disk', mountPath: '/fixed', readOnly: true },
      { name: 'disk', mountPath: '/sub', subPath: 'a/b' },
      { name: 'disk', mountPath: '/own', subPathExpr: '$(POD)/logs' },
      { name: 'cm', mountPath: '/etc/app.conf', subPath: 'app.conf' },
    ];
    const env = [{ name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }];
    const volumes = [
      { name: 'disk', emptyDir: {} },
      { name: 'cm', configMap: { name: 'settings' } },
    ];
    // Not root: a user who may write to the volume may write to what is made in it.
    const securityContext = { runAsUser: USER };
    const { root } = await run(podOf('mounts', volumes, { securityContext }, { volumeMounts, env }), 'mounts');
    const script = 'echo 1 > /sub/f; echo 2 > /own/f; echo 3 > /fixed/f; cat /whole/a/b/f /whole/mounts/logs/f';
    const { stdout, stderr } = await lab.tryKubectl(['exec', 'mounts', '--', 'sh', '-c', script]);
    expect(stdout).toBe('1\n2\n');
    expect(stderr).toContain('/fixed/f: Read-only file system');
    expect(await readFile(join(root, 'etc/app.conf'), 'utf8')).toBe('a=1');
    expect(await ownership(join(root, 'whole/a/b'))).toEqual(['777', 0, 0]);
  });

  test('of a subPath belongs to the pod’s group as the volume does', async () => {
    const volumeMounts = [{ name: 'disk', mountPath: '/sub', subPath: 'a' }];
    const securityContext = { runAsUser: USER, fsGroup: GROUP };
    const manifest = podOf('submounts', [{ name: 'disk', emptyDir: {} }], { securityContext }, { volumeMounts });
    const { root } = await run(manifest, 'submounts');
    expect(await ownership(join(root, 'sub'))).toEqual(['2777', 0, GROUP]);
    await lab.kubectl('exec', 'submounts', '--', 'sh', '-c', 'echo x > /sub/f');
    expect(await ownership(join(root, 'sub/f'))).toEqual(['644', USER, GROUP]);
  });

  test('of a subPath that leads out of the volume keeps its container from starting, and reveals nothing', async () => {
    const [image, mountPath] = ['busybox:stable', '/v'];
    const script = 'ln -s /etc /v/there; ln -s /no/such/place /v/missing';
    const mount = (subPath?: string) => ({
      volumeMounts: [{ name: 'disk', mountPath, ...(subPath ? { subPath } : {}) }],
    });
    const initContainers = [{ name: 'links', image, command: ['sh', '-c', script], ...mount() }];
    const containers = ['there', 'missing', 'there/none'].map((subPath, index) => ({
      name: `c${index}`,
      image,
      command: ['sh', '-c', FOREVER],
      ...mount(subPath),
    }));
    await apply(
      lab,
      shellPod('escapes', FOREVER, { initContainers, containers, volumes: [{ name: 'disk', emptyDir: {} }] }),
    );
    const pod = await podWhen(lab, 'escapes', 'refused its containers', ({ status }) =>
      [0, 1, 2].every((index) => status?.containerStatuses?.[index]?.state?.waiting?.message !== undefined),
    );
    expect(pod.status?.containerStatuses?.map(({ state }) => state?.waiting)).toEqual([
      {
        reason: 'CreateContainerConfigError',
        message: 'failed to prepare subPath for volumeMount "disk" of container "c0"',
      },
      {
        reason: 'CreateContainerConfigError',
        message: 'failed to create subPath directory for volumeMount "disk" of container "c1"',
      },
      {
        reason: 'CreateContainerConfigError',
        message: 'failed to create subPath directory for volumeMount "disk" of container "c2"',
      },
    ]);
    await deletePods(lab, ['escapes'], { wait: false });
    await gone(lab, 'escapes');
  });

  test('that is Bidirectional, HostToContainer or neither: who sees what is mounted in it later', async () => {
    const main = { image: 'busybox:stable', command: ['sh', '-c', FOREVER] };
    const at = (mountPropagation: string) => ({
      volumeMounts: [{ name: 'disk', mountPath: '/shared', mountPropagation }],
    });
    const containers = [
      { name: 'main', ...main, ...at('Bidirectional'), securityContext: { privileged: true } },
      { name: 'receives', ...main, ...at('HostToContainer') },
      { name: 'private', ...main, ...at('None') },
    ];
    const volumes = [{ name: 'disk', emptyDir: {} }];
    await apply(lab, shellPod('propagation', FOREVER, { containers, volumes }));
    const pod = await ready(lab, 'propagation');
    const mount = 'mkdir /shared/in && mount -t tmpfs tmpfs /shared/in && echo seen > /shared/in/f';
    await lab.kubectl('exec', 'propagation', '-c', 'main', '--', 'sh', '-c', mount);
    const inHost = join(lab.paths.kubeletDir, 'pods', pod.metadata.uid, 'volumes/kubernetes.io~empty-dir/disk/in/f');
    expect(await readFile(inHost, 'utf8')).toBe('seen\n');
    expect(await readFile(join(await rootOf(pod, 'receives'), 'shared/in/f'), 'utf8')).toBe('seen\n');
    await expect(readFile(join(await rootOf(pod, 'private'), 'shared/in/f'))).rejects.toThrow('ENOENT');
    // What the container left mounted does not keep the pod's directory.
    await deletePods(lab, ['propagation']);
    await gone(lab, 'propagation');
  });
});

describe('what cannot be had', () => {
  test.each(ABSENT)('%s: an event reports it, and the pod waits', async (name, volume, message) => {
    await apply(lab, podOf(name, [volume]));
    // A resolver may take its time over a name that there is not.
    const event = await eventWhen(lab, name, 'FailedMount', message, 300_000);
    expect(event.message).toMatch(/^MountVolume\.SetUp failed for volume "v" : /);
    await podWhen(lab, name, 'waiting for its volume', ({ status }) => {
      const [main] = status?.containerStatuses ?? [];
      return status?.phase === 'Pending' && main?.state?.waiting?.reason === 'ContainerCreating';
    });
    await deletePods(lab, [name], { wait: false });
    await gone(lab, name);
  });

  test('what the runtime cannot make recursively read-only keeps its container from starting', async () => {
    const volumeMounts = [{ name: 'disk', mountPath: '/disk', readOnly: true, recursiveReadOnly: 'Enabled' }];
    await apply(lab, podOf('recursive', [{ name: 'disk', emptyDir: {} }], {}, { volumeMounts }));
    const words =
      'failed to resolve recursive read-only mode: ' +
      'volume "disk" requested recursive read-only mode, but it is not supported by the runtime';
    await eventWhen(lab, 'recursive', 'Failed', new RegExp(words));
    const waits = await podWhen(
      lab,
      'recursive',
      'refused its container',
      ({ status }) =>
        status?.containerStatuses?.some(({ state }) => state?.waiting?.reason === 'CreateContainerConfigError') ===
        true,
    );
    expect(container(waits).state?.waiting?.message).toBe(words);
    await deletePods(lab, ['recursive'], { wait: false });
    await gone(lab, 'recursive');
  });

  test('a path out of the volume is refused by the API server, and nothing is stored', async () => {
    const items = [{ key: 'other', path: '../../escape' }];
    const volume = { name: 'v', configMap: { name: 'settings', items } };
    await expect(apply(lab, podOf('climbs', [volume]))).rejects.toThrow(/items\[0\]\.path.*'\.\.'/);
    expect((await lab.tryKubectl(['get', 'pod', 'climbs'])).stderr).toContain('not found');
  });
});
