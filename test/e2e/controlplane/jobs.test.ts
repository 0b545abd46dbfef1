// Jobs with stock kubectl, against an API server and the control plane. There is no node: the test runs pods the way one would.
// What a pod does is the image's name: "ok" succeeds, "exit-N" fails with N, "odd" fails for an odd index, "run" goes on.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { Event, Pod } from '../../../client/types.ts';
import type { Job } from '../../../controlplane/controllers/shared/objects.ts';
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

beforeAll(() => runner.start());
afterAll(() => runner.stop());

describe.each(versions)('kubectl $version', ({ command, version }) => {
  const namespace = `jobs-${version.replace('.', '-')}`;
  let kubectl: Kubectl;
  const job = (name: string): Promise<Job> => runner.admin.get(resourcePath('batch/v1', 'jobs', { namespace, name }));
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
    ((await job(name)).status?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason}`);
  const manifest = (name: string, image: string, spec: object = {}, pod: object = {}): string =>
    JSON.stringify({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name },
      spec: {
        template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image }], ...pod } },
        ...spec,
      },
    });

  beforeAll(async () => {
    kubectl = await runner.namespace(command, namespace);
    // They run at the same time: each takes seconds.
    const indexed = { completions: 4, parallelism: 4, completionMode: 'Indexed' };
    const exit3 = { onExitCodes: { operator: 'In', values: [3] } };
    await kubectl.feed(
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'List',
        items: [
          manifest('parallel', 'ok', { completions: 3, parallelism: 2 }),
          manifest('indexed', 'ok', indexed),
          manifest('limit', 'exit-1', { backoffLimit: 0 }),
          manifest('per-index', 'odd', { ...indexed, backoffLimitPerIndex: 0 }),
          manifest('policy', 'exit-3', { podFailurePolicy: { rules: [{ action: 'FailJob', ...exit3 }] } }),
          manifest('success', 'odd', {
            ...indexed,
            backoffLimit: 9,
            successPolicy: { rules: [{ succeededIndexes: '0,2' }] },
          }),
          manifest('deadline', 'run', { activeDeadlineSeconds: 1 }),
          manifest('ttl', 'ok', { ttlSecondsAfterFinished: 0 }),
          manifest('suspended', 'run', { suspend: true, parallelism: 2, completions: 2 }),
          manifest('cascade', 'run', { parallelism: 2 }),
        ].map((text): unknown => JSON.parse(text)),
      }),
      'create',
      '-f',
      '-',
    );
  });

  it('run in parallel to their completions, and say so', async () => {
    await kubectl.ok('wait', 'job/parallel', '--for=condition=complete', '--timeout=60s');
    expect((await job('parallel')).status).toMatchObject({ succeeded: 3, uncountedTerminatedPods: {} });
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
    expect(podsOf('parallel').flatMap(({ metadata }) => metadata.finalizers ?? [])).toEqual([]);
  });

  it('of indexes give each pod its own, in its name, labels, host name and environment', async () => {
    await kubectl.ok('wait', 'job/indexed', '--for=condition=complete', '--timeout=60s');
    expect((await job('indexed')).status).toMatchObject({ succeeded: 4, completedIndexes: '0-3' });
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
    await kubectl.ok('wait', `job/${name}`, '--for=condition=failed', '--timeout=60s');
    expect(await conditions(name)).toEqual([`FailureTarget=True ${reason}`, `Failed=True ${reason}`]);
    const { status } = await job(name);
    expect(status?.conditions?.[1]?.message).toMatch(message);
    expect(status?.failed).toBe(failed);
    if (name === 'per-index') expect([status?.completedIndexes, status?.failedIndexes]).toEqual(['0,2', '1,3']);
    await eventually('the event', async () =>
      (await events(name)).some((event) => event.startsWith(`${reason}: `)) ? true : undefined,
    );
  });

  it('succeed by their success policy', async () => {
    await kubectl.ok('wait', 'job/success', '--for=condition=complete', '--timeout=60s');
    expect(await conditions('success')).toEqual([
      'SuccessCriteriaMet=True SuccessPolicy',
      'Complete=True SuccessPolicy',
    ]);
    expect((await job('success')).status?.conditions?.[0]?.message).toBe('Matched rules at index 0');
  });

  it('go after their TTL', async () => {
    await kubectl.ok('wait', 'job/ttl', '--for=delete', '--timeout=60s');
    await eventually('no pods', async () => (podsOf('ttl').length === 0 ? true : undefined));
  });

  it('run when they are resumed, and stop when they are suspended', async () => {
    expect(podsOf('suspended')).toEqual([]);
    expect(await conditions('suspended')).toEqual(['Suspended=True JobSuspended']);
    await kubectl.ok('patch', 'job/suspended', '-p', '{"spec":{"suspend":false}}');
    await eventually('two pods', async () => ((await job('suspended')).status?.ready === 2 ? true : undefined));
    await kubectl.ok('patch', 'job/suspended', '-p', '{"spec":{"suspend":true}}');
    await eventually('none', async () => (podsOf('suspended').length === 0 ? true : undefined));
    await eventually('the condition', async () =>
      (await conditions('suspended')).includes('Suspended=True JobSuspended') ? true : undefined,
    );
    expect((await job('suspended')).status?.failed ?? 0).toBe(0);
  });

  it('take their pods with them', async () => {
    await eventually('two pods', async () => (podsOf('cascade').length === 2 ? true : undefined));
    await kubectl.ok('delete', 'job/cascade', '--timeout=60s');
    await eventually('no pods', async () => (podsOf('cascade').length === 0 ? true : undefined));
  });
});
