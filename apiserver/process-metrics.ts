// What /metrics shows of the process and the program, read when it is shown.

import { readdirSync, readFileSync } from 'node:fs';
import { Counter, Gauge, type Registry } from 'prom-client';
import { systemClock } from '../lib/clock.ts';
import { VERSION } from './discovery/index.ts';

const OPEN_FILES = /^Max open files\s+(\d+|unlimited)/m;
const VIRTUAL_KIB = /^VmSize:\s+(\d+) kB/m;

export function processMetrics(registers: Registry[]): void {
  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  };
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Seconds of processor time, of user and system.',
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  gauge('process_resident_memory_bytes', 'Bytes of the process that are in memory.', () => process.memoryUsage.rss());
  gauge('process_virtual_memory_bytes', 'Bytes of the process’s address space.', () =>
    figure('/proc/self/status', VIRTUAL_KIB, 1024),
  );
  gauge('process_open_fds', 'Descriptors that are open.', () => readdirSync('/proc/self/fd').length);
  gauge('process_max_fds', 'Descriptors that may be open.', () => figure('/proc/self/limits', OPEN_FILES, 1));
  gauge(
    'process_start_time_seconds',
    'When the process began, in seconds since 1970.',
    () => systemClock.now() / 1000 - process.uptime(),
  );
  gauge('process_uptime_seconds', 'Seconds since the process began.', () => process.uptime());
  const { major, minor, gitVersion, gitCommit, gitTreeState, buildDate, goVersion, compiler, platform } = VERSION;
  const version = {
    ...{ major, minor, platform, compiler, build_date: buildDate, go_version: goVersion },
    ...{ git_version: gitVersion, git_commit: gitCommit, git_tree_state: gitTreeState },
  };
  const info = new Gauge({
    name: 'kubernetes_build_info',
    help: 'Always 1; what /version shows is in the labels.',
    labelNames: Object.keys(version),
    registers,
  });
  info.set(version, 1);
}

/** Infinity for a figure that has no limit. */
function figure(path: string, pattern: RegExp, unit: number): number {
  const found = pattern.exec(readFileSync(path, 'utf8'))?.[1] ?? '0';
  return found === 'unlimited' ? Number.POSITIVE_INFINITY : Number(found) * unit;
}
