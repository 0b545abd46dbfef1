// Root directories with a user's files: a lab removes only what its marker lists, and never takes a directory of
// the machine's. Everything here is below a temporary directory.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { writeClaim } from '../../../cli/lab/claims.ts';
import { cleanLab } from '../../../cli/lab/clean.ts';
import { runDown } from '../../../cli/lab/down.ts';
import { startLab } from '../../../cli/lab/lab.ts';
import { MARKER_NAME } from '../../../cli/lab/marker.ts';
import { type LabPaths, labPaths } from '../../../cli/lab/paths.ts';
import { labEnvironment } from '../../../cli/lab/processes.ts';
import { protectedBecause, protectionFacts } from '../../../cli/lab/protected.ts';
import { exists } from '../../../cli/lab/root.ts';
import { makeEntries, takeRoot } from '../../../cli/lab/take-root.ts';
import { UserError } from '../../../lib/errors.ts';
import { type ExecResult, exec, execOk } from '../../../lib/exec.ts';
import { isAlive, readProcess } from '../../../lib/processes.ts';
import { startContainerd } from '../support/containerd.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
const nodelet = (args: readonly string[]): Promise<ExecResult> => exec(NODELET, args, { cwd: '/', timeoutMs: 120_000 });

/** What the commands do, in this process: `up` is to be refused here. */
async function here(command: string, at: string): Promise<ExecResult> {
  const lines: string[] = [];
  const say = (line: string): void => void lines.push(line);
  const result = (code: number, stderr = ''): ExecResult => {
    return { code, stderr, stdout: lines.join('\n'), signal: null, timedOut: false };
  };
  try {
    if (command === 'down') return result(await runDown({ root: at, say }));
    const started = await startLab({ root: at, images: 'none', say });
    await started.stop();
    return result(0);
  } catch (error) {
    if (error instanceof UserError) return result(1, error.message);
    throw error;
  }
}

let base: string;
let root: string;
const undo: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'nodelet-root-'));
  root = join(base, 'root');
  await mkdir(root);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const each of undo.splice(0).reverse()) await each();
  await rm(base, { recursive: true, force: true });
});

async function put(...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), `${name}\n`);
  }
}

/** Every file below a directory with what is in it. */
async function contents(directory: string): Promise<Readonly<Record<string, string>>> {
  const found: Record<string, string> = {};
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    found[path] = entry.isFile() ? await readFile(path, 'utf8') : 'directory';
  }
  return found;
}

async function bind(source: string, target: string): Promise<void> {
  await mkdir(target, { recursive: true });
  await execOk('mount', ['--bind', source, target]);
  undo.push(() => execOk('umount', [target]));
}

/** What a lab has made before it starts its programs, locked by this process until `free`. */
async function lab(at = root): Promise<{ readonly paths: LabPaths; readonly free: () => Promise<void> }> {
  const paths = labPaths(at);
  const taken = await takeRoot(paths);
  await makeEntries(paths, taken.marker, { csi: true, docker: false });
  undo.push(() => taken.lock.release());
  return { paths, free: () => taken.lock.release() };
}

const NODE_VAR_LIB = [
  'kubelet/config.yaml',
  'kubelet/pki/kubelet-client-current.pem',
  'kubelet/pods/6d4a/volumes/kubernetes.io~empty-dir/data/precious',
  'containerd/config.toml',
  'containerd/io.containerd.metadata.v1.bolt/meta.db',
  'cni/networks/cbr0/10.85.0.2',
  'etcd/member/snap/db',
];
const ETC_KUBERNETES = [
  'pki/ca.crt',
  'pki/ca.key',
  'manifests/etcd.yaml',
  'kubelet.yaml',
  'kubeconfigs/admin.conf',
  'kubeconfig',
];

describe.each([
  ['a real node’s /var/lib', NODE_VAR_LIB],
  ['/etc/kubernetes with the key of its CA', ETC_KUBERNETES],
])('a directory laid out like %s', (_, files) => {
  it.each(['up', 'down', 'demo'])('is refused by %s with its content listed, and stays as it is', async (command) => {
    await put(...files);
    const data = join(base, 'data');
    await mkdir(data);
    await writeFile(join(data, 'precious'), 'mine\n');
    await bind(data, join(root, files[0]?.split('/')[0] ?? '', 'bound'));
    const before = await contents(root);
    const { code, stderr } = await nodelet([command, '--root', root]);
    expect(code).toBe(1);
    expect(stderr).toContain(`${root} holds `);
    for (const name of ['kubelet', 'containerd'].filter((each) => files.some((file) => file.startsWith(`${each}/`)))) {
      expect(stderr).toContain(name);
    }
    expect(stderr).toMatch(/no marker of a lab \(\.nodelet-lab\.json\)/);
    expect(await contents(root)).toEqual(before);
    expect(await readFile(join(data, 'precious'), 'utf8')).toBe('mine\n');
  });
});

it('a lab of an older nodelet, which wrote no marker, is left with a word on what to do', async () => {
  await put('lab.json', 'kubelet.yaml', 'pki/ca.key');
  const { code, stderr } = await here('down', root);
  expect(code).toBe(1);
  expect(stderr).toContain('if a lab of an older nodelet did, take it down with that version');
  expect(Object.keys(await contents(root))).toHaveLength(4);
});

describe('a root with other files', () => {
  it('does not disturb down, and they stay', async () => {
    await put('notes.txt');
    const { code, stderr } = await here('down', root);
    expect([code, stderr]).toEqual([0, '']);
    expect(await readdir(root)).toEqual(['notes.txt']);
  });

  it('keeps them when the lab beside them goes, which lost its state file and was writing when it was killed', async () => {
    await put('notes.txt', 'kubeconfig.tmp-mine');
    const { free } = await lab();
    await put('pki/ca.crt', 'containerd/config.toml', 'logs/agent.log', 'kubeconfig', 'kubeconfig.tmp-123-4');
    await free();
    expect(await here('down', root)).toMatchObject({ code: 0, stderr: '' });
    expect((await readdir(root)).sort()).toEqual(['kubeconfig.tmp-mine', 'notes.txt']);
  });

  it('keeps them when the lab goes whose disk is full', async () => {
    await execOk('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'nodelet-test', root]);
    undo.push(() => execOk('umount', [root]));
    const { free } = await lab();
    await put('pki/ca.crt');
    const full = await exec('dd', ['if=/dev/zero', `of=${join(root, 'mine')}`, 'bs=1k']);
    expect(full.stderr).toContain('No space left');
    await free();
    expect(await here('down', root)).toMatchObject({ code: 0, stderr: '' });
    expect(await readdir(root)).toEqual(['mine']);
  });

  it('keeps foreign mounts there, and names them', async () => {
    const { paths, free } = await lab();
    const data = join(base, 'data');
    await mkdir(data);
    await writeFile(join(data, 'file'), 'mine\n');
    const volume = join(paths.kubeletDir, 'pods/6d4a/volumes/kubernetes.io~empty-dir/a');
    for (const place of [join(root, 'disk'), join(paths.kubeletDir, 'mine'), volume])
      await mkdir(place, { recursive: true });
    await bind(data, join(root, 'disk'));
    await bind(data, join(paths.kubeletDir, 'mine'));
    await execOk('mount', ['-t', 'tmpfs', 'nodelet-test', volume]);
    await free();
    const { code, stderr } = await here('down', root);
    expect(code).toBe(1);
    expect(stderr).toContain(`something is mounted on ${join(paths.kubeletDir, 'mine')}, not by the lab`);
    expect(stderr).not.toContain(join(root, 'disk'));
    const mounts = await readFile('/proc/self/mountinfo', 'utf8');
    expect(mounts.split('\n').filter((line) => line.includes(root))).toHaveLength(2);
    expect(await readFile(join(data, 'file'), 'utf8')).toBe('mine\n');
    expect((await readdir(root)).sort()).toEqual([MARKER_NAME, 'disk', 'kubelet']);
  });

  it('keeps a directory that was put in place of the lab’s', async () => {
    const { paths, free } = await lab();
    await rename(paths.pkiDir, join(base, 'old'));
    await put('pki/ca.key');
    await free();
    const { code, stderr } = await here('down', root);
    expect(code).toBe(1);
    expect(stderr).toContain(`${paths.pkiDir} is not the directory that the lab made`);
    expect((await readdir(root)).sort()).toEqual([MARKER_NAME, 'pki']);
    await rm(paths.pkiDir, { recursive: true });
    expect(await cleanLab({ paths })).toEqual([]);
    expect(await readdir(root)).toEqual([]);
  });
});

describe('a start', () => {
  it('that finds a user’s directory under a name of the lab’s does not take it', async () => {
    const paths = labPaths(root);
    const taken = await takeRoot(paths);
    undo.push(() => taken.lock.release());
    await put('logs/app.log');
    await expect(makeEntries(paths, taken.marker, { csi: true, docker: false })).rejects.toThrow(
      `${paths.logDir} exists and was not made by a lab`,
    );
    await taken.lock.release();
    expect(await here('down', root)).toMatchObject({ code: 0 });
    expect(await readdir(root)).toEqual(['logs']);
  });

  it('that was killed while it made its directories is taken down, and may be made again', async () => {
    const paths = labPaths(root);
    const taken = await takeRoot(paths);
    undo.push(() => taken.lock.release());
    await taken.marker.put({ kind: 'directory', path: paths.pkiDir }, { kind: 'directory', path: paths.logDir });
    await mkdir(paths.pkiDir);
    await makeEntries(paths, taken.marker, { csi: false, docker: false });
    expect(taken.marker.isMade(paths.pkiDir)).toBe(true);
    await taken.lock.release();
    expect(await cleanLab({ paths })).toEqual([]);
    expect(await readdir(root)).toEqual([]);
  });

  it('on a file is refused', async () => {
    await put('file');
    expect(await here('up', join(root, 'file'))).toMatchObject({
      code: 1,
      stderr: `${join(root, 'file')} is no directory`,
    });
  });
});

describe('a marker that proves nothing', () => {
  it.each([
    [
      'cut off',
      async (file: string) => writeFile(file, (await readFile(file, 'utf8')).slice(0, -20)),
      'is damaged|not JSON',
    ],
    [
      'changed by hand',
      async (file: string) =>
        writeFile(
          file,
          (await readFile(file, 'utf8')).replace('"pod-logs"', '"directory"').replace('/pki"', '/precious"'),
        ),
      'checksum does not match',
    ],
    ['that a user can write', async (file: string) => execOk('chown', ['65534', file]), 'belongs to user 65534'],
  ])('because it is %s: down takes what proves itself, and leaves the rest', async (_, damage, words) => {
    const { paths, free } = await lab();
    await put('pki/ca.key', 'precious/data');
    await damage(join(root, MARKER_NAME));
    await free();
    const child = spawn('sleep', ['3600'], { env: { ...labEnvironment(root) }, stdio: 'ignore', detached: true });
    undo.push(async () => child.kill('SIGKILL'));
    await once(child, 'spawn');
    await writeClaim(paths.runDir, { subnet: '10.244.250.0/24', root });
    await execOk('ip', ['link', 'add', paths.bridge, 'type', 'bridge']);
    undo.push(() => exec('ip', ['link', 'delete', paths.bridge]));
    const pid = child.pid ?? 0;
    const id = { pid, startTime: (await readProcess(pid))?.startTime ?? -1 };
    const { code, stdout, stderr } = await here('down', root);
    expect(code).toBe(1);
    expect(stdout).toContain(`processes ${pid} (sleep)`);
    expect(stdout).toContain(`the bridge ${paths.bridge}`);
    expect(stdout).toContain(`its run directory ${paths.runDir}`);
    expect(stderr).toMatch(new RegExp(words));
    expect(await isAlive(id)).toBe(false);
    expect((await exec('ip', ['link', 'show', paths.bridge])).code).not.toBe(0);
    expect(await exists(paths.runDir)).toBe(false);
    expect(await readFile(join(root, 'pki/ca.key'), 'utf8')).toBe('pki/ca.key\n');
    expect(await readFile(join(root, 'precious/data'), 'utf8')).toBe('precious/data\n');
    const up = await here('up', root);
    expect([up.code, up.stderr.includes(MARKER_NAME)]).toEqual([1, true]);
  });

  it('because it was copied with its directory to another place', async () => {
    const { free } = await lab();
    await put('pki/ca.key');
    const copy = join(base, 'copy');
    await execOk('cp', ['-a', root, copy]);
    await free();
    const { code, stderr } = await here('down', copy);
    expect([code, stderr.includes(`was written for ${root}`)]).toEqual([1, true]);
    expect(await readFile(join(copy, 'pki/ca.key'), 'utf8')).toBe('pki/ca.key\n');
  });

  it('because it is a link to another lab’s', async () => {
    const { free } = await lab(join(base, 'lab'));
    await put('pki/ca.key');
    await symlink(join(base, 'lab', MARKER_NAME), join(root, MARKER_NAME));
    const { code } = await here('down', root);
    expect([code, await exists(join(root, 'pki/ca.key'))]).toEqual([1, true]);
    await free();
  });
});

describe('protected, whatever the marker says:', () => {
  const refused = async (command: string, words: string): Promise<void> => {
    const before = await contents(root);
    const { code, stderr } = await here(command, root);
    expect([code, stderr]).toEqual([1, expect.stringContaining(words)]);
    expect(await contents(root)).toEqual(before);
  };
  beforeEach(async () => {
    const { free } = await lab();
    await free();
    await put('pki/ca.key', 'kubelet/data');
  });

  it.each(['up', 'down'])('a git checkout (%s)', async (command) => {
    await put('.git/HEAD');
    await refused(command, `${root} is a git checkout`);
  });

  it.each(['up', 'down'])('a home directory (%s)', async (command) => {
    vi.stubEnv('HOME', root);
    await refused(command, `${root} is a home directory`);
  });

  it.each(['up', 'down'])('one with a running kubelet below (%s)', async (command) => {
    // A script is recognised by its own name, as the kernel shows it.
    const program = join(base, 'kubelet');
    await writeFile(program, '#!/bin/sh\nwhile :; do sleep 1; done\n');
    await chmod(program, 0o755);
    const child = spawn(program, [`--root-dir=${join(root, 'kubelet')}`], { stdio: 'ignore', detached: true });
    undo.push(async () => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    });
    await once(child, 'spawn');
    await expect.poll(async () => (await readProcess(child.pid ?? 0))?.comm).toBe('kubelet');
    await refused(command, `is in use by kubelet (process ${child.pid})`);
  });

  it('one with a running containerd below', async () => {
    const containerd = await startContainerd({ root: join(root, 'kubelet') });
    undo.push(() => containerd.stop());
    for (const command of ['up', 'down']) {
      const { code, stderr } = await here(command, root);
      expect([code, stderr]).toEqual([1, expect.stringContaining('is in use by containerd')]);
    }
    expect(
      await isAlive({ pid: containerd.pid, startTime: (await readProcess(containerd.pid))?.startTime ?? -1 }),
    ).toBe(true);
    expect(await readFile(join(root, 'pki/ca.key'), 'utf8')).toBe('pki/ca.key\n');
  });

  // Only checked: no command is run on them.
  it.each([
    '/',
    '/var',
    '/var/lib',
    '/etc',
    '/home',
    '/usr',
    '/run',
    '/root',
    '/boot',
    '/opt',
    '/tmp',
    '/proc/self',
    '/dev',
  ])('%s', async (path) => expect(protectedBecause(await protectionFacts(path))).toBeTypeOf('string'));

  it('a bind mount of one of them', async () => {
    await bind('/etc', join(base, 'alias'));
    expect(protectedBecause(await protectionFacts(join(base, 'alias')))).toBe('is /etc, a directory of the system');
  });
});

describe('a lab’s root that is in use', () => {
  it.each([
    ['itself', async () => root],
    ['a path with ..', async () => join(base, 'x/../root')],
    [
      'a symbolic link',
      async () => {
        await symlink(root, join(base, 'link'));
        return join(base, 'link');
      },
    ],
    [
      'a bind mount',
      async () => {
        await bind(root, join(base, 'alias'));
        return join(base, 'alias');
      },
    ],
    [
      'a bind mount of it without its marker',
      async () => {
        await rm(join(root, MARKER_NAME));
        await bind(root, join(base, 'alias'));
        return join(base, 'alias');
      },
    ],
  ])('is in use under %s', async (_, alias) => {
    await lab();
    const name = await alias();
    const { code, stderr } = await here('up', name);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`is in use by process ${process.pid}`)]);
  });
});

it.each([['up'], ['down'], ['kubeconfig'], ['demo']])(
  '%s with an empty --root is refused in one line',
  async (command) => {
    const { code, stderr } = await exec(NODELET, [command, '--root', ''], { cwd: root, timeoutMs: 120_000 });
    expect([code, stderr]).toEqual([1, 'nodelet: --root is empty: give a directory\n']);
    expect(await readdir(root)).toEqual([]);
  },
);
