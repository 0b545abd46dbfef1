// Docker's figures of a container as CRI's stats. Pure.

import type { ContainerStats as DockerStats } from 'dockerode';
import { getOwn } from '../../lib/own-property.ts';
import type { ContainerStats } from '../../proto/gen/runtime/v1/ContainerStats.ts';
import type { NetworkInterfaceUsage } from '../../proto/gen/runtime/v1/NetworkInterfaceUsage.ts';

interface Value {
  readonly value: number;
}
const value = (amount: number): Value => ({ value: Math.max(0, Math.round(amount)) });

/** One reading of a container's CPU time, for the rate until the next one. */
export interface CpuReading {
  /** Epoch ns. */
  readonly at: bigint;
  /** ns of one core. */
  readonly used: number;
}

/** Nanocores between two readings; undefined when they are too close for a rate. */
export function nanoCores(before: CpuReading | undefined, now: CpuReading): number | undefined {
  if (before === undefined) return undefined;
  const elapsed = Number(now.at - before.at);
  return elapsed < 100_000_000 || now.used < before.used ? undefined : ((now.used - before.used) * 1e9) / elapsed;
}

/** A limit above this is none: cgroup v1 has a number near 2^63 for it. */
const NO_LIMIT = 2 ** 60;

function detail(stats: DockerStats, ...names: readonly string[]): number | undefined {
  const all: Readonly<Record<string, unknown>> = { ...stats.memory_stats.stats };
  return names.map((name) => getOwn(all, name)).find((found) => typeof found === 'number');
}

/** cgroup v1 and v2 have the same figures under different names. `machineMemory`: Docker shows it where there is no limit. */
export function memoryOf(stats: DockerStats, timestamp: string, machineMemory: number) {
  const usage = stats.memory_stats.usage ?? 0;
  const inactive = detail(stats, 'total_inactive_file', 'inactive_file') ?? 0;
  const workingSet = Math.max(0, usage - inactive);
  const limit = stats.memory_stats.limit ?? 0;
  const limited = limit > 0 && limit < NO_LIMIT && limit < machineMemory;
  return {
    timestamp,
    usage_bytes: value(usage),
    working_set_bytes: value(workingSet),
    ...(limited ? { available_bytes: value(limit - workingSet) } : {}),
    rss_bytes: value(detail(stats, 'total_rss', 'anon') ?? 0),
    page_faults: value(detail(stats, 'total_pgfault', 'pgfault') ?? 0),
    major_page_faults: value(detail(stats, 'total_pgmajfault', 'pgmajfault') ?? 0),
  };
}

export function cpuOf(stats: DockerStats, timestamp: string, rate: number | undefined) {
  return {
    timestamp,
    usage_core_nano_seconds: value(stats.cpu_stats.cpu_usage.total_usage),
    ...(rate === undefined ? {} : { usage_nano_cores: value(rate) }),
  };
}

/** The interfaces of /proc/PID/net/dev, without the loopback. */
export function parseNetDev(text: string): readonly NetworkInterfaceUsage[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*([^:\s]+):\s*(.+)$/.exec(line);
    if (match === null || match[1] === 'lo') return [];
    const figures = (match[2] ?? '').trim().split(/\s+/).map(Number);
    const [rxBytes = 0, , rxErrors = 0] = figures;
    const [txBytes = 0, , txErrors = 0] = figures.slice(8);
    return [
      {
        name: match[1] ?? '',
        rx_bytes: value(rxBytes),
        rx_errors: value(rxErrors),
        tx_bytes: value(txBytes),
        tx_errors: value(txErrors),
      },
    ];
  });
}

/** The sums of a pod's containers, for its pause container to be added to. */
export function sumOf(all: readonly ContainerStats[], pick: (stats: ContainerStats) => unknown): Value | undefined {
  const amounts = all
    .map(pick)
    .filter((found): found is Value => typeof found === 'object' && found !== null && 'value' in found);
  return amounts.length === 0 ? undefined : value(amounts.reduce((sum, { value: amount }) => sum + Number(amount), 0));
}
