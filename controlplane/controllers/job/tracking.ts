// Counting each ended pod exactly once. A pod's uid is written to status.uncountedTerminatedPods, then its finalizer is
// removed, then the uid gives way to a number. Whatever step the controller dies at, the next one goes on from there: a uid of
// the list whose pod still has the finalizer is not counted yet, one without it is. An Indexed job's successes need no list:
// their indexes are one. Pure.

import type { Pod } from '../../../client/types.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { JobCondition, JobStatus } from '../shared/objects.ts';
import { findTrue, newCondition, setCondition } from './conditions.ts';
import type { JobFacts } from './facts.ts';
import { matchFailurePolicy } from './failure-policy.ts';
import { countIndexes, formatIndexes, hasIndex, indexesOf, union } from './indexes.ts';
import { completionIndex, hasFailed, hasFinalizer, hasSucceeded, validIndex } from './job-pods.ts';

/** So many uids keep the status of a job below 20 KB. What is above waits for the next sync. */
const MAX_UNCOUNTED = 500;

export interface Tracking {
  /** To be written before finalizers are removed. */
  readonly status: JobStatus;
  /** Pods whose finalizer is to be removed. */
  readonly release: readonly Pod[];
  /** Uids of the pods that have the finalizer. */
  readonly withFinalizer: ReadonlySet<string>;
  /** Complete or Failed, once all pods are counted. */
  readonly final: JobCondition | undefined;
}

interface Lists {
  readonly succeeded: readonly string[];
  readonly failed: readonly string[];
}

function listsOf({ uncountedTerminatedPods: lists }: JobStatus): Lists {
  return { succeeded: lists?.succeeded ?? [], failed: lists?.failed ?? [] };
}

function withLists(status: JobStatus, { succeeded, failed }: Lists): JobStatus {
  const uncountedTerminatedPods = {
    ...(succeeded.length === 0 ? {} : { succeeded: [...succeeded] }),
    ...(failed.length === 0 ? {} : { failed: [...failed] }),
  };
  return { ...status, uncountedTerminatedPods };
}

/** The status in which pods of the lists that no longer have the finalizer are counted. */
export function countReleased(status: JobStatus, withFinalizer: ReadonlySet<string>): JobStatus {
  const { succeeded, failed } = listsOf(status);
  const left = {
    succeeded: succeeded.filter((uid) => withFinalizer.has(uid)),
    failed: failed.filter((uid) => withFinalizer.has(uid)),
  };
  const counted = { ...status };
  const successes = succeeded.length - left.succeeded.length;
  const failures = failed.length - left.failed.length;
  if (successes > 0) counted.succeeded = (status.succeeded ?? 0) + successes;
  if (failures > 0) counted.failed = (status.failed ?? 0) + failures;
  return withLists(counted, left);
}

/**
 * `status`: as it is to be otherwise. `end`: why the job ends; then every pod of it is released, and one that has not succeeded
 * counts as failed where the job has.
 */
export function trackPods(
  facts: JobFacts,
  status: JobStatus,
  end: JobCondition | undefined,
  now: EpochMs,
): Tracking & { readonly full: boolean } {
  const { job, pods, indexes, released } = facts;
  const uncounted = pods.filter((pod) => hasFinalizer(pod) && !released.has(pod.metadata.uid));
  const withFinalizer = new Set(uncounted.map(({ metadata }) => metadata.uid));
  const counted = countReleased(status, withFinalizer);
  const succeeded = [...listsOf(counted).succeeded];
  const failed = [...listsOf(counted).failed];
  const [known, release] = [listsOf(job.status ?? {}), [] as Pod[]];
  let done = indexes?.succeeded;
  let newIndexes = 0;
  const ofIndex = (pod: Pod): number => completionIndex(pod) ?? -1;
  for (const pod of done === undefined ? uncounted : uncounted.toSorted((a, b) => ofIndex(a) - ofIndex(b))) {
    if (newIndexes + succeeded.length + failed.length >= MAX_UNCOUNTED) {
      return { ...result(), full: true };
    }
    if (!mayRelease(facts, pod, end)) continue;
    release.push(pod);
    const { uid } = pod.metadata;
    const index = validIndex(pod, job);
    if (hasSucceeded(pod) && !known.failed.includes(uid)) {
      if (done === undefined) {
        if (!known.succeeded.includes(uid)) succeeded.push(uid);
      } else if (index !== undefined && indexes !== undefined && !hasIndex(indexes.counted, index)) {
        newIndexes++;
        done = union(done, indexesOf([index]));
      }
    } else if (countsAsFailed(facts, pod, end) && !known.failed.includes(uid)) failed.push(uid);
  }
  return { ...result(), full: false };

  function result(): Tracking {
    const listed = withLists(counted, { succeeded, failed });
    if (indexes !== undefined && done !== undefined) {
      listed.succeeded = countIndexes(done);
      listed.completedIndexes = formatIndexes(done);
      if (indexes.failed === undefined) delete listed.failedIndexes;
      else listed.failedIndexes = formatIndexes(indexes.failed);
    }
    return { ...announce(listed, end, now), release, withFinalizer };
  }
}

/** A failed pod whose index is tried again keeps its finalizer until the next pod of the index is there. */
function mayRelease({ job, lastFailed }: JobFacts, pod: Pod, end: JobCondition | undefined): boolean {
  if (job.metadata.deletionTimestamp !== undefined || end !== undefined || hasSucceeded(pod)) return true;
  if (!hasFailed(pod, job)) return false;
  const index = completionIndex(pod);
  return index === undefined || lastFailed.get(index)?.metadata.uid !== pod.metadata.uid;
}

function countsAsFailed({ job, indexes }: JobFacts, pod: Pod, end: JobCondition | undefined): boolean {
  const jobFailed = end !== undefined && end.type !== 'SuccessCriteriaMet';
  if (!jobFailed && !hasFailed(pod, job)) return false;
  if (indexes !== undefined && validIndex(pod, job) === undefined) return false;
  return matchFailurePolicy(job.spec.podFailurePolicy, pod).counts;
}

/** The condition that announces the end goes into the status before the finalizers go; the one that follows, after that. */
function announce(status: JobStatus, end: JobCondition | undefined, now: EpochMs): Pick<Tracking, 'status' | 'final'> {
  if (end === undefined || end.type === 'Failed') return { status, final: end };
  const { conditions = [] } = status;
  const known = findTrue(conditions, end.type === 'FailureTarget' ? 'FailureTarget' : 'SuccessCriteriaMet');
  const type = end.type === 'FailureTarget' ? 'Failed' : 'Complete';
  return {
    status: known === undefined ? { ...status, conditions: [...conditions, end] } : status,
    final: newCondition(type, end.reason ?? '', end.message ?? '', now),
  };
}

/** The status of a job that has ended; undefined while pods are not counted, or not gone. */
export function finishedStatus(status: JobStatus, final: JobCondition | undefined): JobStatus | undefined {
  const { succeeded, failed } = listsOf(status);
  if (final === undefined || succeeded.length + failed.length > 0 || (status.terminating ?? 0) > 0) return undefined;
  const conditions = [...setCondition(status.conditions ?? [], final)];
  return {
    ...status,
    conditions,
    ...(final.type === 'Complete' ? { completionTime: final.lastTransitionTime } : {}),
  };
}

/** A count that the server leaves out when it is 0 counts as 0, an empty list as none. */
export function sameStatus(a: JobStatus | undefined, b: JobStatus): boolean {
  const whole = (status: JobStatus = {}): JobStatus => {
    const { active = 0, succeeded = 0, failed = 0, completedIndexes = '', conditions = [] } = status;
    return { ...withLists(status, listsOf(status)), active, succeeded, failed, completedIndexes, conditions };
  };
  return sameJson(whole(a), whole(b));
}
