// The TTL controller: deletes a job ttlSecondsAfterFinished after its end, with its pods. The job is read from the server before,
// since its TTL may have been changed.

import { isNotFound } from '../../../client/errors.ts';
import { objectKey } from '../../../client/store.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { type EpochMs, elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { finishedBy } from '../job/conditions.ts';
import { JOB, type Job, pathOf } from '../shared/objects.ts';

/** Ms until the job is to be deleted, 0 when it is; undefined for a job that has not ended, has no TTL, or is on its way out. */
export function ttlLeftMs(job: Job, now: EpochMs): number | undefined {
  const { ttlSecondsAfterFinished: ttl } = job.spec;
  const condition = finishedBy(job);
  if (ttl === undefined || condition === undefined || job.metadata.deletionTimestamp !== undefined) return undefined;
  const end = parseRfc3339(condition.lastTransitionTime);
  if (end === undefined) {
    throw new Error(
      `unable to find the time when the Job ${job.metadata.namespace}/${job.metadata.name} finished: its condition has none`,
    );
  }
  return Math.max(0, ttl * 1000 - elapsedMs(end, now));
}

/** Keys are those of jobs. */
export class TtlAfterFinishedController implements Controller {
  readonly name = 'ttl-after-finished';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Pick<Informers, 'jobs'>;

  constructor(context: ControllerContext, informers: Pick<Informers, 'jobs'>) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    informers.jobs.onChange((changes) => {
      for (const { type, object } of changes) {
        const ends = object.spec.ttlSecondsAfterFinished !== undefined && finishedBy(object) !== undefined;
        if (type !== 'removed' && ends) this.queue.add(objectKey(object));
      }
    });
  }

  async sync(key: string): Promise<void> {
    const job = this.#informers.jobs.get(key);
    if (job === undefined || !this.#isDue(key, job)) return;
    const { client } = this.#context;
    try {
      const fresh = await client.get<Job>(pathOf(JOB, job));
      if (!this.#isDue(key, fresh)) return;
      const { uid } = fresh.metadata;
      await client.delete(pathOf(JOB, fresh), { propagationPolicy: 'Foreground', preconditions: { uid } });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** One that is not due comes back when it is. */
  #isDue(key: string, job: Job): boolean {
    const left = ttlLeftMs(job, this.#context.clock.now());
    if (left !== undefined && left > 0) this.queue.addAfter(key, left);
    return left === 0;
  }
}
