import { describe, expect, test } from 'vitest';
import type { ContainerSpec } from '../../../../../agent/ports/runtime.ts';
import { type ContainerFiles, containerConfig } from '../../../../../agent/runtime/config/container-config.ts';
import { containerTypeOf, podRefOf, restartCountOf } from '../../../../../agent/runtime/config/labels.ts';
import { containerLogLink } from '../../../../../agent/runtime/config/paths.ts';
import { podSandboxConfig, portMappings } from '../../../../../agent/runtime/config/sandbox-config.ts';
import { epochMs } from '../../../../../lib/clock.ts';
import { container, NODE, pod, spec } from '../fixtures.ts';

const SEEN_AT = Date.parse('2026-01-02T03:04:05.678Z');
const RESOLV = { servers: ['192.0.2.1'], searches: [], options: [] };
const FILES: ContainerFiles = { etcHosts: '/root/etc-hosts', terminationLog: '/root/containers/main/1f' };

describe('PodSandboxConfig', () => {
  const config = (of = pod()) =>
    podSandboxConfig(of, 2, { node: NODE, resolvConf: RESOLV, userns: undefined, seenAt: epochMs(SEEN_AT) });

  test('carries the pod’s identity in the kubelet’s words', () => {
    const result = config(pod({}, { labels: { app: 'web' }, annotations: { note: 'x' } }));
    expect(result).toMatchObject({
      metadata: { name: 'web', uid: '1234-abcd', namespace: 'demo', attempt: 2 },
      hostname: 'web',
      log_directory: '/var/log/pods/demo_web_1234-abcd',
      labels: {
        app: 'web',
        'io.kubernetes.pod.name': 'web',
        'io.kubernetes.pod.namespace': 'demo',
        'io.kubernetes.pod.uid': '1234-abcd',
      },
      annotations: {
        note: 'x',
        'kubernetes.io/config.seen': '2026-01-02T03:04:05.678000000Z',
        'kubernetes.io/config.source': 'api',
      },
      linux: { cgroup_parent: '/kubepods/besteffort/pod1234-abcd' },
    });
  });

  test('a label of the user’s cannot take the place of an identity', () => {
    const forged = config(pod({}, { labels: { 'io.kubernetes.pod.uid': 'other' } }));
    expect(forged.labels).toMatchObject({ 'io.kubernetes.pod.uid': '1234-abcd' });
  });

  test('a static pod keeps what its source says', () => {
    const annotations = {
      'kubernetes.io/config.seen': '2025-01-01T00:00:00.000000000Z',
      'kubernetes.io/config.source': 'file',
    };
    expect(config(pod({}, { annotations })).annotations).toEqual(annotations);
  });

  test('a host-network pod keeps the host’s name, and its ports are named all the same', () => {
    const ports = [{ containerPort: 80, hostPort: 80 }];
    const result = config(pod({ hostNetwork: true, containers: [container({ ports })] }));
    expect(result).not.toHaveProperty('hostname');
    expect(result.port_mappings).toEqual([{ protocol: 'TCP', container_port: 80, host_port: 80, host_ip: '' }]);
  });

  test('sysctls and overhead are passed on', () => {
    const result = config(
      pod({
        securityContext: {
          sysctls: [
            { name: 'net.core.somaxconn', value: '1024' },
            { name: 'net/ipv4/tcp_syncookies', value: '0' },
          ],
        },
        overhead: { cpu: '1' },
      }),
    );
    expect(result.linux?.sysctls).toEqual({ 'net.core.somaxconn': '1024', 'net.ipv4.tcp_syncookies': '0' });
    expect(result.linux?.overhead).toMatchObject({ cpu_shares: 1024 });
  });

  test('port mappings come from containers and sidecars, each once', () => {
    const ports = [
      { containerPort: 80, hostPort: 8080 },
      { containerPort: 80, hostPort: 8080, protocol: 'TCP' },
      { containerPort: 53, protocol: 'UDP', hostPort: 53, hostIP: '127.0.0.1' },
    ];
    const sidecar = { ...container({ name: 's', ports: [{ containerPort: 9000 }] }), restartPolicy: 'Always' };
    const init = container({ name: 'i', ports: [{ containerPort: 1 }] });
    expect(portMappings(pod({ containers: [container({ ports })], initContainers: [sidecar, init] }))).toEqual([
      { protocol: 'TCP', container_port: 9000, host_port: 0, host_ip: '' },
      { protocol: 'TCP', container_port: 80, host_port: 8080, host_ip: '' },
      { protocol: 'UDP', container_port: 53, host_port: 53, host_ip: '127.0.0.1' },
    ]);
  });
});

describe('ContainerConfig', () => {
  const config = (overrides: Partial<ContainerSpec> = {}, files = FILES) =>
    containerConfig(spec(overrides), { node: NODE, files, userns: undefined });

  test('carries identity, image and log path', () => {
    expect(config({ restartCount: 3, type: 'init' })).toMatchObject({
      metadata: { name: 'main', attempt: 3 },
      image: { image: 'sha256:feed', user_specified_image: 'busybox:stable' },
      log_path: 'main/3.log',
      labels: { 'io.kubernetes.container.name': 'main', 'io.kubernetes.pod.uid': '1234-abcd' },
      annotations: {
        'io.kubernetes.container.hash': 'beef',
        'io.kubernetes.container.restartCount': '3',
        'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
        'io.kubernetes.container.terminationMessagePolicy': 'File',
        'nodelet/container.type': 'init',
      },
      stdin: false,
      stdin_once: false,
      tty: false,
    });
  });

  test('command and args are expanded with the environment, which is passed in order', () => {
    const env = [
      { name: 'B', value: '2' },
      { name: 'A', value: '$(B)' },
    ];
    const result = config({ env, container: container({ command: ['x', '$(A)'], args: ['$(B)', '$(C)', '$$(B)'] }) });
    expect(result.command).toEqual(['x', '$(B)']);
    expect(result.args).toEqual(['2', '$(C)', '$(B)']);
    expect(result.envs).toEqual([
      { key: 'B', value: '2' },
      { key: 'A', value: '$(B)' },
    ]);
  });

  test('volumes come first, then /etc/hosts and the termination log', () => {
    const mounts = [
      { hostPath: '/v', containerPath: '/data', readOnly: true, propagation: 'hostToContainer' },
    ] as const;
    expect(config({ mounts }).mounts).toMatchObject([
      { host_path: '/v', container_path: '/data', readonly: true, propagation: 'PROPAGATION_HOST_TO_CONTAINER' },
      { host_path: FILES.etcHosts, container_path: '/etc/hosts', readonly: false },
      { host_path: FILES.terminationLog, container_path: '/dev/termination-log', readonly: false },
    ]);
  });

  test('an image volume is the image by id and the path in it, in place of a host path', () => {
    const image = { reference: 'data:1', pullPolicy: undefined, subPath: 'a/b', id: 'sha256:d' };
    const mounts = [{ hostPath: '', containerPath: '/d', readOnly: true, propagation: 'private', image }] as const;
    expect(config({ mounts }).mounts?.[0]).toMatchObject({
      container_path: '/d',
      host_path: '',
      readonly: true,
      image: { image: 'sha256:d', user_specified_image: 'data:1' },
      image_sub_path: 'a/b',
    });
  });

  test('a volume at /etc/hosts wins, and no path means no termination log', () => {
    const mounts = [{ hostPath: '/v', containerPath: '/etc/hosts', readOnly: false, propagation: 'private' }] as const;
    const result = config({ mounts, container: container({ terminationMessagePath: '' }) });
    expect(result.mounts).toHaveLength(1);
    expect(result.mounts?.[0]).toMatchObject({ host_path: '/v' });
  });

  test('devices, terminal and stop signal are passed on', () => {
    const lifecycle = { stopSignal: 'SIGUSR1', preStop: { exec: { command: ['bye'] } } };
    const result = config({
      devices: [{ hostPath: '/dev/a', containerPath: '/dev/b', permissions: 'rw' }],
      container: container({ stdin: true, stdinOnce: true, tty: true, lifecycle }),
    });
    expect(result).toMatchObject({
      devices: [{ host_path: '/dev/a', container_path: '/dev/b', permissions: 'rw' }],
      stdin: true,
      stdin_once: true,
      tty: true,
      stop_signal: 'SIGUSR1',
    });
    expect(JSON.parse(result.annotations?.['io.kubernetes.container.preStopHandler'] ?? '')).toEqual({
      exec: { command: ['bye'] },
    });
  });
});

describe('what is read back from labels', () => {
  test('a pod is known by all three of its labels', () => {
    const labels = { 'io.kubernetes.pod.name': 'n', 'io.kubernetes.pod.namespace': 'ns', 'io.kubernetes.pod.uid': 'u' };
    expect(podRefOf(labels)).toEqual({ name: 'n', namespace: 'ns', uid: 'u' });
    const { 'io.kubernetes.pod.uid': _uid, ...two } = labels;
    expect(podRefOf(two)).toBeUndefined();
    expect(podRefOf({})).toBeUndefined();
  });

  test('type and restart count have defaults for containers that another kubelet made', () => {
    expect(containerTypeOf({})).toBe('container');
    expect(containerTypeOf({ 'nodelet/container.type': 'ephemeral' })).toBe('ephemeral');
    expect(containerTypeOf({ 'io.nodelet.container.type': 'init' })).toBe('init');
    expect(restartCountOf({ 'io.kubernetes.container.restartCount': '4' }, 1)).toBe(4);
    expect(restartCountOf({ 'io.kubernetes.container.restartCount': 'x' }, 1)).toBe(1);
  });

  test('a log link’s name fits in 255 bytes and ends in .log', () => {
    const name = containerLogLink({ uid: 'u', namespace: 'ns', name: 'p'.repeat(253) }, 'c', 'f'.repeat(64));
    expect(name).toHaveLength(255);
    expect(name.endsWith('.log')).toBe(true);
    expect(containerLogLink({ uid: 'u', namespace: 'ns', name: 'p' }, 'c', 'f00')).toBe('p_ns_c-f00.log');
  });
});
