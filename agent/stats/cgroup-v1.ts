// A cgroup's figures from cgroup v1, where each controller has a hierarchy and files of its own. The meaning of each figure
// is cAdvisor's, so that a dashboard shows the same for both versions.

import { join } from 'node:path';
import type { CgroupReader, CgroupReaderOptions, CpuFigures, LimitFigures, MemoryFigures } from './cgroup-figures.ts';
import { keyed, parseBlkio, wholeNumber } from './kernel-text.ts';

/** The unit of cpuacct.stat, USER_HZ: 100 a second on every architecture that Node runs on. ns. */
const TICK_NS = 10_000_000;
/** What v1 shows for "no limit" is the largest number of whole pages, about 2^63. */
const UNLIMITED = 2 ** 62;

/** Files that not every kernel has: found out once, since a file that is missing costs more than one that is there. */
const OPTIONAL = {
  memory: ['memory.memsw.limit_in_bytes', 'memory.oom_control'],
  // The first counts whatever the disk's scheduler is.
  blkio: [
    'blkio.throttle.io_service_bytes_recursive',
    'blkio.bfq.io_service_bytes_recursive',
    'blkio.io_service_bytes_recursive',
  ],
} as const;

export interface CgroupV1Options extends CgroupReaderOptions {
  /** Where each controller is mounted ("cpuacct" → "/sys/fs/cgroup/cpu,cpuacct"). */
  readonly mounts: ReadonlyMap<string, string>;
}

export class CgroupV1Reader implements CgroupReader {
  readonly version = 1;
  readonly #options: CgroupV1Options;
  readonly #present: ReadonlySet<string>;

  constructor(options: CgroupV1Options) {
    this.#options = options;
    const present = new Set<string>();
    for (const controller of ['memory', 'blkio'] as const) {
      for (const file of OPTIONAL[controller]) {
        if (this.#read(controller, options.example, file) !== undefined) present.add(file);
      }
    }
    this.#present = present;
  }

  cpuUsage(path: string): number | undefined {
    return this.#number('cpuacct', path, 'cpuacct.usage');
  }

  cpu(path: string): CpuFigures | undefined {
    const usageNs = this.cpuUsage(path);
    if (usageNs === undefined) return undefined;
    const split = this.#read('cpuacct', path, 'cpuacct.stat') ?? '';
    const quota = this.#read('cpu', path, 'cpu.stat') ?? '';
    return {
      usageNs,
      userNs: (keyed(split, 'user') ?? 0) * TICK_NS,
      systemNs: (keyed(split, 'system') ?? 0) * TICK_NS,
      periods: keyed(quota, 'nr_periods') ?? 0,
      throttledPeriods: keyed(quota, 'nr_throttled') ?? 0,
      throttledNs: keyed(quota, 'throttled_time') ?? 0,
    };
  }

  memory(path: string, whole: boolean): MemoryFigures | undefined {
    const usage = this.#number('memory', path, 'memory.usage_in_bytes');
    const stat = this.#read('memory', path, 'memory.stat');
    if (usage === undefined || stat === undefined) return undefined;
    return {
      usage,
      workingSet: Math.max(0, usage - (keyed(stat, 'total_inactive_file') ?? 0)),
      rss: keyed(stat, 'total_rss') ?? 0,
      cache: keyed(stat, 'total_cache') ?? 0,
      mappedFile: keyed(stat, 'total_mapped_file') ?? 0,
      swap: keyed(stat, 'total_swap') ?? 0,
      pageFaults: keyed(stat, 'total_pgfault') ?? 0,
      majorPageFaults: keyed(stat, 'total_pgmajfault') ?? 0,
      ...(whole ? this.#moreOfMemory(path) : {}),
    };
  }

  #moreOfMemory(path: string): Pick<MemoryFigures, 'maxUsage' | 'failures' | 'oomKills'> {
    const maxUsage = this.#number('memory', path, 'memory.max_usage_in_bytes');
    const failures = this.#number('memory', path, 'memory.failcnt');
    const oom = this.#optional('memory', path, 'memory.oom_control');
    const oomKills = oom === undefined ? undefined : keyed(oom, 'oom_kill');
    return {
      ...(maxUsage === undefined ? {} : { maxUsage }),
      ...(failures === undefined ? {} : { failures }),
      ...(oomKills === undefined ? {} : { oomKills }),
    };
  }

  threads(path: string): number | undefined {
    return this.#number('pids', path, 'pids.current');
  }

  processes(path: string): readonly number[] {
    const text = this.#read('memory', path, 'cgroup.procs') ?? '';
    return text.split('\n').filter(Boolean).map(Number);
  }

  io(path: string) {
    const bytes = OPTIONAL.blkio.find((file) => this.#present.has(file));
    if (bytes === undefined) return [];
    const text = this.#read('blkio', path, bytes) ?? '';
    // Nearly always "Total 0" alone: then there are no operations to count either.
    if (!text.includes(':')) return [];
    return parseBlkio(text, this.#read('blkio', path, bytes.replace('io_service_bytes', 'io_serviced')) ?? '');
  }

  pressure() {
    return {};
  }

  limits(path: string): LimitFigures {
    const cpuShares = this.#seldom('cpu', path, 'cpu.shares');
    const cpuPeriodUs = this.#seldom('cpu', path, 'cpu.cfs_period_us');
    // -1, "no quota", is no number of digits alone.
    const cpuQuotaUs = this.#seldom('cpu', path, 'cpu.cfs_quota_us');
    const memory = this.#limit('memory.limit_in_bytes', path);
    const memoryReservation = this.#limit('memory.soft_limit_in_bytes', path);
    const swap = this.#present.has('memory.memsw.limit_in_bytes')
      ? this.#limit('memory.memsw.limit_in_bytes', path)
      : undefined;
    const tasks = this.#seldom('pids', path, 'pids.max');
    return {
      ...(cpuShares === undefined ? {} : { cpuShares }),
      ...(cpuPeriodUs === undefined ? {} : { cpuPeriodUs }),
      ...(cpuQuotaUs === undefined ? {} : { cpuQuotaUs }),
      ...(memory === undefined ? {} : { memory }),
      ...(memoryReservation === undefined ? {} : { memoryReservation }),
      ...(swap === undefined ? {} : { swap }),
      ...(tasks === undefined ? {} : { tasks }),
    };
  }

  children(path: string): readonly string[] {
    const mount = this.#options.mounts.get('memory');
    return mount === undefined ? [] : this.#options.directories(join(mount, path));
  }

  #read(controller: string, path: string, file: string): string | undefined {
    const mount = this.#options.mounts.get(controller);
    return mount === undefined ? undefined : this.#options.read(`${mount}${path === '/' ? '' : path}/${file}`);
  }

  #number(controller: string, path: string, file: string): number | undefined {
    return wholeNumber(this.#read(controller, path, file));
  }

  #optional(controller: string, path: string, file: string): string | undefined {
    return this.#present.has(file) ? this.#read(controller, path, file) : undefined;
  }

  #seldom(controller: string, path: string, file: string): number | undefined {
    const { mounts, read, readSeldom = read } = this.#options;
    const mount = mounts.get(controller);
    return mount === undefined ? undefined : wholeNumber(readSeldom(`${mount}${path}/${file}`));
  }

  #limit(file: string, path: string): number | undefined {
    const bytes = this.#seldom('memory', path, file);
    return bytes === undefined || bytes >= UNLIMITED ? undefined : bytes;
  }
}
