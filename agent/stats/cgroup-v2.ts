// A cgroup's figures from cgroup v2, where all controllers share one directory. The meaning of each figure is cAdvisor's.
// The root cgroup has fewer files than others: what it lacks is in /proc.

import { join } from 'node:path';
import type { CgroupReader, CgroupReaderOptions, CpuFigures, LimitFigures, MemoryFigures } from './cgroup-figures.ts';
import { keyed, type PressureFigures, parseIoStat, readPressure, wholeNumber } from './kernel-text.ts';

const NS_PER_US = 1000;

/** Files that a kernel may be too old for, or have switched off. */
const OPTIONAL = ['memory.peak', 'memory.swap.current', 'cpu.pressure', 'memory.pressure', 'io.pressure', 'io.stat'];

export interface CgroupV2Options extends CgroupReaderOptions {
  /** Where cgroup2 is mounted: /sys/fs/cgroup. */
  readonly mountPoint: string;
}

export class CgroupV2Reader implements CgroupReader {
  readonly version = 2;
  readonly #options: CgroupV2Options;
  readonly #present: ReadonlySet<string>;
  /** As the root was last read: without swap no cgroup's use of it is worth a file. */
  #machineHasSwap = true;

  constructor(options: CgroupV2Options) {
    this.#options = options;
    this.#present = new Set(OPTIONAL.filter((file) => this.#read(options.example, file) !== undefined));
  }

  cpuUsage(path: string): number | undefined {
    const stat = this.#read(path, 'cpu.stat');
    const usage = stat === undefined ? undefined : keyed(stat, 'usage_usec');
    return usage === undefined ? undefined : usage * NS_PER_US;
  }

  cpu(path: string): CpuFigures | undefined {
    const stat = this.#read(path, 'cpu.stat');
    const usage = stat === undefined ? undefined : keyed(stat, 'usage_usec');
    if (stat === undefined || usage === undefined) return undefined;
    return {
      usageNs: usage * NS_PER_US,
      userNs: (keyed(stat, 'user_usec') ?? 0) * NS_PER_US,
      systemNs: (keyed(stat, 'system_usec') ?? 0) * NS_PER_US,
      periods: keyed(stat, 'nr_periods') ?? 0,
      throttledPeriods: keyed(stat, 'nr_throttled') ?? 0,
      throttledNs: (keyed(stat, 'throttled_usec') ?? 0) * NS_PER_US,
    };
  }

  memory(path: string, whole: boolean): MemoryFigures | undefined {
    const stat = this.#read(path, 'memory.stat');
    if (stat === undefined) return undefined;
    const rss = keyed(stat, 'anon') ?? 0;
    const cache = keyed(stat, 'file') ?? 0;
    const root = path === '/';
    const usage = root ? rss + cache : wholeNumber(this.#read(path, 'memory.current'));
    if (usage === undefined) return undefined;
    const kernel = keyed(stat, 'kernel');
    return {
      usage,
      workingSet: Math.max(0, usage - (keyed(stat, 'inactive_file') ?? 0)),
      rss,
      cache,
      mappedFile: keyed(stat, 'file_mapped') ?? 0,
      swap: root ? this.#swapOfMachine() : this.#swapOf(path),
      pageFaults: keyed(stat, 'pgfault') ?? 0,
      majorPageFaults: keyed(stat, 'pgmajfault') ?? 0,
      ...(kernel === undefined ? {} : { kernel }),
      ...(whole && !root ? this.#moreOfMemory(path) : {}),
    };
  }

  #moreOfMemory(path: string): Pick<MemoryFigures, 'maxUsage' | 'failures' | 'oomKills'> {
    const maxUsage = wholeNumber(this.#optional(path, 'memory.peak'));
    const events = this.#read(path, 'memory.events') ?? '';
    const oomKills = keyed(events, 'oom_kill');
    const failures = keyed(events, 'max');
    return {
      ...(maxUsage === undefined ? {} : { maxUsage }),
      ...(failures === undefined ? {} : { failures }),
      ...(oomKills === undefined ? {} : { oomKills }),
    };
  }

  threads(path: string): number | undefined {
    return path === '/' ? undefined : wholeNumber(this.#read(path, 'pids.current'));
  }

  processes(path: string): readonly number[] {
    const text = this.#read(path, 'cgroup.procs') ?? '';
    return text.split('\n').filter(Boolean).map(Number);
  }

  io(path: string) {
    const text = this.#optional(path, 'io.stat');
    return text === undefined ? [] : parseIoStat(text);
  }

  pressure(path: string): PressureFigures {
    return readPressure((resource) => this.#optional(path, `${resource}.pressure`));
  }

  limits(path: string): LimitFigures {
    if (path === '/') return {};
    const { mountPoint, read: often, readSeldom = often } = this.#options;
    const read = (of: string, file: string): string | undefined => readSeldom(`${mountPoint}${of}/${file}`);
    const weight = wholeNumber(read(path, 'cpu.weight'));
    const [quota, period] = (read(path, 'cpu.max') ?? '').trim().split(' ');
    const cpuPeriodUs = wholeNumber(period);
    const cpuQuotaUs = wholeNumber(quota);
    const memory = wholeNumber(read(path, 'memory.max'));
    const memoryReservation = wholeNumber(read(path, 'memory.min'));
    const swap = this.#present.has('memory.swap.current') ? wholeNumber(read(path, 'memory.swap.max')) : undefined;
    const tasks = wholeNumber(read(path, 'pids.max'));
    return {
      ...(weight === undefined ? {} : { cpuShares: sharesOfWeight(weight) }),
      ...(cpuPeriodUs === undefined ? {} : { cpuPeriodUs }),
      ...(cpuQuotaUs === undefined ? {} : { cpuQuotaUs }),
      ...(memory === undefined ? {} : { memory }),
      ...(memoryReservation === undefined ? {} : { memoryReservation }),
      ...(swap === undefined ? {} : { swap }),
      ...(tasks === undefined ? {} : { tasks }),
    };
  }

  children(path: string): readonly string[] {
    return this.#options.directories(join(this.#options.mountPoint, path));
  }

  #read(path: string, file: string): string | undefined {
    return this.#options.read(`${this.#options.mountPoint}${path === '/' ? '' : path}/${file}`);
  }

  #optional(path: string, file: string): string | undefined {
    return this.#present.has(file) ? this.#read(path, file) : undefined;
  }

  #swapOf(path: string): number {
    return this.#machineHasSwap ? (wholeNumber(this.#optional(path, 'memory.swap.current')) ?? 0) : 0;
  }

  #swapOfMachine(): number {
    const text = this.#options.read('/proc/meminfo') ?? '';
    const field = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0);
    this.#machineHasSwap = field('SwapTotal') > 0;
    return Math.max(0, field('SwapTotal') - field('SwapFree')) * 1024;
  }
}

/** cpu.weight (1 to 10000) as the cpu.shares (2 to 262144) of cgroup v1, by the runtimes' rule. */
export function sharesOfWeight(weight: number): number {
  return 2 + Math.trunc(((weight - 1) * 262_142) / 9_999);
}
