// /metrics: what the agent has counted, and the state that it reads when the page is shown, with the kubelet's names. Only what
// the agent truly has; docs/metrics.md lists what is left out.

import type { Pod, PodStatus } from '../../client/types.ts';
import type { EpochMs } from '../../lib/clock.ts';
import { labelText, type Metric, MetricsText } from '../../lib/metrics.ts';
import { isStaticPod } from '../model/static-pods.ts';
import type { PodSnapshot } from '../ports/runtime.ts';
import type { VolumeCount } from '../ports/stats.ts';
import type { VolumeStats } from '../ports/volume-stats.ts';

export interface ServedPod {
  readonly pod: Pod;
  readonly status: PodStatus | undefined;
  readonly snapshot: PodSnapshot | undefined;
}

export interface ProcessFigures {
  /** Seconds. */
  readonly cpu: number;
  /** Bytes. */
  readonly resident: number;
  readonly startedAt: EpochMs;
  /** Absent when no descriptor is left to count them with. */
  readonly openFiles?: number;
  readonly maxFiles?: number;
}

export interface AgentPageInput {
  readonly nodeName: string;
  readonly cgroupVersion: 1 | 2;
  /** "v1.34.0-…" as the Node shows it. */
  readonly version: string;
  readonly counted: readonly Metric[];
  readonly pods: readonly ServedPod[];
  readonly volumes: readonly VolumeCount[];
  readonly claims: readonly { readonly stats: VolumeStats; readonly namespace: string; readonly claim: string }[];
  readonly process: ProcessFigures;
  /** When the runtime's pods were last listed with success. */
  readonly relistedAt: EpochMs | undefined;
  /** How often each invariant was violated, by name. */
  readonly violations: ReadonlyMap<string, number>;
}

const BUILD_INFO =
  "[ALPHA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.";

/** Those that a program that is not compiled has. */
function buildLabels(version: string): Readonly<Record<string, string>> {
  const [major = '', minor = ''] = version.replace(/^v/, '').split('.');
  return { git_version: version, major, minor };
}

type Series = readonly (readonly [labels: Readonly<Record<string, string>>, value: number | undefined])[];

export function agentPage(input: AgentPageInput): string {
  const page = new MetricsText();
  const gauge = (name: string, help: string, series: Series): void => show(page, 'gauge', name, help, series);
  gauge('kubelet_node_name', "[ALPHA] The node's name. The count is always 1.", [[{ node: input.nodeName }, 1]]);
  gauge('kubelet_cgroup_version', '[ALPHA] cgroup version on the hosts.', [[{}, input.cgroupVersion]]);
  for (const metric of input.counted) metric.show(page);
  podGauges(gauge, input.pods);
  gauge('kubelet_pleg_last_seen_seconds', '[ALPHA] Timestamp in seconds when PLEG was last seen active.', [
    [{}, input.relistedAt === undefined ? undefined : Math.trunc(input.relistedAt / 1000)],
  ]);
  gauge(
    'volume_manager_total_volumes',
    '[ALPHA] Number of volumes in Volume Manager',
    input.volumes.map(({ plugin, state, count }) => [{ plugin_name: plugin, state }, count]),
  );
  claimGauges(gauge, input.claims);
  processMetrics(page, input.process);
  gauge('kubernetes_build_info', BUILD_INFO, [[buildLabels(input.version), 1]]);
  show(
    page,
    'counter',
    'nodelet_invariant_violations_total',
    'Statements about the program that did not hold since it started, by statement.',
    [...input.violations].map(([invariant, count]) => [{ invariant }, count]),
  );
  return page.toString();
}

/** /metrics/probes. */
export function probesPage(counted: readonly Metric[], startedAt: EpochMs): string {
  const page = new MetricsText();
  for (const metric of counted) metric.show(page);
  const help = '[ALPHA] Start time of the process since unix epoch in seconds.';
  show(page, 'gauge', 'process_start_time_seconds', help, [[{}, startedAt / 1000]]);
  return page.toString();
}

function show(page: MetricsText, type: 'counter' | 'gauge', name: string, help: string, series: Series): void {
  page.family(name, type, help);
  for (const [labels, value] of series) if (value !== undefined) page.sample(value, labelText(labels));
}

type ShowGauge = (name: string, help: string, series: Series) => void;

function podGauges(gauge: ShowGauge, pods: readonly ServedPod[]): void {
  const ended = (status: PodStatus | undefined): boolean => status?.phase === 'Failed' || status?.phase === 'Succeeded';
  const counts = (of: readonly ServedPod[]): Series => {
    const statics = of.filter(({ pod }) => isStaticPod(pod)).length;
    return [
      [{ static: '' }, of.length - statics],
      [{ static: 'true' }, statics],
    ];
  };
  const states = new Map<string, number>();
  for (const { snapshot } of pods) {
    for (const { state } of snapshot?.containers ?? []) states.set(state, (states.get(state) ?? 0) + 1);
  }
  const running = pods.filter(({ snapshot }) => snapshot?.sandboxes[0]?.state === 'ready').length;
  gauge('kubelet_running_pods', '[ALPHA] Number of pods that have a running pod sandbox', [[{}, running]]);
  gauge(
    'kubelet_running_containers',
    '[ALPHA] Number of containers currently running',
    [...states].map(([container_state, count]) => [{ container_state }, count]),
  );
  gauge(
    'kubelet_desired_pods',
    '[ALPHA] The number of pods the kubelet is being instructed to run. static is true if the pod is not from the apiserver.',
    counts(pods.filter(({ pod }) => pod.metadata.deletionTimestamp === undefined)),
  );
  gauge(
    'kubelet_active_pods',
    '[ALPHA] The number of pods the kubelet considers active and which are being considered when admitting new pods. static is true if the pod is not from the apiserver.',
    counts(pods.filter(({ status }) => !ended(status))),
  );
}

function claimGauges(gauge: ShowGauge, claims: AgentPageInput['claims']): void {
  const of = (name: string, help: string, figure: (stats: VolumeStats) => number | undefined): void =>
    gauge(
      `kubelet_volume_stats_${name}`,
      `[ALPHA] ${help}`,
      claims.map(({ stats, namespace, claim }) => [{ namespace, persistentvolumeclaim: claim }, figure(stats)]),
    );
  of('available_bytes', 'Number of available bytes in the volume', (stats) => stats.availableBytes);
  of('capacity_bytes', 'Capacity in bytes of the volume', (stats) => stats.capacityBytes);
  of('inodes', 'Maximum number of inodes in the volume', (stats) => stats.inodes);
  of('inodes_free', 'Number of free inodes in the volume', (stats) => stats.inodesFree);
  of('inodes_used', 'Number of used inodes in the volume', (stats) => stats.inodesUsed);
  of('used_bytes', 'Number of used bytes in the volume', (stats) => stats.usedBytes);
  of(
    'health_status_abnormal',
    'Abnormal volume health status. The count is either 1 or 0. 1 indicates the volume is unhealthy, 0 indicates volume is healthy',
    ({ condition }) => (condition === undefined ? undefined : Number(condition.abnormal)),
  );
}

function processMetrics(page: MetricsText, { cpu, resident, startedAt, openFiles, maxFiles }: ProcessFigures): void {
  show(page, 'counter', 'process_cpu_seconds_total', 'Total user and system CPU time spent in seconds.', [[{}, cpu]]);
  const gauges: readonly (readonly [name: string, help: string, value: number | undefined])[] = [
    ['process_max_fds', 'Maximum number of open file descriptors.', maxFiles],
    ['process_open_fds', 'Number of open file descriptors.', openFiles],
    ['process_resident_memory_bytes', 'Resident memory size in bytes.', resident],
    ['process_start_time_seconds', 'Start time of the process since unix epoch in seconds.', startedAt / 1000],
  ];
  for (const [name, help, value] of gauges) show(page, 'gauge', name, help, [[{}, value]]);
}
