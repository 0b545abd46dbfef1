// What one sync of a job knows: its pods sorted by what they are to the job, and the counts that follow. Pure.

import type { Pod } from '../../../client/types.ts';
import type { Job } from '../shared/objects.ts';
import { isActive, isReady } from '../shared/pods.ts';
import { finishedAt } from './backoff.ts';
import { matchFailurePolicy } from './failure-policy.ts';
import { hasIndex, type Indexes, indexesOf, NO_INDEXES, parseIndexes, union } from './indexes.ts';
import {
  completionIndex,
  hasFailed,
  hasFinalizer,
  hasLimitPerIndex,
  hasSucceeded,
  indexFailures,
  isIndexed,
  isTerminating,
  validIndex,
} from './job-pods.ts';

export interface IndexFacts {
  /** As status.completedIndexes has them. */
  readonly counted: Indexes;
  /** Those, and those of pods that have succeeded since. */
  readonly succeeded: Indexes;
  /** Undefined without a limit per index. */
  readonly failed: Indexes | undefined;
}

export interface JobFacts {
  readonly job: Job;
  readonly pods: readonly Pod[];
  readonly active: readonly Pod[];
  readonly ready: number;
  readonly terminating: number;
  /** With those that are not in the status yet. */
  readonly succeeded: number;
  /** With those that are not in the status yet. */
  readonly failed: number;
  /** Ended, and in no list of the status. */
  readonly newlySucceeded: readonly Pod[];
  readonly newlyFailed: readonly Pod[];
  /** Undefined for a job that is not Indexed. */
  readonly indexes: IndexFacts | undefined;
  /**
   * The last failed pod of each index that has to be tried again, where indexes have limits of their own: the next pod gets its
   * count of failures, so that it keeps its finalizer until then.
   */
  readonly lastFailed: ReadonlyMap<number, Pod>;
  /** Pods whose finalizer has been removed, which the cache does not show yet. */
  readonly released: ReadonlySet<string>;
}

/** `pods`: the job's own. `released`: uids of those whose finalizer the controller has removed. */
export function jobFacts(job: Job, pods: readonly Pod[], released: ReadonlySet<string>): JobFacts {
  const active = pods.filter(isActive);
  const { succeeded: counted = 0, failed: failures = 0, uncountedTerminatedPods: uncounted } = job.status ?? {};
  const [uncountedSucceeded, uncountedFailed] = [uncounted?.succeeded ?? [], uncounted?.failed ?? []];
  const tracked = pods.filter((pod) => isTracked(pod, job, released));
  const without = (uids: readonly string[], pod: Pod): boolean => !uids.includes(pod.metadata.uid);
  const newlySucceeded = tracked.filter((pod) => without(uncountedSucceeded, pod) && hasSucceeded(pod));
  const newlyFailed = tracked.filter((pod) => without(uncountedFailed, pod) && hasFailed(pod, job));
  const countedFailures = newlyFailed.filter((pod) => matchFailurePolicy(job.spec.podFailurePolicy, pod).counts);
  const indexes = isIndexed(job) ? indexFacts(job, pods) : undefined;
  return {
    job,
    pods,
    active,
    ready: active.filter(isReady).length,
    terminating: pods.filter(isTerminating).length,
    succeeded: counted + newlySucceeded.length + uncountedSucceeded.length,
    failed: failures + countedFailures.length + uncountedFailed.length,
    newlySucceeded,
    newlyFailed,
    indexes,
    lastFailed: indexes?.failed === undefined ? new Map() : lastFailedPods(job, tracked, active, indexes),
    released,
  };
}

/** Not counted yet, and of an index that the job has. */
function isTracked(pod: Pod, job: Job, released: ReadonlySet<string>): boolean {
  if (!hasFinalizer(pod) || released.has(pod.metadata.uid)) return false;
  return !isIndexed(job) || validIndex(pod, job) !== undefined;
}

function indexFacts(job: Job, pods: readonly Pod[]): IndexFacts {
  const { completions = 0 } = job.spec;
  const counted = parseIndexes(job.status?.completedIndexes ?? '', completions);
  const uncounted = pods.filter(hasFinalizer);
  const indexesWhere = (holds: (pod: Pod) => boolean): Indexes =>
    indexesOf(uncounted.filter(holds).flatMap((pod) => validIndex(pod, job) ?? []));
  const succeeded = union(counted, indexesWhere(hasSucceeded));
  if (!hasLimitPerIndex(job)) return { counted, succeeded, failed: undefined };
  const known = parseIndexes(job.status?.failedIndexes ?? '', completions);
  return {
    counted,
    succeeded,
    failed: union(
      known,
      indexesWhere((pod) => failsItsIndex(job, pod)),
    ),
  };
}

function failsItsIndex(job: Job, pod: Pod): boolean {
  if (!hasFailed(pod, job)) return false;
  const { counts, failsIndex } = matchFailurePolicy(job.spec.podFailurePolicy, pod);
  return failsIndex === true || (counts && indexFailures(pod).counted >= (job.spec.backoffLimitPerIndex ?? 0));
}

function lastFailedPods(
  job: Job,
  tracked: readonly Pod[],
  active: readonly Pod[],
  { succeeded, failed = NO_INDEXES }: IndexFacts,
): ReadonlyMap<number, Pod> {
  const found = new Map<number, Pod>();
  const running = new Set(active.map(completionIndex));
  for (const pod of tracked) {
    const index = validIndex(pod, job);
    if (index === undefined || !hasFailed(pod, job)) continue;
    if (running.has(index) || hasIndex(succeeded, index) || hasIndex(failed, index)) continue;
    const before = found.get(index);
    if (before === undefined || isLater(pod, before)) found.set(index, pod);
  }
  return found;
}

function isLater(pod: Pod, than: Pod): boolean {
  const failures = (each: Pod): number => indexFailures(each).counted + indexFailures(each).ignored;
  return failures(pod) >= failures(than) && finishedAt(pod) >= finishedAt(than);
}
