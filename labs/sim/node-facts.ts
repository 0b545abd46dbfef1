// What the simulated machine is: its name, addresses and sizes, as the agent gets them and as the rules know them.

import type { MachineFacts } from '../../agent/node/facts.ts';
import type { NodeConfig } from '../../agent/node/options.ts';
import { CAPACITY_BYTES } from './memory.ts';

export const NODE_NAME = 'node-1';
export const HOST_IPS = ['192.0.2.1'];
export const ALLOCATABLE = { cpu: '4', memory: '8Gi', pods: '110', 'ephemeral-storage': '10Gi' };
export const LEASE_SECONDS = 40;

export const FACTS: MachineFacts = {
  hostname: NODE_NAME,
  architecture: 'amd64',
  kernelVersion: '6.1.0',
  osImage: 'Debian GNU/Linux 12 (bookworm)',
  machineID: 'machine',
  systemUUID: 'system',
  bootID: 'boot',
  cpus: 4,
  memoryBytes: CAPACITY_BYTES,
  diskBytes: 10 * 1024 ** 3,
  hugepages: {},
  swapBytes: 0,
  selinux: false,
  addresses: { interfaces: { eth0: HOST_IPS }, defaultInterfaces: ['eth0'], resolved: [] },
};

/** The kubelet's defaults; durations in ms. */
export const NODE_CONFIG: NodeConfig = {
  registerNode: true,
  registerWithTaints: [],
  providerID: '',
  nodeStatusUpdateFrequency: 10_000,
  nodeStatusReportFrequency: 300_000,
  nodeLeaseDurationSeconds: LEASE_SECONDS,
  nodeStatusMaxImages: 50,
  maxPods: 110,
  podsPerCore: 0,
  kubeReserved: {},
  systemReserved: {},
  evictionHard: {},
};
