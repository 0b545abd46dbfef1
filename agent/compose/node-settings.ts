// What the machine and the configuration together say about pods' cgroups, sandboxes and containers. Pure.

import { formatBytes, quantityMilli, quantityValue } from '../../lib/quantity.ts';
import type { AgentOptions } from '../config/options.ts';
import type { CgroupLayout } from '../model/cgroup-names.ts';
import type { ResourceList } from '../node/capacity.ts';
import type { MachineFacts } from '../node/facts.ts';
import type { NodeSettings } from '../runtime/options.ts';

/** A driver that the runtime reports goes before the configuration's: two drivers in one hierarchy fight. */
export function cgroupLayout(options: AgentOptions, runtimeDriver?: CgroupLayout['driver']): CgroupLayout {
  return {
    root: options.config.cgroupRoot || '/',
    driver: runtimeDriver ?? (options.config.cgroupDriver || 'cgroupfs'),
  };
}

/** The figures of kubepods: cpu in millicores, memory in bytes. */
export function podsAllocatable(allocatable: ResourceList): {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
} {
  return {
    cpuMilli: quantityMilli(allocatable['cpu'] ?? '0'),
    memoryBytes: quantityValue(allocatable['memory'] ?? '0'),
  };
}

/** The directory that log shippers read: beside /var/log/pods by default, beside podLogsDir where that was moved. */
function containerLogsDir(podLogsDir: string): string {
  return `${nodeLogsDir(podLogsDir)}/containers`;
}

/** The node's log directory, which /logs/ shows: /var/log, or where podLogsDir was moved to. */
export function nodeLogsDir(podLogsDir: string): string {
  return podLogsDir.replace(/\/pods\/?$/, '').replace(/\/$/, '');
}

export function nodeSettings(
  options: AgentOptions,
  facts: MachineFacts,
  layout: CgroupLayout,
  cgroups: { readonly version: 1 | 2; readonly swapController: boolean },
): NodeSettings {
  const { config } = options;
  return {
    rootDir: options.rootDir,
    podLogsDir: config.podLogsDir,
    containerLogsDir: containerLogsDir(config.podLogsDir),
    cgroups: layout,
    cgroupVersion: cgroups.version,
    swapController: cgroups.swapController,
    selinux: facts.selinux,
    clusterDNS: config.clusterDNS,
    clusterDomain: config.clusterDomain,
    resolvConf: config.resolvConf,
    seccompDefault: config.seccompDefault,
    seccompProfileRoot: `${options.rootDir}/seccomp`,
    cpuCFSQuota: config.cpuCFSQuota,
    cpuCFSQuotaPeriodUs: config.cpuCFSQuotaPeriod * 1000,
    memoryCapacityBytes: facts.memoryBytes,
    hugepageSizes: Object.keys(facts.hugepages).map(criPageSize),
  };
}

/** "2Mi" as CRI names it: "2MB". */
function criPageSize(size: string): string {
  return `${formatBytes(quantityValue(size)).replace(/i$/, '')}B`;
}
