import { describe, expect, test } from 'vitest';
import { decodeRecord } from '../../../dockershim/records.ts';
import { containerOptions, logPathOf, stopSignalOf } from '../../../dockershim/translate/container.ts';
import { cgroupFiles, updatedResources } from '../../../dockershim/translate/resources.ts';
import { sandboxRecord } from '../../../dockershim/translate/sandbox.ts';
import { seccompFile, userOf } from '../../../dockershim/translate/security.ts';
import { containerConfig, FACTS, sandboxConfig } from './messages.ts';

const sandbox = (config: object = {}) =>
  sandboxRecord(sandboxConfig(config), { facts: FACTS, image: '', runtimeHandler: '', createdAt: '1' });
const CONTEXT = {
  facts: FACTS,
  sandboxId: 'pause',
  sandbox: sandbox(),
  imageId: 'sha256:i',
  imageRef: 'r',
  createdAt: '17',
};

const optionsOf = (config: object, more: object = {}, pod: object = {}) =>
  containerOptions(containerConfig(config), sandboxConfig(pod), { ...CONTEXT, ...more });
const hostOf = (config: object, more: object = {}) => optionsOf(config, more).HostConfig;
const security = (security_context: object, more: object = {}) => hostOf({ linux: { security_context } }, more);
const resources = (figures: object, more: object = {}) => hostOf({ linux: { resources: figures } }, more);

test('what it runs, where, and in whose namespaces', () => {
  const options = optionsOf(
    {
      command: ['sh', '-c'],
      args: ['x'],
      working_dir: '/w',
      envs: [{ key: 'A', value: '1=2' }],
      tty: true,
      stdin: true,
      stop_signal: 'SIGRTMINPLUS3',
    },
    {},
    { log_directory: '/logs', linux: { cgroup_parent: '/kubepods/p' } },
  );
  expect(options).toMatchObject({
    name: 'k8s_main_web_demo_u1_1',
    Image: 'sha256:i',
    Entrypoint: ['sh', '-c'],
    Cmd: ['x'],
    WorkingDir: '/w',
    Env: ['A=1=2'],
    Tty: true,
    OpenStdin: true,
    StdinOnce: false,
    StopSignal: 'SIGRTMIN+3',
    HostConfig: {
      NetworkMode: 'container:pause',
      IpcMode: 'container:pause',
      PidMode: 'container:pause',
      UTSMode: '',
      CgroupParent: '/kubepods/p',
      RestartPolicy: { Name: 'no' },
    },
  });
});

test('without command and arguments the image’s own are run', () => {
  expect(Object.keys(optionsOf({}))).not.toEqual(expect.arrayContaining(['Entrypoint']));
  const argumentsOnly = optionsOf({ args: ['x'] });
  expect(argumentsOnly.Cmd).toEqual(['x']);
  expect(argumentsOnly.Entrypoint).toBeUndefined();
});

test.each([
  ['CONTAINER', undefined, ''],
  ['NODE', undefined, 'host'],
  ['TARGET', 'other', 'container:other'],
])('pid %s is %j', (pid, target_id, expected) => {
  expect(security({ namespace_options: { pid, target_id } })?.PidMode).toBe(expected);
});

test('a pod on the host’s network has the host’s name', () => {
  const onHost = sandbox({ linux: { security_context: { namespace_options: { network: 'NODE' } } } });
  expect(hostOf({}, { sandbox: onHost })?.UTSMode).toBe('host');
});

describe('mounts', () => {
  const mountOf = (mount: object, more: object = {}) =>
    hostOf({ mounts: [{ host_path: '/h', container_path: '/c', ...mount }] }, more)?.Mounts?.[0];
  test.each([
    [{}, { ReadOnly: false, BindOptions: {} }],
    [{ readonly: true }, { ReadOnly: true, BindOptions: {} }],
    [{ propagation: 'PROPAGATION_HOST_TO_CONTAINER' }, { BindOptions: { Propagation: 'rslave' } }],
    [{ propagation: 'PROPAGATION_BIDIRECTIONAL' }, { BindOptions: { Propagation: 'rshared' } }],
  ])('%j', (mount, expected) => {
    expect(mountOf(mount)).toMatchObject({ Type: 'bind', Source: '/h', Target: '/c', ...expected });
  });
  test('from Docker 25 on what is below a read-only mount is part of the request', () => {
    const facts = { ...FACTS, apiMinor: 44 };
    expect(mountOf({ readonly: true }, { facts })?.BindOptions).toHaveProperty('ReadOnlyNonRecursive', true);
    const recursive = { readonly: true, recursive_read_only: true };
    expect(mountOf(recursive, { facts })?.BindOptions).toHaveProperty('ReadOnlyForceRecursive', true);
  });
  test.each([
    [{ readonly: true, recursive_read_only: true }, 'mounts[0].recursive_read_only'],
    [{ recursive_read_only: true }, 'mounts[0].recursive_read_only'],
    [{ image: { image: 'x' } }, 'mounts[0].image'],
    [{ uidMappings: [{ host_id: 1, container_id: 0, length: 1 }] }, 'mounts[0].uidMappings'],
    [{ host_path: '' }, 'mounts[0].host_path'],
  ])('%j is refused by name', (mount, field) => {
    expect(() => mountOf(mount)).toThrow(field);
  });
});

test('devices, and CDI’s refused', () => {
  const device = { host_path: '/dev/a', container_path: '/dev/b', permissions: 'rw' };
  expect(hostOf({ devices: [device] })?.Devices).toEqual([
    { PathOnHost: '/dev/a', PathInContainer: '/dev/b', CgroupPermissions: 'rw' },
  ]);
  expect(() => hostOf({ CDI_devices: [{ name: 'v/c=d' }] })).toThrow('CDI_devices[v/c=d]');
});

describe('security', () => {
  test('capabilities, paths, file system, privileges', () => {
    expect(
      security({
        capabilities: { add_capabilities: ['NET_ADMIN'], drop_capabilities: ['ALL'] },
        readonly_rootfs: true,
        no_new_privs: true,
        supplemental_groups: [7, 8],
        masked_paths: ['/proc/kcore'],
        readonly_paths: ['/proc/sys'],
        seccomp: { profile_type: 'RuntimeDefault' },
      }),
    ).toMatchObject({
      CapAdd: ['NET_ADMIN'],
      CapDrop: ['ALL'],
      ReadonlyRootfs: true,
      GroupAdd: ['7', '8'],
      SecurityOpt: ['no-new-privileges'],
      MaskedPaths: ['/proc/kcore'],
      ReadonlyPaths: ['/proc/sys'],
    });
  });
  test('nothing is hidden from a privileged container', () => {
    const host = security({ privileged: true, masked_paths: ['/proc/kcore'] });
    expect(host).toMatchObject({ Privileged: true, SecurityOpt: ['seccomp=unconfined'] });
    expect(host?.MaskedPaths).toBeUndefined();
  });
  test.each([
    [{}, ['seccomp=unconfined']],
    [{ seccomp: { profile_type: 'Unconfined' } }, ['seccomp=unconfined']],
    [{ seccomp: { profile_type: 'RuntimeDefault' } }, []],
    [{ seccomp: { profile_type: 'Localhost', localhost_ref: '/p.json' } }, ['seccomp={"x":1}']],
    [{ seccomp_profile_path: 'runtime/default' }, []],
    [{ seccomp_profile_path: 'localhost//p.json' }, ['seccomp={"x":1}']],
  ])('seccomp of %j', (context, expected) => {
    expect(security(context, { seccomp: '{"x":1}' })?.SecurityOpt).toEqual(expected);
  });
  test('the file of a seccomp profile', () => {
    const fileOf = (context: object) =>
      seccompFile(containerConfig({ linux: { security_context: context } }).linux?.security_context ?? null);
    const local = { seccomp: { profile_type: 'Localhost', localhost_ref: '/p.json' } };
    expect(fileOf(local)).toBe('/p.json');
    expect(fileOf({ ...local, privileged: true })).toBeUndefined();
    expect(() => fileOf({ seccomp: { profile_type: 'Localhost', localhost_ref: 'p' } })).toThrow('no absolute path');
  });
  test.each([
    [{ apparmor: { profile_type: 'Localhost', localhost_ref: 'p' } }, ['apparmor=p']],
    [{ apparmor: { profile_type: 'Unconfined' } }, ['apparmor=unconfined']],
    [{ apparmor: { profile_type: 'RuntimeDefault' } }, []],
    [{ apparmor_profile: 'localhost/p' }, ['apparmor=p']],
  ])('AppArmor of %j', (context, expected) => {
    const seccomp = { profile_type: 'RuntimeDefault' };
    const facts = { ...FACTS, security: new Set(['seccomp', 'apparmor']) };
    expect(security({ seccomp, ...context }, { facts })?.SecurityOpt).toEqual(expected);
  });
  test.each([
    [{}],
    [{ apparmor: { profile_type: 'RuntimeDefault' } }],
    [{ apparmor: { profile_type: 'Unconfined' } }],
    [{ privileged: true }],
  ])('where Docker’s own AppArmor profile cannot be loaded, %j has none', (context) => {
    const facts = { ...FACTS, apparmorUnloadable: true };
    expect(security(context, { facts })?.SecurityOpt).toContain('apparmor=unconfined');
    expect(hostOf({}, { facts })?.SecurityOpt).toEqual(['apparmor=unconfined']);
    const local = { apparmor: { profile_type: 'Localhost', localhost_ref: 'p' } };
    expect(() => security(local, { facts })).toThrow('apparmor is not supported');
  });
  test('SELinux where the machine has it', () => {
    const context = { seccomp: { profile_type: 'RuntimeDefault' }, selinux_options: { type: 't', level: 's0' } };
    expect(security(context)?.SecurityOpt).toEqual([]);
    const facts = { ...FACTS, security: new Set(['seccomp', 'selinux']) };
    expect(security(context, { facts })?.SecurityOpt).toEqual(['label=type:t', 'label=level:s0']);
  });
  test.each([
    [{ apparmor: { profile_type: 'Localhost', localhost_ref: 'p' } }, 'security_context.apparmor'],
    [{ capabilities: { add_ambient_capabilities: ['X'] } }, 'add_ambient_capabilities'],
    [{ supplemental_groups_policy: 'Strict' }, 'supplemental_groups_policy'],
    [{ run_as_group: { value: 5 } }, 'user group is specified without user'],
    [{ namespace_options: { userns_options: { mode: 'POD' } } }, 'userns_options'],
    [{ namespace_options: { pid: 'TARGET' } }, 'target_id'],
  ])('%j is refused by name', (context, field) => {
    expect(() => security(context)).toThrow(field);
  });
  test.each([
    [{}, ''],
    [{ run_as_user: { value: 1000 } }, '1000'],
    [{ run_as_user: { value: 0 }, run_as_group: { value: 3 } }, '0:3'],
    [{ run_as_username: 'nginx' }, 'nginx'],
  ])('user of %j', (context, expected) => {
    expect(userOf(containerConfig({ linux: { security_context: context } }).linux?.security_context ?? null)).toBe(
      expected,
    );
  });
});

describe('resources', () => {
  test.each([
    [{}, { OomScoreAdj: 0 }],
    [
      { cpu_shares: 512, cpu_quota: 20000, cpu_period: 100000 },
      { CpuShares: 512, CpuQuota: 20000, CpuPeriod: 100000 },
    ],
    [{ memory_limit_in_bytes: 100 }, { Memory: 100, MemorySwap: 100 }],
    [
      { memory_limit_in_bytes: 100, memory_swap_limit_in_bytes: 150 },
      { Memory: 100, MemorySwap: 150 },
    ],
    [
      { cpuset_cpus: '0-1', cpuset_mems: '0' },
      { CpusetCpus: '0-1', CpusetMems: '0' },
    ],
    [{ oom_score_adj: 985 }, { OomScoreAdj: 985 }],
    [{ hugepage_limits: [{ page_size: '2MB', limit: 0 }] }, {}],
  ])('%j', (figures, expected) => {
    expect(resources(figures)).toMatchObject(expected);
  });
  test('cgroup v2: what has a field of Docker’s, and what is written after the start', () => {
    const facts = { ...FACTS, cgroupVersion: 2 as const };
    const unified = { 'memory.oom.group': '1', 'memory.swap.max': '50', 'pids.max': '9' };
    expect(resources({ memory_limit_in_bytes: 100, unified }, { facts })).toMatchObject({
      MemorySwap: 150,
      PidsLimit: 9,
    });
    const read = containerConfig({ linux: { resources: { unified } } }).linux?.resources ?? null;
    expect([...cgroupFiles(read)]).toEqual([['memory.oom.group', '1']]);
  });
  test('an OOM score below what the machine allows is what it allows', () => {
    expect(resources({ oom_score_adj: -997 }, { facts: { ...FACTS, minOomScoreAdj: 0 } })).toMatchObject({
      OomScoreAdj: 0,
    });
  });
  test.each([
    [{ hugepage_limits: [{ page_size: '2MB', limit: 1 }] }, {}, 'hugepage_limits[2MB]'],
    [{ unified: { 'memory.high': '1' } }, {}, 'unified[memory.high]'],
    [{ unified: { '../x': '1' } }, { facts: { ...FACTS, cgroupVersion: 2 } }, 'unified[../x]'],
    [{ unified: { 'pids.max': 'x' } }, { facts: { ...FACTS, cgroupVersion: 2 } }, 'unified[pids.max]'],
  ])('%j is refused by name', (figures, more, field) => {
    expect(() => resources(figures, more)).toThrow(field);
  });
  test('an update changes what it names', () => {
    const read = containerConfig({ linux: { resources: { cpu_shares: 2, memory_limit_in_bytes: 9 } } }).linux
      ?.resources;
    if (read == null) throw new Error('no resources');
    expect(updatedResources(read, FACTS)).toEqual({ CpuShares: 2, Memory: 9, MemorySwap: 9 });
  });
});

test('the record has what Docker has no field for', () => {
  const record = decodeRecord(
    optionsOf({ log_path: 'main/0.log', annotations: { a: 'b' } }, {}, { log_directory: '/logs' }).Labels ?? {},
  );
  expect(record).toMatchObject({
    kind: 'container',
    sandboxId: 'pause',
    logPath: '/logs/main/0.log',
    annotations: { a: 'b' },
    createdAt: '17',
    imageRef: 'r',
  });
  expect(logPathOf(null, 'x')).toBe('');
});

test.each([
  ['RUNTIME_DEFAULT', undefined],
  ['SIGTERM', 'SIGTERM'],
  ['SIGRTMAXMINUS2', 'SIGRTMAX-2'],
] as const)('stop signal %s', (signal, expected) => {
  expect(stopSignalOf(signal)).toBe(expected);
});
