import { describe, expect, test } from 'vitest';
import { agentPage, probesPage } from '../../../../agent/metrics/agent-page.ts';
import { PodStarts } from '../../../../agent/metrics/pod-starts.ts';
import { Relists } from '../../../../agent/metrics/relists.ts';
import { SpanMetrics } from '../../../../agent/metrics/span-metrics.ts';
import { podUID } from '../../../../agent/model/pod-uid.ts';
import { type EpochMs, epochMs, plusMs } from '../../../../lib/clock.ts';
import { type Metric, MetricsText } from '../../../../lib/metrics.ts';
import type { Span } from '../../../../lib/trace.ts';
import { parseMetrics } from '../../../support/metrics-text.ts';
import { container, POD, RUNNING } from '../server/support.ts';
import { ManualClock, pod } from '../volumes/support.ts';

const WEB = { uid: 'uid-1', namespace: 'demo', name: 'web' };

function span(kind: Span['kind'], name: string, more: Partial<Span> = {}): Span {
  return { id: 1, kind, name, start: epochMs(0), durationMs: 20, outcome: 'ok', attributes: {}, ...more };
}

/** `name labels value` of each sample that is not a bucket. */
function shown(metrics: readonly Metric[]): readonly string[] {
  const page = new MetricsText();
  for (const metric of metrics) metric.show(page);
  return [...parseMetrics(String(page)).values()].flatMap(({ samples }) =>
    samples
      .filter(({ name }) => !name.endsWith('_bucket'))
      .map(({ name, labels, value }) => `${name} ${Object.values(labels).join(' ')} ${value}`),
  );
}

describe('calls, by their spans', () => {
  test.each([
    [
      'a call of the runtime',
      span('cri', 'ListContainers'),
      [
        'kubelet_runtime_operations_total list_containers 1',
        'kubelet_runtime_operations_duration_seconds_sum list_containers 0.02',
        'kubelet_runtime_operations_duration_seconds_count list_containers 1',
      ],
    ],
    [
      'one that failed',
      span('cri', 'PullImage', { outcome: 'error' }),
      [
        'kubelet_runtime_operations_total pull_image 1',
        'kubelet_runtime_operations_errors_total pull_image 1',
        'kubelet_runtime_operations_duration_seconds_sum pull_image 0.02',
        'kubelet_runtime_operations_duration_seconds_count pull_image 1',
      ],
    ],
    ['an event of the runtime', span('cri', 'PLEG containerDied'), []],
    [
      'a container',
      span('cri', 'CreateContainer', { attributes: { type: 'init' } }),
      [
        'kubelet_runtime_operations_total create_container 1',
        'kubelet_runtime_operations_duration_seconds_sum create_container 0.02',
        'kubelet_runtime_operations_duration_seconds_count create_container 1',
        'kubelet_started_containers_total init_container 1',
      ],
    ],
    [
      'a sandbox that failed',
      span('cri', 'RunPodSandbox', { outcome: 'error', attributes: { runtimeHandler: 'kata' } }),
      [
        'kubelet_runtime_operations_total run_podsandbox 1',
        'kubelet_runtime_operations_errors_total run_podsandbox 1',
        'kubelet_runtime_operations_duration_seconds_sum run_podsandbox 0.02',
        'kubelet_runtime_operations_duration_seconds_count run_podsandbox 1',
        'kubelet_run_podsandbox_duration_seconds_sum kata 0.02',
        'kubelet_run_podsandbox_duration_seconds_count kata 1',
        'kubelet_run_podsandbox_errors_total kata 1',
        'kubelet_started_pods_total  1',
      ],
    ],
    [
      'a request to the API server',
      span('api', 'PATCH pods/status', { attributes: { method: 'PATCH', code: 409 }, outcome: 'error' }),
      [
        'rest_client_requests_total 409 api:6443 PATCH 1',
        'rest_client_request_duration_seconds_sum api:6443 PATCH 0.02',
        'rest_client_request_duration_seconds_count api:6443 PATCH 1',
      ],
    ],
    [
      'a request without an answer',
      span('api', 'GET nodes', { attributes: { method: 'GET' }, outcome: 'error' }),
      [
        'rest_client_requests_total <error> api:6443 GET 1',
        'rest_client_request_duration_seconds_sum api:6443 GET 0.02',
        'rest_client_request_duration_seconds_count api:6443 GET 1',
      ],
    ],
    [
      'a pod’s cgroup',
      span('cgroup', 'ensurePod', { attributes: { isNew: true } }),
      [
        'kubelet_cgroup_manager_duration_seconds_sum create 0.02',
        'kubelet_cgroup_manager_duration_seconds_count create 1',
      ],
    ],
    ['a pod from a source', span('api', 'SyncLoop ADD', { pod: WEB }), []],
    [
      'a volume',
      span('volume', 'MountVolume.SetUp', { attributes: { plugin: 'kubernetes.io/csi' }, outcome: 'error' }),
      [
        'storage_operation_duration_seconds_sum false volume_mount fail-unknown kubernetes.io/csi 0.02',
        'storage_operation_duration_seconds_count false volume_mount fail-unknown kubernetes.io/csi 1',
      ],
    ],
  ])('%s', (_title, ended, expected) => {
    const metrics = new SpanMetrics({ apiHost: 'api:6443' });
    metrics.take(ended);
    expect(shown(metrics.agent)).toEqual(expected);
  });
});

describe('probes', () => {
  const probe = (result: string): Span =>
    span('probe', 'readiness', { pod: WEB, attributes: { container: 'c', result } });

  test.each([
    ['success', 'successful', true],
    ['warning', 'successful', true],
    ['failure', 'failed', false],
    ['error', 'unknown', true],
  ])('%s counts as %s', (result, counted, timed) => {
    const metrics = new SpanMetrics({ apiHost: undefined });
    metrics.take(probe(result));
    expect(shown(metrics.probes)).toEqual([
      ...(timed
        ? [
            'prober_probe_duration_seconds_sum c demo web Readiness 0.02',
            'prober_probe_duration_seconds_count c demo web Readiness 1',
          ]
        : []),
      `prober_probe_total c demo web uid-1 Readiness ${counted} 1`,
    ]);
  });

  test('a run that was abandoned, as the pod ends, is not counted', () => {
    const metrics = new SpanMetrics({ apiHost: undefined });
    metrics.take(probe('abandoned'));
    expect(shown(metrics.probes)).toEqual([]);
  });

  test('those of a pod that is gone are no longer shown', () => {
    const metrics = new SpanMetrics({ apiHost: undefined });
    metrics.take(probe('success'));
    metrics.take({ ...probe('success'), pod: { ...WEB, uid: 'uid-2', name: 'db' } });
    metrics.podGone(WEB);
    expect(shown(metrics.probes)).toEqual([
      'prober_probe_duration_seconds_sum c demo db Readiness 0.02',
      'prober_probe_duration_seconds_count c demo db Readiness 1',
      'prober_probe_total c demo db uid-2 Readiness successful 1',
    ]);
  });
});

describe('how long pods take to start', () => {
  const created = epochMs(Date.parse('2026-01-01T00:00:00Z'));
  const object = pod({}, { creationTimestamp: '2026-01-01T00:00:00Z' });
  const at = (ms: number): EpochMs => plusMs(created, ms);
  const seen = span('api', 'SyncLoop ADD', { pod: WEB, start: at(100) });
  const pending = { phase: 'Pending', startTime: '2026-01-01T00:00:00Z' };

  test('from the moment that it is seen, and from its creation, with and without pulls', () => {
    const starts = new PodStarts();
    starts.take(seen);
    starts.reported(object, pending, at(200));
    for (const [from, ms] of [
      [300, 1000],
      [900, 600],
    ] as const) {
      starts.take(span('cri', 'PullImage', { pod: WEB, start: at(from), durationMs: ms }));
    }
    starts.reported(object, { ...RUNNING, startTime: pending.startTime }, at(2100));
    // Later ones do not count.
    starts.reported(object, { ...RUNNING, startTime: pending.startTime }, at(9000));
    expect(shown(starts.metrics)).toEqual([
      'kubelet_pod_start_duration_seconds_sum  2',
      'kubelet_pod_start_duration_seconds_count  1',
      'kubelet_pod_start_sli_duration_seconds_sum  0.9',
      'kubelet_pod_start_sli_duration_seconds_count  1',
      'kubelet_pod_start_total_duration_seconds_sum  2.1',
      'kubelet_pod_start_total_duration_seconds_count  1',
    ]);
  });

  test.each([
    ['a pod that ran before the agent did', [{ ...RUNNING, startTime: '2025-12-31T23:59:00Z' }]],
    ['a pod that failed first', [{ phase: 'Failed' }, RUNNING]],
    ['a pod that was never seen to come', []],
  ])('%s is not counted', (_title, statuses) => {
    const starts = new PodStarts();
    if (statuses.length > 0) starts.take(seen);
    for (const status of statuses.length > 0 ? statuses : [RUNNING]) starts.reported(object, status, at(500));
    expect(shown(starts.metrics)).toEqual([]);
  });

  test('a pod that is gone is forgotten', () => {
    const starts = new PodStarts();
    starts.take(seen);
    starts.podGone(WEB.uid);
    starts.reported(object, RUNNING, at(500));
    expect(shown(starts.metrics)).toEqual([]);
  });
});

test('relists: their duration, and the time between their beginnings', () => {
  const clock = new ManualClock();
  const relists = new Relists(clock);
  relists.relisted(100);
  clock.advance(10_050);
  relists.relisted(150);
  expect(relists.lastAt).toBe(clock.now());
  expect(shown(relists.metrics)).toEqual([
    'kubelet_pleg_relist_duration_seconds_sum  0.25',
    'kubelet_pleg_relist_duration_seconds_count  2',
    'kubelet_pleg_relist_interval_seconds_sum  10',
    'kubelet_pleg_relist_interval_seconds_count  1',
  ]);
});

test('the agent’s page: what was counted, and its state', () => {
  const snapshot = {
    pod: { uid: podUID(POD.metadata.uid), namespace: 'demo', name: 'web' },
    sandboxes: [],
    containers: [container('a', ''), container('b', '', 'exited'), container('c', '')],
    observedAt: epochMs(0),
  };
  const page = parseMetrics(
    agentPage({
      nodeName: 'n1',
      cgroupVersion: 2,
      version: 'v1',
      counted: [],
      pods: [
        { pod: POD, status: RUNNING, snapshot },
        {
          pod: pod({}, { annotations: { 'kubernetes.io/config.source': 'file' } }),
          status: { phase: 'Failed' },
          snapshot: undefined,
        },
      ],
      volumes: [{ plugin: 'kubernetes.io/projected', state: 'actual_state_of_world', count: 3 }],
      claims: [
        {
          namespace: 'demo',
          claim: 'data',
          stats: { podUid: 'u', name: 'v', usedBytes: 5, condition: { abnormal: true, message: '' }, at: epochMs(0) },
        },
      ],
      process: { cpu: 1.5, resident: 100, startedAt: epochMs(12_000) },
      relistedAt: epochMs(77_900),
      violations: new Map([['a\\"b', 2]]),
    }),
  );
  const values = (name: string) =>
    page.get(name)?.samples.map(({ labels, value }) => `${Object.values(labels).join(' ')} ${value}`);
  expect(values('kubelet_node_name')).toEqual(['n1 1']);
  expect(values('kubelet_running_pods')).toEqual([' 0']);
  expect(values('kubelet_running_containers')).toEqual(['running 2', 'exited 1']);
  expect(values('kubelet_desired_pods')).toEqual([' 1', 'true 1']);
  expect(values('kubelet_active_pods')).toEqual([' 1', 'true 0']);
  expect(values('kubelet_pleg_last_seen_seconds')).toEqual([' 77']);
  expect(values('volume_manager_total_volumes')).toEqual(['kubernetes.io/projected actual_state_of_world 3']);
  expect(values('kubelet_volume_stats_used_bytes')).toEqual(['demo data 5']);
  expect(values('kubelet_volume_stats_health_status_abnormal')).toEqual(['demo data 1']);
  expect(page.has('kubelet_volume_stats_capacity_bytes')).toBe(false);
  expect(values('process_cpu_seconds_total')).toEqual([' 1.5']);
  expect(page.has('process_open_fds')).toBe(false);
  expect(values('nodelet_invariant_violations_total')).toEqual(['a\\"b 2']);
});

test('the probes’ page has the process’s start, too', () => {
  expect([...parseMetrics(probesPage([], epochMs(12_000))).keys()]).toEqual(['process_start_time_seconds']);
});
