import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseConflist } from '../../../cni/conflist.ts';
import {
  installShim,
  removeShimConf,
  SHIM_NAME,
  shimConflist,
  shimScript,
  writeShimConf,
} from '../../../cni/shim/install.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'nodelet-shim-'));
});
afterEach(() => rm(dir, { recursive: true }));

it('the conflist is one that our own loader takes, asks for every capability, and is read by containerd 1.6', () => {
  const list = parseConflist('shim', shimConflist());
  expect(list).toMatchObject({ cniVersion: '1.0.0', name: 'nodelet' });
  expect(list.plugins.map((plugin) => plugin.type)).toEqual([SHIM_NAME]);
  for (const capability of [
    'portMappings',
    'bandwidth',
    'dns',
    'ips',
    'mac',
    'cgroupPath',
    'io.kubernetes.cri.pod-annotations',
  ]) {
    expect(list.plugins[0]?.capabilities).toHaveProperty([capability], true);
  }
});

it('the shim is executable, knows its socket, and has loopback beside it', async () => {
  const plugins = join(dir, 'plugins');
  await mkdir(plugins);
  await writeFile(join(plugins, 'loopback'), '', { mode: 0o755 });
  const bin = join(dir, 'bin');
  const path = await installShim(bin, { socketPath: '/run/x/cni.sock', pluginDirs: ['/nonexistent', plugins] });
  await installShim(bin, { socketPath: '/run/x/cni.sock', pluginDirs: [plugins] });
  expect((await stat(path)).mode & 0o777).toBe(0o755);
  expect(await readFile(path, 'utf8')).toContain("my $socket_path = '/run/x/cni.sock';");
  expect(await readlink(join(bin, 'loopback'))).toBe(join(plugins, 'loopback'));
  expect((await readdir(bin)).sort()).toEqual(['loopback', SHIM_NAME]);
});

it('says where it looked when there is no loopback plugin', async () => {
  await expect(installShim(join(dir, 'bin'), { socketPath: '/s', pluginDirs: [join(dir, 'none')] })).rejects.toThrow(
    `no CNI plugin "loopback" in ${join(dir, 'none')}`,
  );
});

it.each([
  [`/${'x'.repeat(107)}`, 'longer than 107 bytes'],
  ["/tmp/it's", 'letters, digits'],
  ['/tmp/$(reboot)', 'letters, digits'],
  ['relative', 'must be absolute'],
])('refuses %j as a socket path', async (path, message) => {
  await expect(shimScript(path)).rejects.toThrow(message);
});

it('the conflist comes and goes whole', async () => {
  const path = await writeShimConf(join(dir, 'net.d'));
  expect(await readdir(join(dir, 'net.d'))).toEqual([path.split('/').at(-1)]);
  await removeShimConf(join(dir, 'net.d'));
  await removeShimConf(join(dir, 'net.d'));
  expect(await readdir(join(dir, 'net.d'))).toEqual([]);
});
