// What the jobs of a CronJob mean for its status, and which of them are too old to be kept. Pure.

import type { EpochMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { finishedBy } from '../job/conditions.ts';
import type { CronJob, CronJobStatus, Job } from '../shared/objects.ts';

export interface SeenJobs {
  readonly status: CronJobStatus;
  /** Of the active list, with how each ended. */
  readonly completed: readonly { readonly name: string; readonly condition: string }[];
  /** They run, and are in no list: made by hand, or by a controller that died before it wrote them down. */
  readonly unexpected: readonly Job[];
  /** In the active list, and not in the cache. */
  readonly missing: readonly string[];
}

/** The status after looking at the jobs. */
export function seeJobs({ status = {} }: CronJob, jobs: readonly Job[]): SeenJobs {
  const active = status.active ?? [];
  const listed = new Set(active.map(({ uid }) => uid));
  const isListed = ({ metadata }: Job): boolean => listed.has(metadata.uid);
  const ended = jobs.filter((job) => finishedBy(job) !== undefined);
  const seen = ended.filter(isListed);
  const uids = new Set(jobs.map(({ metadata }) => metadata.uid));
  const gone = new Set(seen.map(({ metadata }) => metadata.uid));
  return {
    status: withSuccess({ ...status, active: active.filter(({ uid }) => !gone.has(uid ?? '')) }, ended),
    completed: seen.map((job) => ({ name: job.metadata.name, condition: finishedBy(job)?.type ?? '' })),
    unexpected: jobs.filter((job) => finishedBy(job) === undefined && !isListed(job)),
    missing: active.flatMap(({ uid, name }) => (name === undefined || uids.has(uid ?? '') ? [] : [name])),
  };
}

function withSuccess(status: CronJobStatus, ended: readonly Job[]): CronJobStatus {
  let { lastSuccessfulTime } = status;
  for (const job of ended) {
    const { completionTime } = job.status ?? {};
    const at = finishedBy(job)?.type === 'Complete' ? parseRfc3339(completionTime) : undefined;
    const last = parseRfc3339(lastSuccessfulTime);
    if (at !== undefined && (last === undefined || at > last)) lastSuccessfulTime = completionTime;
  }
  return lastSuccessfulTime === undefined ? status : { ...status, lastSuccessfulTime };
}

/** The oldest of those that succeeded and of those that failed, above the limits. */
export function jobsToDelete({ spec }: CronJob, jobs: readonly Job[]): readonly Job[] {
  const above = (condition: string, limit: number | undefined): readonly Job[] => {
    if (limit === undefined) return [];
    const ended = jobs.filter((job) => finishedBy(job)?.type === condition).sort(compareStart);
    return ended.slice(0, Math.max(0, ended.length - limit));
  };
  return [...above('Complete', spec.successfulJobsHistoryLimit), ...above('Failed', spec.failedJobsHistoryLimit)];
}

/** One that has not started comes last. */
function compareStart(a: Job, b: Job): number {
  const start = ({ status }: Job): EpochMs | undefined => parseRfc3339(status?.startTime);
  const [first, second] = [start(a), start(b)];
  if (first !== second) {
    if (first === undefined) return 1;
    if (second === undefined) return -1;
    return first < second ? -1 : 1;
  }
  return a.metadata.name < b.metadata.name ? -1 : 1;
}
