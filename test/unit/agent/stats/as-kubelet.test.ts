// kubelet-1.34.json has what a kubelet 1.34.2 showed on its pages for a static pod with two containers, probes and limits, on
// containerd 1.6 and cgroup v1: of each family the type, the help, the labels, the buckets, and whether samples have a time.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { agentPage, probesPage } from '../../../../agent/metrics/agent-page.ts';
import { PodStarts } from '../../../../agent/metrics/pod-starts.ts';
import { Relists } from '../../../../agent/metrics/relists.ts';
import { SpanMetrics } from '../../../../agent/metrics/span-metrics.ts';
import { cadvisorPage } from '../../../../agent/stats/cadvisor-page.ts';
import { resourcePage } from '../../../../agent/stats/resource-page.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import type { Span } from '../../../../lib/trace.ts';
import { parseMetrics } from '../../../support/metrics-text.ts';
import { POD, RUNNING } from '../server/support.ts';
import { ManualClock } from '../volumes/support.ts';
import { MACHINE, testMachine } from './support.ts';

interface KubeletFamily {
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly timed: boolean;
  readonly buckets?: readonly number[];
}

const KUBELET: Readonly<Record<string, Readonly<Record<string, KubeletFamily>>>> = JSON.parse(
  readFileSync(new URL('kubelet-1.34.json', import.meta.url), 'utf8'),
);

/** Families that this kubelet did not show in that hour, or that are not a kubelet's. */
const OTHERS: ReadonlySet<string> = new Set([
  // Without swap, CSI volumes, an API server, another runtime handler and failures.
  'kubelet_volume_stats_used_bytes',
  'kubelet_volume_stats_health_status_abnormal',
  'kubelet_run_podsandbox_errors_total',
  'kubelet_runtime_operations_errors_total',
  'nodelet_invariant_violations_total',
  // Without a start of a pod that an API server has shown.
  'kubelet_pod_start_sli_duration_seconds',
  'kubelet_pod_start_total_duration_seconds',
  'rest_client_requests_total',
  'rest_client_request_duration_seconds',
  // Files of the kernel of the machine that is pretended, not of that one.
  'container_memory_kernel_usage',
  // Its containers had written nothing to a disk yet.
  'container_fs_reads_bytes_total',
  'container_fs_writes_bytes_total',
]);
/** What is there in part: labels that only a compiled program has. */
const FEWER_LABELS: ReadonlySet<string> = new Set(['kubernetes_build_info']);

const SPANS: readonly Partial<Span>[] = [
  { kind: 'cri', name: 'RunPodSandbox' },
  { kind: 'cri', name: 'CreateContainer', outcome: 'error' },
  { kind: 'probe', name: 'liveness', attributes: { container: 'c', result: 'success' } },
  { kind: 'api', name: 'GET nodes', attributes: { method: 'GET', code: 200 } },
  { kind: 'api', name: 'SyncLoop ADD' },
  { kind: 'cgroup', name: 'removePod' },
  { kind: 'volume', name: 'MountVolume.SetUp', attributes: { plugin: 'kubernetes.io/projected' } },
];

function pages(): readonly (readonly [path: string, text: string])[] {
  const { clock, sampler } = testMachine();
  const spans = new SpanMetrics({ apiHost: 'api:6443' });
  const starts = new PodStarts();
  const relists = new Relists(new ManualClock());
  const pod = { ...POD.metadata };
  for (const span of SPANS) {
    const whole: Span = {
      id: 1,
      kind: 'cri',
      name: '',
      start: clock.now(),
      durationMs: 1,
      outcome: 'ok',
      attributes: {},
      pod,
      ...span,
    };
    spans.take(whole);
    starts.take(whole);
  }
  starts.reported(
    { ...POD, metadata: { ...POD.metadata, creationTimestamp: '2023-11-14T22:13:00Z' } },
    RUNNING,
    plusMs(clock.now(), 500),
  );
  relists.relisted(1);
  relists.relisted(1);
  const agent = agentPage({
    nodeName: 'n',
    cgroupVersion: 1,
    version: 'v1.34.0',
    counted: [...spans.agent, ...starts.metrics, ...relists.metrics],
    pods: [],
    volumes: [{ plugin: 'p', state: 'desired_state_of_world', count: 1 }],
    claims: [],
    process: { cpu: 1, resident: 1, startedAt: epochMs(1), openFiles: 1, maxFiles: 1 },
    relistedAt: clock.now(),
    violations: new Map([['a', 1]]),
  });
  return [
    ['/metrics', agent],
    ['/metrics/probes', probesPage(spans.probes, epochMs(1))],
    ['/metrics/resource', resourcePage(sampler.take('resource'))],
    ['/metrics/cadvisor', cadvisorPage(sampler.take('all'), MACHINE)],
  ];
}

test.each(pages())('%s: each family has the kubelet’s type, help, labels, times and buckets', (path, text) => {
  const kubelet = new Map(Object.entries(KUBELET[path] ?? {}));
  const found = [...parseMetrics(text)].filter(([name]) => !OTHERS.has(name));
  expect(found.length).toBeGreaterThan(path === '/metrics/probes' ? 2 : 10);
  for (const [name, { type, help, samples }] of found) {
    const expected = kubelet.get(name);
    const labels = [...new Set(samples.flatMap((sample) => Object.keys(sample.labels)))]
      .filter((label) => label !== 'le')
      .sort();
    const limits = samples.flatMap(({ labels: { le } }) => (le === undefined || le === '+Inf' ? [] : [Number(le)]));
    expect({ name, type, help, timed: samples.some(({ at }) => at !== undefined) }).toEqual({
      name,
      type: expected?.type,
      help: expected?.help,
      timed: expected?.timed,
    });
    if (FEWER_LABELS.has(name)) expect(expected?.labels).toEqual(expect.arrayContaining(labels));
    else expect([name, labels]).toEqual([name, expected?.labels]);
    expect([name, [...new Set(limits)]]).toEqual([name, expected?.buckets ?? []]);
  }
});
