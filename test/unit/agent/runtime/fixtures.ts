// A pod, a container spec and node settings with nothing special about them, for tests to change one thing of.

import type { CgroupLayout } from '../../../../agent/model/cgroup-names.ts';
import type { ContainerSpec, RuntimeImage, SandboxId } from '../../../../agent/ports/runtime.ts';
import type { NodeSettings } from '../../../../agent/runtime/options.ts';
import type { Container, Pod } from '../../../../client/types.ts';

const LAYOUT: CgroupLayout = { root: '/', driver: 'cgroupfs' };

export const NODE: NodeSettings = {
  rootDir: '/var/lib/nodelet/kubelet',
  podLogsDir: '/var/log/pods',
  containerLogsDir: '/var/log/containers',
  cgroups: LAYOUT,
  cgroupVersion: 1,
  swapController: false,
  clusterDNS: ['10.96.0.10'],
  clusterDomain: 'cluster.local',
  resolvConf: '/etc/resolv.conf',
  seccompDefault: false,
  seccompProfileRoot: '/var/lib/nodelet/kubelet/seccomp',
  cpuCFSQuota: true,
  cpuCFSQuotaPeriodUs: 100_000,
  memoryCapacityBytes: 4 * 2 ** 30,
  selinux: false,
  hugepageSizes: [],
};

export const IMAGE: RuntimeImage = {
  id: 'sha256:feed',
  repoTags: ['docker.io/library/busybox:stable'],
  repoDigests: [],
  sizeBytes: 1,
  pinned: false,
};

export function container(overrides: Partial<Container> = {}): Container {
  return { name: 'main', image: 'busybox:stable', ...overrides };
}

export function pod(spec: Partial<Pod['spec']> = {}, metadata: Partial<Pod['metadata']> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'demo', uid: '1234-abcd', resourceVersion: '7', ...metadata },
    spec: { containers: [container()], ...spec },
  };
}

export function spec(overrides: Partial<ContainerSpec> = {}): ContainerSpec {
  return {
    pod: pod(),
    container: container(),
    type: 'container',
    sandboxId: 'sandbox-1' as SandboxId,
    restartCount: 0,
    hash: 'beef',
    image: IMAGE,
    podIPs: ['10.0.0.5'],
    env: [],
    mounts: [],
    devices: [],
    ...overrides,
  };
}
