// Numbers of pods' cgroups and of the agent's process, as the kernel counts them, on cgroup v1 and v2. Reads small files
// synchronously, some 10 µs each.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CgroupFiles, workingSetBytes } from '../../../agent/eviction/cgroup-usage.ts';
import { isErrno } from '../../../lib/errors.ts';

export interface Reading {
  readonly series: 'memory' | 'cpu' | 'throttled' | 'periods' | 'throttledPeriods';
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Counters at the last look, to make rates of them. */
interface Counted {
  readonly monotonicMs: number;
  readonly cpuMs: number;
}

/** Of the kernel's clock, on every architecture that Linux runs Node on. */
const TICKS_PER_SECOND = 100;

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // It ended between two looks.
    if (isErrno(error, 'ENOENT', 'ENODEV', 'ESRCH')) return undefined;
    throw error;
  }
}

/** A "name number" line of cpu.stat; undefined where it has none. Pure. */
export function statLine(text: string, name: string): number | undefined {
  const match = new RegExp(`^${name} (\\d+)$`, 'm').exec(text);
  return match === null ? undefined : Number(match[1]);
}

/** utime + stime of /proc/PID/stat in ms; undefined for another text. Pure. */
export function processCpuMs(stat: string): number | undefined {
  // comm may hold spaces and parentheses: it ends at the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system] = [Number(fields[11]), Number(fields[12])];
  return Number.isFinite(user + system) ? ((user + system) * 1000) / TICKS_PER_SECOND : undefined;
}

/** Resident bytes of /proc/PID/status; undefined for a kernel thread. Pure. */
export function processMemoryBytes(status: string): number | undefined {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(status);
  return match === null ? undefined : Number(match[1]) * 1024;
}

export interface SampledPod {
  /** "namespace/name" */
  readonly pod: string;
  /** Below the mount point: "/kubepods/burstable/podUID". */
  readonly cgroup: string;
}

export class Sampler {
  readonly #files: CgroupFiles;
  readonly #counted = new Map<string, Counted>();

  constructor(files: CgroupFiles) {
    this.#files = files;
  }

  #directory(controller: 'cpu' | 'cpuacct', cgroup: string): string {
    const { version, mountPoint } = this.#files;
    return version === 1 ? join(mountPoint, controller, cgroup) : join(mountPoint, cgroup);
  }

  #cpuMs(cgroup: string): number | undefined {
    if (this.#files.version === 1) {
      const text = readText(join(this.#directory('cpuacct', cgroup), 'cpuacct.usage'));
      return text === undefined ? undefined : Number(text) / 1e6;
    }
    const usage = statLine(readText(join(this.#directory('cpu', cgroup), 'cpu.stat')) ?? '', 'usage_usec');
    return usage === undefined ? undefined : usage / 1000;
  }

  /** Cores since the last look; undefined at the first one. */
  #cores(key: string, cpuMs: number, monotonicMs: number): number | undefined {
    const before = this.#counted.get(key);
    this.#counted.set(key, { monotonicMs, cpuMs });
    if (before === undefined || monotonicMs <= before.monotonicMs || cpuMs < before.cpuMs) return undefined;
    return (cpuMs - before.cpuMs) / (monotonicMs - before.monotonicMs);
  }

  /** Of a pod's cgroup and those of its containers below it: the quota of one container is set at both. */
  #throttling(cgroup: string): Omit<Record<Reading['series'], number>, 'memory' | 'cpu'> | undefined {
    const top = this.#directory('cpu', cgroup);
    let below: string[];
    try {
      below = readdirSync(top, { withFileTypes: true }).flatMap((entry) =>
        entry.isDirectory() ? [join(top, entry.name)] : [],
      );
    } catch (error) {
      if (isErrno(error, 'ENOENT', 'ENODEV')) return undefined;
      throw error;
    }
    const sum = { throttled: 0, periods: 0, throttledPeriods: 0 };
    for (const directory of [top, ...below]) {
      const text = readText(join(directory, 'cpu.stat')) ?? '';
      const nanoseconds = statLine(text, 'throttled_time');
      sum.throttled += nanoseconds === undefined ? (statLine(text, 'throttled_usec') ?? 0) / 1000 : nanoseconds / 1e6;
      sum.periods = Math.max(sum.periods, statLine(text, 'nr_periods') ?? 0);
      sum.throttledPeriods += statLine(text, 'nr_throttled') ?? 0;
    }
    // Both can be throttled in one period.
    return { ...sum, throttledPeriods: Math.min(sum.throttledPeriods, sum.periods) };
  }

  readPod({ pod, cgroup }: SampledPod, monotonicMs: number): Reading[] {
    const labels = { pod };
    const memory = workingSetBytes(this.#files, cgroup);
    const cpuMs = this.#cpuMs(cgroup);
    const cores = cpuMs === undefined ? undefined : this.#cores(cgroup, cpuMs, monotonicMs);
    const throttling = this.#throttling(cgroup);
    return [
      ...(memory === undefined ? [] : [{ series: 'memory' as const, labels, value: memory }]),
      ...(cores === undefined ? [] : [{ series: 'cpu' as const, labels, value: cores }]),
      ...(throttling === undefined
        ? []
        : (['throttled', 'periods', 'throttledPeriods'] as const).map((series) => ({
            series,
            labels,
            value: throttling[series],
          }))),
    ];
  }

  readProcess(name: string, pid: number, monotonicMs: number): Reading[] {
    const cpuMs = processCpuMs(readText(`/proc/${pid}/stat`) ?? '');
    const memory = processMemoryBytes(readText(`/proc/${pid}/status`) ?? '');
    if (cpuMs === undefined || memory === undefined) return [];
    const labels = { process: name };
    const cores = this.#cores(`process ${pid}`, cpuMs, monotonicMs);
    return [
      { series: 'memory', labels, value: memory },
      ...(cores === undefined ? [] : [{ series: 'cpu' as const, labels, value: cores }]),
    ];
  }
}
