// The CronJob controller: which time is due, what the jobs mean, as tables; and what it does in virtual time, against a client in memory.

import { describe, expect, it } from 'vitest';
import { CronJobController } from '../../../../controlplane/controllers/cronjob/cronjob.ts';
import { dueTime, nextLookMs, ScheduleNeverDue } from '../../../../controlplane/controllers/cronjob/due.ts';
import { jobsToDelete, seeJobs } from '../../../../controlplane/controllers/cronjob/history.ts';
import type { CronJob, CronJobStatus, Job } from '../../../../controlplane/controllers/shared/objects.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { parseSchedule } from '../../../../lib/cron-schedule.ts';
import { rfc3339 } from '../../../../lib/rfc3339.ts';
import { apiError, type Write } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, meta, NOW } from '../environment.ts';

const AT = epochMs(Date.parse(NOW));
const ago = (minutes: number): string => rfc3339(plusMs(AT, -minutes * 60_000));
const OWNER = { apiVersion: 'batch/v1', kind: 'CronJob', name: 'tick', uid: 'uid-tick', controller: true };
type Spec = CronJob['spec'];

function makeCronJob(spec: Partial<Spec> = {}, status: CronJobStatus = {}, minutes = 10): CronJob {
  return {
    metadata: { ...meta('tick'), namespace: 'demo', creationTimestamp: ago(minutes) },
    spec: {
      schedule: '0 * * * *',
      concurrencyPolicy: 'Allow',
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 1,
      jobTemplate: { metadata: { labels: { a: 'b' } }, spec: { template: { spec: { containers: [] } } } },
      ...spec,
    },
    status,
  };
}

interface Facts {
  readonly condition?: 'Complete' | 'Failed';
  readonly start?: number;
  readonly end?: number;
}
function makeJob(name: string, { condition, start, end }: Facts = {}): Job {
  return {
    metadata: { ...meta(name), namespace: 'demo', ownerReferences: [OWNER] },
    spec: { template: {} },
    status: {
      ...(condition === undefined ? {} : { conditions: [{ type: condition, status: 'True' }] }),
      ...(start === undefined ? {} : { startTime: ago(start) }),
      ...(end === undefined ? {} : { completionTime: ago(end) }),
    },
  };
}
const reference = (name: string) => ({ name, namespace: 'demo', uid: `uid-${name}` });

describe('what is due', () => {
  const plan = (cronJob: CronJob) => ({ schedule: parseSchedule(cronJob.spec.schedule), timeZone: 'UTC' });
  it.each<[string, CronJob, string | undefined, boolean]>([
    ['nothing before the first time', makeCronJob({ schedule: '30 * * * *' }), undefined, false],
    ['the first', makeCronJob({ schedule: '55 * * * *' }), ago(5), false],
    ['the one of this moment', makeCronJob(), NOW, false],
    ['nothing after it was started', makeCronJob({}, { lastScheduleTime: NOW }), undefined, false],
    ['the latest of some', makeCronJob({ schedule: '*/3 * * * *' }, { lastScheduleTime: ago(10) }), NOW, false],
    ['of a hundred', makeCronJob({ schedule: '* * * * *' }, {}, 100), NOW, false],
    ['of too many', makeCronJob({ schedule: '* * * * *' }, {}, 200), NOW, true],
    [
      'of some, by the deadline',
      makeCronJob({ schedule: '* * * * *', startingDeadlineSeconds: 300 }, {}, 200),
      NOW,
      false,
    ],
    [
      'nothing that is past the deadline',
      makeCronJob({ schedule: '55 * * * *', startingDeadlineSeconds: 10 }),
      undefined,
      false,
    ],
    [
      'of intervals of two lengths',
      makeCronJob({ schedule: '30 6-16/4 * * 1-5' }, {}, 60 * 24 * 9),
      '2025-12-31T14:30:00Z',
      false,
    ],
    ['of @every, from the last', makeCronJob({ schedule: '@every 7m' }, { lastScheduleTime: ago(20) }), ago(6), false],
  ])('%s', (_what, cronJob, wanted, many) => {
    const { time, missed } = dueTime(cronJob, plan(cronJob), AT);
    expect([time === undefined ? undefined : rfc3339(time), missed > 100]).toEqual([wanted, many]);
  });

  it('is an error where nothing ever is', () => {
    const cronJob = makeCronJob({ schedule: '59 23 31 2 *' });
    expect(() => dueTime(cronJob, plan(cronJob), AT)).toThrow(ScheduleNeverDue);
  });

  it.each<[string, CronJob, number]>([
    ['the first time', makeCronJob({ schedule: '30 * * * *' }), 30],
    ['the next', makeCronJob({}, { lastScheduleTime: NOW }), 60],
    ['the one after what is due', makeCronJob(), 60],
    ['after many', makeCronJob({ schedule: '* * * * *' }, {}, 5000), 1],
  ])('the next look: %s', (_what, cronJob, minutes) => {
    expect(nextLookMs(cronJob, plan(cronJob), AT)).toBe(minutes * 60_000 + 100);
  });
});

describe('what the jobs mean', () => {
  it('takes ended jobs from the list, and the last success', () => {
    const cronJob = makeCronJob({}, { active: [reference('a'), reference('b'), reference('gone')] });
    const jobs = [
      makeJob('a', { condition: 'Complete', end: 3 }),
      makeJob('b'),
      makeJob('old', { condition: 'Complete', end: 2 }),
      makeJob('bad', { condition: 'Failed', end: 1 }),
      makeJob('by-hand'),
    ];
    const seen = seeJobs(cronJob, jobs);
    expect(seen.status).toEqual({ active: [reference('b'), reference('gone')], lastSuccessfulTime: ago(2) });
    expect(seen.completed).toEqual([{ name: 'a', condition: 'Complete' }]);
    expect(seen.unexpected.map(({ metadata }) => metadata.name)).toEqual(['by-hand']);
    expect(seen.missing).toEqual(['gone']);
  });

  it('deletes the oldest above each limit', () => {
    const jobs = [
      ...[5, 4, 9, 1].map((start) => makeJob(`good-${start}`, { condition: 'Complete', start })),
      ...[3, 7].map((start) => makeJob(`bad-${start}`, { condition: 'Failed', start })),
      makeJob('runs', { start: 99 }),
    ];
    const names = (spec: Partial<Spec>): readonly string[] =>
      jobsToDelete(makeCronJob(spec), jobs).map(({ metadata }) => metadata.name);
    expect(names({})).toEqual(['good-9', 'bad-7']);
    expect(names({ successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 5 })).toEqual([
      'good-9',
      'good-5',
      'good-4',
      'good-1',
    ]);
  });
});

describe('the controller', () => {
  function start(cronJob: CronJob, jobs: readonly Job[] = []) {
    const env = environment();
    let version = 5000;
    env.client.onWrite = ({ verb, path, body }: Write) => {
      const [, plural = '', name = ''] = /\/demo\/(\w+)\/?([\w-]*)/.exec(path) ?? [];
      if (verb === 'create') {
        const job = body as Job;
        const made = { ...job, metadata: { ...job.metadata, ...meta(job.metadata.name), namespace: 'demo' } };
        env.client.objects.set(`${path}/${job.metadata.name}`, made);
        env.informers.jobs.upsert(made);
        return made;
      }
      if (verb === 'replace') {
        const next = body as CronJob;
        const written = { ...next, metadata: { ...next.metadata, resourceVersion: String(version++) } };
        env.informers.cronJobs.upsert(written);
        return written;
      }
      if (verb === 'delete' && plural === 'jobs') {
        const job = env.informers.jobs.get(`demo/${name}`);
        env.client.objects.delete(path);
        if (job !== undefined) env.informers.jobs.remove(job);
      }
      return body;
    };
    for (const job of jobs) env.client.objects.set(`/apis/batch/v1/namespaces/demo/jobs/${job.metadata.name}`, job);
    env.client.objects.set('/apis/batch/v1/namespaces/demo/cronjobs/tick', cronJob);
    const controller = new CronJobController(env.context, env.informers, 'UTC');
    env.informers.jobs.replace(jobs);
    env.informers.cronJobs.replace([cronJob]);
    env.run(controller);
    const state = (): CronJobStatus => env.informers.cronJobs.get('demo/tick')?.status ?? {};
    const active = (): unknown => state().active?.map(({ name }) => name);
    const finish = async (name: string, condition: 'Complete' | 'Failed'): Promise<void> => {
      const job = env.informers.jobs.get(`demo/${name}`);
      if (job === undefined) throw new Error(`no job ${name}`);
      const completionTime = rfc3339(env.clock.now());
      const status = { conditions: [{ type: condition, status: 'True' }], startTime: completionTime, completionTime };
      env.informers.jobs.upsert({
        ...job,
        metadata: { ...job.metadata, resourceVersion: String(version++) },
        status,
      });
      await settle();
    };
    return { ...env, state, active, finish };
  }
  const minute = (minutes: number): number => (AT + minutes * 60_000) / 60_000;
  const nameAt = (minutes: number): string => `tick-${minute(minutes)}`;

  it('makes a job at each time, named after its minute, and reports its end', async () => {
    const env = start(makeCronJob({ schedule: '*/2 * * * *', timeZone: 'Asia/Tokyo' }, { lastScheduleTime: NOW }));
    await env.clock.advance(2 * 60_000 + 50);
    expect(env.client.writes).toEqual([]);
    await env.clock.advance(100);
    const [create] = env.client.writes;
    expect(create?.body).toEqual({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: {
        name: nameAt(2),
        labels: { a: 'b' },
        annotations: { 'batch.kubernetes.io/cronjob-scheduled-timestamp': '2026-01-01T09:02:00+09:00' },
        ownerReferences: [{ ...OWNER, blockOwnerDeletion: true }],
      },
      spec: { template: { spec: { containers: [] } } },
    });
    expect(env.state()).toMatchObject({ lastScheduleTime: '2026-01-01T00:02:00Z', active: [{ name: nameAt(2) }] });
    await env.clock.advance(10_000);
    await env.finish(nameAt(2), 'Complete');
    expect(env.state()).toMatchObject({ active: [], lastSuccessfulTime: '2026-01-01T00:02:10Z' });
    expect(env.events).toEqual([
      `tick SuccessfulCreate: Created job ${nameAt(2)}`,
      `tick SawCompletedJob: Saw completed job: ${nameAt(2)}, condition: Complete`,
    ]);
  });

  it('of 200 missed times makes up for the last alone, with a warning', async () => {
    const env = start(makeCronJob({ schedule: '* * * * *' }, {}, 200));
    await settle();
    expect(env.events).toEqual([
      'tick TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew',
      `tick SuccessfulCreate: Created job ${nameAt(0)}`,
    ]);
  });

  it('starts none twice when the clock is set back, and goes on when the time has come again', async () => {
    const env = start(makeCronJob({ schedule: '* * * * *' }, { lastScheduleTime: NOW }));
    await env.clock.advance(3 * 60_000 + 200);
    expect(env.active()).toEqual([nameAt(1), nameAt(2), nameAt(3)]);
    env.clock.jump(-3_600_000);
    await env.clock.advance(3_600_000 - 10_000);
    expect(env.active()).toEqual([nameAt(1), nameAt(2), nameAt(3)]);
    await env.clock.advance(70_000);
    expect(env.active()).toEqual([nameAt(1), nameAt(2), nameAt(3), nameAt(4)]);
    expect(env.client.writes.filter(({ verb }) => verb === 'create')).toHaveLength(4);
  });

  it.each([
    [3_600_000, [nameAt(1), nameAt(62)], false],
    [3 * 3_600_000, [nameAt(1), nameAt(182)], true],
  ])('makes up for one time when the clock is set forward by %i ms', async (jump, active, warns) => {
    const env = start(makeCronJob({ schedule: '* * * * *' }, { lastScheduleTime: NOW }));
    await env.clock.advance(60_000 + 200);
    env.clock.jump(jump);
    await env.clock.advance(60_000);
    expect(env.active()).toEqual(active);
    expect(env.events.some((event) => event.startsWith('tick TooManyMissedTimes: '))).toBe(warns);
  });

  it('of 200 missed times starts none that is older than its deadline, and warns of none', async () => {
    const env = start(makeCronJob({ schedule: '0 0 * * *', startingDeadlineSeconds: 60 }, {}, 200 * 24 * 60));
    await env.clock.advance(120_000);
    expect(env.active()).toEqual([nameAt(0)]);
    const late = start(makeCronJob({ schedule: '0 0 * * *', startingDeadlineSeconds: 60 }, {}, 200 * 24 * 60));
    late.clock.jump(120_000);
    await late.clock.advance(1);
    expect(late.events).toEqual([]);
  });

  it.each<[string, string[], unknown]>([
    ['Allow', ['SuccessfulCreate', 'SuccessfulCreate'], [nameAt(1), nameAt(2)]],
    ['Forbid', ['SuccessfulCreate', 'JobAlreadyActive'], [nameAt(1)]],
    ['Replace', ['SuccessfulCreate', 'SuccessfulDelete', 'SuccessfulCreate'], [nameAt(2)]],
  ])('with a job that still runs: %s', async (concurrencyPolicy, reasons, active) => {
    const env = start(makeCronJob({ schedule: '* * * * *', concurrencyPolicy }, { lastScheduleTime: NOW }));
    await env.clock.advance(2 * 60_000 + 200);
    expect(env.events.map((event) => /^tick (\w+):/.exec(event)?.[1])).toEqual(reasons);
    expect(env.active()).toEqual(active);
  });

  it('starts what Forbid held back as soon as the job has ended', async () => {
    const env = start(makeCronJob({ schedule: '* * * * *', concurrencyPolicy: 'Forbid' }, { lastScheduleTime: NOW }));
    await env.clock.advance(2 * 60_000 + 30_000);
    await env.finish(nameAt(1), 'Failed');
    expect(env.active()).toEqual([nameAt(2)]);
  });

  it.each<[string, Partial<Spec>, string[]]>([
    ['suspended', { schedule: '* * * * *', suspend: true }, []],
    [
      'an unknown zone',
      { timeZone: 'No/Where' },
      ['tick UnknownTimeZone: invalid timeZone: "No/Where": unknown time zone No/Where'],
    ],
    [
      'a schedule that is none',
      { schedule: 'x' },
      ['tick UnparseableSchedule: unparseable schedule: "x" : expected exactly 5 fields, found 1: [x]'],
    ],
    [
      'one that never comes up',
      { schedule: '0 0 31 2 *' },
      [
        'tick InvalidSchedule: invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second',
      ],
    ],
  ])('starts nothing: %s', async (_what, spec, events) => {
    const env = start(makeCronJob(spec, {}, 30));
    await env.clock.advance(1000);
    expect(env.events).toEqual(events);
    expect(env.client.writes).toEqual([]);
  });

  it('does not make up for what is past its deadline, and starts what is not', async () => {
    const before = { lastScheduleTime: ago(24 * 60 + 1) };
    const late = start(makeCronJob({ schedule: '59 23 * * *', startingDeadlineSeconds: 20 }, before));
    await settle();
    expect(late.client.writes).toEqual([]);
    const inTime = start(makeCronJob({ schedule: '59 23 * * *', startingDeadlineSeconds: 90 }, before));
    await settle();
    expect(inTime.state().lastScheduleTime).toBe(ago(1));
  });

  it('finds the job that it made before it died, and takes no other for its own', async () => {
    const env = start(makeCronJob(), []);
    const made = makeJob(nameAt(0));
    env.client.objects.set(`/apis/batch/v1/namespaces/demo/jobs/${nameAt(0)}`, made);
    const other = start(makeCronJob(), []);
    const foreign: Job = { ...made, metadata: { ...made.metadata, ownerReferences: [] } };
    other.client.objects.set(`/apis/batch/v1/namespaces/demo/jobs/${nameAt(0)}`, foreign);
    env.client.failures.push(apiError(409, 'AlreadyExists'));
    other.client.failures.push(apiError(409, 'AlreadyExists'));
    await settle();
    expect(env.active()).toEqual([nameAt(0)]);
    expect(other.client.writes).toEqual([]);
    expect([...env.events, ...other.events]).toEqual([]);
  });

  it('reports jobs that it does not know, and that are gone', async () => {
    const env = start(makeCronJob({}, { lastScheduleTime: NOW, active: [reference('gone')] }), [makeJob('by-hand')]);
    await settle();
    expect(env.events).toEqual([
      'tick UnexpectedJob: Saw a job that the controller did not create or forgot: by-hand',
      'tick MissingJob: Active job went missing: gone',
      'tick UnexpectedJob: Saw a job that the controller did not create or forgot: by-hand',
    ]);
    expect(env.active()).toEqual([]);
  });

  it('tries again where the job is refused', async () => {
    const env = start(makeCronJob());
    env.client.failures.push(apiError(403, 'exceeded quota'));
    await settle();
    expect(env.events).toEqual(['tick FailedCreate: Error creating job: exceeded quota']);
    await env.clock.advance(5);
    expect(env.active()).toEqual([nameAt(0)]);
  });
});
