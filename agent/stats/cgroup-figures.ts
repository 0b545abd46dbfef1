// What a cgroup uses and may use, in one form for both versions of cgroups. Types only. A figure that the kernel does not
// have is absent, never zero.

import type { DeviceIo, PressureFigures } from './kernel-text.ts';

export interface CpuFigures {
  /** Processor time in all, ns. */
  readonly usageNs: number;
  readonly userNs: number;
  readonly systemNs: number;
  /** Periods of the CPU quota that have passed, those in which the cgroup was held back, and for how long, ns. */
  readonly periods: number;
  readonly throttledPeriods: number;
  readonly throttledNs: number;
}

/** Bytes, but for the counts of events. Of the cgroup and everything below. */
export interface MemoryFigures {
  readonly usage: number;
  /** Usage less the page cache that was not used lately: what cannot be taken back at once. */
  readonly workingSet: number;
  /** Anonymous memory. */
  readonly rss: number;
  readonly cache: number;
  readonly mappedFile: number;
  readonly swap: number;
  readonly kernel?: number;
  readonly maxUsage?: number;
  /** How often the limit was hit. */
  readonly failures?: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
  /** Processes that the kernel killed here for lack of memory. */
  readonly oomKills?: number;
}

/** Limits in force; absent: none, or one that this kernel does not have. */
export interface LimitFigures {
  readonly cpuShares?: number;
  /** µs. */
  readonly cpuPeriodUs?: number;
  readonly cpuQuotaUs?: number;
  /** Bytes. */
  readonly memory?: number;
  readonly memoryReservation?: number;
  /** cgroup v1: of memory and swap together; v2: of swap alone. */
  readonly swap?: number;
  readonly tasks?: number;
}

/**
 * Reads one cgroup; paths are absolute below the hierarchy's root. Synchronous: a file is some 5 µs. undefined: there is no
 * such cgroup, or it went meanwhile.
 */
export interface CgroupReader {
  readonly version: 1 | 2;
  /** Processor time in all, ns: the one figure of `cpu` that every page needs. */
  cpuUsage(path: string): number | undefined;
  cpu(path: string): CpuFigures | undefined;
  /** `whole`: with the figures that are in files of their own: the optional ones. */
  memory(path: string, whole: boolean): MemoryFigures | undefined;
  /** Threads in the cgroup and below. */
  threads(path: string): number | undefined;
  /** Processes in the cgroup itself, in the agent's pid namespace (0: in another). */
  processes(path: string): readonly number[];
  /** What it has read and written, by block device; empty where the kernel does not count. */
  io(path: string): readonly DeviceIo[];
  /** Empty where the kernel does not measure it. */
  pressure(path: string): PressureFigures;
  limits(path: string): LimitFigures;
  /** Names of the cgroups directly below. */
  children(path: string): readonly string[];
}

/** The content of a small file; undefined when it is not there, or went while it was read. */
export type ReadFile = (path: string) => string | undefined;

/** What the readers of both versions need. */
export interface CgroupReaderOptions {
  readonly read: ReadFile;
  /** For what is read once a minute, or once; by default `read`. */
  readonly readSeldom?: ReadFile;
  readonly directories: (path: string) => readonly string[];
  /** A cgroup that exists and is not the root, by which it is found out what files this kernel has. */
  readonly example: string;
}
