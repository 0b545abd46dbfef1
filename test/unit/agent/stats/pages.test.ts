import { describe, expect, test } from 'vitest';
import { cadvisorPage } from '../../../../agent/stats/cadvisor-page.ts';
import { CpuRates } from '../../../../agent/stats/cpu-rates.ts';
import { resourcePage } from '../../../../agent/stats/resource-page.ts';
import { monotonicMs } from '../../../../lib/clock.ts';
import { type ParsedFamily, parseMetrics } from '../../../support/metrics-text.ts';
import { CREATED, MACHINE, testMachine } from './support.ts';

/** Series of a family as `labels value`. */
function series(page: ReadonlyMap<string, ParsedFamily>, name: string): readonly string[] {
  return (page.get(name)?.samples ?? []).map(({ labels, value }) => `${JSON.stringify(labels)} ${value}`);
}

describe('/metrics/resource', () => {
  const { clock, sampler } = testMachine();
  const page = parseMetrics(resourcePage(sampler.take('resource')));
  const container = '{"container":"main","namespace":"demo","pod":"web"}';
  const pod = '{"namespace":"demo","pod":"web"}';

  test.each([
    ['node_cpu_usage_seconds_total', 'counter', ['{} 9']],
    ['node_memory_working_set_bytes', 'gauge', ['{} 5060']],
    ['node_swap_usage_bytes', 'gauge', ['{} 0']],
    ['pod_cpu_usage_seconds_total', 'counter', [`${pod} 2.5`]],
    ['pod_memory_working_set_bytes', 'gauge', [`${pod} 860`]],
    ['pod_swap_usage_bytes', 'gauge', [`${pod} 5`]],
    ['container_cpu_usage_seconds_total', 'counter', [`${container} 2`]],
    ['container_memory_working_set_bytes', 'gauge', [`${container} 760`]],
    ['container_swap_usage_bytes', 'gauge', [`${container} 5`]],
    ['container_swap_limit_bytes', 'gauge', [`${container} 50`]],
    ['container_start_time_seconds', 'gauge', [`${container} ${CREATED / 1000}`]],
    ['resource_scrape_error', 'gauge', ['{} 0']],
  ])('%s', (name, type, expected) => {
    expect(page.get(name)?.type).toBe(type);
    expect(series(page, name)).toEqual(expected);
  });

  test('figures have the time of their reading, start times and errors none', () => {
    const timed = [...page].filter(([, { samples }]) => samples.every(({ at }) => at === clock.now()));
    const untimed = [...page].filter(([, { samples }]) => samples.every(({ at }) => at === undefined));
    expect(untimed.map(([name]) => name)).toEqual(['container_start_time_seconds', 'resource_scrape_error']);
    expect(timed.length + untimed.length).toBe(page.size);
  });

  test('figures that could not be read are an error, and no figures', () => {
    const failed = parseMetrics(resourcePage(undefined));
    expect([...failed.keys()]).toEqual(['resource_scrape_error']);
    expect(series(failed, 'resource_scrape_error')).toEqual(['{} 1']);
  });
});

describe('/metrics/cadvisor', () => {
  const { sampler } = testMachine();
  const page = parseMetrics(cadvisorPage(sampler.take('all'), MACHINE));
  const labels = {
    container: 'main',
    id: '/kubepods/besteffort/poduid-1/c1',
    image: 'docker.io/library/busybox:stable',
    name: 'c1',
    namespace: 'demo',
    pod: 'web',
  };
  const of = (name: string) => page.get(name)?.samples.find((sample) => sample.labels['name'] === 'c1');

  test.each([
    ['container_cpu_usage_seconds_total', { cpu: 'total' }, 2],
    ['container_cpu_user_seconds_total', {}, 2],
    ['container_cpu_cfs_periods_total', {}, 4],
    ['container_cpu_cfs_throttled_periods_total', {}, 1],
    ['container_cpu_cfs_throttled_seconds_total', {}, 0.5],
    ['container_memory_usage_bytes', {}, 800],
    ['container_memory_working_set_bytes', {}, 760],
    ['container_memory_rss', {}, 700],
    ['container_memory_cache', {}, 100],
    ['container_memory_kernel_usage', {}, 7],
    ['container_oom_events_total', {}, 1],
    ['container_memory_failures_total', { failure_type: 'pgfault', scope: 'container' }, 9],
    ['container_fs_reads_bytes_total', { device: '/dev/8:0' }, 10],
    ['container_fs_writes_total', { device: '/dev/8:0' }, 2],
    ['container_processes', {}, 1],
    ['container_threads', {}, 3],
    ['container_threads_max', {}, 64],
    ['container_spec_memory_limit_bytes', {}, 1000],
    ['container_spec_cpu_quota', {}, 20_000],
    ['container_start_time_seconds', {}, Math.trunc(CREATED / 1000)],
  ])('%s of a container', (name, more, value) => {
    expect(of(name)?.labels).toEqual({ ...labels, ...more });
    expect(of(name)?.value).toBe(value);
  });

  test('every series of a container family has the six labels', () => {
    for (const [name, { samples }] of page) {
      if (!name.startsWith('container_') || name === 'container_scrape_error') continue;
      for (const sample of samples)
        expect(Object.keys(sample.labels)).toEqual(expect.arrayContaining(Object.keys(labels)));
    }
  });

  test('the cgroups above, and pods, have the figures of use', () => {
    const ids = page.get('container_memory_working_set_bytes')?.samples.map((sample) => sample.labels['id']);
    expect(ids).toEqual([
      '/',
      '/kubepods',
      '/kubepods/besteffort',
      '/kubepods/besteffort/poduid-1',
      '/kubepods/besteffort/poduid-1/c1',
    ]);
  });

  test('a pod’s network is its sandbox’s', () => {
    const samples = page.get('container_network_receive_bytes_total')?.samples ?? [];
    expect(samples.map(({ labels: found, value }) => [found['id'], found['name'], found['interface'], value])).toEqual([
      ['/', '', 'eth0', 1],
      ['/kubepods/besteffort/poduid-1/box', 'box', 'eth0', 10],
    ]);
    expect(series(page, 'container_network_transmit_packets_dropped_total')).toHaveLength(2);
  });

  test('pressure is shown where it is measured', () => {
    expect(
      page.get('container_pressure_cpu_waiting_seconds_total')?.samples.map(({ labels: { id }, value }) => [id, value]),
    ).toEqual([['/', 1.5]]);
    expect(page.has('container_pressure_io_waiting_seconds_total')).toBe(false);
  });

  test('the machine', () => {
    const machine = '{"boot_id":"boot","machine_id":"machine","system_uuid":"uuid"}';
    expect(series(page, 'machine_cpu_cores')).toEqual([`${machine} 2`]);
    expect(series(page, 'machine_memory_bytes')).toEqual([`${machine} 8000`]);
  });

  test('figures that could not be read', () => {
    const failed = parseMetrics(cadvisorPage(undefined, MACHINE));
    expect(series(failed, 'container_scrape_error')).toEqual(['{} 1']);
    expect(failed.has('container_memory_rss')).toBe(false);
  });
});

test('use per second is between two readings that are far enough apart and not too far', () => {
  const rates = new CpuRates();
  const second = 1_000_000_000;
  const seen = (ms: number, cores: number): number | undefined => rates.observe('/a', cores * second, monotonicMs(ms));
  expect(seen(0, 1)).toBeUndefined();
  expect(seen(10_000, 6)).toBe(second / 2);
  // Too soon: what was known stands.
  expect(seen(10_100, 100)).toBe(second / 2);
  expect(seen(20_000, 6)).toBe(0);
  // Too long ago, and a counter that began anew.
  expect(seen(90_000, 7)).toBeUndefined();
  expect(seen(95_000, 1)).toBeUndefined();
  expect(seen(96_000, 2)).toBe(second);
  rates.keep(new Set());
  expect(seen(97_000, 3)).toBeUndefined();
});
