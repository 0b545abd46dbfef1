// A root directory that holds somebody's files: a lab may stand beside them, and never takes them for its own.

import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cleanLab } from '../../../cli/lab/clean.ts';
import { labPaths } from '../../../cli/lab/paths.ts';
import { strangers } from '../../../cli/lab/root.ts';
import { type ExecResult, exec, execOk } from '../../../lib/exec.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
const nodelet = (args: readonly string[], cwd = '/'): Promise<ExecResult> =>
  exec(NODELET, args, { cwd, timeoutMs: 120_000 });

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-root-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function put(...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await mkdir(join(root, name, '..'), { recursive: true });
    await writeFile(join(root, name), 'mine\n');
  }
}

describe('a root with directories of names that a lab uses, made by no lab', () => {
  it('is refused by up in one line, and nothing in it changes', async () => {
    await put('apiserver/main.ts', 'cni/request.ts', 'README.md');
    const { code, stdout, stderr } = await nodelet(['up', '--root', root]);
    expect([code, stdout, stderr]).toEqual([
      1,
      '',
      `nodelet: ${root} holds cni, apiserver, which no lab made: give the lab a directory of its own with --root\n`,
    ]);
    expect(await readFile(join(root, 'apiserver/main.ts'), 'utf8')).toBe('mine\n');
    expect((await readdir(root)).sort()).toEqual(['README.md', 'apiserver', 'cni']);
  });

  it('is left as it is by down, which says so', async () => {
    await put('logs/app.log');
    const { code, stderr } = await nodelet(['down', '--root', root]);
    expect([code, stderr]).toEqual([
      1,
      `nodelet: not everything could be cleaned: ${root} holds logs, which no lab made: it is left as it is\n`,
    ]);
    expect(await readFile(join(root, 'logs/app.log'), 'utf8')).toBe('mine\n');
  });
});

describe('a root with other files', () => {
  it('is no trouble to down, and they stay', async () => {
    await put('notes.txt');
    const { code, stderr } = await nodelet(['down', '--root', root]);
    expect([code, stderr]).toEqual([0, '']);
    expect(await readdir(root)).toEqual(['notes.txt']);
  });

  it('with a lab that lost its state file keeps only them', async () => {
    await put('notes.txt', 'pki/ca.crt', 'containerd/config.toml', 'logs/agent.log', 'kubeconfig');
    expect(await cleanLab({ paths: labPaths(root) })).toEqual([]);
    expect(await readdir(root)).toEqual(['notes.txt']);
  });

  it('with something mounted below that is not the lab’s keeps it mounted', async () => {
    await put('pki/ca.crt');
    const mine = join(root, 'disk');
    await mkdir(mine);
    await execOk('mount', ['-t', 'tmpfs', 'nodelet-test', mine]);
    try {
      await writeFile(join(mine, 'file'), 'mine\n');
      expect(await cleanLab({ paths: labPaths(root) })).toEqual([]);
      expect(await readFile(join(mine, 'file'), 'utf8')).toBe('mine\n');
    } finally {
      await execOk('umount', [mine]);
    }
  });
});

it.each(['pki/ca.crt', 'lab.json', 'kubelet.yaml', 'kubeconfigs/agent.kubeconfig', 'kubelet/pods'])(
  '%s tells that a lab was here',
  async (sign) => {
    await put('logs/agent.log', sign);
    expect(await strangers(labPaths(root))).toEqual([]);
  },
);

it.each([['up'], ['down'], ['kubeconfig'], ['demo']])(
  '%s with an empty --root says so in one line',
  async (command) => {
    const { code, stderr } = await nodelet([command, '--root', ''], root);
    expect([code, stderr]).toEqual([1, 'nodelet: --root is empty: give a directory\n']);
    expect(await readdir(root)).toEqual([]);
  },
);
