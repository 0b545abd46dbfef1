// The Job controller from a job's creation to its end, in virtual time, against a small API server in memory; and that each pod is
// counted once, wherever the controller is killed.

import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../../../client/types.ts';
import { finishedBy } from '../../../../../controlplane/controllers/job/conditions.ts';
import { JobController } from '../../../../../controlplane/controllers/job/job.ts';
import { completionIndex } from '../../../../../controlplane/controllers/job/job-pods.ts';
import type { Job } from '../../../../../controlplane/controllers/shared/objects.ts';
import { Dice } from '../../../../../labs/sim/dice.ts';
import { settle } from '../../../../support/virtual-clock.ts';
import { environment, NOW } from '../../environment.ts';
import { FINALIZER, jobPod, makeJob, OWNER } from './cases.ts';
import { type Run, World } from './world.ts';

const MINUTE = 60_000;
const good: Run = { ms: 2000, phase: 'Succeeded' };
const bad: Run = { ms: 2000, phase: 'Failed' };

async function finish(world: World, limitMs = 90 * MINUTE): Promise<void> {
  for (let passed = 0; finishedBy(world.job) === undefined || world.pods.some(isLeaving); passed += 1000) {
    if (passed > limitMs) throw new Error(`the job does not end: ${JSON.stringify(world.job.status)}`);
    await world.clock.advance(1000);
  }
}
const isLeaving = ({ metadata }: Pod): boolean =>
  metadata.deletionTimestamp !== undefined || (metadata.finalizers ?? []).length > 0;
const conditions = (job: Job): unknown => job.status?.conditions?.map(({ type, reason }) => `${type} ${reason}`);
const ended = (world: World, phase: string): number =>
  [...world.ended.values()].filter((each) => each === phase).length;

describe('a job', () => {
  it('runs its pods, no more than its parallelism at a time, and completes', async () => {
    const world = new World(makeJob({ parallelism: 2, completions: 5 }), () => good);
    world.start();
    await finish(world);
    expect([world.created, world.mostActive]).toEqual([5, 2]);
    expect(world.job.status).toEqual({
      startTime: NOW,
      completionTime: expect.any(String),
      active: 0,
      ready: 0,
      terminating: 0,
      succeeded: 5,
      uncountedTerminatedPods: {},
      conditions: [
        expect.objectContaining({ type: 'SuccessCriteriaMet', status: 'True', reason: 'CompletionsReached' }),
        expect.objectContaining({
          type: 'Complete',
          status: 'True',
          reason: 'CompletionsReached',
          message: 'Reached expected number of succeeded pods',
        }),
      ],
    });
    expect(world.events.at(-1)).toBe('Completed: Job completed');
    expect(world.events.filter((event) => event.startsWith('SuccessfulCreate: Created pod: work-')).length).toBe(5);
  });

  it('replaces failed pods after 10 s, 20 s, 40 s, and fails at its limit', async () => {
    const world = new World(makeJob({ backoffLimit: 3 }), () => bad);
    world.start();
    await finish(world);
    const waits = world.createdAt.slice(1).map((at, place) => (at - (world.createdAt[place] ?? at)) / 1000);
    // With the two seconds that a pod runs.
    expect(waits).toEqual([12, 22, 42]);
    expect(conditions(world.job)).toEqual(['FailureTarget BackoffLimitExceeded', 'Failed BackoffLimitExceeded']);
    expect(world.job.status?.failed).toBe(4);
    expect(world.events.at(-1)).toBe('BackoffLimitExceeded: Job has reached the specified backoff limit');
  });

  it('deletes what runs when it fails, and ends when it is gone', async () => {
    const slow: Run = { ms: 60 * MINUTE, phase: 'Succeeded' };
    const world = new World(makeJob({ parallelism: 3, completions: 3, activeDeadlineSeconds: 30 }), () => slow);
    world.start();
    await world.clock.advance(31_500);
    expect(conditions(world.job)).toEqual(['FailureTarget DeadlineExceeded']);
    expect(world.job.status?.terminating).toBe(3);
    await finish(world);
    expect(conditions(world.job)).toEqual(['FailureTarget DeadlineExceeded', 'Failed DeadlineExceeded']);
    expect(world.job.status).toMatchObject({ active: 0, terminating: 0, failed: 3 });
    expect(world.events.at(-1)).toBe('DeadlineExceeded: Job was active longer than specified deadline');
  });

  it('of indexes has each done once, and says which', async () => {
    const indexes = makeJob({ completionMode: 'Indexed', parallelism: 4, completions: 8 });
    const failing = new Set([3]);
    const world = new World(indexes, (pod) => (failing.delete(completionIndex(pod) ?? -1) ? bad : good));
    world.start();
    await finish(world);
    expect(world.job.status).toMatchObject({ succeeded: 8, failed: 1, completedIndexes: '0-7' });
    expect(world.created).toBe(9);
  });

  it('gives each index its own limit', async () => {
    const spec = {
      completionMode: 'Indexed',
      parallelism: 4,
      completions: 4,
      backoffLimitPerIndex: 1,
      backoffLimit: 1e9,
    };
    const world = new World(makeJob(spec), (pod) => (completionIndex(pod) === 2 ? bad : good));
    world.start();
    await finish(world);
    expect(world.job.status).toMatchObject({ succeeded: 3, failed: 2, completedIndexes: '0,1,3', failedIndexes: '2' });
    expect(conditions(world.job)).toEqual(['FailureTarget FailedIndexes', 'Failed FailedIndexes']);
  });

  it('ends by its success policy, with the other pods deleted', async () => {
    const successPolicy = { rules: [{ succeededIndexes: '0' }] };
    const spec = { completionMode: 'Indexed', parallelism: 3, completions: 3, successPolicy };
    const world = new World(makeJob(spec), (pod) => (completionIndex(pod) === 0 ? good : { ...good, ms: 60 * MINUTE }));
    world.start();
    await finish(world);
    expect(conditions(world.job)).toEqual(['SuccessCriteriaMet SuccessPolicy', 'Complete SuccessPolicy']);
    expect(world.job.status).toMatchObject({ succeeded: 1, completedIndexes: '0', active: 0, terminating: 0 });
  });

  it('is suspended and resumed, and its deadline starts anew', async () => {
    const spec = { parallelism: 2, completions: 2, activeDeadlineSeconds: 60, suspend: true };
    const world = new World(makeJob(spec), () => ({ ms: 20_000, phase: 'Succeeded' }));
    world.start();
    await world.clock.advance(100_000);
    expect(world.created).toBe(0);
    expect(world.job.status?.startTime).toBeUndefined();
    world.update({ suspend: false });
    await world.clock.advance(5000);
    expect(world.created).toBe(2);
    world.update({ suspend: true });
    await world.clock.advance(5000);
    expect(world.job.status).toMatchObject({ active: 0, terminating: 0 });
    expect(world.pods).toEqual([]);
    await world.clock.advance(100_000);
    world.update({ suspend: false });
    await finish(world);
    expect(world.job.status).toMatchObject({ succeeded: 2 });
    // Pods that were deleted for the suspension do not count.
    expect(world.job.status?.failed ?? 0).toBe(0);
    expect(world.events.filter((event) => /^(Suspended|Resumed)/.test(event))).toEqual([
      'Suspended: Job suspended',
      'Resumed: Job resumed',
      'Suspended: Job suspended',
      'Resumed: Job resumed',
    ]);
  });

  it('without completions waits for the other pods after the first success', async () => {
    let first = true;
    const world = new World(makeJob({ parallelism: 3 }), () => {
      const run: Run = first ? good : { ms: 30_000, phase: 'Succeeded' };
      first = false;
      return run;
    });
    world.start();
    await finish(world);
    expect([world.created, world.job.status?.succeeded]).toEqual([3, 3]);
  });

  it('is scaled by its parallelism', async () => {
    const world = new World(makeJob({ parallelism: 4, completions: 6 }), () => ({ ms: 9000, phase: 'Succeeded' }));
    world.start();
    await world.clock.advance(2000);
    world.update({ parallelism: 1 });
    await world.clock.advance(2000);
    expect(world.job.status?.active).toBe(1);
    await finish(world);
    expect(world.job.status?.succeeded).toBe(6);
    expect(world.job.status?.failed ?? 0).toBe(0);
  });
});

describe('each pod is counted once', () => {
  const jobs: readonly [string, Partial<Job['spec']>][] = [
    ['NonIndexed', { parallelism: 3, completions: 5, backoffLimit: 50 }],
    ['Indexed', { completionMode: 'Indexed', parallelism: 3, completions: 5, backoffLimit: 50 }],
    [
      'with limits per index',
      { completionMode: 'Indexed', parallelism: 3, completions: 5, backoffLimit: 1e9, backoffLimitPerIndex: 9 },
    ],
  ];
  it.each(jobs)('wherever the controller dies, and however late its caches are: %s', async (_what, spec) => {
    let writes = 1;
    for (let killAfter = 1; killAfter <= writes; killAfter++) {
      const dice = new Dice(killAfter);
      const runs = (): Run => ({ ms: 1000 + dice.below(4000), phase: dice.below(3) === 0 ? 'Failed' : 'Succeeded' });
      const world = new World(makeJob(spec), runs, () => dice.below(1500));
      world.start(killAfter);
      await finish(world);
      writes = Math.max(writes, Math.min(world.writes, 60));
      const { succeeded, failed = 0, uncountedTerminatedPods } = world.job.status ?? {};
      const where = `killed after write ${killAfter}`;
      expect(world.faults, where).toEqual([]);
      expect(uncountedTerminatedPods, where).toEqual({});
      expect([succeeded, failed], where).toEqual([5, ended(world, 'Failed')]);
      expect(world.mostActive, where).toBeLessThanOrEqual(3);
      expect(
        world.pods.flatMap(({ metadata }) => metadata.finalizers ?? []),
        where,
      ).toEqual([]);
    }
    expect(writes).toBeGreaterThan(20);
  });
});

describe('pods that no job counts', () => {
  const patches = (env: ReturnType<typeof start>): readonly string[] =>
    env.client.writes.filter(({ verb }) => verb === 'patch').map(({ path }) => path.split('/').at(-1) ?? '');
  function start(job: Job | undefined, pods: readonly Pod[]) {
    const env = environment();
    const controller = new JobController(env.context, env.informers);
    if (job !== undefined) env.client.objects.set('/apis/batch/v1/namespaces/demo/jobs/work', job);
    env.informers.jobs.replace(job === undefined ? [] : [job]);
    env.informers.pods.replace(pods);
    env.run(controller);
    return env;
  }
  const done = { conditions: [{ type: 'Complete', status: 'True' }] };

  it.each<[string, Job | undefined, Pod, boolean]>([
    ['of a job that goes on', makeJob(), jobPod('p'), false],
    ['of a job that has ended', makeJob({}, done), jobPod('p', { deleted: true }), true],
    ['of a job that had ended when it was made', makeJob({}, done), jobPod('p'), true],
    ['of a job that is gone', undefined, jobPod('p', { deleted: true }), true],
    [
      'of another controller’s job',
      makeJob({ managedBy: 'example.com/other' }, done),
      jobPod('p', { deleted: true }),
      false,
    ],
    ['of another owner', undefined, withOwner(jobPod('p', { deleted: true }), 'ReplicaSet'), false],
    ['without an owner', undefined, withOwner(jobPod('p'), undefined), true],
  ])('%s', async (_what, job, pod, wanted) => {
    const env = start(job, [pod]);
    await settle();
    expect(patches(env)).toEqual(wanted ? ['p'] : []);
  });

  it('are released when their job goes', async () => {
    const job = makeJob();
    const env = start(job, [jobPod('p')]);
    await settle();
    expect(patches(env)).toEqual([]);
    env.informers.jobs.remove(job);
    await settle();
    expect(patches(env)).toEqual(['p']);
  });

  it('are adopted with the finalizer where the selector is the user’s own, and released without it', async () => {
    const orphan = withOwner(jobPod('orphan', { counted: true }), undefined);
    const other = jobPod('other');
    const env = start(makeJob({ manualSelector: true }), [
      orphan,
      { ...other, metadata: { ...other.metadata, labels: {} } },
    ]);
    await env.clock.advance(1000);
    const bodies = env.client.writes.filter(({ verb }) => verb === 'patch').map(({ body }) => body);
    expect(bodies.slice(0, 2)).toEqual([
      {
        metadata: {
          uid: 'uid-other',
          ownerReferences: [{ $patch: 'delete', uid: 'uid-work' }],
          '$deleteFromPrimitiveList/finalizers': [FINALIZER],
        },
      },
      {
        metadata: {
          uid: 'uid-orphan',
          ownerReferences: [{ ...OWNER, blockOwnerDeletion: true }],
          finalizers: [FINALIZER],
        },
      },
    ]);
  });

  it('leaves a job to the controller that it names', async () => {
    const env = start(makeJob({ managedBy: 'example.com/other' }), []);
    await env.clock.advance(5000);
    expect(env.client.writes).toEqual([]);
  });
});

function withOwner(pod: Pod, kind: string | undefined): Pod {
  const ownerReferences = kind === undefined ? [] : [{ ...OWNER, apiVersion: 'apps/v1', kind }];
  return { ...pod, metadata: { ...pod.metadata, ownerReferences } };
}
