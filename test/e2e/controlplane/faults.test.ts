// What stock kubectl shows of a CronJob that has missed 200 times, of an autoscaler without metrics, and of workloads whose API server was
// away. There is no node: the test runs pods the way one would.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { Event, Pod } from '../../../client/types.ts';
import type { CronJob, HorizontalPodAutoscaler, Job } from '../../../controlplane/controllers/shared/objects.ts';
import { plusMs, systemClock } from '../../../lib/clock.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Kubectl } from '../kubectl/support.ts';
import { kubectls } from '../support/kubectls.ts';
import { eventually } from './cluster.ts';
import { PodRunner } from './pod-runner.ts';

const NAMESPACE = 'faults';
const versions = (await kubectls()).filter(({ full }) => full);
const runner = new PodRunner(() => undefined);
const all: Kubectl[] = [];
let kubectl: Kubectl;

const template = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image: 'run', resources: { requests: { cpu: '100m' } } }] },
};
const at = (apiVersion: string, plural: string, name?: string): string =>
  resourcePath(apiVersion, plural, { namespace: NAMESPACE, ...(name === undefined ? {} : { name }) });
const eventOf = (name: string, reason: string): Promise<Event> =>
  eventually(`the event ${reason} of ${name}`, async () => {
    const fieldSelector = `involvedObject.name=${name},reason=${reason}`;
    return (await runner.admin.list<Event>(at('v1', 'events'), { fieldSelector })).items[0];
  });
/** Of the pods that run. */
const running = async (): Promise<readonly string[]> => {
  const { items } = await runner.admin.list<Pod>(at('v1', 'pods'), { labelSelector: 'app=web' });
  return items.filter(({ status }) => status?.phase === 'Running').map(({ metadata }) => metadata.uid);
};

beforeAll(async () => {
  await runner.start();
  for (const [index, { command }] of versions.entries()) {
    all.push(await runner.namespace(command, index === 0 ? NAMESPACE : `${NAMESPACE}-${index}`));
  }
  const [first] = all;
  if (first === undefined) throw new Error('there is no kubectl');
  kubectl = first;
  await runner.admin.create(at('apps/v1', 'deployments'), {
    metadata: { name: 'web' },
    spec: { replicas: 2, selector: { matchLabels: template.metadata.labels }, template },
  });
  await eventually('two pods', async () => ((await running()).length === 2 ? true : undefined));
});
afterAll(() => runner.stop());

it('a CronJob that missed 200 times starts one job, and warns', async () => {
  const cronJob = {
    metadata: { name: 'late' },
    spec: {
      schedule: '* * * * *',
      suspend: true,
      jobTemplate: { spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } } },
    },
  };
  await runner.admin.create(at('batch/v1', 'cronjobs'), cronJob);
  const lastScheduleTime = rfc3339(plusMs(systemClock.now(), -200 * 60_000));
  const path = at('batch/v1', 'cronjobs', 'late');
  const begun = systemClock.now();
  await runner.admin.patch<CronJob>(`${path}/status`, { status: { lastScheduleTime } }, 'merge');
  await kubectl.ok('patch', 'cronjob', 'late', '-p', '{"spec":{"suspend":false}}');
  const { type, message } = await eventOf('late', 'TooManyMissedTimes');
  expect([type, message]).toEqual([
    'Warning',
    'too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew',
  ]);
  await eventOf('late', 'SuccessfulCreate');
  const { items } = await runner.admin.list<Job>(at('batch/v1', 'jobs'), {});
  // One for what was missed, and one for each minute that has begun meanwhile.
  const minute = (time: number): number => Math.floor(time / 60_000);
  expect(items.length).toBeGreaterThanOrEqual(1);
  expect(items.length).toBeLessThanOrEqual(1 + minute(systemClock.now()) - minute(begun));
  for (const each of all) {
    expect(await each.ok('-n', NAMESPACE, 'describe', 'cronjob', 'late')).toMatch(
      /Warning +TooManyMissedTimes .* cronjob-controller +too many missed start times\./,
    );
  }
});

it('an autoscaler without metrics leaves its target alone, and shows why', async () => {
  await kubectl.ok('autoscale', 'deployment', 'web', '--min=2', '--max=5', '--cpu-percent=50');
  const why =
    'failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API';
  expect(await eventOf('web', 'FailedGetResourceMetric')).toMatchObject({ type: 'Warning', message: why });
  expect(await eventOf('web', 'FailedComputeMetricsReplicas')).toMatchObject({
    type: 'Warning',
    message: `invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: ${why}`,
  });
  const autoscaler = await eventually('its conditions', async () => {
    const path = at('autoscaling/v2', 'horizontalpodautoscalers', 'web');
    const found = await runner.admin.get<HorizontalPodAutoscaler>(path);
    return found.status?.conditions?.length === 2 ? found : undefined;
  });
  expect(
    autoscaler.status?.conditions?.map(({ type, status, reason, message }) => [type, status, reason, message]),
  ).toEqual([
    ['AbleToScale', 'True', 'SucceededGetScale', "the HPA controller was able to get the target's current scale"],
    ['ScalingActive', 'False', 'FailedGetResourceMetric', `the HPA was unable to compute the replica count: ${why}`],
  ]);
  for (const each of all) expect(await each.ok('-n', NAMESPACE, 'get', 'hpa', 'web')).toMatch(/<unknown>\/50%/);
  expect(await running()).toHaveLength(2);
});

it('an API server that was away: the controllers go on from where they were', async () => {
  const before = await running();
  await runner.cluster.stopServer();
  await eventually('a controller that does not reach it', async () =>
    runner.cluster.logs.some((line) => /ECONNREFUSED|refused/.test(line)) ? true : undefined,
  );
  await runner.cluster.startServer();
  await kubectl.ok('scale', 'deployment', 'web', '--replicas=4');
  await eventually('four pods', async () => ((await running()).length === 4 ? true : undefined));
  expect(await running()).toEqual(expect.arrayContaining([...before]));
});
