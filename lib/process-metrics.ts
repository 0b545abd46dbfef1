// What this process uses, as metrics with Prometheus' names.

import { readdir } from 'node:fs/promises';
import type { EpochMs } from './clock.ts';
import type { MetricsText } from './metrics.ts';

/** `startedAt`: when the process started. */
export async function showOwnProcess(page: MetricsText, startedAt: EpochMs): Promise<void> {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  page.family('process_cpu_seconds_total', 'counter', 'Total user and system CPU time spent in seconds.');
  page.sample((userCPUTime + systemCPUTime) / 1e6);
  const gauges: readonly (readonly [string, string, number])[] = [
    ['process_open_fds', 'Number of open file descriptors.', (await readdir('/proc/self/fd')).length],
    ['process_resident_memory_bytes', 'Resident memory size in bytes.', process.memoryUsage.rss()],
    ['process_start_time_seconds', 'Start time of the process since unix epoch in seconds.', startedAt / 1000],
  ];
  for (const [name, help, value] of gauges) {
    page.family(name, 'gauge', help);
    page.sample(value);
  }
}
