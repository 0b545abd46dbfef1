// Where containerd and Docker look for images: the lab's registry, another mirror, and what is behind it.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bytes, checked, pullLimit } from '../../../../cli/commands/registry-flags.ts';
import { mirrorUrl } from '../../../../cli/lab/mirror-url.ts';
import { hostsFile, MIRRORED, reachableRegistries, writeMirrors } from '../../../../cli/lab/mirrors.ts';
import { labPaths } from '../../../../cli/lab/paths.ts';
import { registryProgram } from '../../../../cli/lab/programs.ts';
import { planMirrors, registryState } from '../../../../cli/lab/registry.ts';
import { daemonConfig } from '../../../../labs/docker/dockerd.ts';

const URL = 'http://127.0.0.1:5000';
const port = async (): Promise<number> => 5000;

it('a registry that cannot be reached has the mirror in its place', () => {
  const text = hostsFile('docker.io', 'registry-1.docker.io', { mirror: URL, reachable: new Set(['quay.io']) });
  expect(text).toBe(`# Written by nodelet up.\nserver = "${URL}"\n\n[host]\n`);
});

it('a registry that can be reached is behind the mirror', () => {
  const text = hostsFile('docker.io', 'registry-1.docker.io', { mirror: URL, reachable: new Set(['docker.io']) });
  expect(text).toBe(
    '# Written by nodelet up.\nserver = "https://registry-1.docker.io"\n\n' +
      `[host."${URL}"]\ncapabilities = ["pull", "resolve"]\n`,
  );
});

it('each mirrored registry has a file, which goes again without a mirror', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-mirrors-'));
  try {
    await writeMirrors(directory, { mirror: URL, reachable: new Set() });
    expect((await readdir(directory)).toSorted()).toEqual([...MIRRORED.keys()].toSorted());
    expect(await readFile(join(directory, 'quay.io', 'hosts.toml'), 'utf8')).toContain(URL);
    await writeMirrors(directory, undefined);
    for (const host of MIRRORED.keys()) expect(await readdir(join(directory, host))).toEqual([]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

it('registries are known by the hosts in images’ names', async () => {
  const answers = await reachableRegistries(async (registry) => registry === 'registry-1.docker.io');
  expect([...answers]).toEqual(['docker.io']);
});

it('a lab has a registry of its own, another mirror, or neither', async () => {
  const state = (options: object) => registryState(options, '10.0.0.1', port);
  expect(await state({})).toBeUndefined();
  expect(await state({ registry: true })).toEqual({
    url: 'http://10.0.0.1:5000',
    own: { address: '10.0.0.1', port: 5000 },
  });
  expect(await state({ registry: true, registryMirror: 'https://m.example/' })).toEqual({ url: 'https://m.example' });
});

it('a lab that builds its images looks for no registry', async () => {
  expect(await planMirrors({ registry: { url: URL } }, { images: 'build' })).toEqual({
    mirror: URL,
    reachable: new Set(),
  });
  expect(await planMirrors({}, { images: 'build' })).toBeUndefined();
});

it('the registry is started where the lab’s state has it', () => {
  const own = { address: '10.0.0.1', port: 5000 };
  const { args } = registryProgram({ registry: { url: URL, own } }, new Set(['quay.io', 'gcr.io']), ['--x']);
  expect(args).toEqual([
    'registry',
    '--bind-address',
    '10.0.0.1',
    '--port',
    '5000',
    '--reachable',
    'quay.io,gcr.io',
    '--x',
  ]);
});

it('Docker has a mirror of docker.io', () => {
  expect(JSON.parse(daemonConfig(labPaths('/tmp/mirrors').docker, 26, URL))).toEqual({ 'registry-mirrors': [URL] });
});

it.each(['https://mirror.example.com', 'http://10.0.0.1:5000', 'https://mirror.example.com/v2/proxy'])(
  '%s is a mirror',
  (text) => expect(mirrorUrl(text)).toBe(text),
);

it.each(['mirror.example.com', 'ftp://a', 'https://user:pw@a', 'https://a?x', ''])('"%s" is none', (text) => {
  expect(() => mirrorUrl(text)).toThrow(/is no URL such as/);
});

it('rates and limits are read as Kubernetes writes quantities and durations', () => {
  expect([bytes('512Ki'), bytes('1M'), bytes('300')]).toEqual([524_288, 1_000_000, 300]);
  expect([pullLimit('2/1m'), pullLimit('100/6h')]).toEqual([
    { pulls: 2, windowMs: 60_000 },
    { pulls: 100, windowMs: 21_600_000 },
  ]);
  expect(checked(bytes)('512Ki')).toBe('512Ki');
});

it.each(['0', '-1', '1.5Mi', 'fast', '1e9', ''])('"%s" is no rate', (text) =>
  expect(() => bytes(text)).toThrow(/is no number/),
);
it.each(['2', '2/', '/1m', '2/0s', '2/x', 'a/1m'])('"%s" is no limit', (text) =>
  expect(() => pullLimit(text)).toThrow(),
);
