import { expect, test } from 'vitest';
import { dockerdProgram } from '../../../../cli/lab/docker.ts';
import { labPaths } from '../../../../cli/lab/paths.ts';
import { agentProgram, dockershimProgram } from '../../../../cli/lab/programs.ts';
import { type LabState, runtimeSocket } from '../../../../cli/lab/state.ts';
import { daemonConfig, dockerMajor } from '../../../../labs/docker/dockerd.ts';

const paths = labPaths('/tmp/lab-docker');
const STATE: LabState = {
  version: 1,
  nodeName: 'n',
  apiserverPort: 1,
  kubeletPort: 2,
  subnet: '10.244.0.0/24',
  network: 'agent',
  runtime: 'docker',
  firewall: { chains: { ipv4: [], ipv6: [] } },
  madeDirectories: [],
};

test.each([
  ['Docker version 20.10.24+dfsg1, build 5d6db84', 20],
  ['Docker version 26.1.5, build x', 26],
  ['nonsense', undefined],
])('%s', (text, major) => {
  expect(dockerMajor(text)).toBe(major);
});

test('a dockerd that makes a key makes it below the lab’s root', () => {
  expect(JSON.parse(daemonConfig(paths.docker, 20))).toEqual({
    'deprecated-key-path': `${paths.docker.root}/key.json`,
  });
  // Newer ones refuse a name that they do not know.
  expect(JSON.parse(daemonConfig(paths.docker, 26))).toEqual({});
});

const wordAfter = (args: readonly string[], flag: string): string | undefined => args[args.indexOf(flag) + 1];

test('dockerd has a root, state, socket and cgroup of the lab’s own, and touches no network', () => {
  const { args } = dockerdProgram(paths, STATE, 'overlayfs', '/nodelet-x');
  expect(args).toEqual(
    expect.arrayContaining(['--iptables=false', '--ip-forward=false', '--ip-masq=false', '--live-restore']),
  );
  expect(wordAfter(args, '--bridge')).toBe('none');
  expect(wordAfter(args, '--data-root')).toBe(paths.docker.root);
  expect(wordAfter(args, '--exec-root')).toBe(paths.docker.state);
  expect(wordAfter(args, '--host')).toBe(`unix://${paths.docker.socket}`);
  expect(wordAfter(args, '--containerd')).toBe(paths.containerd.socket);
  expect(wordAfter(args, '--cgroup-parent')).toBe('/nodelet-x/docker');
  expect(wordAfter(args, '--storage-driver')).toBe('overlay2');
  const other = dockerdProgram(paths, { ...STATE, cgroupDriver: 'systemd' }, 'native', '/x.slice').args;
  expect(wordAfter(other, '--storage-driver')).toBe('vfs');
  expect(wordAfter(other, '--exec-opt')).toBe('native.cgroupdriver=systemd');
  expect(other).not.toContain('--cgroup-parent');
});

test.each([
  ['agent', paths.cni.shimConfDir, paths.cni.shimBinDir],
  ['runtime', paths.cni.confDir, paths.cni.binDir],
] as const)('with --network %s the shim runs that CNI configuration', (network, confDir, binDir) => {
  const { args } = dockershimProgram(paths, { ...STATE, network });
  expect(wordAfter(args, '--cni-conf-dir')).toBe(confDir);
  expect(wordAfter(args, '--cni-bin-dir')).toBe(binDir);
  expect(wordAfter(args, '--listen')).toBe(`unix://${paths.docker.shimSocket}`);
});

test('the lab’s runtime is where its state says', () => {
  expect(runtimeSocket(paths, STATE)).toBe(paths.docker.shimSocket);
  expect(runtimeSocket(paths, { runtime: 'containerd' })).toBe(paths.containerd.socket);
  expect(runtimeSocket(paths, undefined)).toBe(paths.containerd.socket);
  expect(agentProgram(paths, STATE).args).toContain('agent');
});
