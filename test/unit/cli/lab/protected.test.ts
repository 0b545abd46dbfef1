// Directories that no lab may have.

import { expect, test } from 'vitest';
import {
  homesOf,
  type ProtectionFacts,
  pathsOfArguments,
  protectedBecause,
  runtimeName,
  SYSTEM_DIRECTORIES,
} from '../../../../cli/lab/protected.ts';

const facts = (root: string, more: Partial<ProtectionFacts> = {}): ProtectionFacts => ({
  root: { path: root, identity: '1:99' },
  system: SYSTEM_DIRECTORIES.map((path, index) => ({ path, identity: `1:${index}` })),
  homes: [{ path: '/home/ann', identity: '1:200' }, { path: '/export/bob' }],
  gitCheckout: false,
  running: [],
  ...more,
});

test.each([...SYSTEM_DIRECTORIES, '/', '/proc', '/proc/1', '/sys/fs/cgroup', '/dev', '/dev/mapper'])('%s', (root) => {
  expect(protectedBecause(facts(root))).toBeDefined();
});

test.each([
  '/var/lib/nodelet',
  '/var/lib/nodelet-demo',
  '/tmp/a',
  '/run/lab',
  '/home/ann/lab',
  '/root/lab',
  '/dev/shm/a',
  '/srv/lab',
])('%s may be a lab’s', (root) => expect(protectedBecause(facts(root))).toBeUndefined());

const running = [{ pid: 7, name: 'kubelet', paths: ['/data/lab/kubelet/pki'] }];
test.each<[string, ProtectionFacts, string]>([
  ['a home directory', facts('/home/ann'), 'is a home directory'],
  ['what holds one', facts('/export'), 'holds the home directory /export/bob'],
  ['an alias of one', facts('/mnt/x', { root: { path: '/mnt/x', identity: '1:200' } }), 'is a home directory'],
  [
    'an alias of a directory of the system',
    facts('/mnt/x', { root: { path: '/mnt/x', identity: '1:0' } }),
    `is ${SYSTEM_DIRECTORIES[0]}, a directory of the system`,
  ],
  ['a git checkout', facts('/srv/src', { gitCheckout: true }), 'is a git checkout'],
  [
    'one that a kubelet works in',
    facts('/data/lab', { running }),
    'is in use by kubelet (process 7), which has /data/lab/kubelet/pki',
  ],
])('%s', (_, given, because) => expect(protectedBecause(given)).toBe(because));

test('one beside that of a kubelet is not', () =>
  expect(protectedBecause(facts('/data/la', { running }))).toBeUndefined());

test.each([
  ['kubelet', ['/usr/bin/kubelet', '--config=/x'], 'kubelet'],
  ['kubelet', ['/bin/sh', '/opt/kubelet'], 'kubelet'],
  ['containerd', ['containerd'], 'containerd'],
  ['containerd-shim', ['/usr/bin/containerd-shim-runc-v2', '-namespace', 'k8s.io'], 'containerd-shim'],
  ['MainThread', ['/node', '/src/cli/main.ts', 'agent', '--root-dir', '/x'], 'nodelet agent'],
  ['MainThread', ['/node', '/src/cli/main.ts', 'down'], undefined],
  ['vim', ['vim', '/etc/kubelet'], undefined],
])('%s %j is %s', (comm, argv, name) => expect(runtimeName({ comm, argv })).toBe(name));

test('paths of a command line', () => {
  expect(
    pathsOfArguments(['/bin/k', '--root-dir=/a', '--config', '/b', '--address=unix:///c.sock', '--v=2', 'unix:///d']),
  ).toEqual(['/bin/k', '/a', '/b', '/c.sock', '/d']);
});

test('home directories of passwd', () => {
  expect(homesOf('root:x:0:0:root:/root:/bin/bash\nx:x:1:1::/:/bin/sh\nann:x:2:2::/home/ann:/bin/sh\n\nbad')).toEqual([
    '/root',
    '/home/ann',
  ]);
});
