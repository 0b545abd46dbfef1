// The lab's configuration files as values: the CNI conflist and the KubeletConfiguration. Pure.

import { stringify } from 'yaml';
import { CLUSTER_DOMAIN } from './dns.ts';
import type { LabPaths } from './paths.ts';

export interface NetworkChoice {
  readonly subnet: string;
  /** The machine's FORWARD policy is DROP (Docker sets it): the firewall plugin accepts pods' packets. */
  readonly forwardDrops: boolean;
  /** Others know the way to the subnet: pods keep their addresses on the way to other nodes' pods. */
  readonly routed?: boolean;
  /** The last address of the subnet that pods may have; absent: all of them. */
  readonly rangeEnd?: string;
}

/** The chain that the agent runs (or containerd itself with --network=runtime). */
export function renderConflist(paths: LabPaths, choice: NetworkChoice): string {
  const list = {
    cniVersion: '1.0.0',
    name: paths.networkName,
    plugins: [
      {
        type: 'bridge',
        bridge: paths.bridge,
        isGateway: true,
        ipMasq: choice.routed !== true,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          ranges: [
            [{ subnet: choice.subnet, ...(choice.rangeEnd === undefined ? {} : { rangeEnd: choice.rangeEnd }) }],
          ],
          routes: [{ dst: '0.0.0.0/0' }],
          dataDir: paths.cni.leaseDir,
        },
      },
      { type: 'portmap', snat: true, capabilities: { portMappings: true } },
      ...(choice.forwardDrops ? [{ type: 'firewall', backend: 'iptables' }] : []),
    ],
  };
  return `${JSON.stringify(list, undefined, 2)}\n`;
}

export interface KubeletChoice {
  readonly port: number;
  readonly clientCAFile: string;
  readonly cgroupDriver?: 'cgroupfs' | 'systemd';
  /** Where CRI is served; containerd's by default. */
  readonly runtimeSocket?: string;
  /** The server in the resolv.conf of pods; none by default: they have the node's. */
  readonly clusterDNS?: string | undefined;
  /** Fields over the lab's own. */
  readonly more?: Readonly<Record<string, unknown>>;
}

export function renderKubeletConfiguration(paths: LabPaths, choice: KubeletChoice): string {
  return stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    port: choice.port,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: choice.clientCAFile },
    },
    authorization: { mode: 'Webhook' },
    containerRuntimeEndpoint: `unix://${choice.runtimeSocket ?? paths.containerd.socket}`,
    cgroupDriver: choice.cgroupDriver ?? 'cgroupfs',
    cgroupRoot: paths.cgroupRoot,
    podLogsDir: paths.podLogsDir,
    clusterDomain: CLUSTER_DOMAIN,
    ...(choice.clusterDNS === undefined ? {} : { clusterDNS: [choice.clusterDNS] }),
    failSwapOn: false,
    // Images are built here or come from one registry: nothing is gained by pulling them one by one.
    serializeImagePulls: false,
    maxParallelImagePulls: 3,
    // The machine's disk is not the lab's, and images that were built here cannot be pulled again: a lab neither collects
    // them nor evicts pods because the disk is rather full. `more` overrides this.
    imageGCHighThresholdPercent: 100,
    evictionHard: {
      'memory.available': '100Mi',
      'nodefs.available': '0%',
      'nodefs.inodesFree': '0%',
      'imagefs.available': '0%',
      'imagefs.inodesFree': '0%',
    },
    ...choice.more,
  });
}

/** Whether the policy in `iptables -S FORWARD` is DROP. Pure. */
export function forwardPolicyDrops(rules: string): boolean {
  return /^-P FORWARD (DROP|REJECT)$/m.test(rules);
}
