// The CronJob controller: a job at each time of a schedule. due.ts says which time, history.ts what the jobs mean. The name of a job is
// made of its time: a controller that dies after making one finds it by its name.

import { isAlreadyExists, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { type Change, objectKey } from '../../../client/store.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { type EpochMs, elapsedMs } from '../../../lib/clock.ts';
import { isTimeZone, parseSchedule, ScheduleError } from '../../../lib/cron-schedule.ts';
import { rfc3339InZone } from '../../../lib/cron-times.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { exponentialBuckets, Histogram } from '../../../lib/metrics.ts';
import { parseRfc3339, rfc3339 } from '../../../lib/rfc3339.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { isNamespaceTerminating } from '../shared/namespace-terminating.ts';
import {
  BATCH_V1,
  CRON_JOB,
  type CronJob,
  type CronJobStatus,
  controllerReference,
  JOB,
  type Job,
  pathOf,
  subjectOf,
} from '../shared/objects.ts';
import { controllerOf, OwnerIndex } from '../shared/owners.ts';
import { PendingWrites } from '../shared/pending-writes.ts';
import { dueTime, jobName, MANY_MISSED, nextLookMs, type Plan, ScheduleNeverDue } from './due.ts';
import { jobsToDelete, type SeenJobs, seeJobs } from './history.ts';

const SCHEDULED_AT = 'batch.kubernetes.io/cronjob-scheduled-timestamp';
const TZ_WARNING =
  'is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details';

type Needed = Pick<Informers, 'cronJobs' | 'jobs'>;
type Event = (type: 'Normal' | 'Warning', reason: string, message: string) => void;

/** Keys are those of CronJobs. */
export class CronJobController implements Controller {
  readonly name = 'cronjob';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly metrics = new Histogram(
    'cronjob_controller_job_creation_skew_duration_seconds',
    '[STABLE] Time between when a cronjob is scheduled to be run, and when the corresponding job is created',
    exponentialBuckets(1, 2, 10),
  );
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #jobs: OwnerIndex<Job>;
  readonly #writes: PendingWrites<CronJob>;
  readonly #timeZone: string;

  /** `timeZone`: of CronJobs that name none; the process's own, as upstream's. */
  constructor(
    context: ControllerContext,
    informers: Needed,
    timeZone = new Intl.DateTimeFormat().resolvedOptions().timeZone,
  ) {
    this.#context = context;
    this.#informers = informers;
    this.#timeZone = timeZone;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#jobs = new OwnerIndex(informers.jobs);
    this.#writes = new PendingWrites(informers.cronJobs, context.clock);
    informers.cronJobs.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type === 'removed') this.#writes.forget(objectKey(object));
        this.queue.add(objectKey(object));
      }
    });
    informers.jobs.onChange((changes) => {
      for (const change of changes) this.#jobChanged(change);
    });
  }

  #jobChanged(change: Change<Job>): void {
    const owners = [change.object, ...(change.type === 'modified' ? [change.old] : [])].flatMap(
      (job) => controllerOf(job) ?? [],
    );
    for (const { name, uid } of owners) {
      const key = `${change.object.metadata.namespace}/${name}`;
      if (this.#informers.cronJobs.get(key)?.metadata.uid === uid) this.queue.add(key);
    }
  }

  async sync(key: string): Promise<void> {
    const cronJob = this.#informers.cronJobs.get(key);
    // By a status that is older than the last one written, a job would be started or reported twice.
    if (cronJob === undefined || !this.#writes.settled(key)) return;
    const event: Event = (type, reason, message) =>
      this.#context.recorder.event(subjectOf(CRON_JOB, cronJob), type, reason, message);
    const jobs = this.#jobs.ownedBy(cronJob.metadata.uid);
    const deleted = await this.#deleteOld(cronJob, jobs, event);
    const left = jobs.filter(({ metadata }) => !deleted.has(metadata.uid));
    let status = await this.#seen(cronJob, seeJobs(cronJob, left), event);
    let failure: unknown;
    try {
      status = await this.#start(key, cronJob, status, event);
    } catch (error) {
      failure = error;
    }
    await this.#write(key, cronJob, status);
    if (failure !== undefined) throw failure;
  }

  async #deleteOld(cronJob: CronJob, jobs: readonly Job[], event: Event): Promise<ReadonlySet<string>> {
    const deleted = new Set<string>();
    for (const job of jobsToDelete(cronJob, jobs)) {
      if (job.metadata.deletionTimestamp === undefined && (await this.#delete(job, event))) {
        deleted.add(job.metadata.uid);
      }
    }
    return deleted;
  }

  async #delete(job: Job, event: Event): Promise<boolean> {
    try {
      const { uid } = job.metadata;
      await this.#context.client.delete(pathOf(JOB, job), {
        propagationPolicy: 'Background',
        preconditions: { uid },
      });
      event('Normal', 'SuccessfulDelete', `Deleted job ${job.metadata.name}`);
      return true;
    } catch (error) {
      event('Warning', 'FailedDelete', `Deleted job: ${errorMessage(error)}`);
      return false;
    }
  }

  /** The status after what has become of the jobs. What the cache does not show is asked for: it may lag. */
  async #seen(cronJob: CronJob, seen: SeenJobs, event: Event): Promise<CronJobStatus> {
    const { client } = this.#context;
    if (seen.unexpected.length > 0) {
      const fresh = await client.get<CronJob>(pathOf(CRON_JOB, cronJob));
      const listed = new Set((fresh.status?.active ?? []).map(({ uid }) => uid));
      for (const { metadata } of seen.unexpected) {
        if (listed.has(metadata.uid)) continue;
        const message = `Saw a job that the controller did not create or forgot: ${metadata.name}`;
        event('Warning', 'UnexpectedJob', message);
      }
    }
    for (const { name, condition } of seen.completed) {
      event('Normal', 'SawCompletedJob', `Saw completed job: ${name}, condition: ${condition}`);
    }
    let { status } = seen;
    for (const name of seen.missing) {
      try {
        await client.get<Job>(this.#jobPath(cronJob, name));
      } catch (error) {
        if (!isNotFound(error)) throw error;
        event('Normal', 'MissingJob', `Active job went missing: ${name}`);
        status = { ...status, active: (status.active ?? []).filter((each) => each.name !== name) };
      }
    }
    return status;
  }

  #jobPath({ metadata }: CronJob, name: string): string {
    return resourcePath(BATCH_V1, JOB.plural, { namespace: metadata.namespace, name });
  }

  /** Starts a job where one is due, and comes back for the next one. Returns the status with it. */
  async #start(key: string, cronJob: CronJob, status: CronJobStatus, event: Event): Promise<CronJobStatus> {
    if (cronJob.metadata.deletionTimestamp !== undefined) return status;
    const plan = this.#plan(cronJob, event);
    if (plan === undefined) return status;
    const now = this.#context.clock.now();
    const time = this.#dueTime(cronJob, plan, now, event);
    if (time === 'never') return status;
    const started = time === undefined ? status : await this.#startDue(cronJob, plan, status, time, event);
    const ms = nextLookMs({ ...cronJob, status: started }, plan, now);
    if (ms !== undefined) this.queue.addAfter(key, ms);
    return started;
  }

  #plan(cronJob: CronJob, event: Event): Plan | undefined {
    const { schedule, timeZone, suspend } = cronJob.spec;
    if (timeZone !== undefined && !isTimeZone(timeZone)) {
      event(
        'Warning',
        'UnknownTimeZone',
        `invalid timeZone: ${JSON.stringify(timeZone)}: unknown time zone ${timeZone}`,
      );
      return undefined;
    }
    if (suspend === true) return undefined;
    if (schedule.includes('TZ')) {
      event(
        'Warning',
        'UnsupportedSchedule',
        `CRON_TZ or TZ used in schedule ${JSON.stringify(schedule)} ${TZ_WARNING}`,
      );
    }
    try {
      return { schedule: parseSchedule(schedule), timeZone: timeZone ?? this.#timeZone };
    } catch (error) {
      if (!(error instanceof ScheduleError)) throw error;
      event('Warning', 'UnparseableSchedule', `unparseable schedule: ${JSON.stringify(schedule)} : ${error.message}`);
      return undefined;
    }
  }

  #dueTime(cronJob: CronJob, plan: Plan, now: EpochMs, event: Event): EpochMs | undefined | 'never' {
    try {
      const { time, missed } = dueTime(cronJob, plan, now);
      if (time !== undefined && missed > MANY_MISSED) {
        const message =
          'too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew';
        event('Warning', 'TooManyMissedTimes', message);
      }
      return time;
    } catch (error) {
      if (!(error instanceof ScheduleNeverDue)) throw error;
      event('Warning', 'InvalidSchedule', `invalid schedule: ${cronJob.spec.schedule} : ${error.message}`);
      return 'never';
    }
  }

  async #startDue(
    cronJob: CronJob,
    plan: Plan,
    status: CronJobStatus,
    time: EpochMs,
    event: Event,
  ): Promise<CronJobStatus> {
    const { concurrencyPolicy } = cronJob.spec;
    const active = status.active ?? [];
    const name = jobName(cronJob, time);
    if (active.some((each) => each.name === name) || parseRfc3339(status.lastScheduleTime) === time) return status;
    if (concurrencyPolicy === 'Forbid' && active.length > 0) {
      const message = 'Not starting job because prior execution is running and concurrency policy is Forbid';
      event('Normal', 'JobAlreadyActive', message);
      return status;
    }
    if (concurrencyPolicy === 'Replace') await this.#deleteActive(cronJob, active, event);
    const job = await this.#create(cronJob, plan, name, time, event);
    if (job === undefined) return status;
    const { uid, namespace, resourceVersion } = job.metadata;
    const reference = { kind: JOB.kind, namespace, name, uid, apiVersion: BATCH_V1, resourceVersion };
    return {
      ...status,
      active: [...(concurrencyPolicy === 'Replace' ? [] : active), reference],
      lastScheduleTime: rfc3339(time),
    };
  }

  /** Throws where one cannot be deleted: another one must not run beside it. */
  async #deleteActive(cronJob: CronJob, active: NonNullable<CronJobStatus['active']>, event: Event): Promise<void> {
    for (const { name = '' } of active) {
      const job = await this.#context.client.get<Job>(this.#jobPath(cronJob, name)).catch((error: unknown) => {
        event('Warning', 'FailedGet', `Get job: ${errorMessage(error)}`);
        throw error;
      });
      if (!(await this.#delete(job, event))) {
        throw new Error(`could not replace job ${cronJob.metadata.namespace}/${name}`);
      }
    }
  }

  /** The job, also one that was made before and not written down; undefined where the name is another's. */
  async #create(cronJob: CronJob, plan: Plan, name: string, time: EpochMs, event: Event): Promise<Job | undefined> {
    const { client } = this.#context;
    const { namespace, uid } = cronJob.metadata;
    const { metadata = {}, spec } = cronJob.spec.jobTemplate;
    // A CronJob without a time zone has UTC here, whatever the controller's own is.
    const at = rfc3339InZone(time, cronJob.spec.timeZone === undefined ? 'UTC' : plan.timeZone);
    const body = {
      apiVersion: BATCH_V1,
      kind: JOB.kind,
      metadata: {
        name,
        ...(metadata.labels === undefined ? {} : { labels: metadata.labels }),
        annotations: { ...metadata.annotations, [SCHEDULED_AT]: at },
        ownerReferences: [controllerReference(CRON_JOB, cronJob)],
      },
      spec,
    };
    try {
      const job = await client.create<Job>(resourcePath(BATCH_V1, JOB.plural, { namespace }), body);
      event('Normal', 'SuccessfulCreate', `Created job ${job.metadata.name}`);
      this.metrics.observe(elapsedMs(time, this.#context.clock.now()) / 1000);
      return job;
    } catch (error) {
      if (isAlreadyExists(error)) {
        const job = await client.get<Job>(this.#jobPath(cronJob, name));
        return controllerOf(job)?.uid === uid ? job : undefined;
      }
      if (!isNamespaceTerminating(error))
        event('Warning', 'FailedCreate', `Error creating job: ${errorMessage(error)}`);
      throw error;
    }
  }

  async #write(key: string, cronJob: CronJob, status: CronJobStatus): Promise<void> {
    const whole = ({ active = [], ...rest }: CronJobStatus = {}): object => ({ ...rest, active });
    if (sameJson(whole(cronJob.status), whole(status))) return;
    const body = { ...cronJob, apiVersion: BATCH_V1, kind: CRON_JOB.kind, status };
    try {
      this.#writes.written(key, await this.#context.client.replace<CronJob>(pathOf(CRON_JOB, cronJob, 'status'), body));
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
