// CRI's resources as Docker's HostConfig fields, and as the files of a cgroup that Docker has no field for. Pure.

import type { HostConfig } from 'dockerode';
import type { LinuxContainerResources__Output } from '../../proto/gen/runtime/v1/LinuxContainerResources.ts';
import { invalid, unsupported } from '../errors.ts';
import type { DockerFacts } from './facts.ts';

const FIELD = 'linux.resources';

/** Keys of `unified` that HostConfig has a field for. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['memory.swap.max', 'pids.max']);

function limitOf(text: string, field: string): number {
  if (text === 'max') return -1;
  if (!/^\d+$/.test(text)) throw invalid(field, `"${text}" is neither a number nor "max"`);
  return Number(text);
}

/** Memory and swap together, as Docker counts on both versions of cgroups; by default no swap beyond the memory limit. */
function swapOf(resources: LinuxContainerResources__Output, memory: number): number {
  const unified = resources.unified['memory.swap.max'];
  if (unified !== undefined) {
    const swap = limitOf(unified, `${FIELD}.unified[memory.swap.max]`);
    if (memory > 0) return swap < 0 ? -1 : memory + swap;
  }
  const limit = Number(resources.memory_swap_limit_in_bytes);
  return limit === 0 ? memory : limit;
}

/** What is 0 in CRI is not limited, or stays what it is. */
function sizes(resources: LinuxContainerResources__Output): HostConfig {
  const memory = Number(resources.memory_limit_in_bytes);
  const [shares, quota, period] = [resources.cpu_shares, resources.cpu_quota, resources.cpu_period].map(Number);
  return {
    ...(shares === 0 ? {} : { CpuShares: shares }),
    ...(quota === 0 ? {} : { CpuQuota: quota }),
    ...(period === 0 ? {} : { CpuPeriod: period }),
    ...(memory === 0 ? {} : { Memory: memory, MemorySwap: swapOf(resources, memory) }),
    ...(resources.cpuset_cpus === '' ? {} : { CpusetCpus: resources.cpuset_cpus }),
    ...(resources.cpuset_mems === '' ? {} : { CpusetMems: resources.cpuset_mems }),
    ...(resources.unified['pids.max'] === undefined
      ? {}
      : { PidsLimit: limitOf(resources.unified['pids.max'], `${FIELD}.unified[pids.max]`) }),
  };
}

function check(resources: LinuxContainerResources__Output, facts: DockerFacts): void {
  const pages = resources.hugepage_limits.find(({ limit }) => limit !== '0');
  if (pages !== undefined) {
    throw unsupported(`${FIELD}.hugepage_limits[${pages.page_size}]`, 'Docker limits no huge pages');
  }
  const [key] = Object.keys(resources.unified);
  if (key !== undefined && facts.cgroupVersion === 1) {
    throw unsupported(`${FIELD}.unified[${key}]`, 'this machine has cgroup v1');
  }
}

/** For a new container. */
export function containerResources(resources: LinuxContainerResources__Output | null, facts: DockerFacts): HostConfig {
  if (resources === null) return {};
  check(resources, facts);
  return {
    ...sizes(resources),
    OomScoreAdj: Math.max(Number(resources.oom_score_adj), facts.minOomScoreAdj),
  };
}

/** For UpdateContainerResources. Docker cannot change oom_score_adj: the caller writes it for the first process. */
export function updatedResources(resources: LinuxContainerResources__Output, facts: DockerFacts): HostConfig {
  check(resources, facts);
  return sizes(resources);
}

/** Files of a container's cgroup (v2) that are written after its start; names are checked, since they become paths. */
export function cgroupFiles(resources: LinuxContainerResources__Output | null): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [name, value] of Object.entries(resources?.unified ?? {})) {
    if (OWN_FIELDS.has(name)) continue;
    if (!/^[a-z0-9_]+(\.[a-z0-9_]+)+$/i.test(name))
      throw invalid(`${FIELD}.unified[${name}]`, 'no name of a cgroup file');
    files.set(name, value);
  }
  return files;
}
