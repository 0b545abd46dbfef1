import { describe, expect, test } from 'vitest';
import { decodeRecord } from '../../../dockershim/records.ts';
import {
  cgroupParentOf,
  resolvConf,
  sandboxOptions,
  sandboxState,
  sandboxStatus,
} from '../../../dockershim/translate/sandbox.ts';
import { FACTS, POD, sandboxConfig } from './messages.ts';

const CONTEXT = { facts: FACTS, image: 'sha256:pause', runtimeHandler: '', createdAt: '17' };
const optionsOf = (config: object, more: object = {}) => sandboxOptions(sandboxConfig(config), { ...CONTEXT, ...more });

test('a pause container of the pod’s name, with an empty network namespace', () => {
  const options = optionsOf({ hostname: 'h', labels: { app: 'a' }, linux: { cgroup_parent: '/kubepods/x' } });
  expect(options).toMatchObject({
    name: 'k8s_POD_web_demo_u1_2',
    Image: 'sha256:pause',
    Hostname: 'h',
    Labels: { app: 'a', 'io.nodelet.dockershim.kind': 'sandbox' },
    HostConfig: {
      NetworkMode: 'none',
      UTSMode: '',
      IpcMode: 'shareable',
      PidMode: '',
      CgroupParent: '/kubepods/x',
      OomScoreAdj: -998,
      ReadonlyRootfs: true,
      LogConfig: { Type: 'none' },
    },
  });
});

describe('namespaces', () => {
  const namespaces = (namespace_options: object) =>
    optionsOf({ hostname: 'h', linux: { security_context: { namespace_options } } });
  test('of the node', () => {
    const options = namespaces({ network: 'NODE', pid: 'NODE', ipc: 'NODE' });
    expect(options.Hostname).toBeUndefined();
    expect(options.HostConfig).toMatchObject({
      NetworkMode: 'host',
      UTSMode: 'host',
      PidMode: 'host',
      IpcMode: 'host',
    });
  });
  test.each([
    [{ network: 'CONTAINER' }, 'namespace_options.network'],
    [{ ipc: 'TARGET' }, 'namespace_options.ipc'],
    [{ userns_options: { mode: 'POD' } }, 'namespace_options.userns_options'],
  ])('%j is refused by name', (options, field) => {
    expect(() => namespaces(options)).toThrow(field);
  });
});

test('a process that may not lower OOM scores leaves them at its own', () => {
  expect(optionsOf({}, { facts: { ...FACTS, minOomScoreAdj: 12 } }).HostConfig?.OomScoreAdj).toBe(12);
});

test('a runtime handler is a runtime of Docker’s, or refused', () => {
  expect(optionsOf({}, { runtimeHandler: 'kata' }).HostConfig?.Runtime).toBe('kata');
  expect(() => optionsOf({}, { runtimeHandler: 'gvisor' })).toThrow('no runtime for "gvisor" is configured');
});

test.each([
  ['cgroupfs', '', {}],
  ['cgroupfs', '/kubepods/burstable/pod1', { CgroupParent: '/kubepods/burstable/pod1' }],
  ['systemd', '/kubepods.slice/kubepods-pod1.slice', { CgroupParent: 'kubepods-pod1.slice' }],
] as const)('%s: cgroup parent %j', (cgroupDriver, parent, expected) => {
  expect(cgroupParentOf(parent, { ...FACTS, cgroupDriver })).toEqual(expected);
});

test('a cgroup parent that is no slice is refused with the systemd driver', () => {
  expect(() => cgroupParentOf('/kubepods', { ...FACTS, cgroupDriver: 'systemd' })).toThrow('linux.cgroup_parent');
});

test.each([
  [null, undefined],
  [{ servers: [], searches: [], options: [] }, undefined],
  [{ servers: ['10.0.0.10', '1.1.1.1'], searches: [], options: [] }, 'nameserver 10.0.0.10\nnameserver 1.1.1.1\n'],
  [
    { servers: ['10.0.0.10'], searches: ['a.b', 'b'], options: ['ndots:5'] },
    'search a.b b\nnameserver 10.0.0.10\noptions ndots:5\n',
  ],
])('resolv.conf of %j', (dns, expected) => {
  expect(resolvConf(dns)).toBe(expected);
});

test.each([
  [true, false, true, 'SANDBOX_READY'],
  [true, true, false, 'SANDBOX_READY'],
  // Its network was never set up to the end: the shim was killed in between.
  [true, false, false, 'SANDBOX_NOTREADY'],
  [false, false, true, 'SANDBOX_NOTREADY'],
])('running %s, host network %s, attached %s: %s', (running, host, attached, expected) => {
  expect(sandboxState(running, host, attached)).toBe(expected);
});

test('what CRI gave comes back from Docker’s labels, and nothing of an image’s', () => {
  const options = optionsOf({ labels: { app: 'a' }, annotations: { note: 'n' } });
  const record = decodeRecord({ ...options.Labels, 'org.image': 'x' });
  if (record?.kind !== 'sandbox') throw new Error('no sandbox');
  expect(sandboxStatus('id', record, 'SANDBOX_READY', ['10.0.0.1', 'fd00::1'])).toMatchObject({
    id: 'id',
    metadata: POD,
    created_at: '17',
    labels: { app: 'a' },
    annotations: { note: 'n' },
    network: { ip: '10.0.0.1', additional_ips: [{ ip: 'fd00::1' }] },
  });
  expect(sandboxStatus('id', record, 'SANDBOX_NOTREADY', ['10.0.0.1']).network).toEqual({ ip: '', additional_ips: [] });
  expect(decodeRecord({ app: 'a' })).toBeUndefined();
  expect(decodeRecord({ 'io.nodelet.dockershim.record': '{' })).toBeUndefined();
});

test('a pause process has no AppArmor profile where Docker’s own cannot be loaded', () => {
  const facts = { ...FACTS, apparmorUnloadable: true };
  expect(optionsOf({}, { facts }).HostConfig?.SecurityOpt).toEqual(['apparmor=unconfined']);
  const security_context = { seccomp: { profile_type: 'RuntimeDefault' } };
  expect(optionsOf({ linux: { security_context } }, { facts }).HostConfig?.SecurityOpt).toEqual([
    'apparmor=unconfined',
  ]);
});
