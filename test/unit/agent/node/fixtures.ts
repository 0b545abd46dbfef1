// A small machine and the kubelet's default configuration, for the tests of the node part.

import type { NodePressure } from '../../../../agent/node/conditions.ts';
import type { MachineFacts } from '../../../../agent/node/facts.ts';
import type { NodeConfig } from '../../../../agent/node/options.ts';
import type { StatusInput } from '../../../../agent/node/status.ts';
import type { RuntimeConditionSnapshot } from '../../../../agent/ports/runtime.ts';

export const GOOD: RuntimeConditionSnapshot = { ok: true, reason: '', message: '' };
export const NO_PRESSURE: NodePressure = { memory: false, disk: false, pid: false };
const GI = 1024 ** 3;

export function facts(overrides: Partial<MachineFacts> = {}): MachineFacts {
  return {
    hostname: 'n',
    architecture: 'amd64',
    kernelVersion: '6.1.0',
    osImage: 'Debian GNU/Linux 12 (bookworm)',
    machineID: 'machine',
    systemUUID: 'uuid',
    bootID: 'boot',
    cpus: 2,
    memoryBytes: 4 * GI,
    swapBytes: 0,
    diskBytes: 20 * GI,
    hugepages: { '2Mi': 0 },
    selinux: false,
    addresses: { interfaces: {}, defaultInterfaces: [], resolved: [] },
    ...overrides,
  };
}

export function config(overrides: Partial<NodeConfig> = {}): NodeConfig {
  return {
    registerNode: true,
    registerWithTaints: [],
    providerID: '',
    nodeStatusUpdateFrequency: 10_000,
    nodeStatusReportFrequency: 300_000,
    nodeLeaseDurationSeconds: 40,
    nodeStatusMaxImages: 50,
    maxPods: 110,
    podsPerCore: 0,
    kubeReserved: {},
    systemReserved: {},
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%' },
    ...overrides,
  };
}

export function statusInput(overrides: Partial<StatusInput> = {}): StatusInput {
  return {
    nodeName: 'n',
    nodeIPs: ['10.0.0.5'],
    kubeletPort: 10250,
    kubeletVersion: 'v1.34.0',
    config: config(),
    facts: facts(),
    health: { runtime: GOOD, networks: [GOOD] },
    pressure: NO_PRESSURE,
    runtimeVersion: { name: 'containerd', version: '1.6.20', apiVersion: 'v1' },
    images: [],
    now: '2026-01-01T00:00:00Z',
    ...overrides,
  };
}
