// What the scheduler and the controllers show of what they do, with the names and labels of kube-scheduler and kube-controller-manager.

import { describe, expect, it, test } from 'vitest';
import type { Pod } from '../../../client/types.ts';
import { EndpointSliceController } from '../../../controlplane/controllers/endpointslice/endpointslice.ts';
import { JobMetrics } from '../../../controlplane/controllers/job/metrics.ts';
import { NodeLifecycleController } from '../../../controlplane/controllers/node-lifecycle/node-lifecycle.ts';
import { CONTROLLERS } from '../../../controlplane/controllers.ts';
import { metricsPage, runningControllers } from '../../../controlplane/metrics-page.ts';
import { queueName } from '../../../controlplane/queue-names.ts';
import { type ClusterEvent, eventLabel } from '../../../controlplane/scheduler/events.ts';
import { Scheduler } from '../../../controlplane/scheduler/scheduler.ts';
import { epochMs } from '../../../lib/clock.ts';
import { type Metric, MetricsText } from '../../../lib/metrics.ts';
import { apiError } from '../../support/fake-client.ts';
import { settle } from '../../support/virtual-clock.ts';
import { makeJob } from './controllers/job/cases.ts';
import { environment, makeNode, makePod, meta } from './environment.ts';

/** The samples of families whose names begin so, without buckets. */
function samples(metric: Metric, prefix: string): string[] {
  const page = new MetricsText();
  metric.show(page);
  const wanted = (line: string): boolean => line.startsWith(prefix) && !/_bucket|_sum/.test(line);
  return `${page}`.split('\n').filter(wanted);
}

describe('the scheduler', () => {
  function start() {
    const env = environment();
    const scheduler = new Scheduler(env.context, env.informers);
    env.informers.nodes.replace([makeNode('n', 'True')]);
    env.informers.pods.replace([]);
    void scheduler.run(env.stop.signal);
    return { ...env, metrics: scheduler.metrics };
  }
  const wants = (cpu: string): Partial<Pod['spec']> => ({
    containers: [{ name: 'c', resources: { requests: { cpu } } }],
  });

  it('counts pods that get a node, with the extension points that they passed', async () => {
    const { informers, metrics } = start();
    informers.pods.upsert(makePod('p'));
    await settle();
    const profile = 'profile="default-scheduler"';
    expect(samples(metrics, 'scheduler_schedule_attempts_total')).toEqual([
      `scheduler_schedule_attempts_total{${profile},result="scheduled"} 1`,
    ]);
    expect(samples(metrics, 'scheduler_scheduling_attempt_duration_seconds')).toEqual([
      `scheduler_scheduling_attempt_duration_seconds_count{${profile},result="scheduled"} 1`,
    ]);
    expect(samples(metrics, 'scheduler_pod_scheduling')).toEqual([
      'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1',
      'scheduler_pod_scheduling_attempts_count 1',
    ]);
    expect(samples(metrics, 'scheduler_queue_incoming')).toEqual([
      'scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 1',
    ]);
    const points = samples(metrics, 'scheduler_framework_extension_point').map(
      (line) => /point="(\w+)"/.exec(line)?.[1],
    );
    expect(points).toEqual(['PreFilter', 'Filter', 'Reserve', 'Permit', 'PreBind', 'Bind', 'PostBind']);
  });

  it('shows where pods wait and why, and what brought them back', async () => {
    const { clock, informers, metrics } = start();
    informers.pods.upsert(makePod('big', wants('3')));
    informers.pods.upsert(makePod('gated', { schedulingGates: [{ name: 'wait' }] }));
    await settle();
    expect(samples(metrics, 'scheduler_pending_pods')).toEqual([
      'scheduler_pending_pods{queue="active"} 0',
      'scheduler_pending_pods{queue="backoff"} 0',
      'scheduler_pending_pods{queue="unschedulable"} 1',
      'scheduler_pending_pods{queue="gated"} 1',
    ]);
    expect(samples(metrics, 'scheduler_unschedulable_pods')).toEqual([
      'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1',
    ]);
    expect(samples(metrics, 'scheduler_preemption_attempts')).toEqual(['scheduler_preemption_attempts_total 1']);
    await clock.advance(2000);
    const node = makeNode('n2', 'True');
    informers.nodes.upsert({
      ...node,
      status: { ...node.status, allocatable: { cpu: '4', memory: '4Gi', pods: '9' } },
    });
    await settle();
    expect(samples(metrics, 'scheduler_queue_incoming')).toEqual([
      'scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 1',
      'scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="unschedulable"} 1',
      'scheduler_queue_incoming_pods_total{event="ScheduleAttemptFailure",queue="unschedulable"} 1',
      'scheduler_queue_incoming_pods_total{event="NodeAdd",queue="active"} 1',
    ]);
    expect(samples(metrics, 'scheduler_pod_scheduling_sli')).toEqual([
      'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="2"} 1',
    ]);
    const page = new MetricsText();
    metrics.show(page);
    // From the first time that it could be tried.
    expect(`${page}`).toContain('scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="2"} 2\n');
    expect(samples(metrics, 'scheduler_cache_size')).toEqual([
      'scheduler_cache_size{type="assumed_pods"} 1',
      'scheduler_cache_size{type="nodes"} 2',
      'scheduler_cache_size{type="pods"} 1',
    ]);
  });

  it('an error of a step is one, and its point failed', async () => {
    const { client, informers, metrics } = start();
    client.onWrite = ({ path, body }) => {
      if (path.endsWith('/binding')) throw apiError(500, 'InternalError');
      return body;
    };
    informers.pods.upsert(makePod('p'));
    await settle();
    expect(samples(metrics, 'scheduler_schedule_attempts_total')).toEqual([
      'scheduler_schedule_attempts_total{profile="default-scheduler",result="error"} 1',
    ]);
    expect(samples(metrics, 'scheduler_framework_extension_point')).toContain(
      'scheduler_framework_extension_point_duration_seconds_count{extension_point="Bind",profile="default-scheduler",status="Error"} 1',
    );
    expect(samples(metrics, 'scheduler_pending_pods')).toContain('scheduler_pending_pods{queue="backoff"} 1');
  });

  it('counts the victims of a preemption', async () => {
    const { informers, metrics } = start();
    informers.pods.replace([makePod('small', { ...wants('2'), nodeName: 'n' })]);
    await settle();
    informers.pods.upsert(makePod('p', { ...wants('2'), priority: 10 }));
    await settle();
    expect(samples(metrics, 'scheduler_preemption')).toEqual([
      'scheduler_preemption_attempts_total 1',
      'scheduler_preemption_victims_count 1',
    ]);
  });

  const object = makePod('p');
  const node = makeNode('n', 'True');
  test.each<[ClusterEvent, string]>([
    [{ resource: 'Node', action: 'add', object: node }, 'NodeAdd'],
    [
      { resource: 'Node', action: 'update', object: node, old: node, changed: new Set(['taints']) },
      'NodeUpdateNodeTaint',
    ],
    [{ resource: 'AssignedPod', action: 'delete', object }, 'AssignedPodDelete'],
    [
      { resource: 'AssignedPod', action: 'update', object, old: object, changed: new Set(['requests']) },
      'AssignedPodUpdatePodScaleDown',
    ],
    [
      { resource: 'Self', action: 'update', object, old: object, changed: new Set(['gates']) },
      'UnschedulablePodUpdatePodSchedulingGatesEliminated',
    ],
    [
      { resource: 'Self', action: 'update', object, old: object, changed: new Set(['other']) },
      'UnschedulablePodUpdate',
    ],
    [{ resource: 'CSINode', action: 'add', object: { metadata: meta('n') } as never }, 'storage.k8s.io/CSINodeAdd'],
    [{ resource: 'PersistentVolume', action: 'add', object: { metadata: meta('v') } as never }, 'PersistentVolumeAdd'],
  ])('an event has kube-scheduler’s name (%#)', (event, label) => {
    expect(eventLabel(event)).toBe(label);
  });
});

describe('the controllers', () => {
  it('each has a queue with a name of its own', () => {
    const names = CONTROLLERS.map(({ name }) => queueName(name));
    expect(new Set(names).size).toBe(CONTROLLERS.length);
  });

  it('nodes of zones, and those that are not ready', async () => {
    const env = environment();
    const controller = new NodeLifecycleController(env.context, env.informers);
    env.run(controller);
    const inZone = (name: string, ready: string, zone: string) => {
      const node = makeNode(name, ready);
      return { ...node, metadata: { ...node.metadata, labels: { 'topology.kubernetes.io/zone': zone } } };
    };
    env.informers.nodes.replace([inZone('a1', 'True', 'a'), inZone('a2', 'True', 'a'), inZone('b1', 'Unknown', 'b')]);
    await settle();
    expect(samples(controller.metrics, 'node_collector_zone')).toEqual([
      'node_collector_zone_size{zone=":\0:a"} 2',
      'node_collector_zone_size{zone=":\0:b"} 1',
      'node_collector_zone_health{zone=":\0:a"} 100',
      'node_collector_zone_health{zone=":\0:b"} 0',
    ]);
    expect(samples(controller.metrics, 'node_collector_unhealthy')).toEqual([
      'node_collector_unhealthy_nodes_in_zone{zone=":\0:a"} 0',
      'node_collector_unhealthy_nodes_in_zone{zone=":\0:b"} 1',
    ]);
  });

  it('slices that are written', async () => {
    const env = environment();
    const controller = new EndpointSliceController(env.context, env.informers);
    env.run(controller);
    env.client.onWrite = ({ body }) => ({ ...(body as object), metadata: meta('web-1', 'demo') });
    const service = {
      metadata: meta('web', 'demo'),
      spec: { clusterIP: '10.96.0.9', ipFamilies: ['IPv4'], selector: { app: 'web' }, ports: [{ port: 80 }] },
    };
    env.informers.services.replace([service]);
    await settle();
    expect(samples(controller.metrics, 'endpoint_slice_controller')).toEqual([
      'endpoint_slice_controller_num_endpoint_slices 0',
      'endpoint_slice_controller_changes{operation="create"} 1',
      'endpoint_slice_controller_syncs{result="success"} 1',
    ]);
  });

  it('jobs that end, and the pods that were counted', () => {
    const metrics = new JobMetrics();
    const job = makeJob({ completionMode: 'Indexed' });
    metrics.synced(job, 'pods_created', 'success', 20);
    metrics.counted(job, { succeeded: 1 }, { succeeded: 3, failed: 1 });
    metrics.finished(job, { type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded' });
    expect(samples(metrics, 'job_controller')).toEqual([
      'job_controller_job_syncs_total{completion_mode="Indexed",result="success",action="pods_created"} 1',
      'job_controller_job_sync_duration_seconds_count{completion_mode="Indexed",result="success",action="pods_created"} 1',
      'job_controller_jobs_finished_total{completion_mode="Indexed",result="failed",reason="BackoffLimitExceeded"} 1',
      'job_controller_job_pods_finished_total{completion_mode="Indexed",result="succeeded"} 2',
      'job_controller_job_pods_finished_total{completion_mode="Indexed",result="failed"} 1',
    ]);
  });

  it('the page says who leads, and what runs', async () => {
    const metrics = [runningControllers(['job-controller'], 'kube-controller-manager')];
    const page = (leads: boolean | undefined): Promise<string> =>
      metricsPage(metrics, { lease: 'kube-controller-manager', leads, startedAt: epochMs(5000) });
    expect(await page(true)).toContain('leader_election_master_status{name="kube-controller-manager"} 1\n');
    expect(await page(false)).toContain('leader_election_master_status{name="kube-controller-manager"} 0\n');
    const alone = await page(undefined);
    expect(alone).not.toContain('leader_election');
    expect(alone).toContain('running_managed_controllers{manager="kube-controller-manager",name="job-controller"} 1\n');
    expect(alone).toContain('process_start_time_seconds 5\n');
  });
});
