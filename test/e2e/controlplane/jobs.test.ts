// Jobs and CronJobs with stock kubectl, against an API server and the control plane. There is no node: the test runs pods the way one would.
// What a pod does is the image's name: "ok" succeeds, "exit-N" fails with N, "odd" fails for an odd index, "run" goes on.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { Event, Pod } from '../../../client/types.ts';
import type { CronJob, Job } from '../../../controlplane/controllers/shared/objects.ts';
import type { Kubectl } from '../kubectl/support.ts';
import { kubectls } from '../support/kubectls.ts';
import { eventually } from './cluster.ts';
import { PodRunner } from './pod-runner.ts';

const versions = (await kubectls()).filter(({ full }) => full);
const INDEX = 'batch.kubernetes.io/job-completion-index';
const runner = new PodRunner(({ metadata, spec }) => {
  const image = spec.containers[0]?.image ?? '';
  if (image === 'odd') return Number(metadata.annotations?.[INDEX]) % 2;
  return image === 'ok' ? 0 : image.startsWith('exit-') ? Number(image.slice(5)) : undefined;
});

const namespaceOf = (version: string): string => `jobs-${version.replace('.', '-')}`;
const kubectlOf = new Map<string, Kubectl>();

const podTemplate = (image: string): object => ({
  template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image }] } },
});
const job = (name: string, image: string, spec: object = {}): object => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name },
  spec: { ...podTemplate(image), ...spec },
});
const cronJob = (name: string, image: string, spec: object = {}): object => ({
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  metadata: { name },
  spec: { schedule: '@every 1s', jobTemplate: { spec: podTemplate(image) }, ...spec },
});
const indexed = { completions: 4, parallelism: 4, completionMode: 'Indexed' };
const exit3 = { onExitCodes: { operator: 'In', values: [3] } };
const items = [
  job('parallel', 'ok', { completions: 3, parallelism: 2 }),
  job('indexed', 'ok', indexed),
  job('limit', 'exit-1', { backoffLimit: 0 }),
  job('per-index', 'odd', { ...indexed, backoffLimitPerIndex: 0 }),
  job('policy', 'exit-3', { podFailurePolicy: { rules: [{ action: 'FailJob', ...exit3 }] } }),
  job('success', 'odd', { ...indexed, backoffLimit: 9, successPolicy: { rules: [{ succeededIndexes: '0,2' }] } }),
  job('deadline', 'run', { activeDeadlineSeconds: 1 }),
  job('ttl', 'ok', { ttlSecondsAfterFinished: 0 }),
  job('suspended', 'run', { suspend: true, parallelism: 2, completions: 2 }),
  job('cascade', 'run', { parallelism: 2 }),
  cronJob('tick', 'run'),
  cronJob('paused', 'ok', { suspend: true }),
];

/** All of them, of all versions, at the same time: each takes seconds. */
beforeAll(async () => {
  await runner.start();
  await Promise.all(
    versions.map(async ({ command, version }) => {
      const kubectl = await runner.namespace(command, namespaceOf(version));
      await kubectl.feed(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), 'create', '-f', '-');
      kubectlOf.set(version, kubectl);
    }),
  );
});
afterAll(() => runner.stop());

describe.each(versions)('kubectl $version', ({ version }) => {
  const namespace = namespaceOf(version);
  let kubectl: Kubectl;
  beforeAll(() => {
    const found = kubectlOf.get(version);
    if (found === undefined) throw new Error('no kubectl');
    kubectl = found;
  });
  const jobNamed = (name: string): Promise<Job> =>
    runner.admin.get(resourcePath('batch/v1', 'jobs', { namespace, name }));
  const podsOf = (name: string): readonly Pod[] =>
    runner.pods
      .list()
      .filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.['job-name'] === name);
  const events = async (name: string): Promise<readonly string[]> => {
    const { items } = await runner.admin.list<Event>(resourcePath('v1', 'events', { namespace }));
    return items
      .filter(({ involvedObject }) => involvedObject.name === name && involvedObject.kind === 'Job')
      .map(({ reason = '', message = '' }) => `${reason}: ${message}`);
  };
  const conditions = async (name: string): Promise<readonly string[]> =>
    ((await jobNamed(name)).status?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason}`);

  it('run in parallel to their completions, and say so', async () => {
    await kubectl.ok('wait', 'job/parallel', '--for=condition=complete', '--timeout=240s');
    expect((await jobNamed('parallel')).status).toMatchObject({ succeeded: 3, uncountedTerminatedPods: {} });
    expect(await conditions('parallel')).toEqual([
      'SuccessCriteriaMet=True CompletionsReached',
      'Complete=True CompletionsReached',
    ]);
    expect(await kubectl.ok('get', 'job/parallel', '--no-headers')).toMatch(/parallel .*3\/3/);
    await eventually('the events', async () => ((await events('parallel')).length === 4 ? true : undefined));
    expect((await events('parallel')).toSorted()).toEqual(
      [
        'Completed: Job completed',
        ...podsOf('parallel').map(({ metadata }) => `SuccessfulCreate: Created pod: ${metadata.name}`),
      ].toSorted(),
    );
    await expect.poll(() => podsOf('parallel').flatMap(({ metadata }) => metadata.finalizers ?? [])).toEqual([]);
  });

  it('of indexes give each pod its own, in its name, labels, host name and environment', async () => {
    await kubectl.ok('wait', 'job/indexed', '--for=condition=complete', '--timeout=240s');
    expect((await jobNamed('indexed')).status).toMatchObject({ succeeded: 4, completedIndexes: '0-3' });
    const pods = podsOf('indexed').toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    expect(pods.map(({ metadata }) => metadata.name.replace(/-\w{5}$/, ''))).toEqual(
      [0, 1, 2, 3].map((index) => `indexed-${index}`),
    );
    expect(pods.map(({ metadata }) => metadata.labels?.[INDEX])).toEqual(['0', '1', '2', '3']);
    expect(pods.map(({ spec }) => spec.hostname)).toEqual([0, 1, 2, 3].map((index) => `indexed-${index}`));
    const [variable] = pods[0]?.spec.containers[0]?.env ?? [];
    expect(variable?.valueFrom?.fieldRef?.fieldPath).toBe(`metadata.labels['${INDEX}']`);
    expect(await kubectl.ok('describe', 'job/indexed')).toMatch(/Completed Indexes:\s+0-3/);
  });

  it.each([
    ['limit', 'BackoffLimitExceeded', 'Job has reached the specified backoff limit', 1],
    ['per-index', 'FailedIndexes', 'Job has failed indexes', 2],
    ['deadline', 'DeadlineExceeded', 'Job was active longer than specified deadline', 1],
    [
      'policy',
      'PodFailurePolicy',
      /^Container c for pod [\w-]+\/policy-\w{5} failed with exit code 3 matching FailJob rule at index 0$/,
      1,
    ],
  ])('fail: %s', async (name, reason, message, failed) => {
    await kubectl.ok('wait', `job/${name}`, '--for=condition=failed', '--timeout=240s');
    expect(await conditions(name)).toEqual([`FailureTarget=True ${reason}`, `Failed=True ${reason}`]);
    const { status } = await jobNamed(name);
    expect(status?.conditions?.[1]?.message).toMatch(message);
    expect(status?.failed).toBe(failed);
    if (name === 'per-index') expect([status?.completedIndexes, status?.failedIndexes]).toEqual(['0,2', '1,3']);
    await eventually('the event', async () =>
      (await events(name)).some((event) => event.startsWith(`${reason}: `)) ? true : undefined,
    );
  });

  it('succeed by their success policy', async () => {
    await kubectl.ok('wait', 'job/success', '--for=condition=complete', '--timeout=240s');
    expect(await conditions('success')).toEqual([
      'SuccessCriteriaMet=True SuccessPolicy',
      'Complete=True SuccessPolicy',
    ]);
    expect((await jobNamed('success')).status?.conditions?.[0]?.message).toBe('Matched rules at index 0');
  });

  it('go after their TTL', async () => {
    await kubectl.ok('wait', 'job/ttl', '--for=delete', '--timeout=240s');
    await eventually('no pods', async () => (podsOf('ttl').length === 0 ? true : undefined));
  });

  it('run when they are resumed, and stop when they are suspended', async () => {
    await expect.poll(() => conditions('suspended')).toEqual(['Suspended=True JobSuspended']);
    expect(podsOf('suspended')).toEqual([]);
    await kubectl.ok('patch', 'job/suspended', '-p', '{"spec":{"suspend":false}}');
    await eventually('two pods', async () => ((await jobNamed('suspended')).status?.ready === 2 ? true : undefined));
    await kubectl.ok('patch', 'job/suspended', '-p', '{"spec":{"suspend":true}}');
    await eventually('none', async () => (podsOf('suspended').length === 0 ? true : undefined));
    await eventually('the condition', async () =>
      (await conditions('suspended')).includes('Suspended=True JobSuspended') ? true : undefined,
    );
    expect((await jobNamed('suspended')).status?.failed ?? 0).toBe(0);
  });

  it('take their pods with them', async () => {
    await eventually('two pods', async () => (podsOf('cascade').length === 2 ? true : undefined));
    await kubectl.ok('delete', 'job/cascade', '--timeout=240s');
    await eventually('no pods', async () => (podsOf('cascade').length === 0 ? true : undefined));
  });

  it('are made at each time of a schedule, named after its minute', async () => {
    const path = resourcePath('batch/v1', 'cronjobs', { namespace, name: 'tick' });
    const { status } = await eventually('a job', async () => {
      const found = await runner.admin.get<CronJob>(path);
      return (found.status?.active ?? []).length > 0 ? found : undefined;
    });
    const minute = Math.floor(Date.parse(status?.lastScheduleTime ?? '') / 60_000);
    expect(status?.active?.at(-1)?.name).toBe(`tick-${minute}`);
    const made = await jobNamed(`tick-${minute}`);
    expect(made.metadata.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp']).toMatch(/^\d{4}-.*:\d\dZ$/);
    expect(await kubectl.ok('describe', 'cronjob/tick')).toMatch(/Active Jobs:\s+tick-\d+/);
    await eventually('the event', async () => {
      const all = await kubectl.ok('get', 'events', '--field-selector=involvedObject.name=tick', '-o=name');
      return all === '' ? undefined : true;
    });
    await kubectl.ok('delete', 'cronjob/tick', '--timeout=240s');
    await eventually('no job', async () => {
      const { items: left } = await runner.admin.list<Job>(resourcePath('batch/v1', 'jobs', { namespace }));
      return left.some(({ metadata }) => metadata.name.startsWith('tick-')) ? undefined : true;
    });
  });

  it('are not made while a CronJob is suspended, but by hand', async () => {
    await kubectl.ok('create', 'job', 'by-hand', '--from=cronjob/paused');
    await kubectl.ok('wait', 'job/by-hand', '--for=condition=complete', '--timeout=240s');
    const path = resourcePath('batch/v1', 'cronjobs', { namespace, name: 'paused' });
    const byHand = await jobNamed('by-hand');
    const [owner] = byHand.metadata.ownerReferences ?? [];
    expect(owner?.name).toBe('paused');
    // A kubectl that does not make it the controller leaves the job to itself.
    if (owner?.controller === true) {
      await eventually('its success', async () => {
        const { status } = await runner.admin.get<CronJob>(path);
        return status?.lastSuccessfulTime === byHand.status?.completionTime ? true : undefined;
      });
    }
    expect((await runner.admin.get<CronJob>(path)).status?.lastScheduleTime).toBeUndefined();
    const { items: made } = await runner.admin.list<Job>(resourcePath('batch/v1', 'jobs', { namespace }));
    const own = made.filter(({ metadata }) => metadata.ownerReferences?.[0]?.name === 'paused');
    expect(own.map(({ metadata }) => metadata.name)).toEqual(['by-hand']);
  });
});
