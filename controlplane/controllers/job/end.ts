// Whether a job has come to its end, and by what: what was decided before stays, then failures, then successes. Pure.

import type { Pod } from '../../../client/types.ts';
import { type EpochMs, elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { Job, JobCondition, JobStatus } from '../shared/objects.ts';
import { findTrue, newCondition } from './conditions.ts';
import type { JobFacts } from './facts.ts';
import { matchFailurePolicy } from './failure-policy.ts';
import { countIndexes } from './indexes.ts';
import { hasFailed, isSuspended } from './job-pods.ts';
import { metSuccessPolicy } from './success-policy.ts';

const MAX_INT32 = 2 ** 31 - 1;

/**
 * SuccessCriteriaMet, FailureTarget, or the Failed that follows a FailureTarget of the status; undefined for a job that goes on,
 * and for one whose completions are reached: that is for `completed` to say, when no pod is active any more.
 */
export function decideEnd(facts: JobFacts, status: JobStatus, now: EpochMs): JobCondition | undefined {
  const met = findTrue(status.conditions, 'SuccessCriteriaMet');
  if (met !== undefined) return met;
  const target = findTrue(status.conditions, 'FailureTarget');
  if (target !== undefined) return newCondition('Failed', target.reason ?? '', target.message ?? '', now);
  const failure = policyFailure(facts) ?? limitFailure(facts, status, now) ?? indexFailure(facts);
  if (failure !== undefined) return newCondition('FailureTarget', failure.reason, failure.message, now);
  const { job, indexes } = facts;
  if (indexes === undefined) return undefined;
  const message = metSuccessPolicy(job.spec.successPolicy, job.spec.completions ?? 0, indexes.succeeded);
  return message === undefined ? undefined : newCondition('SuccessCriteriaMet', 'SuccessPolicy', message, now);
}

interface Failure {
  readonly reason: string;
  readonly message: string;
}

function policyFailure({ job, pods }: JobFacts): Failure | undefined {
  for (const pod of pods) {
    if (!hasFailed(pod, job)) continue;
    const { failsJob } = matchFailurePolicy(job.spec.podFailurePolicy, pod);
    if (failsJob !== undefined) return { reason: 'PodFailurePolicy', message: failsJob };
  }
  return undefined;
}

function limitFailure({ job, pods, failed }: JobFacts, status: JobStatus, now: EpochMs): Failure | undefined {
  const limit = job.spec.backoffLimit ?? MAX_INT32;
  if (failed > limit || restartsPastLimit(job, limit, pods)) {
    return { reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' };
  }
  return deadlineLeftMs(job, status, now) === 0
    ? { reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' }
    : undefined;
}

/** Containers that are restarted in place count, too, in pods that have not ended. */
function restartsPastLimit({ spec }: Job, limit: number, pods: readonly Pod[]): boolean {
  if (spec.template.spec?.restartPolicy !== 'OnFailure') return false;
  let restarts = 0;
  for (const { status } of pods) {
    if (status?.phase !== 'Running' && status?.phase !== 'Pending') continue;
    const statuses = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
    for (const { restartCount } of statuses) restarts += restartCount;
  }
  return limit === 0 ? restarts > 0 : restarts >= limit;
}

/**
 * Ms until activeDeadlineSeconds have passed, 0 when they have; undefined for a job without, not started, or suspended. One that
 * is being resumed is about to start anew.
 */
export function deadlineLeftMs(job: Job, { startTime, conditions }: JobStatus, now: EpochMs): number | undefined {
  const { activeDeadlineSeconds } = job.spec;
  const start = parseRfc3339(startTime);
  if (activeDeadlineSeconds === undefined || start === undefined) return undefined;
  if (isSuspended(job) || findTrue(conditions, 'Suspended') !== undefined) return undefined;
  return Math.max(0, activeDeadlineSeconds * 1000 - elapsedMs(start, now));
}

function indexFailure({ job, indexes }: JobFacts): Failure | undefined {
  if (indexes?.failed === undefined) return undefined;
  const { maxFailedIndexes, completions = 0 } = job.spec;
  const [failed, succeeded] = [countIndexes(indexes.failed), countIndexes(indexes.succeeded)];
  if (maxFailedIndexes !== undefined && failed > maxFailedIndexes) {
    const message = 'Job has exceeded the specified maximal number of failed indexes';
    return { reason: 'MaxFailedIndexesExceeded', message };
  }
  return failed > 0 && failed + succeeded >= completions
    ? { reason: 'FailedIndexes', message: 'Job has failed indexes' }
    : undefined;
}

/** How many pods count as succeeded: of an Indexed job, its indexes. */
export function successes({ succeeded, indexes }: JobFacts): number {
  return indexes === undefined ? succeeded : countIndexes(indexes.succeeded);
}

/** Without a number of completions one success ends the job, once the other pods have ended. */
export function completed(facts: JobFacts, active: number, now: EpochMs): JobCondition | undefined {
  const { completions } = facts.job.spec;
  const reached = completions === undefined ? successes(facts) > 0 : successes(facts) >= completions;
  if (!reached || active > 0) return undefined;
  const message = 'Reached expected number of succeeded pods';
  return newCondition('SuccessCriteriaMet', 'CompletionsReached', message, now);
}
