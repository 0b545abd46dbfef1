// Requests and limits as the kernel's figures: cpu shares and quota, memory, huge pages, oom_score_adj. Pure.

import type { Container, EphemeralContainer, Pod } from '../../../client/types.ts';
import { parseQuantity, quantityValue } from '../../../lib/quantity.ts';
import { isSidecar } from '../../../lib/sidecar.ts';
import type { LinuxContainerResources } from '../../../proto/gen/runtime/v1/LinuxContainerResources.ts';
import {
  cpuQuotaUs,
  cpuShares,
  effectiveLimits,
  podLevelLimits,
  podLimits,
  podQOSClass,
  podRequests,
  type ResourceFigures,
  resourceFigures,
  statedSums,
  unclaimedMemoryPerContainer,
} from '../../model/pod-resources.ts';
import type { ContainerResourceFigures } from '../../ports/runtime.ts';
import type { NodeSettings } from '../options.ts';

type AnyContainer = Container | EphemeralContainer;

/** oom_score_adj: never to be killed before the node's own daemons; containers without requests are killed first. */
const OOM_GUARANTEED = -997;
const OOM_BEST_EFFORT = 1000;

/** Static, mirror and system-node-critical pods are needed for the node to work at all. */
function isNodeCritical(pod: Pod): boolean {
  return pod.spec.priorityClassName === 'system-node-critical';
}

function memoryRequest(container: AnyContainer): number {
  const requests = resourceFigures(container.resources?.requests);
  return requests.memoryBytes ?? resourceFigures(container.resources?.limits).memoryBytes ?? 0;
}

/** The kubelet's formula: the more memory a burstable container requests, the later it is killed. */
export function oomScoreAdj(pod: Pod, container: AnyContainer, memoryCapacityBytes: number): number {
  if (isNodeCritical(pod)) return OOM_GUARANTEED;
  const qos = podQOSClass(pod);
  if (qos === 'Guaranteed') return OOM_GUARANTEED;
  if (qos === 'BestEffort') return OOM_BEST_EFFORT;
  const share = unclaimedMemoryPerContainer(pod);
  const score = (bytes: number): number => 1000 - Math.floor((1000 * (bytes + share)) / memoryCapacityBytes);
  const own = score(memoryRequest(container));
  const sidecar = (pod.spec.initContainers ?? []).some((init) => init.name === container.name && isSidecar(init));
  // A sidecar is not killed before every main container: it counts with the smallest request among them.
  const wanted = sidecar ? Math.min(own, score(Math.min(...pod.spec.containers.map(memoryRequest)))) : own;
  // Stay clear of guaranteed containers below and of best-effort ones above.
  return Math.min(OOM_BEST_EFFORT - 1, Math.max(1000 + OOM_GUARANTEED, wanted));
}

const PAGE_UNITS: Readonly<Record<string, number>> = { GB: 2 ** 30, MB: 2 ** 20, KB: 2 ** 10 };

/** A page size in CRI's words: 2097152 → "2MB". */
export function pageSizeName(bytes: number): string {
  for (const [unit, factor] of Object.entries(PAGE_UNITS)) {
    if (bytes >= factor && bytes % factor === 0) return `${bytes / factor}${unit}`;
  }
  return `${bytes}B`;
}

/**
 * Every page size of the node gets a limit, in the node's order: 0 unless the container, or the pod as a whole, requests some, so
 * that none is used without a request.
 */
function hugepageLimits(
  pod: Pod,
  container: AnyContainer,
  sizes: readonly string[],
): { page_size: string; limit: string }[] {
  const limits = new Map<string, number>();
  const quantities = [...Object.entries(podLevelLimits(pod)), ...Object.entries(container.resources?.limits ?? {})];
  for (const [resource, quantity] of quantities) {
    const size = /^hugepages-(.+)$/.exec(resource)?.[1];
    if (size === undefined || parseQuantity(size) === undefined) continue;
    limits.set(pageSizeName(quantityValue(size)), quantityValue(quantity));
  }
  return sizes.map((page_size) => ({ page_size, limit: String(limits.get(page_size) ?? 0) }));
}

function cpuAndMemory(requests: ResourceFigures, limits: ResourceFigures, node: NodeSettings): LinuxContainerResources {
  const cpuLimit = limits.cpuMilli ?? 0;
  // A container that states only a limit requests that limit.
  const cpuRequest = requests.cpuMilli ?? cpuLimit;
  return {
    cpu_shares: cpuShares(cpuRequest),
    ...(node.cpuCFSQuota
      ? { cpu_quota: cpuQuotaUs(cpuLimit, node.cpuCFSQuotaPeriodUs), cpu_period: node.cpuCFSQuotaPeriodUs }
      : {}),
    // A limit of 0 is none.
    ...(limits.memoryBytes ? { memory_limit_in_bytes: limits.memoryBytes } : {}),
    // When the kernel runs out of the container's memory, half a container is worth nothing: kill all of it.
    ...(node.cgroupVersion === 1 ? {} : { unified: { 'memory.oom.group': '1' } }),
  };
}

/** No swap beyond the memory limit: cgroup v1 limits both together, v2 swap alone (KEP-2400). */
function noSwap({ memory_limit_in_bytes: limit, unified }: LinuxContainerResources, node: NodeSettings) {
  if (!node.swapController) return {};
  if (node.cgroupVersion === 2) return { unified: { ...unified, 'memory.swap.max': '0' } };
  return limit === undefined ? {} : { memory_swap_limit_in_bytes: limit };
}

export function containerResources(pod: Pod, container: AnyContainer, node: NodeSettings): LinuxContainerResources {
  const limits = effectiveLimits(pod, container);
  const figures = cpuAndMemory(resourceFigures(container.resources?.requests), limits, node);
  const hugepages = hugepageLimits(pod, container, node.hugepageSizes);
  return {
    ...figures,
    ...noSwap(figures, node),
    oom_score_adj: oomScoreAdj(pod, container, node.memoryCapacityBytes),
    ...(hugepages.length === 0 ? {} : { hugepage_limits: hugepages }),
  };
}

/** What UpdateContainerResources is to change of a running container. */
export function updatedResources(figures: ContainerResourceFigures, node: NodeSettings): LinuxContainerResources {
  const { cpuShares: shares, cpuQuota, cpuPeriod, memoryLimitBytes, oomScoreAdj: score } = figures;
  const memory = memoryLimitBytes === undefined ? {} : { memory_limit_in_bytes: memoryLimitBytes };
  return {
    ...(shares === undefined ? {} : { cpu_shares: shares }),
    ...(cpuQuota === undefined ? {} : { cpu_quota: cpuQuota }),
    ...(cpuPeriod === undefined ? {} : { cpu_period: cpuPeriod }),
    ...memory,
    // cgroup v1 refuses a memory limit above that of memory and swap together; v2's limit of swap stays what it is.
    ...(node.cgroupVersion === 1 ? noSwap(memory, node) : {}),
    ...(score === undefined ? {} : { oom_score_adj: score }),
  };
}

/**
 * What a pod's cgroup has after a resize, without the overhead, which is separate: UpdatePodSandboxResources. A figure that
 * not every container bounds is absent.
 */
export function updatedSandboxResources(
  pod: Pod,
  node: NodeSettings,
): { readonly resources: LinuxContainerResources; readonly overhead: LinuxContainerResources } {
  const { cpuMilli } = podRequests(pod, { withOverhead: false });
  const limits = podLimits(pod, { withOverhead: false });
  const period = node.cpuCFSQuotaPeriodUs;
  const resources = {
    cpu_shares: cpuShares(cpuMilli),
    ...(node.cpuCFSQuota && limits.cpuMilli !== undefined
      ? { cpu_quota: cpuQuotaUs(limits.cpuMilli, period), cpu_period: period }
      : {}),
    ...(limits.memoryBytes === undefined ? {} : { memory_limit_in_bytes: limits.memoryBytes }),
  };
  return { resources, overhead: sandboxResources(pod, node).overhead };
}

/** The sums of the containers, for runtimes that size a VM by them; overhead is separate. */
export function sandboxResources(
  pod: Pod,
  node: NodeSettings,
): { readonly resources: LinuxContainerResources; readonly overhead: LinuxContainerResources } {
  const overhead = resourceFigures(pod.spec.overhead);
  return {
    resources: cpuAndMemory(statedSums(pod, 'requests'), statedSums(pod, 'limits'), node),
    overhead: pod.spec.overhead === undefined ? {} : cpuAndMemory(overhead, overhead, node),
  };
}
