// RunPodSandbox and CreateContainer as a kubelet 1.34.2 sent them to containerd on a node with cgroup v1, two sizes of huge
// pages and no SELinux, field by field. Recorded were: kubelet-1.34-requests.jsonl, one pod a line, with the pod as the API
// server had it. Paths, uids, times and addresses are replaced; what the wire does not distinguish from absence is left out.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { resolveEnvironment } from '../../../../../agent/pods/environment.ts';
import { hashContainer } from '../../../../../agent/pods/hash.ts';
import { serviceEnvironment } from '../../../../../agent/pods/service-environment.ts';
import type { ContainerId, ContainerMount } from '../../../../../agent/ports/runtime.ts';
import { containerConfig } from '../../../../../agent/runtime/config/container-config.ts';
import { podSandboxConfig } from '../../../../../agent/runtime/config/sandbox-config.ts';
import type { ConfigMap, Container, EphemeralContainer, Pod, Secret, Service } from '../../../../../client/types.ts';
import { epochMs } from '../../../../../lib/clock.ts';
import type { ContainerConfig } from '../../../../../proto/gen/runtime/v1/ContainerConfig.ts';
import type { PodSandboxConfig } from '../../../../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import { loadProto } from '../../../../../proto/load.ts';
import { IMAGE, NODE, spec } from '../fixtures.ts';
import { sent } from './sent.ts';

interface RecordedMount {
  readonly host_path: string;
  readonly container_path: string;
  readonly readonly?: boolean;
  readonly propagation?: string;
}
interface RecordedContainer {
  readonly image: { readonly image: string };
  readonly mounts: readonly RecordedMount[];
  readonly linux: { readonly security_context: { readonly namespace_options: { readonly target_id?: string } } };
}
interface Recorded {
  readonly pod: Pod;
  readonly runPodSandbox: object;
  readonly createContainer: Readonly<Record<string, RecordedContainer>>;
}

const lines = readFileSync(new URL('kubelet-1.34-requests.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n');
const recorded: readonly Recorded[] = lines.map((line) => JSON.parse(line));

const { service: methods } = loadProto('cri').runtime.v1.RuntimeService;

/** Through the wire and back: figures and absent fields are then spelled as those of the recording. */
function received(config: PodSandboxConfig): unknown {
  const { RunPodSandbox } = methods;
  return sent(RunPodSandbox.requestDeserialize(RunPodSandbox.requestSerialize({ config })).config);
}
function receivedContainer(config: ContainerConfig): unknown {
  const { CreateContainer } = methods;
  return sent(CreateContainer.requestDeserialize(CreateContainer.requestSerialize({ config })).config);
}

const node = {
  ...NODE,
  cgroups: { root: '/lab', driver: 'cgroupfs' },
  podLogsDir: '/lab/log/pods',
  memoryCapacityBytes: 24_684_092 * 1024,
  hugepageSizes: ['2MB', '1GB'],
  swapController: true,
} as const;
const POD_IP = '10.244.0.7';

const meta = (name: string) => ({ name, namespace: 'default', uid: name, resourceVersion: '1' });
const configMap: ConfigMap = { metadata: meta('conf'), data: { key: 'value', LANGUAGE: 'en' } };
const secret: Secret = { metadata: meta('sec'), data: { password: Buffer.from('hush').toString('base64') } };
const service = (name: string, clusterIP: string, port: object): Service =>
  ({ metadata: meta(name), spec: { clusterIP, ports: [port] } }) as Service;
const master = service('kubernetes', '10.96.0.1', { name: 'https', port: 443, protocol: 'TCP' });
const svc = service('svc', '10.96.200.27', { name: 'http', port: 80, protocol: 'TCP' });

/** The environment as it was recorded: in the order of names, since a kubelet's is random, and once with services. */
function environment(pod: Pod, container: Container | EphemeralContainer, withServices: boolean) {
  const env = resolveEnvironment({
    pod,
    container,
    configMaps: new Map([['conf', configMap]]),
    secrets: new Map([['sec', secret]]),
    services: withServices ? serviceEnvironment(pod, [svc, master], [master]) : new Map(),
    podIPs: [POD_IP],
    hostIPs: ['192.0.2.2'],
    allocatable: { cpu: '2', memory: '24581692Ki' },
  });
  return [...env].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Files that the agent itself puts into a container come last. */
function filesOf(pod: Pod, { mounts }: RecordedContainer) {
  const own = (mount: RecordedMount): boolean => /\/etc-hosts$|\/containers\/[^/]+\/1f$/.test(mount.host_path);
  const propagation = (mount: RecordedMount): ContainerMount['propagation'] =>
    mount.propagation === 'PROPAGATION_HOST_TO_CONTAINER' ? 'hostToContainer' : 'private';
  return {
    volumes: mounts
      .filter((mount) => !own(mount))
      .map((mount) => ({
        hostPath: mount.host_path,
        containerPath: mount.container_path,
        readOnly: mount.readonly === true,
        propagation: propagation(mount),
        selinuxRelabel: true,
      })),
    files: {
      etcHosts: `/lab/kubelet/pods/${pod.metadata.uid}/etc-hosts`,
      terminationLog: mounts.findLast(own)?.host_path,
    },
  };
}

function specOf(pod: Pod, container: Container | EphemeralContainer, request: RecordedContainer) {
  const targetId = request.linux.security_context.namespace_options.target_id;
  const isFullMain = pod.metadata.name === 'full' && container.name === 'main';
  return spec({
    pod,
    container,
    hash: hashContainer(container),
    image: { ...IMAGE, id: request.image.image },
    podIPs: [POD_IP],
    env: environment(pod, container, isFullMain),
    mounts: filesOf(pod, request).volumes,
    ...(targetId === undefined ? {} : { targetContainerId: targetId as ContainerId }),
  });
}

describe.each(recorded.map((each) => [each.pod.metadata.name, each] as const))('%s', (name, { pod, ...requests }) => {
  test('RunPodSandbox', () => {
    const config = podSandboxConfig(pod, 0, {
      node,
      resolvConf: { servers: ['10.255.255.53'], searches: [], options: [] },
      userns: undefined,
      seenAt: epochMs(Date.parse('2026-01-02T03:04:05.678Z')),
    });
    // That kubelet does not map the ports of sidecars, though the scheduler keeps their host ports free: here they work.
    const ports = (config.port_mappings ?? []).filter(
      ({ container_port }) => name !== 'full' || container_port !== 9000,
    );
    expect(received({ ...config, port_mappings: ports })).toEqual(sent(requests.runPodSandbox));
  });

  const { initContainers = [], containers, ephemeralContainers = [] } = pod.spec;
  const all = [...initContainers, ...containers, ...ephemeralContainers];
  test.each(all.map((container) => [container.name, container] as const))('CreateContainer %s', (_name, container) => {
    const request = requests.createContainer[container.name];
    expect(request).toBeDefined();
    if (request === undefined) return;
    const { files } = filesOf(pod, request);
    const config = containerConfig(specOf(pod, container, request), { node, userns: undefined, files });
    // The one annotation that no kubelet sends, under a name that is no domain.
    const { 'nodelet/container.type': type, ...annotations } = config.annotations ?? {};
    expect(type).toBe('container');
    expect(receivedContainer({ ...config, annotations })).toEqual(sent(request));
  });
});
