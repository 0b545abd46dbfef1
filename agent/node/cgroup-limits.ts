// What goes into the cgroups of the node, the QoS classes and the pods. Pure.

import type { Pod } from '../../client/types.ts';
import { cpuQuotaUs, cpuShares, podLimits, podQOSClass, podRequests } from '../model/pod-resources.ts';

/** Figures of cgroup v1; the v2 driver converts. What is absent is left as it is. */
export interface CgroupLimits {
  readonly cpuShares?: number;
  /** µs per period; -1 is no limit. */
  readonly cpuQuotaUs?: number;
  readonly cpuPeriodUs?: number;
  /** Bytes; -1 is no limit. */
  readonly memoryBytes?: number;
  /** Most processes; -1 is no limit. */
  readonly pids?: number;
}

interface PodLimitSettings {
  readonly cpuCFSQuota: boolean;
  readonly cpuCFSQuotaPeriodUs: number;
  readonly podPidsLimit: number;
}

/**
 * Shares by the pod's requests in any class but BestEffort; a quota and a memory limit only where every container of
 * the pod has one, because one that has none may use more than the others' sum.
 */
export function podCgroupLimits(pod: Pod, settings: PodLimitSettings): CgroupLimits {
  const pids = settings.podPidsLimit > 0 ? { pids: settings.podPidsLimit } : {};
  if (podQOSClass(pod) === 'BestEffort') return { cpuShares: 2, ...pids };
  const limits = podLimits(pod, { withOverhead: true });
  const quota = settings.cpuCFSQuota && limits.cpuMilli !== undefined;
  return {
    cpuShares: cpuShares(podRequests(pod, { withOverhead: true }).cpuMilli),
    ...(quota
      ? {
          cpuPeriodUs: settings.cpuCFSQuotaPeriodUs,
          cpuQuotaUs: cpuQuotaUs(limits.cpuMilli ?? 0, settings.cpuCFSQuotaPeriodUs),
        }
      : {}),
    ...(limits.memoryBytes === undefined ? {} : { memoryBytes: limits.memoryBytes }),
    ...pids,
  };
}

/** All burstable pods together weigh what they request together. */
export function burstableLimits(requestsMilli: readonly number[]): CgroupLimits {
  return { cpuShares: cpuShares(requestsMilli.reduce((sum, milli) => sum + milli, 0)) };
}

/** kubepods: all pods together stay within what the node has for them. */
export function nodeLimits(
  allocatable: { readonly cpuMilli: number; readonly memoryBytes: number },
  enforced: boolean,
): CgroupLimits {
  if (!enforced) return {};
  return { cpuShares: cpuShares(allocatable.cpuMilli), memoryBytes: allocatable.memoryBytes };
}

/** cgroup v2's cpu.weight (1 to 10000) for v1 shares (2 to 262144), as runc and the kubelet convert them (KEP-2254). */
export function cpuWeight(shares: number): number {
  return Math.floor(1 + ((shares - 2) * 9999) / 262_142);
}
