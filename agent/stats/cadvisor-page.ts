// /metrics/cadvisor: each cgroup's figures and the machine's, with cAdvisor's names, types and labels, as the kubelet shows
// them. A family is a row of a table; what is left out, and why, is in docs/metrics.md. Pure.

import { labelText, MetricsText, type MetricType } from '../../lib/metrics.ts';
import type { DeviceIo, InterfaceCounters, PressureFigures } from './kernel-text.ts';
import type { NodeSample, Sample } from './sampler.ts';

const NS = 1e9;
const US = 1e6;

/** What is known of the machine once and for all. */
export interface MachineInfo {
  readonly bootID: string;
  readonly machineID: string;
  readonly systemUUID: string;
  readonly cores: number;
  readonly physicalCores: number;
  readonly sockets: number;
  /** Bytes. */
  readonly memory: number;
  readonly swap: number;
  /** When the machine was booted, seconds since the epoch. */
  readonly bootTime: number;
  /** "8:0" → "/dev/sda". */
  readonly deviceName: (numbers: string) => string;
}

type RowKind = 'root' | 'slice' | 'pod' | 'container';

interface Row {
  readonly kind: RowKind;
  readonly labels: string;
  readonly sample: Sample;
  /** Seconds since the epoch; undefined where it is not known. */
  readonly started: number | undefined;
}

interface Family {
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  /** undefined: this cgroup has no such figure. */
  readonly value: (sample: Sample) => number | undefined;
}

const counter = (name: string, help: string, value: Family['value']): Family => ({
  name,
  type: 'counter',
  help,
  value,
});
const gauge = (name: string, help: string, value: Family['value']): Family => ({ name, type: 'gauge', help, value });

/** A figure of the quota, where there is one. */
function throttling(of: (cpu: NonNullable<Sample['cpu']>) => number): Family['value'] {
  return ({ cpu, limits }) => (cpu === undefined || limits.cpuQuotaUs === undefined ? undefined : of(cpu));
}

function stalled(resource: keyof PressureFigures, kind: 'full' | 'some'): Family['value'] {
  return ({ pressure }) => {
    const found = pressure[resource];
    return found === undefined ? undefined : found[kind].total / US;
  };
}

/** Of every cgroup. */
const USAGE: readonly Family[] = [
  gauge('container_memory_cache', 'Number of bytes of page cache memory.', ({ memory }) => memory?.cache),
  gauge('container_memory_rss', 'Size of RSS in bytes.', ({ memory }) => memory?.rss),
  gauge('container_memory_swap', 'Container swap usage in bytes.', ({ memory }) => memory?.swap),
  gauge(
    'container_memory_usage_bytes',
    'Current memory usage in bytes, including all memory regardless of when it was accessed',
    ({ memory }) => memory?.usage,
  ),
  gauge('container_memory_working_set_bytes', 'Current working set in bytes.', ({ memory }) => memory?.workingSet),
];

/** Of containers and of the machine as a whole; of a pod it would be the sum of its containers. */
const DETAILS: readonly Family[] = [
  counter('container_cpu_system_seconds_total', 'Cumulative system cpu time consumed in seconds.', ({ cpu }) =>
    cpu === undefined ? undefined : cpu.systemNs / NS,
  ),
  counter('container_cpu_user_seconds_total', 'Cumulative user cpu time consumed in seconds.', ({ cpu }) =>
    cpu === undefined ? undefined : cpu.userNs / NS,
  ),
  counter(
    'container_cpu_cfs_periods_total',
    'Number of elapsed enforcement period intervals.',
    throttling(({ periods }) => periods),
  ),
  counter(
    'container_cpu_cfs_throttled_periods_total',
    'Number of throttled period intervals.',
    throttling(({ throttledPeriods }) => throttledPeriods),
  ),
  counter(
    'container_cpu_cfs_throttled_seconds_total',
    'Total time duration the container has been throttled.',
    throttling(({ throttledNs }) => throttledNs / NS),
  ),
  counter(
    'container_oom_events_total',
    'Count of out of memory events observed for the container',
    ({ memory }) => memory?.oomKills,
  ),
  counter(
    'container_pressure_cpu_stalled_seconds_total',
    'Total time duration no tasks in the container could make progress due to CPU congestion.',
    stalled('cpu', 'full'),
  ),
  counter(
    'container_pressure_cpu_waiting_seconds_total',
    'Total time duration tasks in the container have waited due to CPU congestion.',
    stalled('cpu', 'some'),
  ),
  counter(
    'container_pressure_io_stalled_seconds_total',
    'Total time duration no tasks in the container could make progress due to IO congestion.',
    stalled('io', 'full'),
  ),
  counter(
    'container_pressure_io_waiting_seconds_total',
    'Total time duration tasks in the container have waited due to IO congestion.',
    stalled('io', 'some'),
  ),
  counter(
    'container_pressure_memory_stalled_seconds_total',
    'Total time duration no tasks in the container could make progress due to memory congestion.',
    stalled('memory', 'full'),
  ),
  counter(
    'container_pressure_memory_waiting_seconds_total',
    'Total time duration tasks in the container have waited due to memory congestion.',
    stalled('memory', 'some'),
  ),
  gauge('container_memory_mapped_file', 'Size of memory mapped files in bytes.', ({ memory }) => memory?.mappedFile),
  gauge('container_memory_kernel_usage', 'Size of kernel memory allocated in bytes.', ({ memory }) => memory?.kernel),
  gauge('container_memory_max_usage_bytes', 'Maximum memory usage recorded in bytes', ({ memory }) => memory?.maxUsage),
  counter('container_memory_failcnt', 'Number of memory usage hits limits', ({ memory }) => memory?.failures),
  gauge('container_processes', 'Number of processes running inside the container.', ({ processes }) => processes),
  gauge('container_threads', 'Number of threads running inside the container', ({ threads }) => threads),
  gauge(
    'container_threads_max',
    'Maximum number of threads allowed inside the container, infinity if value is zero',
    ({ threads, limits }) => (threads === undefined ? undefined : (limits.tasks ?? 0)),
  ),
];

/** Limits of containers; without a time, as cAdvisor has them. */
const LIMITS: readonly Family[] = [
  gauge('container_spec_cpu_period', 'CPU period of the container.', ({ limits }) => limits.cpuPeriodUs),
  gauge('container_spec_cpu_quota', 'CPU quota of the container.', ({ limits }) => limits.cpuQuotaUs),
  gauge('container_spec_cpu_shares', 'CPU share of the container.', ({ limits }) => limits.cpuShares),
  gauge(
    'container_spec_memory_limit_bytes',
    'Memory limit for the container.',
    // No limit is 0 here.
    ({ limits }) => limits.memory ?? 0,
  ),
  gauge(
    'container_spec_memory_reservation_limit_bytes',
    'Memory reservation limit for the container.',
    ({ limits }) => limits.memoryReservation ?? 0,
  ),
  gauge(
    'container_spec_memory_swap_limit_bytes',
    'Memory swap limit for the container.',
    ({ limits }) => limits.swap ?? 0,
  ),
];

type Numeric<T> = { [K in keyof T]: T[K] extends number ? K : never }[keyof T];

const DISKS: readonly (readonly [name: string, help: string, figure: Numeric<DeviceIo>])[] = [
  ['container_fs_reads_bytes_total', 'Cumulative count of bytes read', 'readBytes'],
  ['container_fs_reads_total', 'Cumulative count of reads completed', 'reads'],
  ['container_fs_writes_bytes_total', 'Cumulative count of bytes written', 'writtenBytes'],
  ['container_fs_writes_total', 'Cumulative count of writes completed', 'writes'],
];

const NETWORK: readonly (readonly [name: string, help: string, figure: Numeric<InterfaceCounters>])[] = [
  ['receive_bytes', 'Cumulative count of bytes received', 'rxBytes'],
  ['receive_errors', 'Cumulative count of errors encountered while receiving', 'rxErrors'],
  ['receive_packets_dropped', 'Cumulative count of packets dropped while receiving', 'rxDropped'],
  ['receive_packets', 'Cumulative count of packets received', 'rxPackets'],
  ['transmit_bytes', 'Cumulative count of bytes transmitted', 'txBytes'],
  ['transmit_errors', 'Cumulative count of errors encountered while transmitting', 'txErrors'],
  ['transmit_packets_dropped', 'Cumulative count of packets dropped while transmitting', 'txDropped'],
  ['transmit_packets', 'Cumulative count of packets transmitted', 'txPackets'],
];

interface ContainerLabels {
  readonly container?: string;
  readonly id: string;
  readonly image?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly pod?: string;
}

/** All six in every series: those that do not apply are empty. */
function containerLabels(labels: ContainerLabels): string {
  const { container = '', id, image = '', name = '', namespace = '', pod = '' } = labels;
  return labelText({ container, id, image, name, namespace, pod });
}

function rowsOf(node: NodeSample, machine: MachineInfo): readonly Row[] {
  const slice = (sample: Sample | undefined, kind: RowKind, started?: number): readonly Row[] =>
    sample === undefined ? [] : [{ kind, labels: containerLabels({ id: sample.path }), sample, started }];
  return [
    ...slice(node.root, 'root', machine.bootTime),
    ...slice(node.kubepods, 'slice'),
    ...node.classes.flatMap((sample) => slice(sample, 'slice')),
    ...node.pods.flatMap(({ namespace, name: pod, sandbox, sample, containers }): readonly Row[] => [
      ...(sample === undefined
        ? []
        : [
            {
              kind: 'pod' as const,
              labels: containerLabels({ id: sample.path, namespace, pod }),
              sample,
              started: Math.trunc(sandbox.createdAt / 1000),
            },
          ]),
      ...containers.map(({ container: { id, name, image, createdAt }, sample: own }) => ({
        kind: 'container' as const,
        labels: containerLabels({ container: name, id: own.path, image, name: id, namespace, pod }),
        sample: own,
        started: Math.trunc(createdAt / 1000),
      })),
    ]),
  ];
}

/** `node` undefined: the figures could not be read. */
export function cadvisorPage(node: NodeSample | undefined, machine: MachineInfo): string {
  const page = new MetricsText();
  if (node !== undefined) {
    const rows = rowsOf(node, machine);
    const whole = rows.filter(({ kind }) => kind === 'container' || kind === 'root');
    const containers = rows.filter(({ kind }) => kind === 'container');
    addCpu(page, rows);
    for (const family of USAGE) add(page, family, rows);
    for (const family of DETAILS) add(page, family, whole);
    addFaults(page, whole);
    addDisks(page, whole, machine);
    addNetworks(page, node);
    page.family('container_last_seen', 'gauge', 'Last time a container was seen by the exporter');
    for (const { labels, sample } of containers) page.sample(Math.trunc(sample.at / 1000), labels, sample.at);
    page.family('container_start_time_seconds', 'gauge', 'Start time of the container since unix epoch in seconds.');
    for (const { labels, started } of rows) if (started !== undefined) page.sample(started, labels);
    for (const family of LIMITS) add(page, family, containers, false);
  }
  page.family(
    'container_scrape_error',
    'gauge',
    '1 if there was an error while getting container metrics, 0 otherwise',
  );
  page.sample(node === undefined ? 1 : 0);
  addMachine(page, machine);
  return page.toString();
}

function add(page: MetricsText, { name, type, help, value }: Family, rows: readonly Row[], timed = true): void {
  page.family(name, type, help);
  for (const { labels, sample } of rows) {
    const figure = value(sample);
    if (figure !== undefined) page.sample(figure, labels, timed ? sample.at : undefined);
  }
}

function addCpu(page: MetricsText, rows: readonly Row[]): void {
  page.family('container_cpu_usage_seconds_total', 'counter', 'Cumulative cpu time consumed in seconds.');
  for (const { labels, sample } of rows) page.sample(sample.cpuUsageNs / NS, `${labels},cpu="total"`, sample.at);
}

function addFaults(page: MetricsText, rows: readonly Row[]): void {
  const name = 'container_memory_failures_total';
  page.family(name, 'counter', 'Cumulative count of memory allocation failures.');
  for (const { labels, sample } of rows) {
    const { memory, at } = sample;
    if (memory === undefined) continue;
    for (const scope of ['container', 'hierarchy']) {
      page.sample(memory.pageFaults, `${labels},failure_type="pgfault",scope="${scope}"`, at);
      page.sample(memory.majorPageFaults, `${labels},failure_type="pgmajfault",scope="${scope}"`, at);
    }
  }
}

function addDisks(page: MetricsText, rows: readonly Row[], { deviceName }: MachineInfo): void {
  for (const [name, help, figure] of DISKS) {
    page.family(name, 'counter', help);
    for (const { labels, sample } of rows) {
      for (const disk of sample.io) {
        page.sample(disk[figure], `${labels},${labelText({ device: deviceName(disk.device) })}`, sample.at);
      }
    }
  }
}

/** A pod's network is its sandbox's, as with cAdvisor; the machine's is that of the root cgroup. */
function addNetworks(page: MetricsText, node: NodeSample): void {
  const places = node.pods.flatMap(({ namespace, name: pod, sandbox, sandboxPath, network }) =>
    sandboxPath === undefined
      ? []
      : [{ labels: containerLabels({ id: sandboxPath, name: sandbox.id, namespace, pod }), network, at: node.at }],
  );
  places.unshift({ labels: containerLabels({ id: '/' }), network: node.network, at: node.at });
  for (const [name, help, figure] of NETWORK) {
    page.family(`container_network_${name}_total`, 'counter', help);
    for (const { labels, network, at } of places) {
      for (const counters of network) {
        page.sample(counters[figure], `${labels},${labelText({ interface: counters.name })}`, at);
      }
    }
  }
}

function addMachine(page: MetricsText, machine: MachineInfo): void {
  const { bootID: boot_id, machineID: machine_id, systemUUID: system_uuid } = machine;
  const labels = labelText({ boot_id, machine_id, system_uuid });
  const figures: readonly (readonly [name: string, help: string, value: number])[] = [
    ['machine_cpu_cores', 'Number of logical CPU cores.', machine.cores],
    ['machine_cpu_physical_cores', 'Number of physical CPU cores.', machine.physicalCores],
    ['machine_cpu_sockets', 'Number of CPU sockets.', machine.sockets],
    ['machine_memory_bytes', 'Amount of memory installed on the machine.', machine.memory],
    ['machine_swap_bytes', 'Amount of swap memory available on the machine.', machine.swap],
  ];
  for (const [name, help, value] of figures) {
    page.family(name, 'gauge', help);
    page.sample(value, labels);
  }
  page.family('machine_scrape_error', 'gauge', '1 if there was an error while getting machine metrics, 0 otherwise.');
  page.sample(0);
}
