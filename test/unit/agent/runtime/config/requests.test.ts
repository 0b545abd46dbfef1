// RunPodSandbox and CreateContainer as a whole, field by field, as kubelets 1.33 to 1.35 send them for the same pods on
// the same node (cgroup v1 with swap accounting, cgroupfs, no SELinux). A field that is not named here is not sent. What
// the wire does not distinguish from absence (false, 0, '', []) is left out of both.

import { describe, expect, test } from 'vitest';
import type { ContainerSpec } from '../../../../../agent/ports/runtime.ts';
import { containerConfig } from '../../../../../agent/runtime/config/container-config.ts';
import { podSandboxConfig } from '../../../../../agent/runtime/config/sandbox-config.ts';
import type { Pod } from '../../../../../client/types.ts';
import { epochMs } from '../../../../../lib/clock.ts';
import { container, NODE, pod, spec } from '../fixtures.ts';
import { sent } from './sent.ts';

const SEEN_AT = Date.parse('2026-01-02T03:04:05.678Z');
const SEEN = '2026-01-02T03:04:05.678000000Z';
const MIB = 2 ** 20;
const node = { ...NODE, swapController: true, hugepageSizes: ['1GB', '2MB'] };
const block = { hostId: 131_072, length: 65_536 };

const sandbox = (of: Pod, userns?: typeof block): unknown =>
  sent(
    podSandboxConfig(of, 0, {
      node,
      resolvConf: { servers: ['192.0.2.1'], searches: ['example.com'], options: ['timeout:1'] },
      userns,
      seenAt: epochMs(SEEN_AT),
    }),
  );

const create = (one: Partial<ContainerSpec>, userns?: typeof block): unknown =>
  sent(
    containerConfig(spec(one), { node, userns, files: { etcHosts: '/root/etc-hosts', terminationLog: '/root/1f' } }),
  );

const labels = {
  'io.kubernetes.pod.name': 'web',
  'io.kubernetes.pod.namespace': 'demo',
  'io.kubernetes.pod.uid': '1234-abcd',
};
const hostIds = [{ host_id: 131_072, length: 65_536 }];
const masked = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
];
const readonly = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];
const noHugepages = [
  { page_size: '1GB', limit: '0' },
  { page_size: '2MB', limit: '0' },
];
const clusterDNS = {
  servers: ['10.96.0.10'],
  searches: ['demo.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'example.com'],
  options: ['ndots:5'],
};

describe('a pod that asks for nothing', () => {
  test('RunPodSandbox', () => {
    expect(sandbox(pod())).toEqual({
      metadata: { name: 'web', uid: '1234-abcd', namespace: 'demo' },
      hostname: 'web',
      log_directory: '/var/log/pods/demo_web_1234-abcd',
      dns_config: clusterDNS,
      labels,
      annotations: { 'kubernetes.io/config.seen': SEEN, 'kubernetes.io/config.source': 'api' },
      linux: {
        cgroup_parent: '/kubepods/besteffort/pod1234-abcd',
        security_context: {
          namespace_options: { pid: 'CONTAINER', userns_options: { mode: 'NODE' } },
          seccomp: {},
        },
        sysctls: {},
        overhead: {},
        resources: { cpu_shares: 2, cpu_period: 100_000 },
      },
    });
  });

  test('CreateContainer', () => {
    expect(create({})).toEqual({
      metadata: { name: 'main' },
      image: { image: 'sha256:feed', user_specified_image: 'busybox:stable' },
      labels: { ...labels, 'io.kubernetes.container.name': 'main' },
      annotations: {
        'io.kubernetes.container.hash': 'beef',
        'io.kubernetes.container.restartCount': '0',
        'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
        'io.kubernetes.container.terminationMessagePolicy': 'File',
        // The one that no kubelet sends, under a name that is no domain.
        'nodelet/container.type': 'container',
      },
      log_path: 'main/0.log',
      mounts: [
        { host_path: '/root/etc-hosts', container_path: '/etc/hosts' },
        { host_path: '/root/1f', container_path: '/dev/termination-log' },
      ],
      linux: {
        resources: { cpu_shares: 2, cpu_period: 100_000, oom_score_adj: 1000, hugepage_limits: noHugepages },
        security_context: {
          namespace_options: { pid: 'CONTAINER', userns_options: { mode: 'NODE' } },
          run_as_user: {},
          seccomp: { profile_type: 'Unconfined' },
          masked_paths: masked,
          readonly_paths: readonly,
        },
      },
    });
  });
});

describe('a pod with limits on some of its containers, ports, labels and an init container', () => {
  const limited = container({
    resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '128Mi', 'hugepages-2Mi': '4Mi' } },
    ports: [{ containerPort: 80, hostPort: 8080, protocol: 'TCP' }],
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
  });
  const initContainers = [
    container({ name: 'init', resources: { limits: { cpu: '500m' }, requests: { cpu: '500m' } } }),
  ];
  const whole = pod(
    {
      initContainers,
      containers: [limited, container({ name: 'bare' })],
      terminationGracePeriodSeconds: 30,
      overhead: { cpu: '250m', memory: '120Mi' },
      securityContext: { fsGroup: 2000, supplementalGroups: [3000], runAsUser: 1000 },
    },
    { labels: { app: 'web' }, annotations: { note: 'x' } },
  );

  test('RunPodSandbox', () => {
    expect(sandbox(whole)).toMatchObject({
      labels: { app: 'web', ...labels },
      annotations: { note: 'x', 'kubernetes.io/config.seen': SEEN, 'kubernetes.io/config.source': 'api' },
      port_mappings: [{ container_port: 80, host_port: 8080 }],
      linux: {
        cgroup_parent: '/kubepods/burstable/pod1234-abcd',
        resources: {
          cpu_shares: 512,
          cpu_quota: 50_000,
          cpu_period: 100_000,
          memory_limit_in_bytes: 128 * MIB,
        },
        overhead: {
          cpu_shares: 256,
          cpu_quota: 25_000,
          cpu_period: 100_000,
          memory_limit_in_bytes: 120 * MIB,
        },
        security_context: {
          namespace_options: { pid: 'CONTAINER', userns_options: { mode: 'NODE' } },
          run_as_user: { value: 1000 },
          supplemental_groups: [2000, 3000],
          seccomp: {},
        },
      },
    });
  });

  test('CreateContainer', () => {
    const mounts = [
      {
        hostPath: '/v/data',
        containerPath: '/data',
        readOnly: false,
        propagation: 'private',
        selinuxRelabel: true,
      },
    ] as const;
    const annotated = pod(whole.spec, { annotations: { note: 'x' } });
    expect(create({ pod: annotated, container: limited, mounts })).toEqual({
      metadata: { name: 'main' },
      image: { image: 'sha256:feed', user_specified_image: 'busybox:stable' },
      labels: { ...labels, 'io.kubernetes.container.name': 'main' },
      annotations: {
        'io.kubernetes.container.hash': 'beef',
        'io.kubernetes.container.restartCount': '0',
        'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
        'io.kubernetes.container.terminationMessagePolicy': 'File',
        'io.kubernetes.container.ports': '[{"hostPort":8080,"containerPort":80,"protocol":"TCP"}]',
        'io.kubernetes.pod.terminationGracePeriod': '30',
        'nodelet/container.type': 'container',
      },
      log_path: 'main/0.log',
      mounts: [
        { host_path: '/v/data', container_path: '/data' },
        { host_path: '/root/etc-hosts', container_path: '/etc/hosts' },
        { host_path: '/root/1f', container_path: '/dev/termination-log' },
      ],
      linux: {
        resources: {
          cpu_shares: 102,
          cpu_period: 100_000,
          memory_limit_in_bytes: 128 * MIB,
          memory_swap_limit_in_bytes: 128 * MIB,
          oom_score_adj: 985,
          hugepage_limits: [
            { page_size: '1GB', limit: '0' },
            { page_size: '2MB', limit: String(4 * MIB) },
          ],
        },
        security_context: {
          namespace_options: { pid: 'CONTAINER', userns_options: { mode: 'NODE' } },
          run_as_user: { value: 1000 },
          supplemental_groups: [2000, 3000],
          seccomp: { profile_type: 'Unconfined' },
          masked_paths: masked,
          readonly_paths: readonly,
        },
      },
    });
  });
});

describe('a pod in the node’s network', () => {
  const ports = [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }];
  const onHost = pod({
    hostNetwork: true,
    hostPID: true,
    containers: [container({ ports })],
    dnsPolicy: 'ClusterFirst',
  });

  test('RunPodSandbox', () => {
    expect(sandbox(onHost)).toEqual({
      metadata: { name: 'web', uid: '1234-abcd', namespace: 'demo' },
      log_directory: '/var/log/pods/demo_web_1234-abcd',
      dns_config: { servers: ['192.0.2.1'], searches: ['example.com'], options: ['timeout:1'] },
      port_mappings: [{ container_port: 80, host_port: 80 }],
      labels,
      annotations: { 'kubernetes.io/config.seen': SEEN, 'kubernetes.io/config.source': 'api' },
      linux: {
        cgroup_parent: '/kubepods/besteffort/pod1234-abcd',
        security_context: {
          namespace_options: { network: 'NODE', pid: 'NODE', userns_options: { mode: 'NODE' } },
          seccomp: {},
        },
        sysctls: {},
        overhead: {},
        resources: { cpu_shares: 2, cpu_period: 100_000 },
      },
    });
  });
});

describe('a pod with a user namespace of its own', () => {
  const mapped = pod({ hostUsers: false });
  const options = { pid: 'CONTAINER', userns_options: { uids: hostIds, gids: hostIds } };

  test('RunPodSandbox', () => {
    expect(sandbox(mapped, block)).toMatchObject({ linux: { security_context: { namespace_options: options } } });
  });

  test('CreateContainer maps the owners of every mount', () => {
    const ids = { uidMappings: hostIds, gidMappings: hostIds };
    expect(create({ pod: mapped }, block)).toMatchObject({
      mounts: [
        { host_path: '/root/etc-hosts', container_path: '/etc/hosts', ...ids },
        { host_path: '/root/1f', container_path: '/dev/termination-log', ...ids },
      ],
      linux: { security_context: { namespace_options: options } },
    });
  });
});

test('labels of volumes are changed where SELinux is on', () => {
  const mounts = [
    { hostPath: '/a', containerPath: '/a', readOnly: false, propagation: 'private', selinuxRelabel: true },
    { hostPath: '/b', containerPath: '/b', readOnly: false, propagation: 'private' },
  ] as const;
  const config = containerConfig(spec({ mounts }), {
    node: { ...node, selinux: true },
    userns: undefined,
    files: { etcHosts: '/root/etc-hosts', terminationLog: '/root/1f' },
  });
  expect(config.mounts?.map(({ selinux_relabel }) => selinux_relabel)).toEqual([true, false, true, true]);
});
